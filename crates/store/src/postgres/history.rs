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
use super::statement::{NOW_MS, statement};
use crate::{Outcome, PageMax, Pinned, Run, StoreError};
use blackboard_board::{Digest, Revision, SessionId};

/// The maximum number of commits on a page, whatever its reader asks for.
const PAGE_COMMITS_MAX: usize = 10_000;

/// The base of a history.
pub(super) struct Base {
    /// `None` for a history from its first commit.
    pub(super) revision: Option<Revision>,
    content: Option<Uuid>,
    is_staged: bool,
}

/// Returns the base in force, `None` for an unknown session.
pub(super) async fn base(client: &Client, session: SessionId) -> Result<Option<Base>, StoreError> {
    let base = statement! {
        "SELECT base, base_content, staged_at IS NOT NULL FROM session WHERE id = {session}",
        session = session.0
    };
    let bases = base.read(client, |row| {
        let revision: Option<i64> = row.try_get(0)?;
        let revision = revision.map(|revision| Revision(revision.cast_unsigned()));
        Ok(Base { revision, content: row.try_get(1)?, is_staged: row.try_get(2)? })
    });
    Ok(bases.await?.pop())
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
    let last = i64::try_from(after.0).unwrap_or(i64::MAX);
    // Beside the base at the same moment. The first commit is returned at any length.
    let page = statement! {
        "SELECT session.base, page.revision, page.frame FROM session LEFT JOIN LATERAL ( \
            SELECT revision, frame FROM ( \
                SELECT revision, frame, \
                    sum(octet_length(frame)) OVER (ORDER BY revision) - octet_length(frame) AS before \
                FROM (SELECT revision, frame FROM history_commit \
                    WHERE session = {session} AND revision > {last} ORDER BY revision LIMIT {number}) AS found \
            ) AS weighed WHERE before < {bytes} \
        ) AS page ON true WHERE session.id = {session} ORDER BY page.revision",
        session = session.0, last, number, bytes
    };
    let mut commits = Vec::new();
    for row in page.rows(client).await? {
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
    let after = after.unwrap_or(i64::MIN);
    let parts = statement! {
        "SELECT part, frame FROM history_base \
         WHERE session = {session} AND content = {content} AND part > {after} ORDER BY part LIMIT 8",
        session = session.0, content, after
    };
    parts.read(client, |row| Ok((row.try_get(0)?, row.try_get(1)?))).await
}

/// Begins a staged history.
pub(super) async fn stage(client: &Client, session: SessionId) -> Result<(), StoreError> {
    let stage = statement! {
        "INSERT INTO session (id, head, staged_at) VALUES ({session}, 0, {NOW_MS}) ON CONFLICT DO NOTHING",
        session = session.0
    };
    match stage.execute(client).await? {
        0 => Err(StoreError::HistoryExists { session }),
        _ => Ok(()),
    }
}

/// Stores the parts of a base under a new content, in place of the ones that were put before.
pub(super) async fn put_base(
    client: &Object,
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
        for (part, frame) in (1_i64..).zip(parts) {
            let insert = statement! {
                "INSERT INTO history_base (session, content, part, frame) \
                 VALUES ({session}, {content}, {part}, {frame})",
                session = session.0, content, part, frame
            };
            insert.execute_prepared(client).await?;
        }
        let revision = revision.0.cast_signed();
        let put = statement! {
            "UPDATE session SET put_base = {revision}, put_content = {content} \
             FROM (SELECT put_content FROM session WHERE id = {session} FOR UPDATE) AS former \
             WHERE id = {session} AND (base IS NULL OR base < {revision}) AND ended_at IS NULL \
             RETURNING former.put_content",
            revision, content, session = session.0
        };
        if let Some(former) = put.value_if_any::<Option<Uuid>>(client).await? {
            return Ok(former);
        }
        // Another server truncated the history meanwhile.
        let now = base(client, session).await?.and_then(|now| now.revision);
        Err(match now {
            Some(base) => StoreError::Forgotten { session, base },
            None => StoreError::NoHistory { session },
        })
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
    let remove = statement! {
        "DELETE FROM history_base WHERE session = {session} AND content = {content}",
        session = session.0, content
    };
    remove.execute(client).await.map(drop)
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
    let set = statement! {
        "UPDATE session SET base = put_base, base_content = put_content, put_base = NULL, \
            put_content = NULL, seal = CASE WHEN head > {revision} THEN seal END \
         FROM (SELECT base_content FROM session WHERE id = {session} FOR UPDATE) AS former \
         WHERE id = {session} AND put_base = {revision} AND head >= {revision} AND staged_at IS NULL \
            AND ended_at IS NULL RETURNING former.base_content",
        revision, session = session.0
    };
    let former = set.value_if_any::<Option<Uuid>>(transaction.client()).await?;
    let Some(former) = former else {
        let is_set = statement! {
            "SELECT base = {revision} FROM session WHERE id = {session}",
            revision, session = session.0
        };
        let is_set = is_set.value_if_any::<Option<bool>>(transaction.client()).await?;
        return Ok(if is_set.flatten() == Some(true) {
            Outcome::Appended
        } else {
            Outcome::Conflict { head: Revision::default() }
        });
    };
    let forget = statement! {
        "WITH gone AS (DELETE FROM history_commit WHERE session = {session} AND revision <= {revision} \
            RETURNING octet_length(frame) AS length) \
         SELECT coalesce(sum(length), 0)::bigint FROM gone",
        session = session.0, revision
    };
    let gone: i64 = forget.value(transaction.client()).await?;
    let subtract = statement! {
        "UPDATE session SET bytes = bytes - {gone} WHERE id = {session}",
        gone, session = session.0
    };
    subtract.execute(transaction.client()).await?;
    remove_parts(transaction.client(), session, former).await?;
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
    for delete in [
        statement! {
            "DELETE FROM session_name WHERE name IN (SELECT name FROM session WHERE id = ANY ({ids})) \
             AND session = ANY ({ids})",
            ids
        },
        statement!("DELETE FROM session WHERE id = ANY ({ids})", ids),
        statement!("DELETE FROM history_commit WHERE session = ANY ({ids})", ids),
        statement!("DELETE FROM history_base WHERE session = ANY ({ids})", ids),
        statement!("DELETE FROM text_entry WHERE session = ANY ({ids})", ids),
        statement!("DELETE FROM text_position WHERE session = ANY ({ids})", ids),
    ] {
        delete.execute(transaction.client()).await?;
    }
    transaction.commit().await.map_err(failed)
}

/// Returns the ids of these sessions, but of those that exist under their names.
pub(super) async fn without_existing(
    transaction: &Transaction<'_>,
    sessions: &[SessionId],
) -> Result<Vec<Uuid>, StoreError> {
    let mut ids: Vec<Uuid> = sessions.iter().map(|session| session.0).collect();
    let existing = statement! {
        "SELECT session.id FROM session JOIN session_name ON session_name.name = session.name \
         AND session_name.session = session.id WHERE session.id = ANY ({ids}) AND session.is_live FOR UPDATE OF session",
        ids
    };
    let existing: Vec<Uuid> = existing.read(transaction.client(), |row| row.try_get(0)).await?;
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
        let count = statement! {
            "SELECT count(*) FROM blob WHERE session = {session} AND digest = ANY ({digests}::bytea[])",
            session = run.session.0, digests
        };
        let found: i64 = count.value(client).await?;
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
