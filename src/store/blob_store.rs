//! The blobs' part of an engine: immutable bytes by session and digest.

use std::collections::HashSet;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;

use super::{StoreError, StoredBlob};
use crate::board::{Digest, SessionId};

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

    /// Gives `to` the blob that `from` has; it is durable when it returns.
    ///
    /// Its bytes are not verified: a damaged blob stays a damaged one.
    ///
    /// # Errors
    /// [`StoreError::BlobMissing`] if `from` does not have it; otherwise as [`put_blob`](Self::put_blob).
    fn link_blob(&self, from: SessionId, to: SessionId, digest: Digest) -> Result<(), StoreError>;

    /// Removes one blob of a session, unless `is_free` says that somebody needs it; whether it is gone. While it
    /// is asked, and until the blob is gone, nobody puts or links the same one: a put that ended before
    /// is to be known to it, and one that begins later stores the bytes again.
    ///
    /// A crash may leave the blob. A poisoned store removes none: it does not know what names it.
    ///
    /// # Errors
    /// [`StoreError::Poisoned`], or why it could not be removed.
    fn remove_blob(
        &self,
        session: SessionId,
        digest: Digest,
        is_free: &dyn Fn() -> bool,
    ) -> Result<bool, StoreError>;

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
