//! The sessions' names beside their histories: what tells whose a damaged history is.

use rusqlite::{Connection, types::ValueRef};

use super::StoreError;
use super::bases::session_of;
use crate::board::SessionId;

/// Keeps the name of a session, in the transaction that is open.
pub(super) fn put(
    connection: &Connection,
    session: SessionId,
    name: &[u8],
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO name VALUES (?1, ?2, ?3)")?
        .execute((session.0.as_bytes().as_slice(), sum(session, name), name))
        .map(drop)
}

/// Forgets the name of a session of which nothing is left.
pub(super) fn delete(connection: &Connection, session: SessionId) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM name WHERE session = ?1")?
        .execute([session.0.as_bytes().as_slice()])
        .map(drop)
}

/// All names that are as they were written.
pub(super) fn all(connection: &Connection) -> Result<Vec<(SessionId, Vec<u8>)>, StoreError> {
    let mut select = connection.prepare("SELECT session, crc, name FROM name")?;
    let mut rows = select.query([])?;
    let mut names = Vec::new();
    while let Some(row) = rows.next()? {
        let (Some(session), ValueRef::Integer(crc), ValueRef::Blob(name)) =
            (session_of(row.get_ref(0)?), row.get_ref(1)?, row.get_ref(2)?)
        else {
            continue;
        };
        if crc == i64::from(sum(session, name)) {
            names.push((session, name.to_vec()));
        }
    }
    Ok(names)
}

fn sum(session: SessionId, name: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(session.0.as_bytes());
    crc.update(name);
    crc.finalize()
}
