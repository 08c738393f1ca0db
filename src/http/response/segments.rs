//! Bodies of segments: shared text, text rendered on demand, and images read piece by piece.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use http_body::{Frame, SizeHint};

use super::chunked::WHOLE_BYTES_MAX;
use crate::api::cooperate::Turns;
use crate::api::pieces::PIECE_BYTES;
use crate::board::{Board, Image};
use crate::service::{ImagePieces, Service, ServiceError};

/// A text from this length on is sent as it is; shorter ones are copied together, since each frame has its
/// price too.
const ALONE_BYTES_MIN: usize = 16 << 10;

/// Makes a text.
type Make = Box<dyn FnOnce() -> String + Send>;

/// How much of a thumbnail is encoded at once. Base64 makes four bytes of three.
const ENCODED_BYTES: usize = PIECE_BYTES / 4 * 3;

enum Segment {
    Text(Bytes),
    /// Of so many bytes.
    Made(u64, Make),
    Image(Image),
    /// Of an image, not above so many pixels on its longest side.
    Thumbnail(Image, Option<NonZeroU32>),
}

/// A body while it is put together.
#[derive(Default)]
pub(crate) struct Segments {
    all: VecDeque<Segment>,
    /// Short texts that have no segment yet.
    short: Vec<u8>,
    bytes: u64,
    /// Whether the length of a segment is not known.
    is_open: bool,
}

impl Segments {
    /// Adds a text by copying it.
    pub(crate) fn push_str(&mut self, text: &str) {
        self.push_short(text.as_bytes());
    }

    fn push_short(&mut self, text: &[u8]) {
        self.short.extend_from_slice(text);
        if self.short.len() >= PIECE_BYTES {
            self.close_short();
        }
    }

    /// Adds a text, without a copy where it is not short.
    pub(crate) fn push_bytes(&mut self, text: Bytes) {
        if text.len() < ALONE_BYTES_MIN {
            self.push_short(&text);
        } else {
            self.close_short();
            self.bytes += text.len() as u64;
            self.all.push_back(Segment::Text(text));
        }
    }

    /// Adds a text that is made of so many bytes when its turn comes.
    pub(crate) fn push_made(&mut self, bytes: u64, make: impl FnOnce() -> String + Send + 'static) {
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

    /// Adds the base64 of what is made of a stored image, which has so many bytes.
    pub(crate) fn push_thumbnail(&mut self, image: &Image, max_px: Option<NonZeroU32>, bytes: u64) {
        self.close_short();
        self.bytes += bytes.div_ceil(3) * 4;
        self.all.push_back(Segment::Thumbnail(image.clone(), max_px));
    }

    fn close_short(&mut self) {
        if !self.short.is_empty() {
            self.bytes += self.short.len() as u64;
            self.all.push_back(Segment::Text(Bytes::from(std::mem::take(&mut self.short))));
        }
    }

    /// The body. What fails early is an error; what fails later breaks it off.
    pub(crate) async fn body(
        mut self,
        service: Service,
        board: Arc<Board>,
    ) -> Result<Body, ServiceError> {
        self.close_short();
        let left = (!self.is_open).then_some(self.bytes);
        let mut source = Source::new(service, board, self.all);
        let (mut ready, mut bytes) = (VecDeque::new(), 0);
        while let Some(text) = source.ready() {
            ready.push_back(text);
        }
        while bytes < WHOLE_BYTES_MAX {
            let Some(frame) = source.next().await? else {
                // All of it is here, and so is its length.
                let left = Some(ready.iter().map(|frame: &Bytes| frame.len() as u64).sum());
                return Ok(Body::new(Frames { ready, rest: stream::empty().boxed(), left }));
            };
            bytes += frame.len();
            ready.push_back(frame);
        }
        let rest = stream::unfold(source, async |mut source| {
            let frame = source.next().await.transpose()?;
            if let Err(error) = &frame {
                tracing::error!(%error, "an answer broke off");
            }
            // A fast reader of a long answer must not keep a worker from all others.
            tokio::task::yield_now().await;
            Some((frame, source))
        });
        // Compression asks once more after the end.
        Ok(Body::new(Frames { ready, rest: rest.fuse().boxed(), left }))
    }
}

/// The segments that are not sent yet.
struct Source {
    service: Service,
    board: Arc<Board>,
    segments: VecDeque<Segment>,
    image: Option<ImagePieces>,
    /// What is left of a thumbnail.
    thumbnail: Bytes,
    turns: Turns,
}

impl Source {
    fn new(service: Service, board: Arc<Board>, segments: VecDeque<Segment>) -> Self {
        let (thumbnail, turns) = (Bytes::new(), Turns::default());
        Self { service, board, segments, image: None, thumbnail, turns }
    }

    /// The next segment, if nothing has to be done for it.
    fn ready(&mut self) -> Option<Bytes> {
        match self.segments.pop_front()? {
            Segment::Text(text) => Some(text),
            other @ (Segment::Made(..) | Segment::Image(_) | Segment::Thumbnail(..)) => {
                self.segments.push_front(other);
                None
            }
        }
    }

    /// What is to be sent next; nothing after the last of it.
    async fn next(&mut self) -> Result<Option<Bytes>, ServiceError> {
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
                Some(Segment::Thumbnail(image, max_px)) => {
                    let made = self.service.thumbnail(&self.board, &image, max_px).await?;
                    self.thumbnail = made.bytes;
                }
                Some(Segment::Image(image)) => {
                    self.image = Some(self.service.image_pieces(&self.board, &image).await?);
                }
            }
        }
    }
}

/// The frames of a body that knows how long it is, if that is known.
struct Frames {
    ready: VecDeque<Bytes>,
    rest: BoxStream<'static, Result<Bytes, ServiceError>>,
    left: Option<u64>,
}

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = ServiceError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ServiceError>>> {
        let next = match self.ready.pop_front() {
            Some(ready) => Poll::Ready(Some(Ok(ready))),
            None => self.rest.poll_next_unpin(cx),
        };
        next.map_ok(|bytes| {
            self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
            Frame::data(bytes)
        })
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map(SizeHint::with_exact).unwrap_or_default()
    }
}
