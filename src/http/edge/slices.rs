//! Bodies of answers whose making and compressing takes turns with that of other clients' answers.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::response::Response;
use http_body::{Body as _, Frame, SizeHint};

use crate::fairness::{Client, Meter};
use crate::http::stream::WHOLE_BYTES_MAX;

/// The same answer. A short body whose length is known is there already.
pub(super) fn in_slices(response: Response) -> Response {
    let length = response.body().size_hint().exact();
    if length.is_some_and(|length| length <= WHOLE_BYTES_MAX as u64) {
        return response;
    }
    let client = response.extensions().get().copied();
    let meter = Meter::new(client.unwrap_or_else(Client::current));
    response.map(|body| Body::new(Sliced { body, meter }))
}

struct Sliced {
    body: Body,
    meter: Meter,
}

impl http_body::Body for Sliced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Self { body, meter } = &mut *self;
        meter.poll(cx, |cx| Pin::new(body).poll_frame(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
