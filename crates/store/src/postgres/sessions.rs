//! Sessions by name: their heads, and those that the leader attends to.

use deadpool_postgres::Object;
use uuid::Uuid;

use super::append::DURABLE;
use super::error::failed;
use crate::{Head, StoreError};
use blackboard_board::{Frame, Revision, SessionId, Timestamp};

/// The time after which a staged history was abandoned.
const STAGED_MS_MAX: i64 = 24 * 60 * 60 * 1000;

/// The time for which a deleted session stays after its name has another one.
const REPLACED_MS: i64 = 60 * 60 * 1000;

/// The heads of sessions by name, beside the epoch: at least one row. The seal of an earlier commit is a subquery: joined, the
/// planner would read all commits to find some.
const HEADS: &str = concat!(
    "SELECT meta.epoch, asked.place, session.id, session.head, session.base, session.bytes, \
        CASE WHEN asked.revision = session.head THEN session.seal ELSE (SELECT ",
    seal_of!("frame"),
    " FROM history_commit WHERE history_commit.session = session.id \
                AND history_commit.revision = asked.revision) END \
    FROM meta LEFT JOIN (unnest($1::bytea[], $2::bigint[]) WITH ORDINALITY AS asked (name, revision, place) \
        JOIN session_name ON session_name.name = asked.name \
        JOIN session ON session.id = session_name.session) ON true \
    WHERE meta.id = 1"
);

/// Returns the head of each name's session, and the epoch.
pub(super) async fn heads(
    client: &Object,
    asked: &[(Vec<u8>, Revision)],
) -> Result<(Vec<Option<Head>>, Vec<u8>), StoreError> {
    let names: Vec<&[u8]> = asked.iter().map(|(name, _)| name.as_slice()).collect();
    let revisions: Vec<i64> = asked.iter().map(|(_, revision)| revision.0.cast_signed()).collect();
    let statement = client.prepare_cached(HEADS).await.map_err(failed)?;
    let rows = client.query(&statement, &[&names, &revisions]).await.map_err(failed)?;
    let (mut heads, mut epoch) = (vec![None; asked.len()], Vec::new());
    for row in rows {
        epoch = row.try_get(0).map_err(failed)?;
        let Some(place) = row.try_get::<_, Option<i64>>(1).map_err(failed)? else { continue };
        let place = usize::try_from(place).unwrap_or_default();
        if let Some(head) = place.checked_sub(1).and_then(|place| heads.get_mut(place)) {
            *head = Some(head_of(&row).map_err(failed)?);
        }
    }
    Ok((heads, epoch))
}

fn head_of(row: &tokio_postgres::Row) -> Result<Head, tokio_postgres::Error> {
    let base: Option<i64> = row.try_get(4)?;
    let asked: Option<&[u8]> = row.try_get(6)?;
    Ok(Head {
        session: SessionId(row.try_get(2)?),
        revision: Revision(row.try_get::<_, i64>(3)?.cast_unsigned()),
        base: base.map(|base| Revision(base.cast_unsigned())),
        history_bytes: row.try_get::<_, i64>(5)?.cast_unsigned(),
        asked: asked.and_then(Frame::seal),
    })
}

/// Begins a transaction that holds the sessions of these names.
pub(super) async fn hold(client: &Object, names: &[Vec<u8>]) -> Result<(), StoreError> {
    client.batch_execute("BEGIN").await.map_err(failed)?;
    client.batch_execute(DURABLE).await.map_err(failed)?;
    let sql = "SELECT FROM session_name JOIN session ON session.id = session_name.session \
        WHERE session_name.name = ANY ($1::bytea[]) ORDER BY session_name.name FOR UPDATE";
    match client.execute(sql, &[&names]).await {
        Ok(_) => Ok(()),
        Err(error) => {
            client.batch_execute("ROLLBACK").await.map_err(failed)?;
            Err(failed(error))
        }
    }
}

