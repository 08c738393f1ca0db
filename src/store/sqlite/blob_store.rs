//! Blobs of an engine: immutable bytes by session and digest.

use std::collections::HashSet;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;

use crate::board::{Digest, SessionId};
use crate::store::{SqliteStore, StoreError, StoredBlob};

/// What every engine promises of blobs.
pub trait BlobStore: Send + Sync {
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

    /// The bytes of a blob as they are read, which the caller is to verify.
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

    /// Gives `to` blobs that `from` has; they are durable when it returns, by one sync for all of them.
    ///
    /// Their bytes are not verified: a damaged blob stays a damaged one.
    ///
    /// # Errors
    /// [`StoreError::BlobMissing`] at one that `from` does not have; otherwise as [`put_blob`](Self::put_blob).
    fn link_blobs(
        &self,
        from: SessionId,
        to: SessionId,
        digests: &mut dyn Iterator<Item = Digest>,
    ) -> Result<(), StoreError>;

    /// Removes one blob of a session, unless `is_free` says that somebody needs it; whether it is gone. While it
    /// is asked, and until the blob is gone, nobody puts or links the same one: a put that ended before
    /// is to be known to it, and one that begins later stores the bytes again.
    ///
    /// It goes only once all that was appended before `is_free` was asked survives a power cut. A crash may leave
    /// it. A poisoned store removes none: it does not know what names it.
    ///
    /// # Errors
    /// [`StoreError::Poisoned`], or why it could not be removed.
    fn remove_blob(
        &self,
        session: SessionId,
        digest: Digest,
        is_free: &dyn Fn() -> bool,
    ) -> Result<bool, StoreError>;

    /// Removes all blobs of deleted sessions, once all that was appended before the call survives a power cut:
    /// out of sight at once, however many they are, and from the disk by [`sweep_blobs`](Self::sweep_blobs).
    ///
    /// # Errors
    /// If some could not be removed.
    fn remove_blobs(&self, sessions: &[SessionId]) -> Result<(), StoreError>;

    /// Deletes a bounded piece of what [`remove_blobs`](Self::remove_blobs) and [`clear_blobs`](Self::clear_blobs)
    /// put out of sight, in this run or an earlier one; whether more is left.
    ///
    /// # Errors
    /// If some of it could not be deleted.
    fn sweep_blobs(&self) -> Result<bool, StoreError>;

    /// Removes what an earlier run left, while others put and remove: interrupted puts, and the blobs of sessions
    /// that were not `live` when the store was opened and had none put since. A damaged session is live too: its
    /// blobs may be all that is left of it. It stops where `go_on`, asked for each session, says so.
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

impl BlobStore for SqliteStore {
    fn put_blob(&self, session: SessionId, digest: Digest, bytes: &[u8]) -> Result<(), StoreError> {
        self.may_change()?;
        self.blobs.put(session, digest, bytes)
    }

    fn blob(&self, session: SessionId, digest: Digest) -> Result<Vec<u8>, StoreError> {
        self.blobs.read(session, digest)
    }

    fn open_blob(
        &self,
        session: SessionId,
        digest: Digest,
    ) -> Result<Box<dyn Read + Send>, StoreError> {
        Ok(Box::new(self.blobs.open_one(session, digest)?))
    }

    fn link_blobs(
        &self,
        from: SessionId,
        to: SessionId,
        digests: &mut dyn Iterator<Item = Digest>,
    ) -> Result<(), StoreError> {
        self.may_change()?;
        self.blobs.link(from, to, digests)
    }

    fn remove_blob(
        &self,
        session: SessionId,
        digest: Digest,
        is_free: &dyn Fn() -> bool,
    ) -> Result<bool, StoreError> {
        self.may_change()?;
        self.blobs.remove_one(session, digest, is_free)
    }

    fn remove_blobs(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        self.may_change()?;
        self.blobs.remove(sessions)
    }

    fn sweep_blobs(&self) -> Result<bool, StoreError> {
        self.may_change()?;
        self.blobs.sweep()
    }

    fn clear_blobs(
        &self,
        live: &HashSet<SessionId>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), StoreError> {
        self.may_change()?;
        self.blobs.clear(live, go_on)
    }

    fn blobs_of(
        &self,
        session: SessionId,
        visit: &mut dyn FnMut(StoredBlob) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.blobs.visit_home(session, visit).map(drop)
    }

    fn blobs(
        &self,
        visit: &mut dyn FnMut(StoredBlob) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.blobs.visit(visit)
    }
}
