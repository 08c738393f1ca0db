//! Processor time for rendering and compressing response bodies.

use axum::response::Response;
use http_body::Body as _;

use super::wrapped::wrapped;
use blackboard_api::pieces::WHOLE_BYTES_MAX;
use blackboard_fairness::{Client, Meter};

/// Meters the polls of an answer's body for its client. A short body of known length is already rendered, and
/// returned unchanged.
pub(crate) fn in_slices(response: Response) -> Response {
    let length = response.body().size_hint().exact();
    if length.is_some_and(|length| length <= WHOLE_BYTES_MAX as u64) {
        return response;
    }
    let client = response.extensions().get().copied();
    let mut meter = Meter::new(client.unwrap_or_else(Client::current));
    response.map(|body| wrapped(body, move |body, cx| meter.poll(cx, |cx| body.poll_frame(cx))))
}
