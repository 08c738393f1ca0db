//! The store: durable commits and blobs behind one trait.
//!
//! Acknowledged data survives any crash, or the store reports its loss. Frames go in and come out as bytes: an engine knows
//! no commit and no base. Calls block, so they belong on blocking threads.

mod blobs;
mod files;
mod keyed_lock;
mod types;

mod options;
mod sqlite;

use std::ops::ControlFlow;
use std::path::Path;

use crate::board::{Epoch, Revision, SessionId};

pub use options::{FREE_BYTES_MIN, FREE_PART, SqliteOptions, SyncLevel};
pub use sqlite::SqliteStore;
pub use sqlite::backup::salvage::{Wreckage, take_out};
pub use sqlite::blob_store::BlobStore;
pub use sqlite::pins::Pin;
pub use types::error::StoreError;
pub use types::run::{End, Outcome, Run};
pub use types::signing_key::{SIGNATURE_BYTES, SigningKey};
pub use types::stored::{
    Copied, FileBytes, Health, IsOver, JournalId, NameRow, PageMax, Record, Stored, StoredBlob,
    StoredSession, SummaryRow, TokenRow,
};

/// An engine that keeps histories and blobs.
///
/// A session's history is one base, or none, and the commits after it. An engine never makes a base of its own:
/// [`put_base`](Self::put_base) brings one in, [`set_base`](Self::set_base) or an adoption puts it in force, and
/// a run that deletes its session has an [`End`]. What was forgotten is never given again, also after a crash.
///
/// Clean-up is the caller's: of a deleted session the end stays until [`forget`](Self::forget), the blobs until
/// [`remove_blobs`](BlobStore::remove_blobs).
pub trait Store: BlobStore {
    /// Appends the whole batch as one durable transaction; one outcome for each run, in order.
    ///
    /// Runs of one session may follow one another: each is judged against those before it. Once any
    /// outcome is [`Outcome::Unknown`], all later batches are [`Outcome::Refused`].
    fn append(&self, batch: &[Run]) -> Vec<Outcome>;

