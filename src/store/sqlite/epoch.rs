//! Epoch of a store: changes after a stop that may have lost acknowledged commits, and in a copy.

use rusqlite::{Connection, OptionalExtension as _};
use uuid::Uuid;

use super::wal::End;
use crate::board::Epoch;
use crate::store::{StoreError, SyncLevel};

/// What a store has that no server opened yet: a copy, whose epoch must not be that of what it is a copy of.
const NONE: u128 = 0;

/// Notes durably that the store runs and under which sync level; the epoch for this run. Where nobody is shown
/// a tag none is drawn, so that each server which opens another copy of a store draws its own. `log` is how the
/// write-ahead log ended that the last run left, if there was a file of it.
///
/// Needs a connection that syncs fully: what a later crash makes of the epoch hangs on this mark.
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
        Some(End::Early(_) | End::Damaged(_)) => true,
        Some(End::Whole) => opened_with.as_deref() == Some(SyncLevel::Normal.mark()),
        // A store that runs has the file, and leaves it to the next start.
        None => opened_with.is_some(),
    };
    if lost {
        tracing::warn!(
            "the last run may have lost commits at its end: tags from before match nothing"
        );
    }
    let epoch = match (lost || stored == NONE, draws) {
        (true, true) => Uuid::new_v4().as_u128(),
        (true, false) => NONE,
        (false, _) => stored,
    };
    // A full disk must not keep a store that was killed from starting again.
    if epoch != stored || opened_with.as_deref() != Some(sync.mark()) {
        let marked = connection.execute(
            "UPDATE meta SET epoch = ?1, opened_with = ?2 WHERE id = 1",
            (epoch.to_be_bytes().as_slice(), sync.mark()),
        );
        match marked.map_err(StoreError::from) {
            // Under this level the mark says nothing that its absence does not.
            Err(StoreError::Full) if epoch == stored && sync == SyncLevel::Full => {}
            marked => _ = marked?,
        }
    }
    Ok(Epoch(epoch))
}

/// The epoch as it is stored.
pub(crate) fn stored(connection: &Connection) -> Result<Epoch, StoreError> {
    let sql = "SELECT epoch FROM meta WHERE id = 1";
    let epoch: Option<Vec<u8>> = connection.query_one(sql, [], |row| row.get(0)).optional()?;
    epoch
        .and_then(|epoch| epoch.try_into().ok())
        .map(|epoch| Epoch(u128::from_be_bytes(epoch)))
        .ok_or(StoreError::DamagedMeta)
}

/// Whether the last run may have acknowledged what it had not synced, as far as the database says.
pub(crate) fn ran_unsynced(connection: &Connection) -> Result<bool, StoreError> {
    let sql = "SELECT opened_with FROM meta WHERE id = 1";
    let opened_with: Option<String> = connection.query_one(sql, [], |row| row.get(0))?;
    Ok(opened_with.as_deref() == Some(SyncLevel::Normal.mark()))
}

/// Whether the last run was not stopped.
pub(crate) fn is_running(connection: &Connection) -> Result<bool, StoreError> {
    let sql = "SELECT opened_with IS NOT NULL FROM meta WHERE id = 1";
    Ok(connection.query_one(sql, [], |row| row.get(0))?)
}

/// Notes durably that all is durable and nothing more will be written.
pub(crate) fn end(connection: &Connection) -> Result<(), StoreError> {
    connection.execute_batch("PRAGMA synchronous = FULL")?;
    connection.execute("UPDATE meta SET opened_with = NULL WHERE id = 1", [])?;
    Ok(())
}
