//! Requests by route, method and status.
//!
//! A route is its template, of which the router has a fixed number; a method or status that is not among those
//! that this server knows counts as `other`. So there are as many series as there are operations, and no more.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::RwLock;

use super::number::Counter;
use super::{Histogram, Text};

/// The methods that routes have; what follows them counts for all others.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", OTHER];

/// The statuses that answers have; 0 counts for all others.
const STATUSES: [u16; 29] = [
    200, 201, 202, 204, 206, 304, 307, 308, 400, 401, 403, 404, 405, 408, 409, 410, 412, 413, 415,
    416, 421, 422, 429, 431, 500, 501, 503, 507, 0,
];

const OTHER: &str = "other";

const COUNT: &str = "blackboard_http_requests_total";
const COUNT_HELP: &str = "Requests by method, route and status of their answer.";
const TIME: &str = "blackboard_http_request_duration_seconds";
const TIME_HELP: &str = "From a request's head to the head of its answer, by method and route.";

/// All requests that were answered.
#[derive(Debug)]
pub struct Requests(RwLock<BTreeMap<Box<str>, Arc<Route>>>);

#[derive(Debug, Default)]
struct Route([OnceLock<Box<Operation>>; METHODS.len()]);

#[derive(Debug)]
struct Operation {
    times: Histogram,
    answers: [Counter; STATUSES.len()],
}

impl Operation {
    fn new() -> Box<Self> {
        let answers = [const { Counter::new() }; STATUSES.len()];
        Box::new(Self { times: Histogram::seconds(TIME, TIME_HELP), answers })
    }
}

impl Requests {
    pub(super) const fn new() -> Self {
        Self(RwLock::new(BTreeMap::new()))
    }

    /// Notes an answer: the route is its template, or `none`.
    pub fn note(&self, method: &str, route: &str, status: u16, took: Duration) {
        let found = self.0.read().get(route).map(Arc::clone);
        let route =
            found.unwrap_or_else(|| Arc::clone(self.0.write().entry(route.into()).or_default()));
        let method = METHODS.iter().position(|known| *known == method);
        let Some(operation) = route.0.get(method.unwrap_or(METHODS.len() - 1)) else { return };
        let operation = operation.get_or_init(Operation::new);
        operation.times.observe(took);
        let status = STATUSES.iter().position(|known| *known == status);
        if let Some(answers) = operation.answers.get(status.unwrap_or(STATUSES.len() - 1)) {
            answers.add_one();
        }
    }

    pub(super) fn write(&self, text: &mut Text) {
        let routes = self.0.read().clone();
        let operations = || {
            routes.iter().flat_map(|(route, operations)| {
                let by_method = METHODS.iter().zip(&operations.0);
                by_method.filter_map(move |(method, operation)| {
                    Some(([("method", *method), ("route", &**route)], operation.get()?))
                })
            })
        };
        text.head(COUNT, COUNT_HELP, "counter");
        for (labels, operation) in operations() {
            for (status, answers) in STATUSES.iter().zip(&operation.answers) {
                let (status, answers) = (status_word(*status), answers.get());
                if answers > 0 {
                    text.part(COUNT, "", &labels, Some(("status", &status)), answers);
                }
            }
        }
        text.head(TIME, TIME_HELP, "histogram");
        for (labels, operation) in operations() {
            operation.times.write_lines(text, &labels);
        }
    }
}

fn status_word(status: u16) -> String {
    if status == 0 { OTHER.to_owned() } else { status.to_string() }
}
