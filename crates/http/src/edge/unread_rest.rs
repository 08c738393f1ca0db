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
pub(crate) const LINGER_BYTES_MAX: usize = 40 << 20;

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
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::stream::{self, StreamExt as _};
    use tokio::time::sleep;

    use super::*;

    const PIECE: &str = "a piece of a body that nobody reads, in lines of this length, again";

    /// Returns an endless body, with a pause before each piece, and the number of pieces taken.
    fn endless(pause: Duration) -> (Body, Arc<AtomicUsize>) {
        let taken = Arc::new(AtomicUsize::new(0));
        let pieces = stream::repeat_with({
            let taken = Arc::clone(&taken);
            move || {
                taken.fetch_add(1, Ordering::Relaxed);
                Ok::<_, io::Error>(PIECE.repeat(100))
            }
        });
        let paced = pieces.then(move |piece| async move {
            if !pause.is_zero() {
                sleep(pause).await;
            }
            piece
        });
        (Body::from_stream(paced), taken)
    }

    /// Returns true if the connection stays open after an answer that left this body unread.
    async fn goes_on(body: Body) -> bool {
        let mut request = Request::new(body);
        let rest = Rest::of(&mut request);
        drop(request);
        let mut response = Response::new(Body::empty());
        if let Some(left) = rest.left() {
            left.settle(&mut response).await;
        }
        response.headers().get(header::CONNECTION).is_none()
    }

    #[tokio::test]
    async fn a_rest_that_drips_is_given_up() {
        let (body, taken) = endless(Duration::from_millis(100));
        assert!(!goes_on(body).await);
        assert!(taken.load(Ordering::Relaxed) <= 11);
    }

    #[tokio::test]
    async fn of_a_rest_without_an_end_only_so_much_is_read() {
        let (body, taken) = endless(Duration::ZERO);
        assert!(!goes_on(body).await);
        let bytes = taken.load(Ordering::Relaxed) * 100 * PIECE.len();
        assert!(bytes < LINGER_BYTES_MAX + (1 << 20), "{bytes}");
    }

    #[tokio::test]
    async fn a_rest_that_ends_soon_lets_the_connection_go_on() {
        let body = Body::from_stream(stream::iter([Ok::<_, io::Error>("a"), Ok("b")]));
        assert!(goes_on(body).await);
        assert!(goes_on(Body::empty()).await);
    }
}
