//! The unread rest of a request's body: drained before the answer, or the connection is closed.
//!
//! A route that answers early drops its body. hyper then closes the connection without saying so, and the next
//! request of a client that pools its connections meets a broken pipe.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use tokio::time::timeout;

/// After a longer rest the connection is closed.
const REST_BYTES_MAX: usize = 64 << 10;

/// A rest is read for so long.
const REST_TIME_MAX: Duration = Duration::from_secs(1);

/// So much of a refused body is read and thrown away at most. A connection that is closed under a client that
/// still writes takes the answer with it.
pub(in crate::http) const LINGER_BYTES_MAX: usize = 40 << 20;

/// The place where a request's body leaves its rest.
#[derive(Default)]
pub(super) struct Rest(Option<Arc<Place>>);

type Place = Mutex<Option<Left>>;

/// A body that was dropped before its end.
struct Left {
    body: Body,
    /// Its client waits for `100 Continue` and has not got it: reading would ask for the body.
    is_awaited: bool,
}

impl Rest {
    /// The same request with a body that leaves its rest here.
    pub(super) fn of(request: Request) -> (Request, Self) {
        if request.body().is_end_stream() {
            return (request, Self::default());
        }
        let is_awaited = request.headers().contains_key(header::EXPECT);
        let place = Arc::<Place>::default();
        let rest = Arc::clone(&place);
        let tracked = |body| Body::new(Tracked { body, is_awaited, is_over: false, rest });
        (request.map(tracked), Self(Some(place)))
    }

    /// Reads the rest where it is small and comes soon, or says with the answer that the connection is closed.
    pub(super) async fn settle(self, response: &mut Response) {
        let left = self.0.and_then(|place| place.lock().take());
        if let Some(left) = left
            && !response.headers().contains_key(header::CONNECTION)
            && (response.status() == StatusCode::REQUEST_TIMEOUT || !left.drain().await)
        {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

impl Left {
    /// Whether the connection may go on.
    async fn drain(self) -> bool {
        let Self { mut body, is_awaited } = self;
        if is_awaited {
            return false;
        }
        let reading = async {
            let mut bytes = 0;
            while bytes <= LINGER_BYTES_MAX {
                match body.frame().await {
                    Some(Ok(frame)) => bytes += frame.data_ref().map_or(0, Bytes::len),
                    Some(Err(_)) => return false,
                    None => return bytes <= REST_BYTES_MAX,
                }
            }
            false
        };
        timeout(REST_TIME_MAX, reading).await.unwrap_or(false)
    }
}

/// A body that leaves its rest behind.
struct Tracked {
    body: Body,
    is_awaited: bool,
    is_over: bool,
    rest: Arc<Place>,
}

impl http_body::Body for Tracked {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.is_awaited = false;
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = polled {
            self.is_over = true;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        if !self.is_over && !self.body.is_end_stream() {
            let body = std::mem::take(&mut self.body);
            *self.rest.lock() = Some(Left { body, is_awaited: self.is_awaited });
        }
    }
}

#[cfg(test)]
mod tests;
