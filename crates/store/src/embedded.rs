//! The part of an engine that has a data directory of its own.

use std::ops::ControlFlow;
use std::path::Path;

use super::{
    Copied, FileBytes, FreeSpace, IsOver, NameRow, Progress, Record, Store, StoreError, Stored,
    StoredSession, SummaryRow,
};
use blackboard_board::{Revision, SessionId};

/// An engine whose only process this is, with its files in a directory: it is read at the start, compacted, backed up
/// and checked here.
pub trait EmbeddedStore: Store {
    /// Visits one consistent view of the store, until `visit` breaks. Bases come first, by session id, with their
    /// parts in order. Commits after a base, or of histories without one, follow: compacted ones by session, then the
    /// rest in journal order. Staged and forgotten history is skipped. A damaged row of compacted commits is visited
    /// as one commit at its first revision, with empty bytes, which no frame has.
    ///
    /// # Errors
    /// [`StoreError::DamagedRow`] or [`StoreError::DamagedSegment`] at commits whose session is unreadable.
    fn replay(
        &self,
        visit: &mut dyn FnMut(Stored<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Returns the sessions that have a history of their own, in no order. Staged and discarded histories are
    /// excluded.
    fn sessions(&self) -> Vec<StoredSession>;

    /// Visits the last summary of each session that has one, unverified, until `visit` breaks.
    /// # Errors
    /// If they cannot be read.
    fn summaries(
        &self,
        visit: &mut dyn FnMut(&SummaryRow) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Visits only the uncompacted commits, in journal order; otherwise as [`replay`](Self::replay).
    ///
    /// # Errors
    /// As for [`replay`](Self::replay).
    fn replay_journal(
        &self,
        visit: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Checks every page and index of the database, and returns SQLite's findings, one sentence each.
    ///
    /// # Errors
    /// [`StoreError::Closed`] once `is_over` returns true, or the reason the check cannot run.
    fn misfits(&self, is_over: &IsOver) -> Result<Vec<String>, StoreError>;

    /// Returns the number of bytes of uncompacted frames.
    fn uncompacted_bytes(&self) -> u64;

    /// Returns the lengths of the store's files, without blobs.
    fn file_bytes(&self) -> FileBytes;

    /// Compacts the oldest commits of the journal: packs them by session, in one durable step with the sessions'
    /// summaries. Returns true if more is left. `summarize` is called without a lock, so no reader or append waits
    /// for it. A summary may be of any later durable revision. Summaries older than the stored one or the base, or of
    /// unknown sessions, are skipped.
    ///
    /// If everything is compacted already, it does housekeeping like [`idle`](Self::idle). A history that changed
    /// meanwhile, other than by appends, is compacted next time; damaged rows stay in place. Concurrent appends wait
    /// for at most one short transaction. A second caller waits for the first.
    ///
    /// # Errors
    /// [`StoreError::Full`] if only the reserve is left: nothing changed then. [`StoreError::Poisoned`],
    /// [`StoreError::Closed`], or the reason the journal cannot be read.
    fn compact(
        &self,
        summarize: &mut dyn FnMut(&[SessionId]) -> Vec<SummaryRow>,
    ) -> Result<bool, StoreError>;

    /// Stores summaries, as [`compact`](Self::compact) does.
    ///
    /// # Errors
    /// As for [`compact`](Self::compact).
    fn put_summaries(&self, summaries: &[SummaryRow]) -> Result<(), StoreError>;

    /// Stores the parts of a snapshot, each a frame of the session and revision, in place of the previous snapshot. A
    /// snapshot is a cache that speeds up reading a long history. It is not part of the history: readers detect one
    /// that a crash left incomplete. A snapshot below the base is forgotten.
    ///
    /// # Errors
    /// As for [`put_base`](Store::put_base); no snapshot is left then.
    fn put_snapshot(
        &self,
        session: SessionId,
        revision: Revision,
        parts: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> Result<(), StoreError>;

    /// Visits the frames of the session's last snapshot at or below `up_to`, in order, unless it is below the base.
    /// Returns its revision. A damaged part has empty bytes, which no frame has. On `None`, discard the visited
    /// frames. If the snapshot is replaced meanwhile, the visit ends early.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read_snapshot(
        &self,
        session: SessionId,
        up_to: Revision,
        visit: &mut dyn FnMut(Revision, &[u8]) -> ControlFlow<()>,
    ) -> Result<Option<Revision>, StoreError>;

    /// Returns true if history forgotten under a pin can now be deleted by [`compact`](Self::compact).
    fn has_unpinned(&self) -> bool;

    /// Returns the session names that runs claimed in [`Run::claim`](super::Run::claim).
    /// # Errors
    /// If they cannot be read.
    fn names(&self) -> Result<Vec<NameRow>, StoreError>;

    /// Returns the free space of the store's disk; `None` if the disk does not report it.
    fn free_space(&self) -> Option<FreeSpace>;

    /// Copies every session that exists at the call into an absent or empty directory, each as of some later moment.
    /// The copy is complete and durable, or absent. Opened, it is a different store, with its own key.
    /// # Errors
    /// [`StoreError::Occupied`] or [`StoreError::Within`] for an unusable directory, [`StoreError::Copying`] during
    /// another copy, [`StoreError::Full`], [`StoreError::Closed`] once `is_over` returns true, or the reason the copy
    /// failed.
    fn back_up(
        &self,
        to: &Path,
        is_over: &IsOver,
        progress: &Progress,
    ) -> Result<Copied, StoreError>;

    /// Calls `look` with the store in place, which may change between two reads. With `scratch`, calls it with a
    /// temporary copy in that directory.
    /// # Errors
    /// As for [`back_up`](Self::back_up).
    fn look_at(
        &self,
        scratch: Option<&Path>,
        is_over: &IsOver,
        look: &mut dyn FnMut(&dyn EmbeddedStore),
    ) -> Result<(), StoreError>;

    /// Uses an idle moment for a short piece of housekeeping. Returns true if more is left.
    fn idle(&self) -> bool;

    /// Does housekeeping outside the writer, which waits for at most one short transaction. First checkpoints a long
    /// log.
    fn maintain(&self) -> bool {
        self.idle()
    }
}
