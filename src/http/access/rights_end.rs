//! Ends streamed request and response bodies when the caller's rights end.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use http_body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::auth::{Caller, Unauthorized};
use crate::board::{Code, Timestamp};
use crate::http::response::EVENT_STREAM;
use crate::http::response::problem::Problem;

/// Ends a streamed answer with its caller's rights: an event stream between two events, any other with an error, so
/// that no client takes it for complete. The number of event streams of a token is limited.
pub(crate) fn end_with(caller: &Caller, now: Timestamp, response: Response) -> Response {
    if caller.ended().is_none() || response.body().size_hint().exact().is_some() {
        return response;
    }
    let media_type = response.headers().get(CONTENT_TYPE);
    let is_events = media_type.is_some_and(|found| found.as_bytes() == EVENT_STREAM.as_bytes());
    let slot = match caller.grant().filter(|_| is_events).map(|grant| grant.stream()) {
        Some(None) => return too_many_streams().into_response(),
        Some(Some(slot)) => Some(slot),
        None => None,
    };
    response.map(|body| Ending::of(caller, now, body, is_events, slot))
}

/// Breaks off a request's body when its caller's rights end.
pub(crate) fn end_body_with(caller: &Caller, now: Timestamp, body: Body) -> Body {
    if body.is_end_stream() { body } else { Ending::of(caller, now, body, false, None) }
}

/// Returns the reason why the caller's rights have ended.
pub(crate) fn why_over(caller: &Caller) -> Unauthorized {
    match (caller.grant(), caller.ended().is_some_and(CancellationToken::is_cancelled)) {
        // The first token was created meanwhile.
        (None, _) => Unauthorized::Missing,
        (Some(_), true) => Unauthorized::Revoked,
        (Some(_), false) => Unauthorized::Expired,
    }
}

/// Waits until the caller's rights end, perhaps for ever, and returns the reason.
pub(crate) async fn rights_end(caller: &Caller, now: Timestamp) -> Unauthorized {
    caller.over(now).await;
    why_over(caller)
}

fn too_many_streams() -> Problem {
    let detail = "the token reached --token-streams-max; close an event stream first";
    Problem::new(Code::RateLimited, detail).retry_after(1)
}

/// A body that ends with its caller's rights.
struct Ending {
    body: Body,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    expires: Option<Pin<Box<Sleep>>>,
    is_events: bool,
    /// The event stream's place, released with the body.
    _slot: Option<OwnedSemaphorePermit>,
}

impl Ending {
    /// Wraps a body so that it ends with its caller's rights, if these can end.
    fn of(
        caller: &Caller,
        now: Timestamp,
        body: Body,
        is_events: bool,
        slot: Option<OwnedSemaphorePermit>,
    ) -> Body {
        let Some(ended) = caller.ended() else { return body };
        let ended = Box::pin(ended.clone().cancelled_owned());
        let expires = caller.left(now).map(|left| Box::pin(sleep(left)));
        Body::new(Self { body, ended, expires, is_events, _slot: slot })
    }
}

/// The end of the caller's rights.
#[derive(Debug, thiserror::Error)]
#[error("the token expired or was revoked")]
struct Ended;

impl http_body::Body for Ending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let expired = |expires: &mut Pin<Box<Sleep>>| expires.as_mut().poll(context).is_ready();
        let is_over = self.expires.as_mut().is_some_and(expired);
        if is_over || self.ended.as_mut().poll(context).is_ready() {
            let end = (!self.is_events).then(|| Err(axum::Error::new(Ended)));
            self.is_events = true;
            return Poll::Ready(end);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
