//! Images read in chunks, as data URLs or bytes, so that a slow reader keeps no whole image in memory.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::{ServiceError, SessionHandle};
use blackboard_board::{Board, Digest, Hashing, Image, SessionId};
use blackboard_fairness::with_files;
use blackboard_store::StoreError;

/// The bytes of an image read at once; a multiple of three, which base64 turns into four.
const READ_BYTES: u64 = 3 * (48 << 10);

/// An image in pieces.
pub struct ImagePieces {
    /// `None` while a piece is read, and after the last.
    reading: Option<Reading>,
}

struct Reading {
    session: SessionId,
    sha256: Digest,
    source: Box<dyn Read + Send>,
    hashing: Hashing,
    /// The bytes left before the wanted part, in it and after it.
    before: u64,
    wanted: u64,
    after: u64,
    form: Form,
}

/// Encoding of the bytes.
enum Form {
    /// Base64; the first piece begins with the URL's head.
    DataUrl { head: String },
    /// Unchanged.
    Plain,
}

impl SessionHandle {
    /// Returns the data URL of a stored image, exactly as it was sent. The last piece comes only if the image matches
    /// its digest.
    ///
    /// # Errors
    ///
    /// As for [`SessionHandle::image`].
    pub async fn image_pieces(
        &self,
        board: &Board,
        image: &Image,
    ) -> Result<ImagePieces, ServiceError> {
        let head = image.head.clone();
        let whole = 0..image.bytes;
        self.open_image(board, (image.sha256, image.bytes), whole, Form::DataUrl { head }).await
    }

    /// Returns a part of the bytes of a stored image or blob, given its digest and length. The last piece comes only if
    /// the whole matches its digest.
    ///
    /// # Errors
    ///
    /// As for [`SessionHandle::image`].
    pub async fn image_part(
        &self,
        board: &Board,
        image: (Digest, u64),
        part: Range<u64>,
    ) -> Result<ImagePieces, ServiceError> {
        self.open_image(board, image, part, Form::Plain).await
    }

    async fn open_image(
        &self,
        board: &Board,
        (sha256, bytes): (Digest, u64),
        part: Range<u64>,
        form: Form,
    ) -> Result<ImagePieces, ServiceError> {
        let session = board.id();
        let store = Arc::clone(&self.service.inner.deps.store);
        let opened = with_files(move || store.open_blob(session, sha256));
        let opened = opened.await.map_err(|_| ServiceError::Fault)?;
        let source = opened.map_err(|error| self.service.image_error(board, error))?;
        let end = part.end.min(bytes);
        let before = part.start.min(end);
        let (wanted, after) = (end - before, bytes - end);
        let hashing = Hashing::default();
        let reading = Reading { session, sha256, source, hashing, before, wanted, after, form };
        Ok(ImagePieces { reading: Some(reading) })
    }
}

impl ImagePieces {
    /// Returns the next piece, and `None` after the last.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Store`] if the image cannot be read or does not match its digest; no piece follows.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ServiceError> {
        let Some(mut reading) = self.reading.take() else { return Ok(None) };
        let read = with_files(move || (reading.piece(), reading));
        let (piece, reading) = read.await.map_err(|_| ServiceError::Fault)?;
        let piece = piece?;
        self.reading = (reading.wanted > 0).then_some(reading);
        Ok(Some(piece))
    }
}

impl Reading {
    fn piece(&mut self) -> Result<Bytes, StoreError> {
        while self.before > 0 {
            self.before -= self.read(self.before)?.len() as u64;
        }
        let bytes = self.read(self.wanted)?;
        self.wanted -= bytes.len() as u64;
        if self.wanted == 0 {
            while self.after > 0 {
                self.after -= self.read(self.after)?.len() as u64;
            }
            if self.hashing.digest() != self.sha256 {
                return Err(self.damaged());
            }
        }
        Ok(match &mut self.form {
            Form::DataUrl { head } => {
                let mut piece = std::mem::take(head);
                STANDARD.encode_string(bytes, &mut piece);
                piece.into()
            }
            Form::Plain => bytes.into(),
        })
    }

    /// Reads the next bytes, at most `most` and at most [`READ_BYTES`].
    fn read(&mut self, most: u64) -> Result<Vec<u8>, StoreError> {
        let length = most.min(READ_BYTES);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        self.source.read_exact(&mut bytes).map_err(|_: io::Error| self.damaged())?;
        self.hashing.add(&bytes);
        Ok(bytes)
    }

    const fn damaged(&self) -> StoreError {
        StoreError::BlobDamaged { session: self.session, digest: self.sha256 }
    }
}
