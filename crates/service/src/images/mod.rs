//! Images: stored durably before the commit that references them.

pub(crate) mod chunks;
pub(crate) mod gc;
pub(crate) mod gc_schedule;
pub(crate) mod reaper;
mod rejected;
pub(crate) mod uploads;

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::deps::Deps;
use super::image_pins::{ImagePin, ImagePins};
use super::job::{ImagesIn, JobQueue};
use super::options::Collection;
use super::sessions::Sessions;
use super::thumbnails::Thumbnails;
use super::work_turns::WorkTurns;
use super::{ImageBytes, Service, ServiceError, SessionHandle};
use blackboard_board::{Board, Image, Item, Rejected, SessionId, SessionName};
use blackboard_fairness::with_files;
use blackboard_store::StoreError;
use gc::Gc;
use gc_schedule::GcSchedule;
use reaper::{Orphans, Reaper};
use uploads::UPLOADS_MAX;

/// Images of all sessions: pins, garbage collection, removal and thumbnails.
pub(super) struct Images {
    pub(super) pins: Arc<ImagePins>,
    pub(super) schedule: Arc<GcSchedule>,
    pub(super) orphans: Arc<Orphans>,
    pub(super) thumbnails: Arc<Thumbnails>,
    uploads: WorkTurns,
}

impl Images {
    /// Starts the collector and the reaper. `live` are the sessions that the startup scan found, `None` if the store is
    /// only read.
    pub(super) fn start(
        deps: &Deps,
        sessions: &Sessions,
        jobs: &JobQueue,
        (collection, thumbnails): (Collection, Option<PathBuf>),
        live: Option<HashSet<SessionId>>,
    ) -> io::Result<Self> {
        let images = Self {
            pins: Arc::default(),
            schedule: Arc::new(GcSchedule::new(collection)),
            orphans: Arc::default(),
            thumbnails: Arc::new(Thumbnails::new(thumbnails)),
            uploads: WorkTurns::held(UPLOADS_MAX, 0),
        };
        Gc::of(deps, sessions, jobs, &images).start(deps)?;
        let (orphans, store) = (Arc::clone(&images.orphans), Arc::clone(&deps.store));
        let thumbnails = Arc::clone(&images.thumbnails);
        Reaper { orphans, store, thumbnails, live }.start(deps)?;
        Ok(images)
    }
}

impl SessionHandle {
    /// Returns the bytes of a stored image, checked against its digest.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Store`] if the bytes cannot be read or do not match; [`Rejected::NoSession`] if they were
    /// deleted with their session.
    pub async fn image(&self, board: &Board, image: &Image) -> Result<Vec<u8>, ServiceError> {
        self.service.read_image(board, image, |bytes| bytes).await
    }
}

impl Service {
    /// Stores a write's images under the session that the name belongs to, or will belong to, and pins them there;
    /// `None` if the session was deleted meanwhile.
    pub(crate) async fn keep_images(
        &self,
        name: &SessionName,
        images: &Arc<[ImageBytes]>,
    ) -> Result<Option<(ImagesIn, ImagePin)>, ServiceError> {
        let images_in = self.images_in(name)?;
        let session = images_in.session();
        let hold = self.inner.images.pins.images(session, images.iter().map(|image| image.sha256));
        let images = Arc::clone(images);
        let store = Arc::clone(&self.inner.deps.store);
        let put = move || {
            images.iter().try_for_each(|image| store.put_blob(session, image.sha256, &image.bytes))
        };
        let put = with_files(put).await.map_err(|_| ServiceError::Fault)?;
        if put.is_err() {
            self.note_unstored(name, images_in);
        }
        match put {
            Ok(()) => Ok(Some((images_in, hold))),
            Err(StoreError::Poisoned) => Err(ServiceError::Poisoned { outcome_unknown: false }),
            // A deletion takes the directory away under a put; that is no fault of the disk.
            Err(_) if images_in == ImagesIn::Present(session) && !self.has(name, session) => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns true if the name still belongs to this session.
    pub(crate) fn has(&self, name: &SessionName, session: SessionId) -> bool {
        matches!(self.extent(name), Ok(Some(extent)) if extent.session == session)
    }

    /// Returns the data URL of a stored image, exactly as it was sent.
    ///
    /// # Errors
    ///
    /// As for [`SessionHandle::image`].
    pub(crate) async fn image_url(
        &self,
        board: &Board,
        image: &Image,
    ) -> Result<String, ServiceError> {
        let own = image.clone();
        self.read_image(board, image, move |bytes| own.data_url(&bytes)).await
    }

    /// Reads an image and converts it on a blocking thread, since images are large.
    async fn read_image<T: Send + 'static>(
        &self,
        board: &Board,
        image: &Image,
        make: impl FnOnce(Vec<u8>) -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        let (session, sha256) = (board.id(), image.sha256);
        let store = Arc::clone(&self.inner.deps.store);
        let read = with_files(move || store.blob(session, sha256).map(make));
        let read = read.await.map_err(|_| ServiceError::Fault)?;
        read.map_err(|error| self.image_error(board, error))
    }

    /// Returns why an image of this board cannot be read: its session may have been deleted.
    pub(crate) fn image_error(&self, board: &Board, error: StoreError) -> ServiceError {
        match board.life() {
            Some(life)
                if matches!(error, StoreError::BlobMissing { .. })
                    && !self.has(&life.name, board.id()) =>
            {
                let rejected = Rejected::NoSession { session: life.name.clone() };
                ServiceError::Rejected { rejected, revision: None }
            }
            Some(life) if matches!(error, StoreError::BlobMissing { .. }) => {
                // The image may have been deleted with the history that named it.
                match self.extent(&life.name) {
                    Ok(Some(now)) if now.oldest > board.revision() => {
                        ServiceError::Compacted { oldest: now.oldest }
                    }
                    Ok(_) | Err(_) => error.into(),
                }
            }
            Some(_) | None => error.into(),
        }
    }

    /// Returns an item's text with its image in place, exactly as it was sent.
    ///
    /// # Errors
    ///
    /// As for [`SessionHandle::image`].
    pub(crate) async fn whole_text(
        &self,
        board: &Board,
        item: &Item,
    ) -> Result<String, ServiceError> {
        let Some(image) = item.image() else { return Ok(item.text().to_owned()) };
        Ok(item.with_image_text(&self.image_url(board, image).await?))
    }
}
