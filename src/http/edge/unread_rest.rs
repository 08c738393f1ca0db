//! Drains unread request bodies before the response.
//!
//! A route that answers early drops its body. hyper then closes the connection without `Connection: close`, and the
//! next request of a client that pools its connections fails with a broken pipe. So the rest is drained, or the
//! response has that header.

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

/// The size of a rest above which the connection is closed.
const REST_BYTES_MAX: usize = 64 << 10;

/// The maximum time to drain a rest.
const REST_TIME_MAX: Duration = Duration::from_secs(1);

/// The maximum size of a refused body that is read and discarded. A client that still writes to a closed connection
/// loses the answer.
pub(in crate::http) const LINGER_BYTES_MAX: usize = 40 << 20;

/// The slot for the unread rest of a request's body.
#[derive(Default)]
pub(super) struct Rest(Option<Arc<Place>>);

type Place = Mutex<Option<Left>>;

/// A body that was dropped before its end.
pub(super) struct Left {
    body: Body,
    /// True if the client still waits for `100 Continue`; reading would request the body.
    is_awaited: bool,
}

impl Rest {
    /// Wraps the body of a request so that its unread rest is left here.
    pub(super) fn of(request: &mut Request) -> Self {
        if request.body().is_end_stream() {
            return Self::default();
        }
        let is_awaited = request.headers().contains_key(header::EXPECT);
        let place = Arc::<Place>::default();
        let rest = Arc::clone(&place);
        let body = std::mem::take(request.body_mut());
        *request.body_mut() = Body::new(Tracked { body, is_awaited, is_over: false, rest });
        Self(Some(place))
    }

    /// Returns the rest, if the body was dropped before its end.
    pub(super) fn left(self) -> Option<Left> {
        self.0.and_then(|place| place.lock().take())
    }
}

impl Left {
    /// Drains a rest that is small and arrives soon; otherwise adds `Connection: close` to the answer.
    pub(super) async fn settle(self, response: &mut Response) {
        if !response.headers().contains_key(header::CONNECTION)
            && (response.status() == StatusCode::REQUEST_TIMEOUT || !self.drain().await)
        {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }

    /// Reads the rest. Returns true if the connection can be reused.
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

/// A body that leaves its unread rest in the slot when dropped.
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
