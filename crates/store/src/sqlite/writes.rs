//! Writes of all kinds: room on the disk, and the outcome of failed ones.
//!
//! A write that frees room may use the reserve. A full disk, another program's lock or an unreadable page fails one
//! write: nothing of it is stored, and the next write is tried.

use super::database::Failure;
use super::rows::journal::Journal;
use crate::{EmbeddedStore as _, FreeSpace, Health, Outcome, SqliteStore, StoreError};

/// The maximum size of a small transaction.
const PAGES_BYTES: u64 = 256 << 10;

/// Room used temporarily to delete some garbage and return its pages to the file system.
const MAKING_ROOM_BYTES: u64 = 4 << 20;

impl SqliteStore {
    /// Records that a write found no room. With ample room left, as where a quota is used up, the store stays ready.
    pub(crate) fn note_full(&self) {
        if !self.room.is_ample() {
            self.turn(Health::Full);
        }
    }

    /// Changes the health between ready and full, and logs the change.
    pub(crate) fn turn(&self, to: Health) {
        if !self.condition.turn(to) {
            return;
        }
        let Some(FreeSpace { directory, free_bytes, reserve_bytes }) = self.free_space() else {
            return;
        };
        let directory = directory.display();
        if to == Health::Full {
            tracing::warn!(%directory, free_bytes, reserve_bytes, "the disk is full: only deletions are accepted");
        } else {
            tracing::info!(%directory, free_bytes, reserve_bytes, "the disk has room again: writes are accepted");
        }
    }

    /// Refuses a write that needs the reserve, unless it ends smaller than it began.
    pub(crate) fn claim_room_to_shrink(
        &self,
        bytes: usize,
        shrinks: bool,
    ) -> Result<(), StoreError> {
        let wanted = u64::try_from(bytes).unwrap_or(u64::MAX);
        if shrinks && !self.room.is_for(wanted) && wanted <= self.room.in_all() {
            self.room.give_up_reserve_for(wanted);
            return Ok(());
        }
        self.claim_room(bytes)
    }

    /// Does some of the engine's own work. Returns true if more is left.
    pub(crate) fn keep_house(&self, journal: &mut Journal) -> bool {
        let more = if self.room.is_ample() {
            self.noted(journal.housekeep()).unwrap_or(false)
        } else {
            self.make_room(journal)
        };
        self.room.note_owed(journal.database.owed());
        if !more {
            self.room.hold_reserve();
        }
        more
    }

    pub(super) fn make_room(&self, journal: &mut Journal) -> bool {
        let mut made = journal.make_room();
        if matches!(made, Err(Failure::Full)) && self.room.give_up_reserve_for(MAKING_ROOM_BYTES) {
            made = journal.make_room();
        }
        self.noted(made).unwrap_or(false)
    }

    /// Records a failure of housekeeping. Without room nothing changed; after other failures a sync may be missing.
    pub(super) fn noted<T>(&self, done: Result<T, Failure>) -> Option<T> {
        done.inspect_err(|failure| {
            self.failed(failure);
        })
        .ok()
    }

    pub(crate) fn failed(&self, failure: &Failure) -> Outcome {
        match failure {
            Failure::Full => {
                self.note_full();
                Outcome::Full
            }
            Failure::Busy => {
                tracing::warn!("another program has the database locked; nothing was written");
                Outcome::Busy
            }
            Failure::Malformed(error) => {
                tracing::error!(%error, "a page of the database is damaged; nothing was written");
                Outcome::Malformed
            }
            Failure::Broken(error) => {
                self.condition.poison(error);
                Outcome::Unknown
            }
        }
    }

    /// Runs a write on the journal, if it still takes writes; otherwise returns the outcome.
    pub(crate) fn attempt<T>(
        &self,
        write: impl FnOnce(&mut Journal) -> Result<T, Failure>,
    ) -> Result<T, Outcome> {
        let mut journal = self.journal.lock();
        let journal = journal.as_mut().filter(|_| !self.condition.is_poisoned());
        let journal = journal.ok_or(Outcome::Refused)?;
        self.room.give_up_reserve_for(PAGES_BYTES);
        let written = write(journal).map_err(|failure| self.failed(&failure))?;
        self.noted(journal.checkpoint_if_long());
        self.room.note_owed(journal.database.owed());
        Ok(written)
    }

    /// Like `attempt`, for callers to which earlier and new failures are the same.
    pub(crate) fn write<T>(
        &self,
        write: impl FnOnce(&mut Journal) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.attempt(write).map_err(|outcome| match outcome {
            Outcome::Full => StoreError::Full,
            Outcome::Busy => StoreError::Busy,
            Outcome::Malformed => StoreError::Malformed,
            Outcome::Refused if !self.condition.is_poisoned() => StoreError::Closed,
            Outcome::Refused
            | Outcome::Overloaded
            | Outcome::Unknown
            | Outcome::Failed(_)
            | Outcome::Unreachable
            | Outcome::InDoubt
            | Outcome::BlobsMissing
            | Outcome::Appended
            | Outcome::Conflict { .. } => StoreError::Poisoned,
        })
    }
}
