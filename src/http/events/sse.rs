//! Server-sent events: a frame is made once the client took the previous frames.
//!
//! A stream holds no board, no commit and no frame while it waits, so that ten thousand idle ones are cheap.
use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use futures_util::stream::{self, StreamExt as _};
use tokio::time::{Instant, timeout_at};

use crate::board::Code;
use crate::fairness::{Limiter, Place, Share};
use crate::http::response::Answer;
use crate::http::response::EVENT_STREAM;
use crate::http::response::problem::Problem;
use crate::metrics;

/// After so long without a frame one is sent that says only that the stream goes on.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Tells a proxy to pass each frame on at once.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The streams that may be open at once. Cloning gives another handle to the same ones.
#[derive(Clone, Debug)]
pub struct Streams {
    places: Limiter,
    max: u32,
}

impl Streams {
    /// So many, and none open yet.
    #[must_use]
    pub fn new(max: u32) -> Self {
        Self { places: Limiter::new(max.into(), 0, Share::LeavesRest), max }
    }

    /// How many are open now.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.places.used()
    }

    /// A place for one more.
    pub(crate) fn place(&self) -> Result<StreamPlace, Problem> {
        self.places.now(1).map(StreamPlace).ok_or_else(|| {
            let max = self.max;
            let detail = format!(
                "too many streams of events are open: one client has at most {max} (--streams-max)"
            );
            Problem::new(Code::Overloaded, detail)
        })
    }
}

/// What a stream has as long as it is open.
pub(crate) struct StreamPlace(
    #[expect(dead_code, reason = "it is given back when it is dropped")] Place,
);

/// Something of which frames are made, one look after another.
pub(crate) trait Frames: Send + 'static {
    /// The next frames as soon as there are any; `None` at the end. Nothing is lost where the wait is broken off.
    fn next(&mut self) -> impl Future<Output = Option<String>> + Send;

    /// A frame that brings nothing new.
    fn keep_alive(&self) -> String;
}

/// The answer that begins with this text, and goes on with these frames. The place goes with its body.
pub(crate) fn respond(
    answer: Answer,
    first: String,
    frames: impl Frames,
    place: StreamPlace,
) -> Response {
    let begun = (frames, Instant::now(), (place, metrics::STREAMS.count()));
    let rest = stream::unfold(begun, async |(mut frames, last, held)| {
        let next = match timeout_at(last + KEEP_ALIVE, frames.next()).await {
            Ok(next) => next?,
            Err(_) => frames.keep_alive(),
        };
        Some((Bytes::from(next), (frames, Instant::now(), held)))
    });
    let first = (!first.is_empty()).then(|| Bytes::from(first));
    let all = stream::iter(first).chain(rest).map(Ok::<_, Infallible>);
    answer
        .header(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))
        .header(X_ACCEL_BUFFERING, HeaderValue::from_static("no"))
        .body(EVENT_STREAM, Body::from_stream(all))
}
