//! Timeouts of request bodies, and the reasons why reading a body failed.

use std::error::Error;
use std::iter::successors;
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body::Body as _;
use http_body_util::LengthLimitError;

use super::body_polls::wrapped::wrapped;
use super::decompress::Inflated;
use crate::http::connection::slow_client::Patience;

/// The body was waited for too long.
#[derive(Debug, thiserror::Error)]
#[error("the body did not come, or came too slowly")]
struct Late;

/// The same body, which fails where it sends nothing for so long, or too little.
pub(super) fn watched(body: Body, silence_max: Duration) -> Body {
    if body.is_end_stream() {
        return body;
    }
    let mut patience = Patience::new(silence_max);
    // A small body lies in the connection's buffer already and is only to be asked for: the connection has it before
    // the next look, and no timer need be set.
    let mut is_asked = false;
    wrapped(body, move |body, cx| {
        let asked = std::mem::replace(&mut is_asked, true);
        if let Poll::Ready(frame) = body.poll_frame(cx) {
            let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
            patience.moved(data.map_or(0, Bytes::len));
            return Poll::Ready(frame);
        }
        if !asked {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        patience.poll_end(cx).map(|()| Some(Err(axum::Error::new(Late))))
    })
}

/// Whether a body's gzip or zstd stream is damaged or cut short: the client's fault,
/// `invalid-encoding`, and not a lost connection or a limit.
///
/// Takes any error that has the body's among its sources, such as a rejection of axum's extractors.
#[must_use]
pub fn is_corrupt(error: &(dyn Error + 'static)) -> bool {
    let is_body = sources(error).any(<dyn Error>::is::<axum::Error>);
    is_body
        && !is_late(error)
        && !is_inflated(error)
        && !sources(error).any(|e| e.is::<hyper::Error>() || is_limit(e))
}

/// Whether a body stopped coming, or came too slowly: `request-timeout`. Takes what [`is_corrupt`] takes.
#[must_use]
pub fn is_late(error: &(dyn Error + 'static)) -> bool {
    sources(error).any(<dyn Error>::is::<Late>)
}

/// Whether a compressed body became too many times its size. Takes what [`is_corrupt`] takes.
pub(in crate::http) fn is_inflated(error: &(dyn Error + 'static)) -> bool {
    sources(error).any(<dyn Error>::is::<Inflated>)
}

fn is_limit(error: &(dyn Error + 'static)) -> bool {
    // axum boxes it once more on its way into a rejection.
    error.is::<LengthLimitError>() || error.is::<Box<LengthLimitError>>()
}

fn sources<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&error| error.source())
}
