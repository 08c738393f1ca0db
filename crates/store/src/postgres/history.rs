//! Histories: commits after a base, bases, and pins.

use std::ops::ControlFlow;
use std::sync::Arc;

use deadpool_postgres::{Object, Transaction};
use parking_lot::Mutex;
use tokio_postgres::Client;
use uuid::Uuid;

use super::append::DURABLE;
use super::connection::Connections;
use super::discard as discard_connection;
use super::error::failed;
use crate::{Outcome, PageMax, Pinned, Run, StoreError};
use blackboard_board::{Digest, Revision, SessionId};

/// The maximum number of commits on a page, whatever its reader asks for.
const PAGE_COMMITS_MAX: usize = 10_000;

/// A page of commits, beside the base at the same moment. The first commit is returned at any length.
const PAGE: &str = "SELECT session.base, page.revision, page.frame FROM session LEFT JOIN LATERAL ( \
        SELECT revision, frame FROM ( \
            SELECT revision, frame, \
                sum(octet_length(frame)) OVER (ORDER BY revision) - octet_length(frame) AS before \
            FROM (SELECT revision, frame FROM history_commit \
                WHERE session = $1 AND revision > $2 ORDER BY revision LIMIT $3) AS found \
        ) AS weighed WHERE before < $4 \
    ) AS page ON true WHERE session.id = $1 ORDER BY page.revision";

/// The base of a history.
pub(super) struct Base {
    /// `None` for a history from its first commit.
    pub(super) revision: Option<Revision>,
    content: Option<Uuid>,
    is_staged: bool,
}

/// Returns the base in force, `None` for an unknown session.
pub(super) async fn base(client: &Client, session: SessionId) -> Result<Option<Base>, StoreError> {
    let sql = "SELECT base, base_content, staged_at IS NOT NULL FROM session WHERE id = $1";
    let row = client.query_opt(sql, &[&session.0]).await.map_err(failed)?;
    let Some(row) = row else { return Ok(None) };
    let read = || -> Result<Base, tokio_postgres::Error> {
        let revision: Option<i64> = row.try_get(0)?;
        let revision = revision.map(|revision| Revision(revision.cast_unsigned()));
        Ok(Base { revision, content: row.try_get(1)?, is_staged: row.try_get(2)? })
    };
    read().map(Some).map_err(failed)
}

/// Returns a page of commits, as [`Store::commits`](crate::Store::commits) does.
pub(super) async fn commits(
    client: &Client,
    session: SessionId,
    after: Revision,
    max: PageMax,
) -> Result<Vec<(Revision, Vec<u8>)>, StoreError> {
    let number = i64::try_from(max.commits.min(PAGE_COMMITS_MAX)).unwrap_or(i64::MAX);
    let bytes = i64::try_from(max.bytes).unwrap_or(i64::MAX);
    let after_sql = i64::try_from(after.0).unwrap_or(i64::MAX);
    let rows = client.query(PAGE, &[&session.0, &after_sql, &number, &bytes]).await;
    let mut commits = Vec::new();
    for row in rows.map_err(failed)? {
        let base: Option<i64> = row.try_get(0).map_err(failed)?;
        let revision: Option<i64> = row.try_get(1).map_err(failed)?;
        let frame: Option<Vec<u8>> = row.try_get(2).map_err(failed)?;
        let base = base.map(|base| Revision(base.cast_unsigned()));
        if let Some(base) = base.filter(|base| *base > after) {
            return Err(StoreError::Forgotten { session, base });
        }
        if let (Some(revision), Some(frame)) = (revision, frame) {
            commits.push((Revision(revision.cast_unsigned()), frame));
        }
    }
    Ok(commits)
}

