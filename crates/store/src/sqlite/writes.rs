//! Writes: room on the disk, and the outcome of failed ones.
//!
//! A write that frees room may use the reserve. A full disk, another program's lock or an unreadable page fails one
//! write: nothing of it is stored, and the next write is tried.

use super::database::Failure;
use super::rows::journal::{Journal, Unwritten};
use crate::files::disk::SPARE_BYTES;
use crate::{EmbeddedStore as _, FreeSpace, Health, Outcome, Run, SqliteStore, StoreError};
use blackboard_board::SessionId;

/// The maximum size of a small transaction.
const PAGES_BYTES: u64 = 256 << 10;

/// Room used temporarily to delete some garbage and return its pages to the file system.
const MAKING_ROOM_BYTES: u64 = 4 << 20;

impl SqliteStore {
    pub(crate) fn append_to(&self, journal: &mut Journal, batch: &[Run]) -> Vec<Outcome> {
        let roomy = self.has_room_for(journal, batch);
        let mut outcomes = self.append_if_roomy(journal, batch, roomy);
        if roomy && outcomes.contains(&Outcome::Full) {
            // The disk had no room for the whole batch; runs that shrink may still fit.
            outcomes = self.append_if_roomy(journal, batch, false);
        }
        if outcomes.contains(&Outcome::Full) {
            self.note_full();
            // Clients that keep retrying leave no idle moment.
            self.make_room(journal);
        }
        self.room.note_owed(journal.database.owed());
        outcomes
    }

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

    /// Refuses runs that meet a malformed page, and stores the others.
    fn append_if_roomy(&self, journal: &mut Journal, batch: &[Run], roomy: bool) -> Vec<Outcome> {
        let mut malformed = Vec::new();
        loop {
            let (outcomes, written) = self.try_to_append(journal, batch, roomy, &malformed);
            match written {
                Ok(()) => return outcomes,
                Err(Unwritten::Met { session, error }) if !malformed.contains(&session) => {
                    tracing::error!(%session, %error, "a write met a damaged page and was refused");
                    malformed.push(session);
                }
                // Conflicts fail with the batch too: they may name a head that exists only in it.
                Err(Unwritten::Met { error, .. }) => {
                    return vec![self.failed(&Failure::Broken(error)); batch.len()];
                }
                Err(Unwritten::All(failure)) => return vec![self.failed(&failure); batch.len()],
            }
        }
    }

    fn try_to_append(
        &self,
        journal: &mut Journal,
        batch: &[Run],
        roomy: bool,
        malformed: &[SessionId],
    ) -> (Vec<Outcome>, Result<(), Unwritten>) {
        let outcomes = journal.judge(batch, roomy, malformed);
        let accepted = batch
            .iter()
            .zip(&outcomes)
            .filter(|(_, outcome)| **outcome == Outcome::Appended)
            .map(|(run, _)| run);
        if accepted.clone().next().is_none() {
            return (outcomes, Ok(()));
        }
        let bytes: u64 = accepted.clone().map(Run::bytes).sum();
        let needed = bytes.saturating_mul(2).saturating_add(SPARE_BYTES);
        let mut written = journal.write(accepted.clone());
        if !roomy
            && matches!(written, Err(Unwritten::All(Failure::Full)))
            && self.room.give_up_reserve_for(needed)
        {
            written = journal.write(accepted);
        }
        if written.is_ok() {
            if self.noted(journal.sweep_if_busy()) == Some(true) {
                self.room.hold_reserve();
            }
            self.noted(journal.checkpoint_if_long());
        }
        (outcomes, written)
    }

    fn has_room_for(&self, journal: &mut Journal, batch: &[Run]) -> bool {
        let growing = batch.iter().filter(|run| run.grows);
        let bytes = growing.map(Run::frame_bytes).sum();
        if self.room.is_for(bytes) {
            return true;
        }
        // After a checkpoint, the log's content takes no more room in the database.
        self.noted(journal.database.checkpoint_now());
        self.room.note_owed(journal.database.owed());
        self.room.is_for(bytes)
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

    fn make_room(&self, journal: &mut Journal) -> bool {
        let mut made = journal.make_room();
        if matches!(made, Err(Failure::Full)) && self.room.give_up_reserve_for(MAKING_ROOM_BYTES) {
            made = journal.make_room();
        }
        self.noted(made).unwrap_or(false)
    }

    /// Records a failure of housekeeping. Without room nothing changed; after other failures a sync may be missing.
    fn noted<T>(&self, done: Result<T, Failure>) -> Option<T> {
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
