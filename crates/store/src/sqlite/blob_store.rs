//! Blobs of the embedded store: files in the data directory.

use std::collections::HashSet;
use std::io::Read;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::blobs::draft::FileDraft;
use crate::{BlobDraft, BlobStore, SqliteStore, StoreError, StoredBlob};
use blackboard_board::{Digest, SessionId};

impl BlobStore for SqliteStore {
    fn put_blob(&self, session: SessionId, digest: Digest, bytes: &[u8]) -> Result<(), StoreError> {
        self.may_change()?;
        self.blobs.put(session, digest, bytes).inspect_err(|error| {
            if matches!(error, StoreError::Full) {
                self.note_full();
            }
        })
    }

    fn begin_blob(&self, session: SessionId) -> Result<Box<dyn BlobDraft>, StoreError> {
        self.may_change()?;
        Ok(Box::new(FileDraft::begin(Arc::clone(&self.blobs), session)?))
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