/// Visits the parts of the base in force. `visit` is called between the queries, and may block.
pub(super) fn read_base(
    connections: &Connections,
    client: &Client,
    session: SessionId,
    visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let Some(Base { revision: Some(revision), content: Some(content), .. }) =
        connections.wait(base(client, session))?
    else {
        return Ok(());
    };
    let mut last = None;
    loop {
        let page = connections.wait(parts(client, session, content, last))?;
        if page.is_empty() {
            break;
        }
        for (part, frame) in page {
            last = Some(part);
            if visit(&frame).is_break() {
                return Ok(());
            }
        }
    }
    if last.is_some() {
        return Ok(());
    }
    // Another base may have come in force meanwhile.
    match connections.wait(base(client, session))? {
        Some(now) if now.content == Some(content) => {
            Err(StoreError::DamagedBase { session, revision, part: 0 })
        }
        Some(now) => Err(StoreError::Forgotten { session, base: now.revision.unwrap_or_default() }),
        None => Err(StoreError::NoHistory { session }),
    }
}

/// Returns the next parts, in order.
async fn parts(
    client: &Client,
    session: SessionId,
    content: Uuid,
    after: Option<i64>,
) -> Result<Vec<(i64, Vec<u8>)>, StoreError> {
    let sql = "SELECT part, frame FROM history_base WHERE session = $1 AND content = $2 AND part > $3 \
        ORDER BY part LIMIT 8";
    let after = after.unwrap_or(i64::MIN);
    let rows = client.query(sql, &[&session.0, &content, &after]).await.map_err(failed)?;
    let part = |row: &tokio_postgres::Row| Ok((row.try_get(0)?, row.try_get(1)?));
    rows.iter().map(|row| part(row).map_err(failed)).collect()
}

/// Begins a staged history.
pub(super) async fn stage(client: &Client, session: SessionId) -> Result<(), StoreError> {
    let sql = "INSERT INTO session (id, head, staged_at) \
        VALUES ($1, 0, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) ON CONFLICT DO NOTHING";
    match client.execute(sql, &[&session.0]).await.map_err(failed)? {
        0 => Err(StoreError::HistoryExists { session }),
        _ => Ok(()),
    }
}

/// Stores the parts of a base under a new content, in place of the ones that were put before.
pub(super) async fn put_base(
    client: &Client,
    session: SessionId,
    revision: Revision,
    (content, parts): (Uuid, &mut dyn Iterator<Item = Vec<u8>>),
) -> Result<(), StoreError> {
    let now = base(client, session).await?.ok_or(StoreError::NoHistory { session })?;
    match now.revision {
        Some(base) if base == revision => return Ok(()),
        Some(base) if base > revision => return Err(StoreError::Forgotten { session, base }),
        Some(_) | None => {}
    }
    let put = async {
        let insert =
            "INSERT INTO history_base (session, content, part, frame) VALUES ($1, $2, $3, $4)";
        let insert = client.prepare(insert).await.map_err(failed)?;
        for (part, frame) in (1_i64..).zip(parts) {
            client
                .execute(&insert, &[&session.0, &content, &part, &frame])
                .await
                .map_err(failed)?;
        }
        let sql = "UPDATE session SET put_base = $2, put_content = $3 \
            FROM (SELECT put_content FROM session WHERE id = $1 FOR UPDATE) AS former \
            WHERE id = $1 AND (base IS NULL OR base < $2) AND ended_at IS NULL \
            RETURNING former.put_content";
        let revision = revision.0.cast_signed();
        let row =
            client.query_opt(sql, &[&session.0, &revision, &content]).await.map_err(failed)?;
        let Some(row) = row else {
            // Another server truncated the history meanwhile.
            let now = base(client, session).await?.and_then(|now| now.revision);
            return Err(match now {
                Some(base) => StoreError::Forgotten { session, base },
                None => StoreError::NoHistory { session },
            });
        };
        row.try_get::<_, Option<Uuid>>(0).map_err(failed)
    };
    match put.await {
        Ok(former) => remove_parts(client, session, former).await,
        Err(error) => {
            // The leader deletes what is left of a broken connection.
            remove_parts(client, session, Some(content)).await.ok();
            Err(error)
        }
    }
}

