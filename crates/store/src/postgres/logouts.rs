//! Logouts: the logins that ended before their time, which all servers follow by the number of the last change.

use deadpool_postgres::Object;
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::failed;
use crate::{LogoutRow, StoreError};
use blackboard_board::{Digest, Timestamp};

/// The age of a login at which its logout is deleted, in milliseconds: every login has ended by then.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// Stores a logout. The number of its change is that of its commit among all, since writers take turns.
pub(super) async fn put(
    client: &mut Object,
    logout: &LogoutRow,
    max: usize,
) -> Result<(), StoreError> {
    let transaction = client.transaction().await.map_err(failed)?;
    let turn = "SELECT pg_advisory_xact_lock(hashtextextended('blackboard logouts ' || current_schema(), 0))";
    transaction.execute(turn, &[]).await.map_err(failed)?;
    let LogoutRow { token, login, made_at } = logout;
    let login = login.map_or_else(Vec::new, |login| login.0.to_vec());
    let put =
        "INSERT INTO logout (token, login, made_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    transaction.execute(put, &[token, &login, &made_at.0]).await.map_err(failed)?;
    let merge = "INSERT INTO logout (token, login, made_at) \
        SELECT $1, ''::bytea, made_at FROM logout WHERE token = $1 AND login <> '' \
        ORDER BY made_at DESC, login OFFSET $2 LIMIT 1 \
        ON CONFLICT (token, login) DO UPDATE SET \
        made_at = greatest(logout.made_at, excluded.made_at), change = excluded.change";
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    if transaction.execute(merge, &[token, &max]).await.map_err(failed)? > 0 {
        let merged = "DELETE FROM logout USING logout AS all_until WHERE logout.token = $1 \
            AND logout.login <> '' AND all_until.token = $1 AND all_until.login = '' \
            AND logout.made_at <= all_until.made_at";
        transaction.execute(merged, &[token]).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}

/// Returns the logouts after a change, in order. After a failover to a standby that lagged, changes may be fewer than
/// before: then all logouts are returned.
pub(super) async fn after(
    client: &Object,
    change: i64,
) -> Result<Vec<(i64, LogoutRow)>, StoreError> {
    let sql = "SELECT change, token, login, made_at FROM logout \
        WHERE change > $1 OR $1 > (SELECT max(change) FROM logout) ORDER BY change";
    let statement = client.prepare_cached(sql).await.map_err(failed)?;
    let rows = client.query(&statement, &[&change]).await.map_err(failed)?;
    let rows: Result<_, _> = rows.iter().map(read).collect();
    rows.map_err(failed)
}

fn read(row: &Row) -> Result<(i64, LogoutRow), tokio_postgres::Error> {
    let (token, login): (Uuid, Vec<u8>) = (row.try_get(1)?, row.try_get(2)?);
    let (login, made_at) = (login.try_into().ok().map(Digest), Timestamp(row.try_get(3)?));
    Ok((row.try_get(0)?, LogoutRow { token, login, made_at }))
}

/// Deletes the logouts of logins that have ended by their age.
pub(super) async fn sweep(client: &Object) -> Result<(), StoreError> {
    let sql = "DELETE FROM logout \
        WHERE made_at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1";
    client.execute(sql, &[&KEPT_MS]).await.map_err(failed)?;
    Ok(())
}
