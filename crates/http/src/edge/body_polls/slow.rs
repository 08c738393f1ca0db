//! Slow polls, logged in builds with debug assertions.
//!
//! A slow poll delays all other tasks of its runtime thread. Such work belongs on a thread that may block, or must
//! yield.

use std::pin::pin;
use std::task::Context;
use std::time::{Duration, Instant};

use axum::response::Response;
use http_body::Body as _;

use super::wrapped::wrapped;
use crate::edge::route_name::RouteName;

/// The duration above which a poll is logged.
const POLL_MAX: Duration = Duration::from_millis(10);

/// A watch on the polls of one request, logged by route.
#[derive(Clone)]
pub(crate) struct Polls(RouteName);

impl Polls {
    pub(crate) fn of(route: &RouteName) -> Self {
        Self(route.clone())
    }

    /// Times the polls of `answering`, then those of the answer's body.
    pub(crate) async fn watch(self, answering: impl Future<Output = Response>) -> Response {
        let mut answering = pin!(answering);
        let timed = |cx: &mut Context<'_>| self.timed("request", || answering.as_mut().poll(cx));
        let response = std::future::poll_fn(timed).await;
        response
            .map(|body| wrapped(body, move |body, cx| self.timed("body", || body.poll_frame(cx))))
    }

    fn timed<T>(&self, what: &'static str, poll: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let polled = poll();
        let took = begun.elapsed();
        if took > POLL_MAX {
            let route = self.0.shown();
            let ms = took.as_millis();
            tracing::warn!(route, what, ms, "slow poll");
        }
        polled
    }
}
