//! Durable commits and blobs: what was acknowledged is here after any crash, or the store says that it is not.
//!
//! The trait is what every engine promises; nothing above it knows which engine runs. No engine knows
//! what a commit means: frames go in and come out as bytes. Calls block; they belong on threads that may.

mod blobs;
mod condition;
mod disk;
mod epoch;
mod error;
mod journal;
mod lock;
mod schema;
mod sqlite;

use std::collections::HashSet;
use std::ops::ControlFlow;

use crate::board::{Digest, Epoch, Revision, SessionId};

pub use disk::FREE_BYTES_MIN;
pub use error::StoreError;
pub use sqlite::{SqliteOptions, SqliteStore, SyncLevel};

/// One session's consecutive commits, to be stored together or not at all.
#[derive(Clone, Debug)]
pub struct Run {
    /// Whose commits they are.
    pub session: SessionId,
    /// The head that they were decided against; the frames are of the revisions that follow it. A
    /// session that the store does not know yet may begin after any revision: its name may have had
    /// another one before.
    pub expected: Revision,
    /// One [`Frame`](crate::board::Frame) for each commit, in order.
    pub frames: Vec<Vec<u8>>,
    /// Whether the session is larger afterwards. A run that frees space may use the reserve.
    pub grows: bool,
}

impl Run {
    /// The session's head once this run is stored.
    #[must_use]
    pub fn head(&self) -> Revision {
        self.frames.iter().fold(self.expected, |head, _| head.next())
    }

    /// How long its frames are together.
    #[must_use]
    pub fn frame_bytes(&self) -> u64 {
        let bytes: usize = self.frames.iter().map(Vec::len).sum();
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// What became of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is durable.
    Appended,
    /// It was decided against another head than the session's; nothing of it was stored.
    Conflict {
        /// The session's head.
        head: Revision,
    },
    /// There is no room for it; nothing of it was stored, and the next batch is tried again.
    Full,
    /// After a restart it is wholly there or wholly not; until then nobody can say.
    Unknown,
}

/// A commit's place in the order in which the store took them all: it grows, and is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JournalId(pub u64);

/// One stored commit, as it lies there: nothing has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its place in the journal.
    pub journal_id: JournalId,
    /// The session that its row names.
    pub session: SessionId,
    /// The revision that its row names.
    pub revision: Revision,
    /// What [`Frame::decode`](crate::board::Frame::decode) reads, and finds damaged or whole.
    pub frame: &'a [u8],
}

/// One blob that a session keeps; its bytes were not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBlob {
    /// Whose it is.
    pub session: SessionId,
    /// What its bytes should hash to.
    pub digest: Digest,
    /// How many bytes it has.
    pub bytes: u64,
}

/// Whether the store takes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Ready,
    /// Only what frees space, as far as the last write or the free space tell.
    Full,
    /// None, until a restart: a write failed in a way that leaves its outcome unknown. Reads go on.
    Poisoned,
}

/// An engine that keeps commits and blobs.
///
/// Clean-up is the caller's: a session that is no more keeps its commits, and its blobs until
/// [`remove_blobs`](Self::remove_blobs).
pub trait Store: Send + Sync {
    /// Appends the whole batch as one durable transaction; one outcome for each run, in order.
    ///
    /// Runs of one session may follow one another: each is judged against those before it. Once any
    /// outcome is [`Outcome::Unknown`], all later ones are.
    fn append(&self, batch: &[Run]) -> Vec<Outcome>;

    /// Visits every stored commit in journal order, until `visit` breaks.
    ///
    /// # Errors
    /// [`StoreError::DamagedRow`] at a commit that does not even say whose it is.
    fn replay(
        &self,
        visit: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Keeps these bytes for the session; they are durable when it returns, whoever stored them.
    ///
    /// # Errors
    /// [`StoreError::Full`] if there is no room; otherwise why they could not be made durable.
    fn put_blob(&self, session: SessionId, digest: Digest, bytes: &[u8]) -> Result<(), StoreError>;

    /// The bytes of a blob, verified.
    ///
    /// # Errors
    /// [`StoreError::BlobMissing`] or [`StoreError::BlobDamaged`].
    fn blob(&self, session: SessionId, digest: Digest) -> Result<Vec<u8>, StoreError>;

    /// Gives `to` the blob that `from` has; it is durable when it returns.
    ///
    /// Its bytes are not verified: a damaged blob stays a damaged one.
    ///
    /// # Errors
    /// [`StoreError::BlobMissing`] if `from` does not have it; otherwise as [`put_blob`](Self::put_blob).
    fn link_blob(&self, from: SessionId, to: SessionId, digest: Digest) -> Result<(), StoreError>;

    /// Removes all blobs of a session that is no more.
    ///
    /// # Errors
    /// If some could not be removed.
    fn remove_blobs(&self, session: SessionId) -> Result<(), StoreError>;

    /// Removes the blobs of all other sessions, and what interrupted puts left. For the start, before
    /// the first put. A session that is damaged is live too: its blobs may be all that is left of it.
    ///
    /// # Errors
    /// If some could not be removed.
    fn keep_blobs_of(&self, live: &HashSet<SessionId>) -> Result<(), StoreError>;

    /// Visits every blob, in no order, until `visit` breaks.
    ///
    /// # Errors
    /// If they cannot be listed.
    fn blobs(&self, visit: &mut dyn FnMut(StoredBlob) -> ControlFlow<()>)
    -> Result<(), StoreError>;

    /// The store's identity: another one after any stop that may have lost acknowledged commits.
    fn epoch(&self) -> Epoch;

    /// Whether the store takes writes.
    fn health(&self) -> Health;

    /// The writer has nothing to write: a moment for the engine's own housekeeping.
    fn idle(&self);

    /// Marks a clean stop. Nothing is written after it: an append's outcome is [`Outcome::Unknown`].
    ///
    /// # Errors
    /// [`StoreError::Poisoned`], or why the mark could not be made; the next start is then as after a crash.
    fn close(&self) -> Result<(), StoreError>;
}

#[cfg(test)]
mod blobs_tests;
#[cfg(test)]
pub(crate) mod fault_tests;
#[cfg(test)]
mod sqlite_tests;
