//! Timeouts of request bodies, and tests for read errors.

use std::error::Error;
use std::iter::successors;
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body::Body as _;
use http_body_util::LengthLimitError;

use super::body_polls::wrapped::wrapped;
use super::decompress::Inflated;
use crate::connection::slow_client::StallDeadline;

/// A body that stalled or was too slow.
#[derive(Debug, thiserror::Error)]
#[error("the body stalled or was too slow")]
struct Late;

/// Makes a body fail if its client sends nothing for `silence_max`, or sends too slowly.
pub(super) fn watched(body: Body, silence_max: Duration) -> Body {
    if body.is_end_stream() {
        return body;
    }
    let mut deadline = StallDeadline::new(silence_max);
    // A small body is mostly in the connection's buffer already. The first poll asks the connection for it and the
    // next one gets it, without a timer.
    let mut is_asked = false;
    wrapped(body, move |body, cx| {
        let asked = std::mem::replace(&mut is_asked, true);
        if let Poll::Ready(frame) = body.poll_frame(cx) {
            let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
            deadline.moved(data.map_or(0, Bytes::len));
            return Poll::Ready(frame);
        }
        if !asked {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        deadline.poll_end(cx).map(|()| Some(Err(axum::Error::new(Late))))
    })
}

/// Returns true if a body's gzip or zstd stream is damaged or truncated. This is the client's fault,
/// `invalid-encoding`, not a lost connection or a limit.
///
/// Accepts any error that has the body's error among its sources, such as a rejection by axum's extractors.
#[must_use]
pub fn is_corrupt(error: &(dyn Error + 'static)) -> bool {
    let is_body = sources(error).any(<dyn Error>::is::<axum::Error>);
    is_body
        && !is_late(error)
        && !is_inflated(error)
        && !sources(error).any(|e| e.is::<hyper::Error>() || is_limit(e))
}

/// Returns true if a body stalled or was too slow, `request-timeout`. Accepts the errors that [`is_corrupt`] does.
#[must_use]
pub fn is_late(error: &(dyn Error + 'static)) -> bool {
    sources(error).any(<dyn Error>::is::<Late>)
}

/// Returns true if a body expanded beyond the ratio allowed. Accepts the errors that [`is_corrupt`] does.
pub(crate) fn is_inflated(error: &(dyn Error + 'static)) -> bool {
    sources(error).any(<dyn Error>::is::<Inflated>)
}

fn is_limit(error: &(dyn Error + 'static)) -> bool {
    // axum boxes the error once more in a rejection.
    error.is::<LengthLimitError>() || error.is::<Box<LengthLimitError>>()
}

fn sources<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&error| error.source())
}