async fn remove_parts(
    client: &Client,
    session: SessionId,
    content: Option<Uuid>,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM history_base WHERE session = $1 AND content = $2";
    client.execute(sql, &[&session.0, &content]).await.map_err(failed).map(drop)
}

/// Puts the base that was put last in force.
pub(super) async fn set_base(
    client: &mut Object,
    session: SessionId,
    revision: Revision,
) -> Result<Outcome, StoreError> {
    let revision = revision.0.cast_signed();
    let transaction = client.transaction().await.map_err(failed)?;
    transaction.batch_execute(DURABLE).await.map_err(failed)?;
    let forget = "WITH gone AS (DELETE FROM history_commit WHERE session = $1 AND revision <= $2 \
            RETURNING octet_length(frame) AS length) \
        SELECT coalesce(sum(length), 0)::bigint FROM gone";
    let set = "UPDATE session SET base = put_base, base_content = put_content, put_base = NULL, \
            put_content = NULL, seal = CASE WHEN head > $2 THEN seal END \
        FROM (SELECT base_content FROM session WHERE id = $1 FOR UPDATE) AS former \
        WHERE id = $1 AND put_base = $2 AND head >= $2 AND staged_at IS NULL AND ended_at IS NULL \
        RETURNING former.base_content";
    let row = transaction.query_opt(set, &[&session.0, &revision]).await.map_err(failed)?;
    let Some(row) = row else {
        let is_set = "SELECT base = $2 FROM session WHERE id = $1";
        let row = transaction.query_opt(is_set, &[&session.0, &revision]).await.map_err(failed)?;
        let is_set =
            row.map(|row| row.try_get::<_, Option<bool>>(0)).transpose().map_err(failed)?;
        return Ok(if is_set.flatten() == Some(true) {
            Outcome::Appended
        } else {
            Outcome::Conflict { head: Revision::default() }
        });
    };
    let former: Option<Uuid> = row.try_get(0).map_err(failed)?;
    let row = transaction.query_one(forget, &[&session.0, &revision]).await.map_err(failed)?;
    let gone: i64 = row.try_get(0).map_err(failed)?;
    let bytes = "UPDATE session SET bytes = bytes - $2 WHERE id = $1";
    transaction.execute(bytes, &[&session.0, &gone]).await.map_err(failed)?;
    let parts = "DELETE FROM history_base WHERE session = $1 AND content = $2";
    transaction.execute(parts, &[&session.0, &former]).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    Ok(Outcome::Appended)
}

/// Deletes a staged history.
pub(super) async fn discard(client: &mut Object, session: SessionId) -> Result<(), StoreError> {
    let staged = base(client, session).await?.is_some_and(|base| base.is_staged);
    if staged { forget(client, &[session]).await } else { Ok(()) }
}

