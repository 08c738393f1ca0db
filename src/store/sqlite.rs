//! The embedded store: one SQLite database and a directory of blobs, in one data directory, for one process.
//!
//! One connection writes, under one lock; others read beside it, and find their rows without that lock. After a failed write or sync there
//! is no second try: the store is poisoned, and the next start reads from the disk what became of it.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::blobs::Blobs;
use super::condition::Condition;
use super::database::Failure;
use super::disk::Room;
use super::histories::Histories;
use super::journal::Journal;
use super::lock::Lock;
use super::reading::{self, Readers};
use super::schema::Source;
use super::turns::Turns;
use super::{
    Copied, FileBytes, Health, IsOver, Outcome, PageMax, Pin, Record, Run, SigningKey, Store,
    StoreError, Stored, StoredSession, SummaryRow, TokenRow, summaries, tokens,
};
use crate::board::{Epoch, Revision, SessionId};
use parking_lot::{Mutex, RwLock};
use rusqlite::Connection;

pub(super) const DATABASE: &str = "blackboard.db";

/// How many summaries one transaction stores.
const SUMMARIES_MAX: usize = 1_000;

/// A store in a directory.
#[derive(Debug)]
pub struct SqliteStore {
    pub(super) path: PathBuf,
    pub(super) source: Source,
    pub(super) epoch: Epoch,
    pub(super) signing_key: SigningKey,
    pub(super) condition: Arc<Condition>,
    pub(super) room: Arc<Room>,
    pub(super) blobs: Blobs,
    /// Gone after a clean stop, and not there for who only looks.
    pub(super) journal: Mutex<Option<Journal>>,
    /// The journal's, so that nobody who reads waits for a sync.
    pub(super) histories: Arc<RwLock<Histories>>,
    pub(super) readers: Arc<Readers>,
    /// The sessions of which a base is being put.
    pub(super) putting: Turns<SessionId>,
    /// Taken by whoever settles.
    pub(super) settling: Mutex<()>,
    /// Moves the log beside the writer; opened when that is needed first.
    pub(super) checkpointer: Mutex<Option<Connection>>,
    /// Taken by whoever copies the store.
    pub(super) copying: Mutex<()>,
    /// Last, so that the directory is released when nothing is open in it any more.
    pub(super) _lock: Option<Lock>,
}

impl SqliteStore {
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
                self.tend(journal.sweep_if_busy());
                self.tend(journal.checkpoint_if_long());
                outcomes
            }
            Err(failure) => vec![self.failed(&failure); batch.len()],
        }
    }

    fn has_room_for(&self, batch: &[Run]) -> bool {
        let growing = batch.iter().filter(|run| run.grows);
        self.room.is_for(growing.map(Run::frame_bytes).sum())
    }

    /// Housekeeping without room left all as it was; if it failed, a sync may not have been done.
    fn tend<T>(&self, done: Result<T, Failure>) -> Option<T> {
        done.inspect_err(|failure| {
            self.failed(failure);
        })
        .ok()
    }

    pub(super) fn failed(&self, failure: &Failure) -> Outcome {
        match failure {
            Failure::Full => {
                self.condition.note(Health::Full);
                Outcome::Full
            }
            Failure::Busy => {
                tracing::warn!("another program has the database locked; nothing was written");
                Outcome::Busy
            }
            Failure::Broken(error) => {
                self.condition.poison(error);
                Outcome::Unknown
            }
        }
    }

    /// Lets the journal write, if it still can; else what became of that.
    fn attempt<T>(
        &self,
        write: impl FnOnce(&mut Journal) -> Result<T, Failure>,
    ) -> Result<T, Outcome> {
        let mut journal = self.journal.lock();
        let journal = journal.as_mut().filter(|_| !self.condition.is_poisoned());
        let journal = journal.ok_or(Outcome::Refused)?;
        let written = write(journal).map_err(|failure| self.failed(&failure))?;
        self.tend(journal.checkpoint_if_long());
        Ok(written)
    }

    /// The same for those to whom it makes no difference whether a write failed now or before.
    pub(super) fn write<T>(
        &self,
        write: impl FnOnce(&mut Journal) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.attempt(write).map_err(|outcome| match outcome {
            Outcome::Full => StoreError::Full,
            Outcome::Busy => StoreError::Busy,
            Outcome::Refused if !self.condition.is_poisoned() => StoreError::Closed,
            Outcome::Refused | Outcome::Unknown | Outcome::Appended | Outcome::Conflict { .. } => {
                StoreError::Poisoned
            }
        })
    }
}

impl Store for SqliteStore {
    fn append(&self, batch: &[Run]) -> Vec<Outcome> {
        match self.journal.lock().as_mut() {
            Some(journal) if !self.condition.is_poisoned() => self.append_to(journal, batch),
            Some(_) | None => vec![Outcome::Refused; batch.len()],
        }
    }

