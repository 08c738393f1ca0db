//! Server-sent events, one batch of frames at a time.
//!
//! Frames are made once the client has taken the previous ones. A waiting stream holds no board, commit or frame, so
//! that ten thousand idle streams are cheap.
use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use futures_util::stream::{self, StreamExt as _};
use tokio::time::{Instant, Sleep, sleep};

use crate::response::Answer;
use crate::response::EVENT_STREAM;
use crate::response::problem::Problem;
use blackboard_api::intake::query::Worded;
use blackboard_board::Code;
use blackboard_fairness::{Place, Share, SharedPlaces};
use blackboard_metrics as metrics;

/// The time without a frame after which a keep-alive frame is sent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The form of a frame that only has the position of the stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Heartbeat {
    /// An id, with which a reader reconnects.
    #[default]
    Id,
    /// A comment, for readers that take a frame with only an id for an event.
    Comment,
}

impl Worded for Heartbeat {
    const WORDS: &'static [(&'static str, Self)] = &[("id", Self::Id), ("comment", Self::Comment)];
}

/// A comment. Without a blank line after it, which several readers take for the end of an event.
pub(super) const COMMENT: &str = ":\n";

/// The header that tells a proxy to forward each frame at once.
pub(crate) const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The limit on open streams. Clones share the limit.
#[derive(Clone, Debug)]
pub struct Streams {
    places: SharedPlaces,
    max: u32,
}

impl Streams {
    /// Creates a limit of `max` streams, with none open.
    #[must_use]
    pub fn new(max: u32) -> Self {
        Self { places: SharedPlaces::new(max.into(), 0, Share::LeavesRest), max }
    }

    /// Returns the number of open streams.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.places.used()
    }

    /// Returns a place for one more stream, or a refusal if all are taken.
    pub(crate) fn place(&self) -> Result<StreamPlace, Problem> {
        self.places.now(1).map(StreamPlace).ok_or_else(|| {
            let max = self.max;
            let detail = format!(
                "too many event streams are open: a client has at most {max} (--streams-max)"
            );
            Problem::new(Code::Overloaded, detail)
        })
    }
}

/// The place of a stream, held while the stream is open.
pub(crate) struct StreamPlace(
    #[expect(dead_code, reason = "it is given back when it is dropped")] Place,
);

/// A source of frames, read one batch at a time.
pub(crate) trait Frames: Send + 'static {
    /// Returns the next frames when there are any, or `None` at the end. No frame is lost if the wait is cancelled.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;

    /// Returns a frame without news.
    fn keep_alive(&self) -> String;
}

/// The time of the next frame without news. Its timer is set anew only when it runs out, not with each frame.
struct KeepAlive {
    /// The time of the last frame.
    last: Instant,
    timer: Pin<Box<Sleep>>,
}

impl KeepAlive {
    fn begin() -> Self {
        Self { last: Instant::now(), timer: Box::pin(sleep(KEEP_ALIVE)) }
    }

    /// Waits until there was no frame for so long.
    async fn due(&mut self) {
        loop {
            self.timer.as_mut().await;
            let due = self.last + KEEP_ALIVE;
            if Instant::now() >= due {
                return;
            }
            self.timer.as_mut().reset(due);
        }
    }
}

/// Creates a response from this first text and the frames after it. The body holds the place.
pub(crate) fn respond(
    answer: Answer,
    first: String,
    frames: impl Frames,
    place: StreamPlace,
) -> Response {
    let held = (place, metrics::STREAMS.count());
    // Boxed, so that a frame moves only an address.
    let begun = Box::new((frames, KeepAlive::begin(), held));
    let rest = stream::unfold(begun, async |mut stream| {
        let (frames, keep_alive, _) = &mut *stream;
        let next = tokio::select! {
            biased;
            next = frames.next() => next?,
            () = keep_alive.due() => Bytes::from(frames.keep_alive()),
        };
        keep_alive.last = Instant::now();
        Some((next, stream))
    });
    let first = (!first.is_empty()).then(|| Bytes::from(first));
    let all = stream::iter(first).chain(rest).map(Ok::<_, Infallible>);
    answer
        .header(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))
        .header(X_ACCEL_BUFFERING, HeaderValue::from_static("no"))
        .body(EVENT_STREAM, Body::from_stream(all))
}
