//! Request counts by route, method and status.
//!
//! A route is its template, of which the router has a fixed number. An unknown method or status counts as `other`, so
//! the number of series is bounded.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::RwLock;
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
    routes: RwLock<HashMap<Arc<str>, Methods>>,
}

/// The series of a route by its method, with a place for all others. They are kept here, so that counting a request
/// hashes its route once and allocates nothing.
type Methods = [OnceLock<Box<Series>>; METHODS.len() + 1];

/// The series of a route and method.
#[derive(Debug)]
struct Series {
    times: Histogram,
    /// By status, with a place for all others.
    answers: [OnceLock<Counter>; STATUSES.len() + 1],
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
        let times = Family::new_with_constructor(times as fn() -> Histogram);
        Self { answers: Family::default(), times, routes: RwLock::default() }
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
        if self.note_known(method, route, status, took).is_none() {
            self.routes.write().entry(route.into()).or_default();
            self.note_known(method, route, status, took);
        }
    }

    /// Records an answer; `None` if it is the route's first.
    fn note_known(
        &self,
        method: &'static str,
        route: &str,
        status: u16,
        took: Duration,
    ) -> Option<()> {
        let routes = self.routes.read();
        let (route, methods) = routes.get_key_value(route)?;
        let place = METHODS.iter().position(|known| *known == method).unwrap_or(METHODS.len());
        let series = methods.get(place)?.get_or_init(|| self.series(method, route));
        series.times.observe(took.as_secs_f64());
        let place = STATUSES.iter().position(|known| *known == status);
        let answers = series.answers.get(place.unwrap_or(STATUSES.len()))?;
        let status = Status(place.map(|_| status));
        let answer = || Answer { method, route: Arc::clone(route), status };
        answers.get_or_init(|| self.answers.get_or_create_owned(&answer())).inc();
        Some(())
    }

    fn series(&self, method: &'static str, route: &Arc<str>) -> Box<Series> {
        let operation = Operation { method, route: Arc::clone(route) };
        let times = self.times.get_or_create_owned(&operation);
        Box::new(Series { times, answers: Default::default() })
    }
}