/// Returns the names of sessions in which something has expired.
pub(super) async fn due(
    client: &Object,
    now: Timestamp,
    max: usize,
) -> Result<Vec<Vec<u8>>, StoreError> {
    let sql =
        "SELECT name FROM session WHERE next_due <= $1 AND is_live ORDER BY next_due LIMIT $2";
    names(client, sql, &[&now.0, &count(max)]).await
}

/// Returns the names of sessions whose history a setting limits, in order.
pub(super) async fn limited(
    client: &Object,
    after: &[u8],
    max: usize,
) -> Result<Vec<Vec<u8>>, StoreError> {
    let sql = "SELECT name FROM session WHERE is_limited AND name > $1 ORDER BY name LIMIT $2";
    names(client, sql, &[&after, &count(max)]).await
}

/// Returns the names of sessions that may have blobs to collect, in order.
pub(super) async fn collectable(
    client: &Object,
    before: Timestamp,
    after: &[u8],
    max: usize,
) -> Result<Vec<Vec<u8>>, StoreError> {
    let sql = "SELECT name FROM session JOIN (SELECT session, sum(bytes) AS bytes FROM blob \
            GROUP BY session HAVING min(touched_at) < $1) AS stored ON stored.session = session.id \
        WHERE is_live AND name > $2 AND (base IS NOT NULL OR has_blobs OR image_bytes < stored.bytes) \
        ORDER BY name LIMIT $3";
    names(client, sql, &[&before.0, &after, &count(max)]).await
}

/// Returns histories that nobody needs: of sessions deleted before a time, of those whose name has another session, and
/// those that were never adopted.
pub(super) async fn over(
    client: &Object,
    before: Timestamp,
    max: usize,
) -> Result<Vec<SessionId>, StoreError> {
    let sql = "WITH now AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) \
        (SELECT id FROM session WHERE ended_at < $1 LIMIT $2) UNION \
        (SELECT id FROM session, now WHERE ended_at < now.ms - $3 AND NOT EXISTS \
            (SELECT FROM session_name WHERE session_name.name = session.name \
             AND session_name.session = session.id) LIMIT $2) UNION \
        (SELECT id FROM session, now WHERE staged_at < now.ms - $4 LIMIT $2)";
    let rows = client.query(sql, &[&before.0, &count(max), &REPLACED_MS, &STAGED_MS_MAX]).await;
    let ids: Result<Vec<Uuid>, _> =
        rows.map_err(failed)?.iter().map(|row| row.try_get(0)).collect();
    Ok(ids.map_err(failed)?.into_iter().map(SessionId).collect())
}

/// Deletes chunks and parts that belong to no blob and no base, and have done so for a day. Their contents have ids that
/// begin with the database's time.
pub(super) async fn sweep(client: &Object) -> Result<(), StoreError> {
    let now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let now: i64 = client.query_one(now, &[]).await.map_err(failed)?.try_get(0).map_err(failed)?;
    let before = u128::from(now.saturating_sub(STAGED_MS_MAX).unsigned_abs());
    // A UUID of version 7 begins with 48 bits of milliseconds.
    let before = Uuid::from_u128(before << 80);
    for sql in [
        "DELETE FROM blob_chunk WHERE content < $1 AND NOT EXISTS (SELECT FROM blob \
            WHERE blob.session = blob_chunk.session AND blob.content = blob_chunk.content)",
        "DELETE FROM history_base WHERE content < $1 AND NOT EXISTS (SELECT FROM session \
            WHERE session.id = history_base.session \
            AND history_base.content IN (session.base_content, session.put_content))",
    ] {
        client.execute(sql, &[&before]).await.map_err(failed)?;
    }
    Ok(())
}

async fn names(
    client: &Object,
    sql: &str,
    parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)],
) -> Result<Vec<Vec<u8>>, StoreError> {
    let statement = client.prepare_cached(sql).await.map_err(failed)?;
    let rows = client.query(&statement, parameters).await.map_err(failed)?;
    let names: Result<_, _> = rows.iter().map(|row| row.try_get(0)).collect();
    names.map_err(failed)
}

/// Returns a number of rows as SQL takes it.
pub(super) fn count(max: usize) -> i64 {
    i64::try_from(max).unwrap_or(i64::MAX)
}
