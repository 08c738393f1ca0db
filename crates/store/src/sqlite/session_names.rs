//! Names of sessions beside their histories, to identify a damaged history.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};

use super::database::Database;
use super::rows::bases::session_of;
use crate::{NameRow, StoreError};
use blackboard_board::SessionId;

/// Stores the name of a session, in the open transaction.
pub(crate) fn put(
    connection: &Connection,
    session: SessionId,
    name: &[u8],
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO name VALUES (?1, ?2, ?3)")?
        .execute((session.0.as_bytes().as_slice(), sum(session, name), name))
        .map(drop)
}

/// Deletes the name of a session of which nothing is left.
pub(crate) fn delete(connection: &Connection, session: SessionId) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM name WHERE session = ?1")?
        .execute([session.0.as_bytes().as_slice()])
        .map(drop)
}

/// Returns all names, `None` for a damaged one, up to the first malformed page. A name is a second copy, so its loss
/// must not prevent a start.
pub(crate) fn all(connection: &Connection) -> Result<Vec<NameRow>, StoreError> {
    let mut select = connection.prepare("SELECT session, crc, name FROM name")?;
    let mut rows = select.query([])?;
    let mut names = Vec::new();
    loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break,
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                tracing::warn!(%error, read = names.len(), "some copies of session names cannot be read");
                break;
            }
            Err(error) => return Err(error.into()),
        };
        let Some(session) = session_of(row.get_ref(0)?) else { continue };
        let name = match (row.get_ref(1)?, row.get_ref(2)?) {
            (ValueRef::Integer(crc), ValueRef::Blob(name)) => {
                (crc == i64::from(sum(session, name))).then(|| name.to_vec())
            }
            _ => None,
        };
        names.push(NameRow { session, name });
    }
    Ok(names)
}

/// Deletes damaged names: the session's history has the name too.
pub(crate) fn drop_damaged(database: &mut Database) -> Result<(), StoreError> {
    let mut damaged = all(database.connection())?;
    damaged.retain(|row| row.name.is_none());
    if damaged.is_empty() {
        return Ok(());
    }
    let deleted = database
        .transact(|connection| damaged.iter().try_for_each(|row| delete(connection, row.session)));
    if deleted.is_err() {
        tracing::warn!(
            names = damaged.len(),
            "failed to delete damaged session names; retrying at the next start"
        );
    }
    Ok(())
}

fn sum(session: SessionId, name: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(session.0.as_bytes());
    crc.update(name);
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_malformed_page_ends_the_names_early() {
        let connection = Connection::open_in_memory().unwrap();
        let overflow = "abs(-9223372036854775808)";
        let view =
            format!("CREATE VIEW name AS SELECT {overflow} AS session, 0 AS crc, x'' AS name");
        connection.execute_batch(&view).unwrap();
        assert!(all(&connection).is_err());
    }
}
