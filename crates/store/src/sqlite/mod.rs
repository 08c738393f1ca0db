//! The embedded store: one SQLite database and a directory of blobs, for one process.
//!
//! One connection writes, under one lock; others read concurrently, and locate their rows without that lock. A failed
//! write or sync is not retried: the store is poisoned, and the next start reads the outcome from the disk.

mod append;
pub(crate) mod backup;
mod blob_store;
mod database;
mod deletion;
mod epoch;
pub(crate) mod index;
mod inventory;
mod last_commit;
mod open;
mod orphans;
pub(crate) mod pins;
mod rows;
pub(crate) mod schema;
pub(crate) mod segments;
mod session_names;
pub(crate) mod wal;
mod writes;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use rusqlite::Connection;

use super::blobs::Blobs;
use super::files::disk::{Room, SPARE_BYTES};
use super::files::lock::Lock;
use super::keyed_lock::KeyedLock;
use super::types::health::Condition;
use super::{
    Copied, EmbeddedStore, FileBytes, FreeSpace, Health, IsOver, LogoutStore, NameRow, Outcome,
    PageMax, Pinned, Progress, Record, Run, SigningKey, Store, StoreError, Stored, StoredSession,
    SummaryRow, TokenRow,
};
use blackboard_board::{Epoch, Revision, SessionId};
use index::Histories;
use pins::Pin;
use rows::journal::Journal;
use rows::read;
use rows::read::Readers;
use rows::{summaries, tokens};
use schema::Source;

pub(super) const DATABASE: &str = "blackboard.db";

/// The maximum number of summaries in one transaction.
const SUMMARIES_MAX: usize = 1_000;

/// The embedded store in a data directory.
#[derive(Debug)]
pub struct SqliteStore {
    pub(super) path: PathBuf,
    pub(super) source: Source,
    pub(super) epoch: Epoch,
    pub(super) signing_key: SigningKey,
    pub(super) condition: Arc<Condition>,
    pub(super) room: Arc<Room>,
    pub(super) blobs: Arc<Blobs>,
    /// `None` after a clean stop, and in a store opened to inspect.
    pub(super) journal: Mutex<Option<Journal>>,
    /// Shared with the journal, so that no reader waits for a sync.
    pub(super) histories: Arc<RwLock<Histories>>,
    pub(super) readers: Arc<Readers>,
    /// Locks a session while its parts are put, forgotten or copied.
    pub(super) putting: KeyedLock<SessionId>,
    /// Held during compaction.
    pub(super) compaction: Mutex<()>,
    /// The connection for checkpoints outside the writer, opened on first use.
    pub(super) checkpointer: Mutex<Option<Connection>>,
    /// Held during a copy or check.
    pub(super) copying: Mutex<()>,
    /// Last, so that the directory is released after everything in it is closed.
    pub(super) _lock: Option<Lock>,
}

impl Store for SqliteStore {
    fn embedded(&self) -> Option<&dyn EmbeddedStore> {
        Some(self)
    }

    fn append(&self, batch: &[Run]) -> Vec<Outcome> {
        match self.journal.lock().as_mut() {
            Some(journal) if !self.condition.is_poisoned() => self.append_to(journal, batch),
            Some(_) | None => vec![Outcome::Refused; batch.len()],
        }
    }

    fn commits(
        &self,
        session: SessionId,
        after: Revision,
        max: PageMax,
    ) -> Result<Vec<(Revision, Vec<u8>)>, StoreError> {
        self.readers.page(session, after, max, None)
    }

    fn base(&self, session: SessionId) -> Result<Option<Revision>, StoreError> {
        Ok(self.histories.read().base(session).map(|base| base.revision))
    }

    fn read_base(
        &self,
        session: SessionId,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let Some(base) = self.histories.read().base(session) else { return Ok(()) };
        self.readers.visit_base(session, base, None, visit)
    }

    fn pin(&self, session: SessionId) -> Result<Box<dyn Pinned>, StoreError> {
        Ok(Box::new(Pin::of(&self.readers, session)?))
    }