/// Deletes whole histories, with the names that still belong to them. A session that exists under its name stays: its
/// deletion was lost in a failover.
pub(super) async fn forget(client: &mut Object, sessions: &[SessionId]) -> Result<(), StoreError> {
    let transaction = client.transaction().await.map_err(failed)?;
    transaction.batch_execute(DURABLE).await.map_err(failed)?;
    let ids = without_existing(&transaction, sessions).await?;
    for sql in [
        "DELETE FROM session_name WHERE name IN (SELECT name FROM session WHERE id = ANY ($1)) AND session = ANY ($1)",
        "DELETE FROM session WHERE id = ANY ($1)",
        "DELETE FROM history_commit WHERE session = ANY ($1)",
        "DELETE FROM history_base WHERE session = ANY ($1)",
        "DELETE FROM text_entry WHERE session = ANY ($1)",
        "DELETE FROM text_position WHERE session = ANY ($1)",
    ] {
        transaction.execute(sql, &[&ids]).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}

/// Returns the ids of these sessions, but of those that exist under their names.
pub(super) async fn without_existing(
    transaction: &Transaction<'_>,
    sessions: &[SessionId],
) -> Result<Vec<Uuid>, StoreError> {
    let sql = "SELECT session.id FROM session JOIN session_name ON session_name.name = session.name \
        AND session_name.session = session.id WHERE session.id = ANY ($1) AND session.is_live FOR UPDATE OF session";
    let mut ids: Vec<Uuid> = sessions.iter().map(|session| session.0).collect();
    let rows = transaction.query(sql, &[&ids]).await.map_err(failed)?;
    let existing: Result<Vec<Uuid>, _> = rows.iter().map(|row| row.try_get(0)).collect();
    let existing = existing.map_err(failed)?;
    ids.retain(|id| !existing.contains(id));
    Ok(ids)
}

/// A run that was not stored since a blob is gone looks like a conflict; tells them apart.
pub(super) async fn tell_missing_blobs(
    client: &Client,
    runs: &[&Run],
    outcomes: &mut [Outcome],
) -> Result<(), StoreError> {
    for (run, outcome) in runs.iter().zip(outcomes) {
        let blobs = run.row.as_ref().map(|row| row.blobs.as_slice()).unwrap_or_default();
        if !matches!(outcome, Outcome::Conflict { .. }) || blobs.is_empty() {
            continue;
        }
        let digests: Vec<&[u8]> = blobs.iter().map(|Digest(bytes)| bytes.as_slice()).collect();
        let sql = "SELECT count(*) FROM blob WHERE session = $1 AND digest = ANY ($2::bytea[])";
        let row = client.query_one(sql, &[&run.session.0, &digests]).await.map_err(failed)?;
        let found: i64 = row.try_get(0).map_err(failed)?;
        if usize::try_from(found).unwrap_or_default() < blobs.len() {
            *outcome = Outcome::BlobsMissing;
        }
    }
    Ok(())
}

/// Its reader may take long, and it locks no row.
const BEGIN_SNAPSHOT: &str = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; \
    SET LOCAL idle_in_transaction_session_timeout = '65min'";

/// A history as of one moment: a transaction that sees nothing later.
struct Snapshot {
    connections: Arc<Connections>,
    session: SessionId,
    base: Option<Revision>,
    /// Absent once it is dropped.
    client: Mutex<Option<Object>>,
}

/// Pins the history in force.
pub(super) fn pin(
    connections: &Arc<Connections>,
    session: SessionId,
) -> Result<Box<dyn Pinned>, StoreError> {
    let (client, base) = connections.wait(async {
        let client = connections.snapshot().await?;
        client.batch_execute(BEGIN_SNAPSHOT).await.map_err(failed)?;
        match base(&client, session).await {
            Ok(Some(base)) if !base.is_staged => Ok((client, base.revision)),
            Ok(Some(_) | None) => {
                client.batch_execute("ROLLBACK").await.map_err(failed)?;
                Err(StoreError::NoHistory { session })
            }
            Err(error) => {
                discard_connection(client);
                Err(error)
            }
        }
    })?;
    let connections = Arc::clone(connections);
    Ok(Box::new(Snapshot { connections, session, base, client: Mutex::new(Some(client)) }))
}

impl Pinned for Snapshot {
    fn session(&self) -> SessionId {
        self.session
    }

    fn base(&self) -> Option<Revision> {
        self.base
    }

    fn commits(
        &self,
        after: Revision,
        max: PageMax,
    ) -> Result<Vec<(Revision, Vec<u8>)>, StoreError> {
        let client = self.client.lock();
        let client = client.as_ref().ok_or(StoreError::Closed)?;
        self.connections.wait(commits(client, self.session, after, max))
    }

    fn read_base(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), StoreError> {
        let client = self.client.lock();
        let client = client.as_ref().ok_or(StoreError::Closed)?;
        read_base(&self.connections, client, self.session, visit)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let Some(client) = self.client.lock().take() else { return };
        // The pin may be dropped where nothing may block.
        self.connections.spawn(async move {
            if client.batch_execute("ROLLBACK").await.is_err() {
                discard_connection(client);
            }
        });
    }
}
