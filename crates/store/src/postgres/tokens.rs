//! Tokens: rows that are kept and verified without reading their bodies, and the version by which a change is noticed.

use deadpool_postgres::Object;
use uuid::Uuid;

use super::append::DURABLE;
use super::error::failed;
use super::statement::{Statement, statement};
use crate::{StoreError, TokenRow};

pub(super) async fn all(client: &Object) -> Result<Vec<TokenRow>, StoreError> {
    let tokens = Statement::plain("SELECT id, crc, body FROM token");
    let rows = tokens.read(client, |row| {
        let (id, crc, body): (Uuid, i64, Vec<u8>) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(TokenRow { id, body: Some(body).filter(|body| crc == TokenRow::sum(id, body)) })
    });
    rows.await
}

/// Inserts, replaces or deletes a token, and changes the version.
pub(super) async fn put(
    client: &mut Object,
    id: Uuid,
    body: Option<&[u8]>,
) -> Result<(), StoreError> {
    let transaction = client.transaction().await.map_err(failed)?;
    transaction.batch_execute(DURABLE).await.map_err(failed)?;
    let change = match body {
        Some(body) => {
            let crc = TokenRow::sum(id, body);
            let put = statement! {
                "INSERT INTO token VALUES ({id}, {crc}, {body}) \
                 ON CONFLICT (id) DO UPDATE SET crc = excluded.crc, body = excluded.body",
                id, crc, body
            };
            put.execute(transaction.client()).await
        }
        None => {
            statement!("DELETE FROM token WHERE id = {id}", id).execute(transaction.client()).await
        }
    };
    change?;
    Statement::plain("UPDATE meta SET tokens = tokens + 1").execute(transaction.client()).await?;
    transaction.commit().await.map_err(failed)
}

/// Returns the counter of changes, and below it the sum of the rows: after a failover the counter may have the same value
/// over other tokens.
pub(super) async fn version(client: &Object) -> Result<u64, StoreError> {
    let version = Statement::plain(
        "SELECT (meta.tokens << 32) | (rows.sum & 4294967295) FROM meta, \
         (SELECT coalesce(sum(crc), 0)::bigint AS sum FROM token) AS rows",
    );
    version.value_prepared(client).await.map(i64::cast_unsigned)
}
