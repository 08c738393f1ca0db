//! Bodies that must not keep silent, and why the reading of one failed, which the handlers turn into
//! different codes.

use std::error::Error;
use std::iter::successors;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::LengthLimitError;
use tokio::time::{Sleep, sleep};

/// The body sent nothing for too long.
#[derive(Debug, thiserror::Error)]
#[error("the body sent nothing for too long")]
struct Silent;

/// The same body, which fails where it sends nothing for so long.
pub(super) fn watched(body: Body, silence_max: Duration) -> Body {
    if body.is_end_stream() {
        return body;
    }
    Body::new(Watched { body, silence_max, silence: Silence::NotYet })
}

struct Watched {
    body: Body,
    silence_max: Duration,
    silence: Silence,
}

/// What is done about a body that has nothing to give.
enum Silence {
    /// It was never asked. A small body lies in the connection's buffer already and is only to be asked
    /// for: the connection has it before the next look, and no timer need be set.
    NotYet,
    /// It is looked at again: the next time a timer is set.
    Looked,
    Timed(Pin<Box<Sleep>>),
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            self.silence = Silence::Looked;
            return Poll::Ready(frame);
        }
        let silence_max = self.silence_max;
        match &mut self.silence {
            silence @ Silence::NotYet => {
                *silence = Silence::Looked;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            silence @ Silence::Looked => *silence = Silence::Timed(Box::pin(sleep(silence_max))),
            Silence::Timed(_) => {}
        }
        let Silence::Timed(timer) = &mut self.silence else { return Poll::Pending };
        timer.as_mut().poll(cx).map(|()| Some(Err(axum::Error::new(Silent))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

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
    sources(error).any(<dyn Error>::is::<Silent>)
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
