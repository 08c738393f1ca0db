//! Uploads of blobs: streamed into a draft, stored durably, then added to the session by a write.

use std::sync::Arc;

use crate::image_pins::ImagePin;
use crate::job::{ImagesIn, MOVED_TRIES_MAX, Unwritten, WriteJob};
use crate::work_turns::WorkTurn;
use crate::{Keep, Reply, Service, ServiceError, SessionHandle, new_session_id};
use blackboard_board::{
    Command, Digest, Hashing, MediaType, SessionCommand, SessionName, Terms, Write,
};
use blackboard_fairness::with_files;
use blackboard_store::{BlobDraft, StoreError};

/// The number of concurrent uploads of one client.
pub const UPLOADS_MAX: u64 = 64;

/// The bytes of an upload that are gathered in memory before they are written.
const GATHERED_BYTES: usize = 256 << 10;

/// A blob on its way in.
pub struct Upload {
    /// `None` while bytes are written, and after a failure.
    draft: Option<Draft>,
    gathered: Vec<u8>,
    turn: WorkTurn,
    home: Home,
}

/// The place of a blob on its way in. A directory made for a new session is removed if the blob is not put.
struct Home {
    service: Service,
    images_in: ImagesIn,
    is_unused: bool,
}

impl Drop for Home {
    fn drop(&mut self) {
        if let (true, ImagesIn::New(session)) = (self.is_unused, self.images_in) {
            self.service.inner.images.orphans.add(session);
        }
    }
}

struct Draft {
    file: Box<dyn BlobDraft>,
    hashing: Hashing,
    bytes: u64,
}

/// An upload that has all its bytes.
pub struct Uploaded {
    /// The digest of the bytes.
    pub sha256: Digest,
    /// The number of bytes.
    pub bytes: u64,
    file: Box<dyn BlobDraft>,
    _turn: WorkTurn,
    home: Home,
}

impl SessionHandle {
    /// Begins an upload to the session, which need not exist yet.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Overloaded`] if the client has too many uploads, or the reason why nothing can be stored.
    pub async fn begin_upload(&self) -> Result<Upload, ServiceError> {
        let service = &self.service;
        let turn = service.inner.images.uploads.now().ok_or(ServiceError::Overloaded)?;
        let images_in = service.images_in(&self.name)?;
        let home = Home { service: service.clone(), images_in, is_unused: true };
        let (store, session) = (Arc::clone(&service.inner.deps.store), images_in.session());
        let file = with_files(move || store.begin_blob(session)).await;
        let file = file.map_err(|_| ServiceError::Fault)??;
        let draft = Draft { file, hashing: Hashing::default(), bytes: 0 };
        Ok(Upload { draft: Some(draft), gathered: Vec::new(), turn, home })
    }

    /// Adds an uploaded blob to the session, durably. For a keyed write, `keep` makes the answer to a repeat.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write).
    pub async fn put_blob(
        &self,
        terms: Terms,
        uploaded: Uploaded,
        media_type: MediaType,
        keep: Option<Keep>,
    ) -> Result<Reply, ServiceError> {
        if let Some(answer) = self.recall(&terms).await? {
            return Ok(Reply::Before(answer));
        }
        let is_keyed = terms.key.is_some();
        let age = self.service.inner.images.schedule.collection().age;
        let command = Command::Session(SessionCommand::PutBlob {
            sha256: uploaded.sha256,
            bytes: uploaded.bytes,
            media_type,
            // Younger than this, a blob is safe from a collection that runs now.
            renewed_after_ms: i64::try_from(age.as_millis() / 2).unwrap_or(i64::MAX),
        });
        let write = Write { session: self.name.clone(), terms, command };
        let job = Box::new(WriteJob { keep, ..WriteJob::of(write) });
        let written = self.service.write_blob(job, uploaded).await;
        written.map_err(|error| error.in_doubt(is_keyed))
    }
}

