//! The sync point: the last transaction that survives a power cut.
//!
//! With `synchronous=FULL` each commit is synced. With `NORMAL` the log ends with unsynced commits, and work that
//! must follow them syncs the log's file here, outside the writer. A checkpoint or a synced transaction would delay
//! every write.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::StoreError;

/// The unsynced transactions of the last run, counted as one.
const LEFT: u64 = 1;

/// The positions of the writer and of the syncs.
#[derive(Debug)]
pub(crate) struct SyncPoint {
    log: PathBuf,
    /// True if SQLite syncs each commit.
    is_full: bool,
    committed: AtomicU64,
    /// Locked during a sync, so that the next caller may find its work done.
    synced: Mutex<Synced>,
}

#[derive(Clone, Copy, Debug)]
enum Synced {
    /// The number of transactions on disk.
    UpTo(u64),
    /// A sync after a failed one may succeed without having written anything.
    Failed,
}

impl SyncPoint {
    /// Creates the sync point of a writer that has committed nothing yet. The last run's log counts as one unsynced
    /// transaction.
    pub(crate) fn new(database: &Path, is_full: bool) -> Self {
        Self {
            log: database.with_extension("db-wal"),
            is_full,
            committed: AtomicU64::new(LEFT),
            synced: Mutex::new(Synced::UpTo(0)),
        }
    }

    /// Records a committed transaction, before it is acknowledged.
    pub(crate) fn note_committed(&self) {
        if !self.is_full {
            self.committed.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Returns once every transaction committed before the call is on disk.
    pub(crate) fn reach(&self) -> Result<(), StoreError> {
        let committed = self.committed.load(Ordering::SeqCst);
        let mut synced = self.synced.lock();
        match *synced {
            Synced::UpTo(synced) if synced >= committed => return Ok(()),
            Synced::UpTo(_) => {}
            Synced::Failed => return Err(StoreError::Poisoned),
        }
        // Without a log, a checkpoint has moved its commits into the database and synced that.
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