    /// Visits all bases first, in the order of the sessions' ids and each one's parts in order, then every commit that
    /// follows a base or has none, until `visit` breaks: those that are compacted by session, then the others in journal
    /// order. It is all of one moment. Nothing of a staged history is visited, nor what is forgotten. Where a row of
    /// compacted commits is damaged, it is visited as one commit of its first revision without bytes, which no frame is.
    ///
    /// # Errors
    /// [`StoreError::DamagedRow`] or [`StoreError::DamagedSegment`] at commits that hide whose they are.
    fn replay(
        &self,
        visit: &mut dyn FnMut(Stored<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// The sessions that have a history of their own, in no order; staged and discarded histories are none.
    fn sessions(&self) -> Vec<StoredSession>;

    /// Visits the last summary of each session that has one, unverified, until `visit` breaks.
    /// # Errors
    /// If they cannot be read.
    fn summaries(
        &self,
        visit: &mut dyn FnMut(&SummaryRow) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// As [`replay`](Self::replay) visits, but only the commits that are not compacted, in journal order.
    ///
    /// # Errors
    /// As for [`replay`](Self::replay).
    fn replay_journal(
        &self,
        visit: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// What SQLite finds wrong with the database, a sentence each: every page and every index is looked at.
    ///
    /// # Errors
    /// [`StoreError::Closed`] once it `is_over`, or why nothing can be looked at.
    fn misfits(&self, is_over: &IsOver) -> Result<Vec<String>, StoreError>;

    /// How many bytes of frames are not compacted.
    fn uncompacted_bytes(&self) -> u64;

    /// How long its files are, blobs aside.
    fn file_bytes(&self) -> FileBytes;

    /// Compacts a piece of the journal, its oldest commits: packs them by session, in one durable step with the sessions'
    /// summaries, for which `summarize` is asked while nobody who reads or appends waits. A summary may tell of any later
    /// revision that is durable; one of before the stored one or the base, or of no known session, is left out.
    ///
    /// Where all is compacted already it keeps house as [`idle`](Self::idle) does. Whether more is left to be done. A
    /// history that changed otherwise meanwhile is compacted the next time; damaged rows stay where they are. Who
    /// appends meanwhile waits for one short transaction at most. Who compacts second waits for the first.
    ///
    /// # Errors
    /// [`StoreError::Full`] if there is no room besides the reserve: nothing changed then.
    /// [`StoreError::Poisoned`], [`StoreError::Closed`], or why the journal cannot be read.
    fn compact(
        &self,
        summarize: &mut dyn FnMut(&[SessionId]) -> Vec<SummaryRow>,
    ) -> Result<bool, StoreError>;

    /// Stores summaries, as [`compact`](Self::compact) does.
    ///
    /// # Errors
    /// As for [`compact`](Self::compact).
    fn put_summaries(&self, summaries: &[SummaryRow]) -> Result<(), StoreError>;

    /// Stores the parts of a snapshot, each a frame of the session and the revision, in place of the one before
    /// it. It is a cache for reading a long history faster, and no part of the history: one that a crash
    /// left incomplete is found so by whoever reads it. One that comes to be below the base is forgotten.
    ///
    /// # Errors
    /// As for [`put_base`](Self::put_base); nothing is left of any snapshot then.
    fn put_snapshot(
        &self,
        session: SessionId,
        revision: Revision,
        parts: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> Result<(), StoreError>;

    /// Visits the frames of the session's last snapshot of a revision up to this one, in order, unless it is
    /// below the base; its revision, if there is one. A part that is damaged has no bytes, which no frame is.
    /// If none is answered, what was visited is to be thrown away. Replaced meanwhile, it ends early.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read_snapshot(
        &self,
        session: SessionId,
        up_to: Revision,
        visit: &mut dyn FnMut(Revision, &[u8]) -> ControlFlow<()>,
    ) -> Result<Option<Revision>, StoreError>;

    /// A session's commits after a revision, in order, with their frames: at least one if there is any,
    /// none at the end or of no session. They are unverified, as in a [`Record`]. Whoever appends
    /// meanwhile is not held up; pages read one after another miss nothing and repeat nothing.
    ///
    /// Revisions may leave out numbers only in what was staged, and before an adopting run.
    /// # Errors
    /// [`StoreError::Forgotten`] if the session's base is above `after`, or has come there meanwhile;
    /// [`StoreError::DamagedRow`] or [`StoreError::DamagedSegment`] at one that is not where it should be.
    fn commits(
        &self,
        session: SessionId,
        after: Revision,
        max: PageMax,
    ) -> Result<Vec<(Revision, Vec<u8>)>, StoreError>;

    /// The revision of the base with which the session's history begins, if it has one. It does not wait.
    fn base(&self, session: SessionId) -> Option<Revision>;

    /// Visits the frames of the session's base in order, until `visit` breaks; none if it has no base.
    /// A slow visitor holds up nobody.
    ///
    /// # Errors
    /// [`StoreError::Forgotten`] if another base came in force meanwhile: what was visited is to be
    /// thrown away. [`StoreError::DamagedBase`] where a part is missing.
    fn read_base(
        &self,
        session: SessionId,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Holds a session's own history as it is, until the pin is dropped, for an hour at most.
    ///
    /// # Errors
    /// [`StoreError::NoHistory`] if the store has none of the session's own.
    fn pin(&self, session: SessionId) -> Result<Pin, StoreError>;

    /// Whether history is left that was forgotten while it was pinned: [`compact`](Self::compact) deletes it.
    fn has_unpinned(&self) -> bool;

    /// Begins to bring in a history under an id that the store does not know: a base, or commits by ordinary runs,
    /// or both. It is nobody's until a [`Run::adopts`] it; what was not adopted is gone at the next start.
    ///
    /// # Errors
    /// [`StoreError::HistoryExists`] if the id is known; otherwise as [`put_base`](Self::put_base).
    fn stage(&self, session: SessionId) -> Result<(), StoreError>;

    /// Stores the parts of a base, at least one, each a frame of the session and the base's revision. They are durable
    /// when it returns, but part of no history: that is for [`set_base`](Self::set_base), or an adoption. Until then the
    /// next one put takes its place, and a restart removes it. Putting the base that is in force does nothing.
    ///
    /// It takes several transactions, between which appends go on and `parts` is asked without a lock; the next one
    /// of the session waits. A base shorter than the `frees` bytes that it makes forgotten may use the reserve.
    ///
    /// # Errors
    /// [`StoreError::NoHistory`] if the session is not known, [`StoreError::Forgotten`] below the base in
    /// force, [`StoreError::Full`] if there is no room besides the reserve: nothing is left of it then.
    /// [`StoreError::Poisoned`], [`StoreError::Closed`].
    fn put_base(
        &self,
        session: SessionId,
        base: Revision,
        frees: u64,
        parts: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> Result<(), StoreError>;

    /// From now on the session's history begins with the base that was put last: the commits up to it
    /// and the base before it are forgotten, in one durable step. It may use the reserve.
    ///
    /// [`Outcome::Conflict`] if that base was not put, if it is above the head, or if the history is a
    /// staged one. Setting what is set already is [`Outcome::Appended`].
    fn set_base(&self, session: SessionId, base: Revision) -> Outcome;

    /// Forgets a staged history. Of a session's own, or of none, nothing. Its blobs are the caller's to
    /// [remove](BlobStore::remove_blobs).
    ///
    /// # Errors
    /// [`StoreError::Poisoned`] or [`StoreError::Closed`]; the next start forgets it.
    fn discard(&self, session: SessionId) -> Result<(), StoreError>;

    /// The names of the sessions that were told with a [`Run`].
    /// # Errors
    /// If they cannot be read.
    fn names(&self) -> Result<Vec<NameRow>, StoreError>;

    /// Forgets the whole histories of these sessions in one durable step, and what else is left of one that has none;
    /// their blobs are the caller's. It may use the reserve.
    /// # Errors
    /// As for [`discard`](Self::discard), and [`StoreError::Full`] if not even the reserve is left.
    fn forget(&self, sessions: &[SessionId]) -> Result<(), StoreError>;

    /// All tokens, in no order.
    /// # Errors
    /// If they cannot be read.
    fn tokens(&self) -> Result<Vec<TokenRow>, StoreError>;

    /// Keeps a token in place of the one with its id, or forgets that one. It is synced, whatever the sync level is,
    /// and may use the reserve: a token must be revocable when the disk is full.
    /// # Errors
    /// As for [`forget`](Self::forget).
    fn put_token(&self, id: uuid::Uuid, body: Option<&[u8]>) -> Result<(), StoreError>;

    /// The store's identity: another one after any stop that may have lost acknowledged commits.
    fn epoch(&self) -> Epoch;

    /// The key with which this store's server signs; the same after every restart.
    fn signing_key(&self) -> &SigningKey;

    /// Whether the store takes writes.
    fn health(&self) -> Health;

    /// Copies each session that is there at the call, at some moment after it, into a directory that is absent or
    /// empty. The copy is there whole and durable, or not at all; opened, it is another store, with another key.
    /// # Errors
    /// [`StoreError::Occupied`] or [`StoreError::Within`] where it may not be, [`StoreError::Copying`] while another
    /// is made, [`StoreError::Full`], [`StoreError::Closed`] once it `is_over`, or why it cannot be made.
    fn back_up(&self, to: &Path, is_over: &IsOver) -> Result<Copied, StoreError>;

    /// Lets somebody look at the store where it is, which others may change between two reads, or at a copy in
    /// the directory `scratch`, a store of its own that is gone afterwards.
    /// # Errors
    /// As for [`back_up`](Self::back_up).
    fn look_at(
        &self,
        scratch: Option<&Path>,
        is_over: &IsOver,
        look: &mut dyn FnMut(&dyn Store),
    ) -> Result<(), StoreError>;

    /// Nothing is to be written: a moment for a short piece of housekeeping. Whether there is more of it.
    fn idle(&self) -> bool;

    /// The same beside the writer, which waits for one short transaction at most, and first moves a long log.
    fn tend(&self) -> bool {
        self.idle()
    }

    /// Marks a clean stop. Nothing is written after it: an append's outcome is [`Outcome::Refused`].
    /// # Errors
    /// [`StoreError::Poisoned`], or why the mark could not be made; the next start is then as after a crash.
    fn close(&self) -> Result<(), StoreError>;
}

#[cfg(test)]
pub(crate) mod tests;
