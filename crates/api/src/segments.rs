//! Bodies as segments: texts and images, streamed.
//!
//! A text is shared or rendered on demand; images are read in pieces.

use std::collections::VecDeque;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blackboard_thumbnail::Bounds;
use bytes::Bytes;

use super::pieces::PIECE_BYTES;
use super::view::text_image::text_image;
use super::yielding::Turns;
use blackboard_board::{Board, Entry, Image};
use blackboard_service::{ImagePieces, ServiceError, SessionHandle};

/// The length from which a text is sent without a copy. Shorter texts are copied together, since each frame has a
/// cost too.
const ALONE_BYTES_MIN: usize = 4 << 10;

/// Renders a text.
type Make = Box<dyn FnOnce() -> String + Send>;

/// The number of bytes of a thumbnail to encode at once. Base64 turns three bytes into four.
const ENCODED_BYTES: usize = PIECE_BYTES / 4 * 3;

enum Segment {
    Text(Bytes),
    /// A text to be rendered from this number of bytes.
    Made(u64, Make),
    Image(Image),
    /// A thumbnail of an image, within bounds. Boxed, since most segments are texts.
    Thumbnail(Box<(Image, Bounds)>),
    /// The image in the text of an entry, within bounds and of one of these media types.
    TextImage(Box<(Arc<Entry>, Bounds, &'static [&'static str])>),
}

/// A body under construction.
#[derive(Default)]
pub struct Segments {
    all: VecDeque<Segment>,
    /// Short texts that are not in a segment yet.
    short: Vec<u8>,
    bytes: u64,
    /// True if the length of a segment is unknown.
    is_open: bool,
}

impl Segments {
    /// Adds a copy of a text.
    pub(crate) fn push_str(&mut self, text: &str) {
        self.push_short(text.as_bytes());
    }

    fn push_short(&mut self, text: &[u8]) {
        self.short.extend_from_slice(text);
        if self.short.len() >= PIECE_BYTES {
            self.close_short();
        }
    }

    /// Adds a text, without a copy unless the text is short.
    pub(crate) fn push_bytes(&mut self, text: Bytes) {
        if text.len() < ALONE_BYTES_MIN {
            self.push_short(&text);
        } else {
            self.close_short();
            self.bytes += text.len() as u64;
            self.all.push_back(Segment::Text(text));
        }
    }

    /// Adds a text that is rendered on demand from this number of bytes.
    pub fn push_made(&mut self, bytes: u64, make: impl FnOnce() -> String + Send + 'static) {
        self.close_short();
        self.is_open = true;
        self.all.push_back(Segment::Made(bytes, Box::new(make)));
    }

    /// Adds the data URL of a stored image.
    pub(crate) fn push_image(&mut self, image: &Image) {
        self.close_short();
        self.bytes += image.data_url_bytes();
        self.all.push_back(Segment::Image(image.clone()));
    }

    /// Adds the base64 of a thumbnail of a stored image. `bytes` is the size of the thumbnail.
    pub fn push_thumbnail(&mut self, image: &Image, bounds: Bounds, bytes: u64) {
        self.close_short();
        self.bytes += bytes.div_ceil(3) * 4;
        self.all.push_back(Segment::Thumbnail(Box::new((image.clone(), bounds))));
    }

    /// Adds the base64 of the image in the text of an entry. `bytes` is the size of what is shown.
    pub(crate) fn push_text_image(
        &mut self,
        entry: &Arc<Entry>,
        bounds: Bounds,
        accepted: &'static [&'static str],
        bytes: u64,
    ) {
        self.close_short();
        self.bytes += bytes.div_ceil(3) * 4;
        self.all.push_back(Segment::TextImage(Box::new((Arc::clone(entry), bounds, accepted))));
    }

    fn close_short(&mut self) {
        if !self.short.is_empty() {
            self.bytes += self.short.len() as u64;
            self.all.push_back(Segment::Text(Bytes::from(std::mem::take(&mut self.short))));
        }
    }

    /// Returns the pieces of the body.
    pub fn pieces(mut self, session: SessionHandle, board: Arc<Board>) -> SegmentPieces {
        self.close_short();
        let bytes = (!self.is_open).then_some(self.bytes);
        let (image, thumbnail, turns) = (None, Bytes::new(), Turns::default());
        SegmentPieces { session, board, segments: self.all, bytes, image, thumbnail, turns }
    }
}

/// The segments that are not read yet.
pub struct SegmentPieces {
    session: SessionHandle,
    board: Arc<Board>,
    segments: VecDeque<Segment>,
    bytes: Option<u64>,
    image: Option<ImagePieces>,
    /// The rest of a thumbnail.
    thumbnail: Bytes,
    turns: Turns,
}

impl SegmentPieces {
    /// Returns the length of the whole body, if known.
    pub fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Returns the number of segments that are not read yet.
    pub fn count(&self) -> usize {
        self.segments.len()
    }

    /// Takes the next segment, if it is a rendered text.
    pub fn ready(&mut self) -> Option<Bytes> {
        match self.segments.pop_front()? {
            Segment::Text(text) => Some(text),
            other @ (Segment::Made(..)
            | Segment::Image(_)
            | Segment::Thumbnail(_)
            | Segment::TextImage(_)) => {
                self.segments.push_front(other);
                None
            }
        }
    }

    /// Reads the next piece. Returns `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ServiceError> {
        loop {
            if let Some(image) = &mut self.image {
                match image.next().await? {
                    Some(piece) => return Ok(Some(piece)),
                    None => self.image = None,
                }
            }
            if !self.thumbnail.is_empty() {
                let most = self.thumbnail.len().min(ENCODED_BYTES);
                let piece = STANDARD.encode(self.thumbnail.split_to(most));
                self.turns.worked(piece.len() as u64).await;
                return Ok(Some(Bytes::from(piece)));
            }
            match self.segments.pop_front() {
                None => return Ok(None),
                Some(Segment::Text(text)) => return Ok(Some(text)),
                Some(Segment::Made(bytes, make)) => {
                    return Ok(Some(self.turns.make(bytes, || Bytes::from(make())).await?));
                }
                Some(Segment::Thumbnail(thumbnail)) => {
                    let (image, bounds) = *thumbnail;
                    // Boxed: few bodies have a thumbnail, and all hold the room for it.
                    let making = Box::pin(self.session.thumbnail(&self.board, &image, bounds));
                    let made = making.await?;
                    self.thumbnail = made.bytes;
                }
                Some(Segment::TextImage(of_text)) => {
                    let (entry, bounds, accepted) = *of_text;
                    let (session, board) = (&self.session, &self.board);
                    let showing = Box::pin(text_image(session, board, &entry, bounds, accepted));
                    self.thumbnail = showing.await?.ok_or(ServiceError::Fault)?.bytes;
                }
                Some(Segment::Image(image)) => {
                    self.image = Some(self.session.image_pieces(&self.board, &image).await?);
                }
            }
        }
    }
}
