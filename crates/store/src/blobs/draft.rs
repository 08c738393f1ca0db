//! Blobs that arrive in pieces, in temporary files of their session's directory.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use uuid::Uuid;

use super::{Blobs, TEMPORARY};
use crate::files::disk::FILE_MODE;
use crate::{BlobDraft, StoreError};
use blackboard_board::{Digest, SessionId};
use blackboard_metrics as metrics;

/// A draft in a temporary file.
pub(crate) struct FileDraft {
    blobs: Arc<Blobs>,
    session: SessionId,
    path: PathBuf,
    file: File,
}

impl FileDraft {
    pub(crate) fn begin(blobs: Arc<Blobs>, session: SessionId) -> Result<Self, StoreError> {
        blobs.unless_poisoned()?;
        blobs.make_home(session)?;
        let name = format!("{}-{}", blobs.run, Uuid::new_v4());
        let path = blobs.home(session).join(name).with_extension(TEMPORARY);
        let file = OpenOptions::new().create_new(true).write(true).mode(FILE_MODE).open(&path);
        let file = file.map_err(StoreError::io(&path))?;
        Ok(Self { blobs, session, path, file })
    }
}

impl BlobDraft for FileDraft {
    fn add(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        if !self.blobs.room.is_for(bytes.len() as u64) {
            return Err(StoreError::Full);
        }
        self.file.write_all(bytes).map_err(StoreError::io(&self.path))
    }

    fn keep(self: Box<Self>, digest: Digest) -> Result<(), StoreError> {
        let Self { blobs, session, path, file } = &*self;
        let begun = Instant::now();
        file.sync_data().map_err(StoreError::io(path))?;
        metrics::BLOB_SYNC_TIMES.observe(begun.elapsed());
        let _turn = blobs.turns.take((*session, digest));
        blobs.unless_poisoned()?;
        // An intact blob is replaced too: the collection goes by the time of the file.
        let to = blobs.path(*session, digest);
        fs::rename(path, &to).map_err(StoreError::io(&to))?;
        blobs.sync_home(*session)
    }
}

impl Drop for FileDraft {
    fn drop(&mut self) {
        // A kept draft has another name. If this fails, the next start removes the file.
        drop(fs::remove_file(&self.path));
    }
}
