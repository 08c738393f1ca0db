//! The store: durable commits and blobs behind one trait.
//!
//! Acknowledged data survives any crash, or the store reports the loss. Frames are opaque bytes to an engine: it does
//! not interpret commits or bases. Calls block, so run them on blocking threads.

mod blob_store;
mod blobs;
mod embedded;
mod files;
mod keyed_lock;
mod shared;
mod texts;
mod types;

mod options;
mod pinned;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;
#[cfg(not(feature = "postgres"))]
mod without_postgres;

use std::ops::ControlFlow;

use blackboard_board::{Epoch, Revision, SessionId};

pub use blob_store::{BlobDraft, BlobStore};
pub use embedded::EmbeddedStore;
pub use files::destination::{vacant_dir, vacant_file};
pub use options::{FREE_BYTES_MIN, FREE_PART, SqliteOptions, SyncLevel};
pub use pinned::Pinned;
#[cfg(feature = "postgres")]
pub use postgres::{
    POSTGRES_CHECKERS_MAX, POSTGRES_READERS_MAX, POSTGRES_SNAPSHOTS_MAX, POSTGRES_WRITERS_MAX,
    PostgresStore, PostgresUrl,
};
pub use shared::{Among, Head, Hint, LogoutStore, RowQuery, SharedStore};
pub use sqlite::SqliteStore;
pub use sqlite::backup::salvage::{Wreckage, take_out};
pub use sqlite::index::HISTORY_BYTES;
pub use texts::{TextChange, TextFound, TextLog, TextQuery, TextStore};
pub use types::error::StoreError;
pub use types::postgres_error::PostgresError;
pub use types::postgres_failure::PostgresFailure;
pub use types::progress::{Progress, Reached, Stage};
pub use types::run::{End, NameClaim, Outcome, Run, SessionRow};
pub use types::signing_key::{SIGNATURE_BYTES, SigningKey};
pub use types::stored::{
    Copied, FileBytes, FreeSpace, Health, IsOver, JournalId, LogoutRow, NameRow, PageMax, Record,
    Stored, StoredBlob, StoredSession, SummaryRow, TokenRow,
};
#[cfg(not(feature = "postgres"))]
pub use without_postgres::PostgresUrl;

/// An engine that stores histories and blobs.
///
/// A session's history is an optional base and the commits after it. An engine never makes a base itself:
/// [`put_base`](Self::put_base) stores one, [`set_base`](Self::set_base) or an adoption puts it in force, and a run
/// that deletes its session carries an [`End`]. Forgotten history is never returned again, not even after a crash.
///
/// The caller cleans up: a deleted session's end stays until [`forget`](Self::forget), its blobs until
/// [`remove_blobs`](BlobStore::remove_blobs).
pub trait Store: BlobStore {
    /// Returns what an engine in a data directory of its own does besides; `None` for a service that runs by itself.
    fn embedded(&self) -> Option<&dyn EmbeddedStore>;

    /// Returns the part of an engine that other servers write to; `None` if this is the only one.
    fn shared(&self) -> Option<&dyn SharedStore> {
        None
    }

    /// Appends the whole batch as one durable transaction. Returns one outcome for each run, in order.
    ///
    /// A batch may contain several runs of one session; each is checked against those before it. After any
    /// [`Outcome::Unknown`], all later batches are [`Outcome::Refused`].
    fn append(&self, batch: &[Run]) -> Vec<Outcome>;

    /// Returns a session's commits after a revision, in order, with their frames. The page has at least one commit
    /// unless none is left or the session is unknown. Frames are unverified, as in a [`Record`]. Concurrent appends
    /// are not blocked; consecutive pages neither miss nor repeat a commit.
    ///
    /// Revisions may have gaps only in staged history, and before an adopting run.
    /// # Errors
    /// [`StoreError::Forgotten`] if the session's base is above `after`, or has come there meanwhile;
    /// [`StoreError::DamagedRow`] or [`StoreError::DamagedSegment`] at a commit that is missing.
    fn commits(
        &self,
        session: SessionId,
        after: Revision,
        max: PageMax,
    ) -> Result<Vec<(Revision, Vec<u8>)>, StoreError>;

    /// Returns the revision of the session's base in force, if any.
    /// # Errors
    /// If it cannot be read.
    fn base(&self, session: SessionId) -> Result<Option<Revision>, StoreError>;

