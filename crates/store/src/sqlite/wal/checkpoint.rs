//! Checkpoint of a long write-ahead log, on a separate connection.
//!
//! A passive checkpoint waits for nobody and blocks nobody. It ends where the log ended when it began; the writer
//! checkpoints the rest, so that the log restarts. This connection writes no page that is not in the log. A failed
//! sync poisons the store, as on the writer.

use crate::sqlite::database::{Moved, move_log};
use crate::sqlite::schema;
use crate::{SqliteStore, StoreError};

impl SqliteStore {
    /// Checkpoints the log if it is too long for an append to do so.
    pub(crate) fn move_long_log(&self) {
        let Some(unmoved_bytes) = self.unmoved_of_long_log() else { return };
        let moved = match self.move_log() {
            Ok(moved) => moved,
            Err(StoreError::Sqlite(error)) => {
                let journal = self.journal.lock();
                if let Some(journal) = journal.as_ref() {
                    self.failed(&journal.database.undo(error));
                }
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "failed to checkpoint the write-ahead log");
                return;
            }
        };
        if let Some(journal) = self.journal.lock().as_mut() {
            journal.database.log.note_tried(unmoved_bytes, moved.left_bytes);
        }
    }

    fn unmoved_of_long_log(&self) -> Option<u64> {
        let journal = self.journal.lock();
        let journal = journal.as_ref().filter(|_| !self.condition.is_poisoned());
        let log = &journal?.database.log;
        log.is_long().then(|| log.unmoved_bytes())
    }

    /// Records that [`move_long_log`](Self::move_long_log) is called regularly.
    pub(crate) fn note_mover(&self) {
        if let Some(journal) = self.journal.lock().as_mut() {
            journal.database.log.note_mover();
        }
    }

    fn move_log(&self) -> Result<Moved, StoreError> {
        let mut connection = self.checkpointer.lock();
        let connection = match &mut *connection {
            Some(connection) => connection,
            none => none.insert(schema::open_to_checkpoint(&self.path)?),
        };
        Ok(move_log(connection, "PRAGMA wal_checkpoint(PASSIVE)")?)
    }
}
