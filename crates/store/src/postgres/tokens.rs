//! Tokens: rows that are kept and verified without reading their bodies, and the version by which a change is noticed.

use deadpool_postgres::Object;
use uuid::Uuid;

use super::append::DURABLE;
use super::error::failed;
use crate::{StoreError, TokenRow};

pub(super) async fn all(client: &Object) -> Result<Vec<TokenRow>, StoreError> {
    let rows = client.query("SELECT id, crc, body FROM token", &[]).await.map_err(failed)?;
    let read = |row: &tokio_postgres::Row| -> Result<TokenRow, tokio_postgres::Error> {
        let (id, crc, body): (Uuid, i64, Vec<u8>) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(TokenRow { id, body: Some(body).filter(|body| crc == TokenRow::sum(id, body)) })
    };
    let rows: Result<_, _> = rows.iter().map(read).collect();
    rows.map_err(failed)
}

/// Inserts, replaces or deletes a token, and changes the version.
pub(super) async fn put(
    client: &mut Object,
    id: Uuid,
    body: Option<&[u8]>,
) -> Result<(), StoreError> {
    let transaction = client.transaction().await.map_err(failed)?;
    transaction.batch_execute(DURABLE).await.map_err(failed)?;
    let changed = match body {
        Some(body) => {
            let put = "INSERT INTO token VALUES ($1, $2, $3) \
                ON CONFLICT (id) DO UPDATE SET crc = excluded.crc, body = excluded.body";
            transaction.execute(put, &[&id, &TokenRow::sum(id, body), &body]).await
        }
        None => transaction.execute("DELETE FROM token WHERE id = $1", &[&id]).await,
    };
    changed.map_err(failed)?;
    transaction.execute("UPDATE meta SET tokens = tokens + 1", &[]).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)
}

/// Returns the counter of changes, and below it the sum of the rows: after a failover the counter may have the same value
/// over other tokens.
pub(super) async fn version(client: &Object) -> Result<u64, StoreError> {
    let sql = "SELECT (meta.tokens << 32) | (rows.sum & 4294967295) FROM meta, \
        (SELECT coalesce(sum(crc), 0)::bigint AS sum FROM token) AS rows";
    let statement = client.prepare_cached(sql).await.map_err(failed)?;
    let row = client.query_one(&statement, &[]).await.map_err(failed)?;
    Ok(row.try_get::<_, i64>(0).map_err(failed)?.cast_unsigned())
}
