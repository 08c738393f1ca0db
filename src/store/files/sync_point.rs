//! The sync point: the last transaction that survives a power cut.
//!
//! With `synchronous=FULL` each commit is synced. With `NORMAL` the log ends with unsynced commits, and work that must
//! follow them syncs the log's file here, beside the writer. A checkpoint or a synced transaction would delay every write.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::store::StoreError;

/// How many transactions the last run may have left without a sync, taken together.
const LEFT: u64 = 1;

/// How far the writer is, and how far the syncs are.
#[derive(Debug)]
pub(crate) struct SyncPoint {
    log: PathBuf,
    /// Whether each commit is synced anyway.
    is_full: bool,
    committed: AtomicU64,
    /// Locked during a sync, so that the next caller may find it done.
    synced: Mutex<Synced>,
}

#[derive(Clone, Copy, Debug)]
enum Synced {
    /// So many transactions are on disk.
    UpTo(u64),
    /// Another sync after a failed one may succeed without having written anything.
    Failed,
}

impl SyncPoint {
    /// The sync point of a writer that has committed nothing yet. What the last run left in the log counts as one
    /// transaction that was not synced.
    pub(crate) fn new(database: &Path, is_full: bool) -> Self {
        Self {
            log: database.with_extension("db-wal"),
            is_full,
            committed: AtomicU64::new(LEFT),
            synced: Mutex::new(Synced::UpTo(0)),
        }
    }

    /// Notes a committed transaction, before anybody is told of it.
    pub(crate) fn note_committed(&self) {
        if !self.is_full {
            self.committed.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Returns once every transaction that was committed before the call is on disk.
    pub(crate) fn reach(&self) -> Result<(), StoreError> {
        let committed = self.committed.load(Ordering::SeqCst);
        let mut synced = self.synced.lock();
        match *synced {
            Synced::UpTo(synced) if synced >= committed => return Ok(()),
            Synced::UpTo(_) => {}
            Synced::Failed => return Err(StoreError::Poisoned),
        }
        // Commits that are not in the log any more were moved into the database, and that was synced.
        let log = match File::open(&self.log) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && committed == LEFT => {
                return Ok(());
            }
            opened => opened.map_err(StoreError::io(&self.log))?,
        };
        if let Err(source) = log.sync_data() {
            *synced = Synced::Failed;
            return Err(StoreError::Unsynced { path: self.log.clone(), source });
        }
        *synced = Synced::UpTo(committed);
        Ok(())
    }
}