impl Service {
    async fn write_blob(
        &self,
        mut job: Box<WriteJob>,
        uploaded: Uploaded,
    ) -> Result<Reply, ServiceError> {
        let Uploaded { sha256, file, mut home, _turn, .. } = uploaded;
        home.is_unused = false;
        let mut images_in = home.images_in;
        let (name, pins) = (job.session().clone(), &self.inner.images.pins);
        let pin = pins.images(images_in.session(), std::iter::once(sha256));
        job.images = Some((images_in, pin));
        let kept = with_files(move || file.keep(sha256)).await.map_err(|_| ServiceError::Fault)?;
        if let Err(error) = kept {
            self.note_unstored(&name, images_in);
            return Err(self.unless_deleted(&name, images_in, error));
        }
        for _ in 0..MOVED_TRIES_MAX {
            let written = self.enqueue(job).await;
            let Err(Unwritten::Moved(back)) = written else {
                self.discard_rejected(&name, images_in, &[sha256], &written);
                // Nothing names it yet.
                self.inner.images.schedule.after_refusal(&name);
                return Ok(written?);
            };
            job = back;
            // The bytes are nowhere else: the former place goes once they are in the next one.
            let linked = self.link(&name, images_in, sha256).await;
            self.discard(&name, images_in, &[sha256]);
            let linked = linked?;
            images_in = linked.0;
            job.images = Some(linked);
        }
        self.discard(&name, images_in, &[sha256]);
        Err(ServiceError::Overloaded)
    }

    /// Gives a blob to the session that the name belongs to now, or will belong to.
    async fn link(
        &self,
        name: &SessionName,
        from: ImagesIn,
        sha256: Digest,
    ) -> Result<(ImagesIn, ImagePin), ServiceError> {
        let to = self.images_in(name)?;
        let pin = self.inner.images.pins.images(to.session(), std::iter::once(sha256));
        let store = Arc::clone(&self.inner.deps.store);
        let link =
            move || store.link_blobs(from.session(), to.session(), &mut std::iter::once(sha256));
        if let Err(error) = with_files(link).await.map_err(|_| ServiceError::Fault)? {
            self.note_unstored(name, to);
            return Err(self.unless_deleted(name, from, error));
        }
        Ok((to, pin))
    }

    /// Returns the place of images of the session that the name belongs to, or will belong to.
    pub(super) fn images_in(&self, name: &SessionName) -> Result<ImagesIn, ServiceError> {
        Ok(match self.extent(name)? {
            Some(extent) => ImagesIn::Present(extent.session),
            None => ImagesIn::New(new_session_id()),
        })
    }

    /// Returns why bytes of this session could not be stored: a deletion may have taken its directory away.
    fn unless_deleted(
        &self,
        name: &SessionName,
        images_in: ImagesIn,
        error: StoreError,
    ) -> ServiceError {
        match images_in {
            ImagesIn::Present(session) if !self.has(name, session) => ServiceError::Overloaded,
            ImagesIn::Present(_) | ImagesIn::New(_) => error.into(),
        }
    }
}

impl Upload {
    /// Adds the next bytes.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Store`] if they could not be written; the upload is over then.
    pub async fn push(&mut self, piece: &[u8]) -> Result<(), ServiceError> {
        self.gathered.extend_from_slice(piece);
        if self.gathered.len() < GATHERED_BYTES { Ok(()) } else { self.write().await }
    }

    /// Ends the upload.
    ///
    /// # Errors
    ///
    /// As for [`Upload::push`].
    pub async fn end(mut self) -> Result<Uploaded, ServiceError> {
        self.write().await?;
        let Draft { file, hashing, bytes } = self.draft.ok_or(ServiceError::Fault)?;
        let sha256 = hashing.digest();
        Ok(Uploaded { sha256, bytes, file, _turn: self.turn, home: self.home })
    }

    /// Writes the gathered bytes.
    async fn write(&mut self) -> Result<(), ServiceError> {
        let mut draft = self.draft.take().ok_or(ServiceError::Fault)?;
        let gathered = std::mem::take(&mut self.gathered);
        let write = move || {
            draft.file.add(&gathered)?;
            draft.hashing.add(&gathered);
            draft.bytes += gathered.len() as u64;
            let mut empty = gathered;
            empty.clear();
            Ok((draft, empty))
        };
        let written: Result<_, StoreError> =
            with_files(write).await.map_err(|_| ServiceError::Fault)?;
        let (draft, empty) = written?;
        (self.draft, self.gathered) = (Some(draft), empty);
        Ok(())
    }
}
