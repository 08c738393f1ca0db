//! Blobs of an engine: immutable bytes by session and digest.

use std::collections::HashSet;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;

use super::{StoreError, StoredBlob};
use blackboard_board::{Digest, SessionId};

/// The blob storage of an engine.
pub trait BlobStore: Send + Sync {
    /// Stores these bytes for the session; they are durable on return, whoever stored them.
    ///
    /// # Errors
    /// [`StoreError::Full`] if there is no room; otherwise the reason they could not be made durable.
    fn put_blob(&self, session: SessionId, digest: Digest, bytes: &[u8]) -> Result<(), StoreError>;

    /// Begins a blob of the session that arrives in pieces.
    ///
    /// # Errors
    /// As for [`put_blob`](Self::put_blob).
    fn begin_blob(&self, session: SessionId) -> Result<Box<dyn BlobDraft>, StoreError>;

    /// Returns the verified bytes of a blob.
    ///
    /// # Errors
    /// [`StoreError::BlobMissing`] or [`StoreError::BlobDamaged`].
    fn blob(&self, session: SessionId, digest: Digest) -> Result<Vec<u8>, StoreError>;

    /// Returns a reader of a blob's bytes, which the caller must verify.
    ///
    /// # Errors
    /// [`StoreError::BlobMissing`].
    fn open_blob(
        &self,
        session: SessionId,
        digest: Digest,
    ) -> Result<Box<dyn Read + Send>, StoreError> {
        Ok(Box::new(Cursor::new(self.blob(session, digest)?)))
    }

    /// Gives `to` blobs of `from`; they are durable on return, by one sync for all.
    ///
    /// Their bytes are not verified: a damaged blob stays damaged.
    ///
    /// # Errors
    /// [`StoreError::BlobMissing`] at a blob that `from` lacks; otherwise as [`put_blob`](Self::put_blob).
    fn link_blobs(
        &self,
        from: SessionId,
        to: SessionId,
        digests: &mut dyn Iterator<Item = Digest>,
    ) -> Result<(), StoreError>;

    /// Removes one blob of a session if `is_free` returns true. Returns true if the blob is gone. Until then the same
    /// blob can be neither put nor linked. `is_free` must know every put that ended before; a later put stores the
    /// bytes again.
    ///
    /// The blob is removed only once all appends before the call of `is_free` survive a power cut. A crash may leave
    /// it. A poisoned store removes none: it does not know which commits name the blob.
    ///
    /// # Errors
    /// [`StoreError::Poisoned`], or the reason it could not be removed.
    fn remove_blob(
        &self,
        session: SessionId,
        digest: Digest,
        is_free: &dyn Fn() -> bool,
    ) -> Result<bool, StoreError>;

    /// Removes all blobs of deleted sessions, once all appends before the call survive a power cut. They are hidden
    /// at once, at any number; [`sweep_blobs`](Self::sweep_blobs) deletes them from the disk.
    ///
    /// # Errors
    /// If some could not be removed.
    fn remove_blobs(&self, sessions: &[SessionId]) -> Result<(), StoreError>;

    /// Deletes a bounded number of the files hidden by [`remove_blobs`](Self::remove_blobs) and
    /// [`clear_blobs`](Self::clear_blobs), in this run or an earlier one. Returns true if more are left.
    ///
    /// # Errors
    /// If some could not be deleted.
    fn sweep_blobs(&self) -> Result<bool, StoreError>;

    /// Removes remnants of earlier runs, concurrently with puts and removals: interrupted puts, and blobs of sessions
    /// that were not `live` on opening and had none put since. Count damaged sessions as live: their blobs may be all
    /// that is left of them. Stops once `go_on`, called for each session, returns false.
    ///
    /// # Errors
    /// If some could not be removed.
    fn clear_blobs(
        &self,
        live: &HashSet<SessionId>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), StoreError>;

    /// Visits the blobs of a session, in no order, until `visit` breaks.
    ///
    /// # Errors
    /// If they cannot be listed.
    fn blobs_of(
        &self,
        session: SessionId,
        visit: &mut dyn FnMut(StoredBlob) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Visits every blob, in no order, until `visit` breaks.
    ///
    /// # Errors
    /// If they cannot be listed.
    fn blobs(&self, visit: &mut dyn FnMut(StoredBlob) -> ControlFlow<()>)
    -> Result<(), StoreError>;
}

/// A blob whose digest is known only at its end. Dropped before it is kept, it is deleted.
pub trait BlobDraft: Send {
    /// Adds the next bytes.
    ///
    /// # Errors
    /// [`StoreError::Full`] if there is no room, or the reason they could not be written.
    fn add(&mut self, bytes: &[u8]) -> Result<(), StoreError>;

    /// Gives the bytes so far to the session under this digest, which is theirs; they are durable on return, and no
    /// older than now.
    ///
    /// # Errors
    /// [`StoreError::Poisoned`], or the reason they could not be made durable.
    fn keep(self: Box<Self>, digest: Digest) -> Result<(), StoreError>;
}
