//! Images on their way to the store and back. They are durable before the commit that names them.

use std::sync::Arc;

use super::{Service, ServiceError, new_session_id};
use crate::board::{Board, Digest, Image, Item, Screenshot, SessionId, SessionName};

/// An image to be stored before the write that names it.
#[derive(Clone, Debug)]
pub struct ImageBytes {
    /// Its digest.
    pub sha256: Digest,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
}

impl Service {
    /// Stores a write's images under the session that the name belongs to, or will belong to; `None`
    /// where there are none.
    pub(super) async fn keep_images(
        &self,
        name: &SessionName,
        images: &Arc<[ImageBytes]>,
    ) -> Result<Option<SessionId>, ServiceError> {
        if images.is_empty() {
            return Ok(None);
        }
        let published = self.published(name)?;
        let session = published.map_or_else(new_session_id, |published| published.board.id());
        let images = Arc::clone(images);
        let store = Arc::clone(&self.inner.store);
        let put = move || {
            images.iter().try_for_each(|image| store.put_blob(session, image.sha256, &image.bytes))
        };
        let put = tokio::task::spawn_blocking(put).await.map_err(|_| ServiceError::Fault)?;
        put?;
        Ok(Some(session))
    }

    /// The bytes of a stored image, checked against its digest.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Store`] where they cannot be read, or are not what was stored.
    pub async fn image(&self, board: &Board, image: &Image) -> Result<Vec<u8>, ServiceError> {
        let (session, sha256) = (board.id(), image.sha256);
        let store = Arc::clone(&self.inner.store);
        let read = tokio::task::spawn_blocking(move || store.blob(session, sha256));
        Ok(read.await.map_err(|_| ServiceError::Fault)??)
    }

    /// An item's text with its image in its place, exactly as it was sent.
    ///
    /// # Errors
    ///
    /// As for [`Service::image`].
    pub async fn whole_text(&self, board: &Board, item: &Item) -> Result<String, ServiceError> {
        let Some(image) = item.image() else { return Ok(item.text().to_owned()) };
        Ok(item.with_image_text(&image.data_url(&self.image(board, image).await?)))
    }
}

impl ImageBytes {
    /// A screenshot's item, and its image if it has one to be stored.
    #[must_use]
    pub fn split(screenshot: Screenshot) -> (Item, Vec<Self>) {
        let Screenshot { item, bytes } = screenshot;
        let image = item.image().zip(bytes);
        let images = image.map(|(image, bytes)| Self { sha256: image.sha256, bytes: bytes.into() });
        let images = images.into_iter().collect();
        (item, images)
    }
}
