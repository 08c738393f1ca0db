//! The embedded store: one SQLite database and a directory of blobs, in one data directory, for one process.
//!
//! One connection writes, under one lock; whoever reads opens another. After a failed write or sync there
//! is no second try: the store is poisoned, and the next start reads from the disk what became of it.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::blobs::Blobs;
use super::condition::Condition;
use super::disk::{FREE_BYTES_MIN, Room, create_dir, sync_dir};
use super::journal::{self, Failure, Journal};
use super::lock::Lock;
use super::{Health, Outcome, Record, Run, Store, StoreError, StoredBlob, epoch, schema};
use crate::board::{Digest, Epoch, SessionId};

const DATABASE: &str = "blackboard.db";

/// What an acknowledgement survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncLevel {
    /// A power cut.
    #[default]
    Full,
    /// The end of the process; a power cut may take the last acknowledged commits, and changes the epoch.
    Normal,
}

impl SyncLevel {
    pub(super) const fn mark(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
        }
    }
}

/// How a [`SqliteStore`] runs.
#[derive(Clone, Copy, Debug)]
pub struct SqliteOptions {
    /// What an acknowledgement survives.
    pub sync: SyncLevel,
    /// What commits that grow and blobs leave free on the disk, in bytes.
    pub free_bytes_min: u64,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { sync: SyncLevel::default(), free_bytes_min: FREE_BYTES_MIN }
    }
}

/// A store in a directory.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    epoch: Epoch,
    condition: Arc<Condition>,
    room: Arc<Room>,
    blobs: Blobs,
    /// Gone after a clean stop.
    journal: Mutex<Option<Journal>>,
    /// Last, so that the directory is released when nothing is open in it any more.
    _lock: Lock,
}

impl SqliteStore {
    /// Whether a directory has a store in it. Nothing is made or changed.
    #[must_use]
    pub fn is_in(dir: &Path) -> bool {
        dir.join(DATABASE).is_file()
    }

    /// Opens the store in a data directory, or makes one; nobody else can until it is dropped.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if somebody has it, [`StoreError::NewerFormat`] or
    /// [`StoreError::NotABlackboard`] if it is not ours to write to; otherwise why it could not be opened.
    pub fn open(dir: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        create_dir(dir)?;
        let lock = Lock::take(dir)?;
        let path = dir.join(DATABASE);
        if !path.exists() && Blobs::are_in(dir) {
            return Err(StoreError::DatabaseMissing { path });
        }
        let connection = schema::open(&path)?;
        sync_dir(dir)?;
        let epoch = epoch::begin(&connection, options.sync)?;
        if options.sync == SyncLevel::Normal {
            connection.execute_batch("PRAGMA synchronous = NORMAL")?;
        }
        let condition = Arc::new(Condition::new());
        let room = Arc::new(Room { dir: dir.to_owned(), free_bytes_min: options.free_bytes_min });
        Ok(Self {
            epoch,
            blobs: Blobs::open(dir, Arc::clone(&room), Arc::clone(&condition))?,
            journal: Mutex::new(Some(Journal::open(connection, &path)?)),
            path,
            condition,
            room,
            _lock: lock,
        })
    }

    fn append_to(&self, journal: &mut Journal, batch: &[Run]) -> Vec<Outcome> {
        let outcomes = journal.judge(batch, self.has_room_for(batch));
        let accepted = batch
            .iter()
            .zip(&outcomes)
            .filter(|(_, outcome)| **outcome == Outcome::Appended)
            .map(|(run, _)| run);
        if accepted.clone().next().is_none() {
            return outcomes;
        }
        // Refusals too share the batch's fate: they may name a head that is only in it.
        match journal.write(accepted) {
            Ok(()) => {
                self.condition.note(Health::Ready);
                self.tend(journal.checkpoint_if_long());
                outcomes
            }
            Err(Failure::Full) => {
                self.condition.note(Health::Full);
                vec![Outcome::Full; batch.len()]
            }
            Err(Failure::Broken(error)) => {
                self.condition.poison(&error);
                vec![Outcome::Unknown; batch.len()]
            }
        }
    }

    fn has_room_for(&self, batch: &[Run]) -> bool {
        let growing = batch.iter().filter(|run| run.grows);
        self.room.is_for(growing.map(Run::frame_bytes).sum())
    }

    /// A checkpoint without room left the log as it was; one that failed has left a sync undone.
    fn tend(&self, checkpoint: Result<(), Failure>) {
        match checkpoint {
            Ok(()) => {}
            Err(Failure::Full) => self.condition.note(Health::Full),
            Err(Failure::Broken(error)) => self.condition.poison(&error),
        }
    }
}

impl Store for SqliteStore {
    fn append(&self, batch: &[Run]) -> Vec<Outcome> {
        match self.journal.lock().as_mut() {
            Some(journal) if !self.condition.is_poisoned() => self.append_to(journal, batch),
            Some(_) | None => vec![Outcome::Unknown; batch.len()],
        }
    }

    fn replay(
        &self,
        visit: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        journal::replay(&self.path, visit)
    }

    fn put_blob(&self, session: SessionId, digest: Digest, bytes: &[u8]) -> Result<(), StoreError> {
        self.blobs.put(session, digest, bytes)
    }

    fn blob(&self, session: SessionId, digest: Digest) -> Result<Vec<u8>, StoreError> {
        self.blobs.read(session, digest)
    }

    fn link_blob(&self, from: SessionId, to: SessionId, digest: Digest) -> Result<(), StoreError> {
        self.blobs.link(from, to, digest)
    }

    fn remove_blobs(&self, session: SessionId) -> Result<(), StoreError> {
        self.blobs.remove(session)
    }

    fn keep_blobs_of(&self, live: &HashSet<SessionId>) -> Result<(), StoreError> {
        self.blobs.keep(live)
    }

    fn blobs(
        &self,
        visit: &mut dyn FnMut(StoredBlob) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.blobs.visit(visit)
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn health(&self) -> Health {
        match self.condition.health() {
            Health::Ready if self.room.is_for(0) => Health::Ready,
            Health::Ready | Health::Full => Health::Full,
            Health::Poisoned => Health::Poisoned,
        }
    }

    fn idle(&self) {
        if let Some(journal) = self.journal.lock().as_mut()
            && !self.condition.is_poisoned()
        {
            self.tend(journal.checkpoint_if_worthwhile());
        }
    }

    fn close(&self) -> Result<(), StoreError> {
        let mut journal = self.journal.lock();
        if self.condition.is_poisoned() {
            return Err(StoreError::Poisoned);
        }
        journal.take().map_or(Ok(()), Journal::close)
    }
}
