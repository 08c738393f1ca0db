//! Response bodies made of segments, with their length if known.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use http_body::{Frame, SizeHint};

use blackboard_api::pieces::WHOLE_BYTES_MAX;
use blackboard_api::segments::Segments;
use blackboard_board::Board;
use blackboard_service::{ServiceError, SessionHandle};

/// Builds the body. An early failure is returned as an error; a later one breaks the body off.
pub(crate) async fn body(
    segments: Segments,
    session: SessionHandle,
    board: Arc<Board>,
) -> Result<Body, ServiceError> {
    let mut pieces = segments.pieces(session, board);
    let (mut ready, mut bytes) = (VecDeque::with_capacity(pieces.count()), 0);
    while let Some(text) = pieces.ready() {
        ready.push_back(text);
    }
    while bytes < WHOLE_BYTES_MAX {
        let Some(frame) = pieces.next().await? else {
            // The body is complete, so its length is known.
            let left = Some(ready.iter().map(|frame: &Bytes| frame.len() as u64).sum());
            return Ok(Body::new(Frames { ready, rest: stream::empty().boxed(), left }));
        };
        bytes += frame.len();
        ready.push_back(frame);
    }
    let left = pieces.bytes();
    let rest = stream::unfold(pieces, async |mut pieces| {
        let frame = pieces.next().await.transpose()?;
        if let Err(error) = &frame {
            tracing::error!(%error, "failed to stream a response body");
        }
        // A fast reader of a long answer must not monopolize a worker thread.
        tokio::task::yield_now().await;
        Some((frame, pieces))
    });
    // Compression polls once more after the end.
    Ok(Body::new(Frames { ready, rest: rest.fuse().boxed(), left }))
}

/// The frames of a body, and the number of bytes left if the length is known.
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
