//! Ends streamed request and response bodies when the caller's rights end.

use std::error::Error;
use std::iter::successors;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::future::{OptionFuture, pending, poll_immediate};
use http_body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::unauthorized;
use crate::response::EVENT_STREAM;
use crate::response::problem::Problem;
use blackboard_auth::{Caller, Unauthorized};
use blackboard_board::{Code, Timestamp};
use blackboard_fairness::cancellation::Dormant;

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
    response.map(|body| Ending::of(caller, now, body, Kind::response(is_events), slot))
}

/// Breaks off a request's body when its caller's rights end.
pub(crate) fn end_body_with(caller: &Caller, now: Timestamp, body: Body) -> Body {
    if body.is_end_stream() { body } else { Ending::of(caller, now, body, Kind::Request, None) }
}

/// Does a read; returns the reason if the caller's rights end while it waits. One that never waits, as most, is not
/// registered for that: all requests of a token share a lock for it.
pub(crate) async fn unless_over<T>(
    caller: &Caller,
    now: Timestamp,
    mut read: Pin<&mut impl Future<Output = T>>,
) -> Result<T, Unauthorized> {
    if let Some(done) = poll_immediate(read.as_mut()).await {
        return Ok(done);
    }
    tokio::select! {
        biased;
        why = caller.over(now) => Err(why),
        done = read => Ok(done),
    }
}

fn too_many_streams() -> Problem {
    let detail = "the token reached --token-streams-max; close an event stream first";
    Problem::new(Code::RateLimited, detail).retry_after(1)
}

/// The body that ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It ends with an error, once it has waited.
    Request,
    /// It ends with an error.
    Response,
    /// It ends between two events.
    Events,
}

impl Kind {
    const fn response(is_events: bool) -> Self {
        if is_events { Self::Events } else { Self::Response }
    }
}

/// A body that ends with its caller's rights.
struct Ending {
    body: Body,
    kind: Kind,
    /// True if it has waited before. A request's body is mostly there when it is polled for the second time.
    has_waited: bool,
    caller: Caller,
    expires_at: Option<Instant>,
    /// Made once it is needed, for the reason of [`unless_over`].
    ends: Option<Dormant<()>>,
    is_over: bool,
    /// The event stream's place, released with the body.
    _slot: Option<OwnedSemaphorePermit>,
}

impl Ending {
    /// Wraps a body so that it ends with its caller's rights, if these can end.
    fn of(
        caller: &Caller,
        now: Timestamp,
        body: Body,
        kind: Kind,
        slot: Option<OwnedSemaphorePermit>,
    ) -> Body {
        if caller.ended().is_none() {
            return body;
        }
        let expires_at = caller.left(now).and_then(|left| Instant::now().checked_add(left));
        let (caller, has_waited, ends, is_over) = (caller.clone(), false, None, false);
        Body::new(Self { body, kind, has_waited, caller, expires_at, ends, is_over, _slot: slot })
    }

    /// Returns true if the rights have ended; otherwise the task is woken when they do.
    fn poll_end(&mut self, context: &mut Context<'_>) -> bool {
        let Self { ends, caller, expires_at, .. } = self;
        let ends =
            ends.get_or_insert_with(|| Dormant::new(rights_end_by(caller.clone(), *expires_at)));
        Pin::new(ends).poll(context).is_ready()
    }

    /// Ends the body.
    fn end(&mut self) -> Option<Result<Frame<Bytes>, axum::Error>> {
        self.is_over = true;
        (self.kind != Kind::Events).then(|| Err(axum::Error::new(Ended(self.caller.why_over()))))
    }
}

/// Waits until a caller's rights end, at this time at the latest.
async fn rights_end_by(caller: Caller, expires_at: Option<Instant>) {
    let ended = OptionFuture::from(caller.ended().map(CancellationToken::cancelled));
    let expired = OptionFuture::from(expires_at.map(sleep_until));
    tokio::select! {
        Some(()) = ended => {}
        Some(()) = expired => {}
        else => pending().await,
    }
}

/// The end of the caller's rights.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Ended(Unauthorized);

/// Returns the refusal of a request whose body was broken off with its caller's rights. By the clock they may last a little
/// longer, if it was set back meanwhile.
pub(crate) fn broken_off(error: &(dyn Error + 'static)) -> Option<Problem> {
    let mut errors = successors(Some(error), |&error| error.source());
    errors.find_map(|error| error.downcast_ref()).map(|Ended(why)| unauthorized(*why))
}

impl http_body::Body for Ending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        // A request's body is not looked after before it waits for more than its first poll.
        let begins = self.kind == Kind::Request && self.ends.is_none();
        if !begins && self.poll_end(context) {
            return Poll::Ready(self.end());
        }
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if !begins || polled.is_ready() {
            return polled;
        }
        if !std::mem::replace(&mut self.has_waited, true) {
            context.waker().wake_by_ref();
        } else if self.poll_end(context) {
            return Poll::Ready(self.end());
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use axum::http::{HeaderMap, StatusCode};
    use futures_util::stream::{self, StreamExt as _};
    use tempfile::TempDir;

    use super::*;
    use crate::request::body::Arriving;
    use blackboard_auth::{NewToken, Scope, TokenLimits, Tokens};
    use blackboard_clock::Clock;
    use blackboard_store::{SqliteOptions, SqliteStore};

    #[tokio::test]
    async fn a_body_is_broken_off_though_the_clock_was_set_back() {
        let dir = TempDir::new().unwrap();
        let store = Arc::new(SqliteStore::open(dir.path(), SqliteOptions::default()).unwrap());
        let limits = TokenLimits { rate: None, streams_max: 2 };
        // A clock that stands still is one that is set back all the time.
        let tokens = Tokens::open(store, Clock::new(|| Timestamp(0)), limits).unwrap();
        let new = NewToken {
            name: "short".parse().unwrap(),
            scopes: [Scope::Write].into_iter().collect(),
            sessions: vec!["*".parse().unwrap()],
            agent: None,
            expires_at: Some(Timestamp(10)),
            anyway: true,
        };
        let (_, secret) = tokens.create(new).unwrap();
        let caller = tokens.authenticate(Some(secret.reveal())).unwrap();
        let pieces = stream::once(async { Ok::<_, Infallible>("[1,") }).chain(stream::pending());
        let body = end_body_with(&caller, tokens.now(), Body::from_stream(pieces));
        let mut arriving = Arriving::begin(&HeaderMap::new(), body, 100).await.unwrap();
        assert_eq!(arriving.next().await.unwrap().unwrap(), "[1,");
        let refused = arriving.next().await.unwrap_err().into_response();
        caller.still_may(tokens.now()).unwrap();
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    }
}
