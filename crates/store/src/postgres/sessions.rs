//! Sessions by name: their heads, and those that the leader attends to.

use deadpool_postgres::Object;
use uuid::Uuid;

use super::append::DURABLE;
use super::error::failed;
use super::statement::{NOW_MS, statement};
use crate::{Head, StoreError};
use blackboard_board::{Frame, Revision, SessionId, Timestamp};

/// The time after which a staged history was abandoned.
const STAGED_MS_MAX: i64 = 24 * 60 * 60 * 1000;

/// The time for which a deleted session stays after its name has another one.
const REPLACED_MS: i64 = 60 * 60 * 1000;

/// Returns the head of each name's session, and the epoch.
pub(super) async fn heads(
    client: &Object,
    asked: &[(Vec<u8>, Revision)],
) -> Result<(Vec<Option<Head>>, Vec<u8>), StoreError> {
    let names: Vec<&[u8]> = asked.iter().map(|(name, _)| name.as_slice()).collect();
    let revisions: Vec<i64> = asked.iter().map(|(_, revision)| revision.0.cast_signed()).collect();
    // At least one row, for the epoch. The seal of an earlier commit is a subquery: joined, the planner would read all
    // commits to find some.
    let sql = statement! {
        concat!(
            "SELECT meta.epoch, asked.place, session.id, session.head, session.base, session.bytes, \
                CASE WHEN asked.revision = session.head THEN session.seal ELSE (SELECT ",
            seal_of!("frame"),
            " FROM history_commit WHERE history_commit.session = session.id \
                        AND history_commit.revision = asked.revision) END \
            FROM meta LEFT JOIN (unnest({names}::bytea[], {revisions}::bigint[]) \
                    WITH ORDINALITY AS asked (name, revision, place) \
                JOIN session_name ON session_name.name = asked.name \
                JOIN session ON session.id = session_name.session) ON true \
            WHERE meta.id = 1"
        ),
        names, revisions
    };
    let rows = sql.rows_prepared(client).await?;
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
    let hold = statement! {
        "SELECT FROM session_name JOIN session ON session.id = session_name.session \
         WHERE session_name.name = ANY ({names}::bytea[]) ORDER BY session_name.name FOR UPDATE",
        names
    };
    match hold.execute(client).await {
        Ok(_) => Ok(()),
        Err(error) => {
            client.batch_execute("ROLLBACK").await.map_err(failed)?;
            Err(error)
        }
    }
}

/// Returns the names of sessions in which something has expired.
pub(super) async fn due(
    client: &Object,
    now: Timestamp,
    max: usize,
) -> Result<Vec<Vec<u8>>, StoreError> {
    let (Timestamp(now), max) = (now, count(max));
    let due = statement! {
        "SELECT name FROM session WHERE next_due <= {now} AND is_live ORDER BY next_due LIMIT {max}",
        now, max
    };
    due.read_prepared(client, |row| row.try_get(0)).await
}

/// Returns the names of sessions whose history a setting limits, in order.
pub(super) async fn limited(
    client: &Object,
    after: &[u8],
    max: usize,
) -> Result<Vec<Vec<u8>>, StoreError> {
    let max = count(max);
    let limited = statement! {
        "SELECT name FROM session WHERE is_limited AND name > {after} ORDER BY name LIMIT {max}",
        after, max
    };
    limited.read_prepared(client, |row| row.try_get(0)).await
}

/// Returns the names of sessions that may have blobs to collect, in order.
pub(super) async fn collectable(
    client: &Object,
    before: Timestamp,
    after: &[u8],
    max: usize,
) -> Result<Vec<Vec<u8>>, StoreError> {
    let (Timestamp(before), max) = (before, count(max));
    let collectable = statement! {
        "SELECT name FROM session JOIN (SELECT session, sum(bytes) AS bytes FROM blob \
            GROUP BY session HAVING min(touched_at) < {before}) AS stored ON stored.session = session.id \
         WHERE is_live AND name > {after} AND (base IS NOT NULL OR has_blobs OR image_bytes < stored.bytes) \
         ORDER BY name LIMIT {max}",
        before, after, max
    };
    collectable.read_prepared(client, |row| row.try_get(0)).await
}

/// Returns histories that nobody needs: of sessions deleted before a time, of those whose name has another session, and
/// those that were never adopted.
pub(super) async fn over(
    client: &Object,
    before: Timestamp,
    max: usize,
) -> Result<Vec<SessionId>, StoreError> {
    let (Timestamp(before), max) = (before, count(max));
    let over = statement! {
        "WITH now AS (SELECT {NOW_MS} AS ms) \
         (SELECT id FROM session WHERE ended_at < {before} LIMIT {max}) UNION \
         (SELECT id FROM session, now WHERE ended_at < now.ms - {replaced} AND NOT EXISTS \
            (SELECT FROM session_name WHERE session_name.name = session.name \
             AND session_name.session = session.id) LIMIT {max}) UNION \
         (SELECT id FROM session, now WHERE staged_at < now.ms - {staged} LIMIT {max})",
        before, max, replaced = REPLACED_MS, staged = STAGED_MS_MAX
    };
    over.read(client, |row| row.try_get(0).map(SessionId)).await
}

/// Deletes chunks and parts that belong to no blob and no base, and have done so for a day. Their contents have ids that
/// begin with the database's time.
pub(super) async fn sweep(client: &Object) -> Result<(), StoreError> {
    let now: i64 = statement!("SELECT {NOW_MS}").value(client).await?;
    let before = u128::from(now.saturating_sub(STAGED_MS_MAX).unsigned_abs());
    // A UUID of version 7 begins with 48 bits of milliseconds.
    let before = Uuid::from_u128(before << 80);
    for delete in [
        statement! {
            "DELETE FROM blob_chunk WHERE content < {before} AND NOT EXISTS (SELECT FROM blob \
             WHERE blob.session = blob_chunk.session AND blob.content = blob_chunk.content)",
            before
        },
        statement! {
            "DELETE FROM history_base WHERE content < {before} AND NOT EXISTS (SELECT FROM session \
             WHERE session.id = history_base.session \
             AND history_base.content IN (session.base_content, session.put_content))",
            before
        },
    ] {
        delete.execute(client).await?;
    }
    Ok(())
}

/// Returns a number of rows as SQL takes it.
pub(super) fn count(max: usize) -> i64 {
    i64::try_from(max).unwrap_or(i64::MAX)
}