    /// Visits the frames of the session's base in order, until `visit` breaks. Without a base it visits none. A slow
    /// visitor blocks nobody.
    ///
    /// # Errors
    /// [`StoreError::Forgotten`] if another base came in force meanwhile: discard the visited frames.
    /// [`StoreError::DamagedBase`] if a part is missing.
    fn read_base(
        &self,
        session: SessionId,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Pins a session's own history until the pin is dropped, for at most an hour.
    ///
    /// # Errors
    /// [`StoreError::NoHistory`] if the session has no history of its own.
    fn pin(&self, session: SessionId) -> Result<Box<dyn Pinned>, StoreError>;

    /// Begins a staged history under an unknown id: a base, commits by ordinary runs, or both. It belongs to no
    /// session until a run [adopts](Run::adopts) it. The next start discards staged histories.
    ///
    /// # Errors
    /// [`StoreError::HistoryExists`] if the id is known; otherwise as [`put_base`](Self::put_base).
    fn stage(&self, session: SessionId) -> Result<(), StoreError>;

    /// Stores the parts of a base, at least one, each a frame of the session and the base's revision. They are
    /// durable on return, but part of no history until [`set_base`](Self::set_base) or an adoption. Until then the
    /// next put replaces them, and a restart removes them. Putting the base in force does nothing.
    ///
    /// The parts take several transactions. Appends go on between them, and `parts` is called without a lock; a
    /// second put for the session waits. A base shorter than the `frees` bytes that it makes obsolete may use the
    /// reserve.
    ///
    /// # Errors
    /// [`StoreError::NoHistory`] if the session is unknown, [`StoreError::Forgotten`] below the base in force,
    /// [`StoreError::Full`] if only the reserve is left: no part is left then. [`StoreError::Poisoned`],
    /// [`StoreError::Closed`].
    fn put_base(
        &self,
        session: SessionId,
        base: Revision,
        frees: u64,
        parts: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> Result<(), StoreError>;

    /// Puts the last stored base in force: the commits up to it and the previous base are forgotten, in one durable
    /// step. May use the reserve.
    ///
    /// Returns [`Outcome::Conflict`] if that base was not put or is above the head, or if the history is staged.
    /// Setting the base in force again is [`Outcome::Appended`].
    fn set_base(&self, session: SessionId, base: Revision) -> Outcome;

    /// Forgets a staged history; does nothing for a session's own history or an unknown one. The caller
    /// [removes](BlobStore::remove_blobs) its blobs.
    ///
    /// # Errors
    /// [`StoreError::Poisoned`] or [`StoreError::Closed`]; the next start forgets it.
    fn discard(&self, session: SessionId) -> Result<(), StoreError>;

    /// Forgets the whole histories of these sessions in one durable step, and the remains of sessions without one.
    /// The caller removes their blobs. May use the reserve.
    /// # Errors
    /// As for [`discard`](Self::discard), and [`StoreError::Full`] if not even the reserve is left.
    fn forget(&self, sessions: &[SessionId]) -> Result<(), StoreError>;

    /// Returns all tokens, in no order.
    /// # Errors
    /// If they cannot be read.
    fn tokens(&self) -> Result<Vec<TokenRow>, StoreError>;

    /// Stores a token under its id, or deletes it if `body` is `None`. The write is synced at every sync level. It
    /// may use the reserve: a token must be revocable when the disk is full.
    /// # Errors
    /// As for [`forget`](Self::forget).
    fn put_token(&self, id: uuid::Uuid, body: Option<&[u8]>) -> Result<(), StoreError>;

    /// Returns a number that changes with each change of a token by another server.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn tokens_version(&self) -> Result<u64, StoreError>;

    /// Returns the logouts that all servers follow, which accept each other's logins; `None` if each login is of one server.
    fn logout_store(&self) -> Option<&dyn LogoutStore>;

    /// The store's identity; changes after any stop that may have lost acknowledged commits.
    fn epoch(&self) -> Epoch;

    /// The key with which this store's server signs; stable across restarts.
    fn signing_key(&self) -> &SigningKey;

    /// Returns whether the store accepts writes.
    fn health(&self) -> Health;

    /// Marks a clean stop. Nothing is written afterwards: appends are [`Outcome::Refused`].
    /// # Errors
    /// [`StoreError::Poisoned`], or the reason the mark failed; the next start is then as after a crash.
    fn close(&self) -> Result<(), StoreError>;
}

#[cfg(test)]
pub(crate) mod tests;
