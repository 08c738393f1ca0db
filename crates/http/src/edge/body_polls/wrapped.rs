//! A body wrapper that passes each poll through a function.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};

/// The result of a poll for a frame.
pub(crate) type Polled = Poll<Option<Result<Frame<Bytes>, axum::Error>>>;

/// Wraps a body so that `poll` polls it for frames.
pub(crate) fn wrapped(
    body: Body,
    poll: impl FnMut(Pin<&mut Body>, &mut Context<'_>) -> Polled + Send + Unpin + 'static,
) -> Body {
    Body::new(Wrapped { body, poll })
}

struct Wrapped<F> {
    body: Body,
    poll: F,
}

impl<F> http_body::Body for Wrapped<F>
where
    F: FnMut(Pin<&mut Body>, &mut Context<'_>) -> Polled + Unpin,
{
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let Self { body, poll } = &mut *self;
        poll(Pin::new(body), cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
