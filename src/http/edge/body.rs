//! Why the reading of a request's body failed, which the handlers turn into different codes.

use std::{error::Error, iter::successors};

use http_body_util::LengthLimitError;
use tower_http::timeout::TimeoutError;

/// Whether a body's gzip or zstd stream is damaged or cut short: the client's fault,
/// `invalid-encoding`, and not a lost connection or a limit.
///
/// Takes any error that has the body's among its sources, such as a rejection of axum's extractors.
#[must_use]
pub fn is_corrupt(error: &(dyn Error + 'static)) -> bool {
    let is_body = sources(error).any(<dyn Error>::is::<axum::Error>);
    is_body && !is_late(error) && !sources(error).any(|e| e.is::<hyper::Error>() || is_limit(e))
}

/// Whether a body stopped coming: `request-timeout`. Takes what [`is_corrupt`] takes.
#[must_use]
pub fn is_late(error: &(dyn Error + 'static)) -> bool {
    sources(error).any(<dyn Error>::is::<TimeoutError>)
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