    fn stage(&self, session: SessionId) -> Result<(), StoreError> {
        let is_new = self.write(|journal| journal.stage(session))?;
        is_new.then_some(()).ok_or(StoreError::HistoryExists { session })
    }

    fn put_base(
        &self,
        session: SessionId,
        base: Revision,
        frees: u64,
        parts: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> Result<(), StoreError> {
        self.put_base_parts(session, base, frees, parts)
    }

    fn set_base(&self, session: SessionId, base: Revision) -> Outcome {
        self.attempt(|journal| journal.set_base(session, base)).unwrap_or_else(|failed| failed)
    }

    fn discard(&self, session: SessionId) -> Result<(), StoreError> {
        let _turn = self.putting.take(session);
        self.write(|journal| journal.discard(session))
    }

    fn forget(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        let _turns: Vec<_> = sessions.iter().map(|session| self.putting.take(*session)).collect();
        self.write(|journal| journal.forget(sessions))
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

    fn tokens_version(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    fn logout_store(&self) -> Option<&dyn LogoutStore> {
        None
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn signing_key(&self) -> &SigningKey {
        &self.signing_key
    }

    fn health(&self) -> Health {
        // After a full disk, only ample room makes the store ready again, so that it does not flap.
        match self.condition.health() {
            // Another program may have left no byte beside the reserve.
            Health::Ready if !self.room.is_for(1) => self.turn(Health::Full),
            Health::Full if self.room.is_ample() => self.turn(Health::Ready),
            Health::Ready | Health::Full | Health::Unreachable | Health::Poisoned => {}
        }
        self.condition.health()
    }

    fn close(&self) -> Result<(), StoreError> {
        let mut journal = self.journal.lock();
        if self.condition.is_poisoned() {
            return Err(StoreError::Poisoned);
        }
        self.room.give_up_reserve_for(SPARE_BYTES);
        let closed = journal.take().map_or(Ok(()), Journal::close);
        self.room.hold_reserve();
        closed
    }
}

impl EmbeddedStore for SqliteStore {
    fn replay(
        &self,
        visit: &mut dyn FnMut(Stored<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        read::replay(&self.source, visit)
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

    fn replay_journal(
        &self,
        visit: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        read::replay_journal(&self.source, visit)
    }

    fn misfits(&self, is_over: &IsOver) -> Result<Vec<String>, StoreError> {
        inventory::misfits(&self.source, is_over)
    }

    fn uncompacted_bytes(&self) -> u64 {
        self.histories.read().journal_bytes()
    }

    fn file_bytes(&self) -> FileBytes {
        FileBytes::of(&self.path)
    }

    fn compact(
        &self,
        summarize: &mut dyn FnMut(&[SessionId]) -> Vec<SummaryRow>,
    ) -> Result<bool, StoreError> {
        self.compact_piece(summarize)
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

    fn has_unpinned(&self) -> bool {
        self.histories.read().pins.are_due(Instant::now())
    }

    fn names(&self) -> Result<Vec<NameRow>, StoreError> {
        self.readers.read(session_names::all)
    }

    fn free_space(&self) -> Option<FreeSpace> {
        self.room.free_space()
    }

    fn back_up(
        &self,
        to: &Path,
        is_over: &IsOver,
        progress: &Progress,
    ) -> Result<Copied, StoreError> {
        self.back_up_to(to, is_over, progress)
    }

    fn look_at(
        &self,
        scratch: Option<&Path>,
        is_over: &IsOver,
        look: &mut dyn FnMut(&dyn EmbeddedStore),
    ) -> Result<(), StoreError> {
        self.look_at_it(scratch, is_over, look)
    }

    fn idle(&self) -> bool {
        let mut journal = self.journal.lock();
        let Some(journal) = journal.as_mut().filter(|_| !self.condition.is_poisoned()) else {
            return false;
        };
        // Stops at the first failure.
        self.keep_house(journal)
    }

    fn maintain(&self) -> bool {
        self.note_mover();
        self.move_long_log();
        self.health();
        self.idle()
    }
}
