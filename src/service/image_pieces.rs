//! An image's data URL, read and made piece by piece: an image may be large, and its reader slow.

use std::io::{self, Read};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Service, ServiceError};
use crate::board::{Board, Digest, Hashing, Image, SessionId};
use crate::store::StoreError;

/// How much of an image is read at once. Base64 makes four bytes of three, so it is a multiple of that.
const READ_BYTES: u64 = 3 * (48 << 10);

/// A data URL as it comes.
pub struct ImagePieces {
    /// Nothing while a piece is made, and after the last one.
    reading: Option<Reading>,
}

struct Reading {
    session: SessionId,
    sha256: Digest,
    source: Box<dyn Read + Send>,
    hashing: Hashing,
    left: u64,
    /// The URL's beginning, until it is written.
    head: String,
}

impl Service {
    /// The data URL of a stored image, exactly as it was sent. The last piece comes only if the image is what
    /// was stored.
    ///
    /// # Errors
    ///
    /// As for [`Service::image`].
    pub async fn image_pieces(
        &self,
        board: &Board,
        image: &Image,
    ) -> Result<ImagePieces, ServiceError> {
        let (session, sha256) = (board.id(), image.sha256);
        let store = Arc::clone(&self.inner.store);
        let opened = tokio::task::spawn_blocking(move || store.open_blob(session, sha256));
        let opened = opened.await.map_err(|_| ServiceError::Fault)?;
        let source = opened.map_err(|error| self.image_error(board, error))?;
        let (hashing, left, head) = (Hashing::default(), image.bytes, image.head.clone());
        let reading = Reading { session, sha256, source, hashing, left, head };
        Ok(ImagePieces { reading: Some(reading) })
    }
}

impl ImagePieces {
    /// The next piece; nothing after the last one.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Store`] where it cannot be read, or is not what was stored; nothing comes after it.
    pub async fn next(&mut self) -> Result<Option<bytes::Bytes>, ServiceError> {
        let Some(mut reading) = self.reading.take() else { return Ok(None) };
        let read = tokio::task::spawn_blocking(move || (reading.piece(), reading));
        let (piece, reading) = read.await.map_err(|_| ServiceError::Fault)?;
        let piece = piece?;
        self.reading = (reading.left > 0).then_some(reading);
        Ok(Some(piece.into()))
    }
}

impl Reading {
    fn piece(&mut self) -> Result<String, StoreError> {
        let (session, digest) = (self.session, self.sha256);
        let damaged = |_: io::Error| StoreError::BlobDamaged { session, digest };
        let length = self.left.min(READ_BYTES);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        self.source.read_exact(&mut bytes).map_err(damaged)?;
        self.hashing.add(&bytes);
        self.left -= length;
        if self.left == 0 && self.hashing.digest() != digest {
            return Err(StoreError::BlobDamaged { session, digest });
        }
        let mut piece = std::mem::take(&mut self.head);
        STANDARD.encode_string(bytes, &mut piece);
        Ok(piece)
    }
}