    fn replay(
        &self,
        visit: &mut dyn FnMut(Stored<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        reading::replay(&self.source, visit)
    }

    fn sessions(&self) -> Vec<StoredSession> {
        self.histories.read().sessions()
    }

    fn summaries(
        &self,
        visit: &mut dyn FnMut(&SummaryRow) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        summaries::visit(&self.source.connect()?, visit)
    }

    fn replay_unsettled(
        &self,
        visit: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        reading::replay_unsettled(&self.source, visit)
    }

    fn unsettled_bytes(&self) -> u64 {
        self.histories.read().journal_bytes()
    }

    fn file_bytes(&self) -> FileBytes {
        FileBytes::of(&self.path)
    }

    fn settle(
        &self,
        summarize: &mut dyn FnMut(&[SessionId]) -> Vec<SummaryRow>,
    ) -> Result<bool, StoreError> {
        self.settle_piece(summarize)
    }

    fn put_summaries(&self, summaries: &[SummaryRow]) -> Result<(), StoreError> {
        for some in summaries.chunks(SUMMARIES_MAX) {
            let bytes: usize = some.iter().map(|summary| summary.frame.len()).sum();
            self.claim_room(bytes)?;
            self.write(|journal| journal.put_summaries(some))?;
        }
        Ok(())
    }

    fn put_snapshot(
        &self,
        session: SessionId,
        revision: Revision,
        parts: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> Result<(), StoreError> {
        self.put_snapshot_parts(session, revision, parts)
    }

    fn read_snapshot(
        &self,
        session: SessionId,
        up_to: Revision,
        visit: &mut dyn FnMut(Revision, &[u8]) -> ControlFlow<()>,
    ) -> Result<Option<Revision>, StoreError> {
        self.visit_snapshot(session, up_to, visit)
    }

    fn commits(
        &self,
        session: SessionId,
        after: Revision,
        max: PageMax,
    ) -> Result<Vec<(Revision, Vec<u8>)>, StoreError> {
        self.readers.page(session, after, max, None)
    }

    fn base(&self, session: SessionId) -> Option<Revision> {
        self.histories.read().base(session).map(|base| base.revision)
    }

    fn read_base(
        &self,
        session: SessionId,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let Some(base) = self.histories.read().base(session) else { return Ok(()) };
        self.readers.visit_base(session, base, None, visit)
    }

    fn pin(&self, session: SessionId) -> Result<Pin, StoreError> {
        Pin::of(&self.readers, session)
    }

    fn has_unpinned(&self) -> bool {
        self.histories.read().pins.are_due(Instant::now())
    }

    fn stage(&self, session: SessionId) -> Result<(), StoreError> {
        let is_new = self.write(|journal| journal.stage(session))?;
        is_new.then_some(()).ok_or(StoreError::HistoryExists { session })
    }

    fn put_base(
        &self,
        session: SessionId,
        base: Revision,
        parts: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> Result<(), StoreError> {
        self.put_base_parts(session, base, parts)
    }

    fn set_base(&self, session: SessionId, base: Revision) -> Outcome {
        self.attempt(|journal| journal.set_base(session, base)).unwrap_or_else(|failed| failed)
    }

    fn discard(&self, session: SessionId) -> Result<(), StoreError> {
        let _turn = self.putting.take(session);
        self.write(|journal| {
            journal.discard(session);
            Ok(())
        })
    }

    fn forget(&self, session: SessionId) -> Result<(), StoreError> {
        self.write(|journal| journal.forget(session))
    }

    fn tokens(&self) -> Result<Vec<TokenRow>, StoreError> {
        self.readers.read(tokens::all)
    }

    fn put_token(&self, id: uuid::Uuid, body: Option<&[u8]>) -> Result<(), StoreError> {
        self.write(|journal| match body {
            Some(body) => tokens::put(journal, id, body),
            None => tokens::remove(journal, id),
        })
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn signing_key(&self) -> &SigningKey {
        &self.signing_key
    }

    fn health(&self) -> Health {
        match self.condition.health() {
            Health::Ready if self.room.is_for(0) => Health::Ready,
            Health::Ready | Health::Full => Health::Full,
            Health::Poisoned => Health::Poisoned,
        }
    }

    fn back_up(&self, to: &Path, is_over: &IsOver) -> Result<Copied, StoreError> {
        self.back_up_to(to, is_over)
    }

    fn look_at(
        &self,
        scratch: Option<&Path>,
        is_over: &IsOver,
        look: &mut dyn FnMut(&dyn Store),
    ) -> Result<(), StoreError> {
        self.look_at_it(scratch, is_over, look)
    }

    fn idle(&self) -> bool {
        let mut journal = self.journal.lock();
        let Some(journal) = journal.as_mut().filter(|_| !self.condition.is_poisoned()) else {
            return false;
        };
        // Each only if the one before it went well: nothing is tried after a failure.
        self.tend(journal.housekeep()).unwrap_or(false)
    }

    fn tend(&self) -> bool {
        self.move_long_log();
        self.idle()
    }

    fn close(&self) -> Result<(), StoreError> {
        let mut journal = self.journal.lock();
        if self.condition.is_poisoned() {
            return Err(StoreError::Poisoned);
        }
        journal.take().map_or(Ok(()), Journal::close)
    }
}
