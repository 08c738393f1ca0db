//! Logouts: the logins that ended before their time, which all servers follow by the number of the last change.

use deadpool_postgres::Object;
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::failed;
use super::sessions::count;
use super::statement::{NOW_MS, Statement, statement};
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
    let turn = Statement::plain(
        "SELECT pg_advisory_xact_lock(hashtextextended('blackboard logouts ' || current_schema(), 0))",
    );
    turn.execute(transaction.client()).await?;
    let LogoutRow { token, login, made_at } = logout;
    let login = login.map_or_else(Vec::new, |login| login.0.to_vec());
    let put = statement! {
        "INSERT INTO logout (token, login, made_at) VALUES ({token}, {login}, {made_at}) ON CONFLICT DO NOTHING",
        token = *token, login, made_at = made_at.0
    };
    put.execute(transaction.client()).await?;
    let max = count(max);
    let merge = statement! {
        "INSERT INTO logout (token, login, made_at) \
         SELECT {token}, ''::bytea, made_at FROM logout WHERE token = {token} AND login <> '' \
         ORDER BY made_at DESC, login OFFSET {max} LIMIT 1 \
         ON CONFLICT (token, login) DO UPDATE SET \
         made_at = greatest(logout.made_at, excluded.made_at), change = excluded.change",
        token = *token, max
    };
    if merge.execute(transaction.client()).await? > 0 {
        let merged = statement! {
            "DELETE FROM logout USING logout AS all_until WHERE logout.token = {token} \
             AND logout.login <> '' AND all_until.token = {token} AND all_until.login = '' \
             AND logout.made_at <= all_until.made_at",
            token = *token
        };
        merged.execute(transaction.client()).await?;
    }
    transaction.commit().await.map_err(failed)
}

/// Returns the logouts after a change, in order. After a failover to a standby that lagged, changes may be fewer than
/// before: then all logouts are returned.
pub(super) async fn after(
    client: &Object,
    change: i64,
) -> Result<Vec<(i64, LogoutRow)>, StoreError> {
    let after = statement! {
        "SELECT change, token, login, made_at FROM logout \
         WHERE change > {change} OR {change} > (SELECT max(change) FROM logout) ORDER BY change",
        change
    };
    after.read_prepared(client, read).await
}

fn read(row: &Row) -> Result<(i64, LogoutRow), tokio_postgres::Error> {
    let (token, login): (Uuid, Vec<u8>) = (row.try_get(1)?, row.try_get(2)?);
    let (login, made_at) = (login.try_into().ok().map(Digest), Timestamp(row.try_get(3)?));
    Ok((row.try_get(0)?, LogoutRow { token, login, made_at }))
}

/// Deletes the logouts of logins that have ended by their age.
pub(super) async fn sweep(client: &Object) -> Result<(), StoreError> {
    let ended = statement!("DELETE FROM logout WHERE made_at < {NOW_MS} - {age}", age = KEPT_MS);
    ended.execute(client).await.map(drop)
}
