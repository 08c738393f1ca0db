//! Epoch of a store: changes after a stop that may have lost acknowledged commits, and in a copy.

use rusqlite::{Connection, OptionalExtension as _};
use uuid::Uuid;

use super::wal::End;
use crate::{StoreError, SyncLevel};
use blackboard_board::Epoch;

/// The epoch of a copy that no server has opened yet: it must differ from the original's.
const NONE: u128 = 0;

/// Marks the store durably as running at this sync level, and returns the epoch for this run.
///
/// Without `draws` no new epoch is drawn, since no tag is shown: each server that opens another copy draws its own.
/// `log` is the end of the log that the last run left, if the file exists. Needs a connection that syncs fully: after
/// a later crash, the epoch depends on this mark.
pub(crate) fn begin(
    connection: &Connection,
    sync: SyncLevel,
    draws: bool,
    log: Option<End>,
) -> Result<Epoch, StoreError> {
    let (epoch, opened_with): (Vec<u8>, Option<String>) = connection
        .query_one("SELECT epoch, opened_with FROM meta WHERE id = 1", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?
        .ok_or(StoreError::DamagedMeta)?;
    let stored = u128::from_be_bytes(epoch.try_into().map_err(|_| StoreError::DamagedMeta)?);
    let lost = match log {
        Some(log) if log.is_cut() => true,
        Some(_) => opened_with.as_deref() == Some(SyncLevel::Normal.mark()),
        // A running store has the file, and leaves it to the next start.
        None => opened_with.is_some(),
    };
    if lost {
        tracing::warn!(
            "the last run may have lost its latest commits; earlier ETags no longer match"
        );
    }
    let epoch = match (lost || stored == NONE, draws) {
        (true, true) => Uuid::new_v4().as_u128(),
        (true, false) => NONE,
        (false, _) => stored,
    };
    // A full disk must not keep a killed store from starting again.
    if epoch != stored || opened_with.as_deref() != Some(sync.mark()) {
        let marked = connection.execute(
            "UPDATE meta SET epoch = ?1, opened_with = ?2 WHERE id = 1",
            (epoch.to_be_bytes().as_slice(), sync.mark()),
        );
        match marked.map_err(StoreError::from) {
            // At this level a missing mark means the same.
            Err(StoreError::Full) if epoch == stored && sync == SyncLevel::Full => {}
            marked => _ = marked?,
        }
    }
    Ok(Epoch(epoch))
}

/// Returns the stored epoch.
pub(crate) fn stored(connection: &Connection) -> Result<Epoch, StoreError> {
    let sql = "SELECT epoch FROM meta WHERE id = 1";
    let epoch: Option<Vec<u8>> = connection.query_one(sql, [], |row| row.get(0)).optional()?;
    epoch
        .and_then(|epoch| epoch.try_into().ok())
        .map(|epoch| Epoch(u128::from_be_bytes(epoch)))
        .ok_or(StoreError::DamagedMeta)
}

/// Returns true if the database says that the last run may have acknowledged unsynced commits.
pub(crate) fn ran_unsynced(connection: &Connection) -> Result<bool, StoreError> {
    let sql = "SELECT opened_with FROM meta WHERE id = 1";
    let opened_with: Option<String> = connection.query_one(sql, [], |row| row.get(0))?;
    Ok(opened_with.as_deref() == Some(SyncLevel::Normal.mark()))
}

/// Returns true if the last run was not stopped cleanly.
pub(crate) fn is_running(connection: &Connection) -> Result<bool, StoreError> {
    let sql = "SELECT opened_with IS NOT NULL FROM meta WHERE id = 1";
    Ok(connection.query_one(sql, [], |row| row.get(0))?)
}

/// Marks durably that everything is synced and no write will follow.
pub(crate) fn end(connection: &Connection) -> Result<(), StoreError> {
    connection.execute_batch("PRAGMA synchronous = FULL")?;
    connection.execute("UPDATE meta SET opened_with = NULL WHERE id = 1", [])?;
    Ok(())
}
