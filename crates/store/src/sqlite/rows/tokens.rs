//! Tokens: rows that the store keeps and verifies without reading their bodies.

use rusqlite::{Connection, Row};
use uuid::Uuid;

use super::journal::Journal;
use crate::sqlite::database::Failure;
use crate::{StoreError, TokenRow};

/// Returns all tokens. A damaged one has no body; one without a readable id gets a unique id.
pub(crate) fn all(connection: &Connection) -> Result<Vec<TokenRow>, StoreError> {
    let mut select = connection.prepare("SELECT id, crc, body FROM token")?;
    let rows = select.query_map([], |row| Ok(read(row)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn read(row: &Row<'_>) -> TokenRow {
    let id = row.get::<_, Vec<u8>>(0).ok().and_then(|id| Uuid::from_slice(&id).ok());
    let Some(id) = id else { return TokenRow { id: Uuid::new_v4(), body: None } };
    let (crc, body) = (row.get::<_, i64>(1).ok(), row.get::<_, Vec<u8>>(2).ok());
    TokenRow { id, body: body.filter(|body| crc == Some(TokenRow::sum(id, body))) }
}

/// Inserts or replaces the token with this id.
pub(crate) fn put(journal: &mut Journal, id: Uuid, body: &[u8]) -> Result<(), Failure> {
    journal.write_synced(|connection| {
        connection
            .prepare_cached(
                "INSERT INTO token VALUES (?1, ?2, ?3)
                 ON CONFLICT (id) DO UPDATE SET crc = excluded.crc, body = excluded.body",
            )?
            .execute((id.as_bytes().as_slice(), TokenRow::sum(id, body), body))
            .map(drop)
    })?;
    journal.database.note_written(body.len() as u64);
    Ok(())
}

/// Removes a token.
pub(crate) fn remove(journal: &mut Journal, id: Uuid) -> Result<(), Failure> {
    journal.write_synced(|connection| {
        let mut delete = connection.prepare_cached("DELETE FROM token WHERE id = ?1")?;
        delete.execute([id.as_bytes().as_slice()]).map(drop)
    })
}
