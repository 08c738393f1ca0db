//! Request counts by route, method and status.
//!
//! A route is its template, of which the router has a fixed number. An unknown method or status counts as `other`, so
//! the number of series is bounded.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use super::histogram::times;

/// The methods of all routes.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// The statuses of all answers.
const STATUSES: [u16; 28] = [
    200, 201, 202, 204, 206, 304, 307, 308, 400, 401, 403, 404, 405, 408, 409, 410, 412, 413, 415,
    416, 421, 422, 429, 431, 500, 501, 503, 507,
];

const OTHER: &str = "other";

/// All answered requests.
#[derive(Debug)]
pub struct Requests {
    pub(super) answers: Family<Answer, Counter>,
    pub(super) times: Family<Operation, Histogram>,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct Answer {
    method: &'static str,
    route: Arc<str>,
    status: Status,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct Operation {
    method: &'static str,
    route: Arc<str>,
}

/// A known status, or `None` for all others.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Status(Option<u16>);

impl EncodeLabelValue for Status {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        match self.0 {
            Some(status) => EncodeLabelValue::encode(&status, encoder),
            None => EncodeLabelValue::encode(&OTHER, encoder),
        }
    }
}

impl Default for Requests {
    fn default() -> Self {
        Self { answers: Family::default(), times: Family::new_with_constructor(times) }
    }
}

/// Returns the method's word: the method itself, or `other` if no route has it.
#[must_use]
pub fn known_method(method: &str) -> &'static str {
    METHODS.into_iter().find(|known| *known == method).unwrap_or(OTHER)
}

impl Requests {
    /// Records an answer by known method and route template. The route of an unrouted request is `none`.
    pub fn note(&self, method: &'static str, route: &str, status: u16, took: Duration) {
        let status = Status(STATUSES.contains(&status).then_some(status));
        let route: Arc<str> = route.into();
        let operation = Operation { method, route: Arc::clone(&route) };
        self.times.get_or_create(&operation).observe(took.as_secs_f64());
        self.answers.get_or_create(&Answer { method, route, status }).inc();
    }
}
