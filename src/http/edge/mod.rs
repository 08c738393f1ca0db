//! The edge: processing shared by all requests and answers.
//!
//! It lives behind the router's matching, so that it knows the matched route, and around its fallback,
//! so that an unknown route is treated like any other. It is one service and not a layer for each step:
//! each layer would clone all below it, and box what it gives on, for every request.

mod access_log;
mod body_polls;
mod body_timeout;
mod compress;
mod cors;
mod decompress;
mod encoding;
mod fault_log;
mod hosts;
mod problem_body;
mod response_headers;
mod trace_context;
mod unread_rest;

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::Route;
use futures_util::FutureExt as _;
use tower::layer::layer_fn;
use tower::{Service as _, service_fn};

use super::response::problem::Problem;
use super::response::request_id::RequestId;
pub use access_log::ANSWERED;
use access_log::Exchange;
pub(super) use body_timeout::is_inflated;
pub use body_timeout::{is_corrupt, is_late};
pub use cors::{CorsOrigins, InvalidOrigin};
pub(super) use decompress::RATIO_MAX;
use fault_log::Faults;
pub use hosts::{AllowedHosts, InvalidHost};
use response_headers::Dress;
pub(super) use unread_rest::LINGER_BYTES_MAX;
use unread_rest::Rest;

/// A body that sends nothing for so long fails, and its connection with it.
const BODY_SILENCE_MAX: Duration = Duration::from_secs(10);

/// Puts the edge around a complete router; routes added afterwards would stand outside it.
pub fn edge(router: Router, hosts: AllowedHosts, cors: CorsOrigins) -> Router {
    let faults = Faults::default();
    layered(router, Gate { hosts, cors, body_silence_max: BODY_SILENCE_MAX, faults })
}

fn layered(router: Router, gate: Gate) -> Router {
    let gate = Arc::new(gate);
    let around = move |route: Route| {
        let gate = Arc::clone(&gate);
        service_fn(move |request| pass(Arc::clone(&gate), route.clone(), request))
    };
    router.fallback(problem_body::route_not_found).layer(layer_fn(around))
}

/// What the edge goes by.
struct Gate {
    hosts: AllowedHosts,
    cors: CorsOrigins,
    body_silence_max: Duration,
    faults: Faults,
}

/// Takes a request in, and its answer out: an id and the line in the log around all; compression sees
/// rendered problems; rendering sees those of a panic and of the admission. The rest of a body that was not read
/// comes last: a slow client makes no answer look slow.
async fn pass(gate: Arc<Gate>, route: Route, request: Request) -> Result<Response, Infallible> {
    #[cfg(debug_assertions)]
    let polls = body_polls::slow::Polls::of(&request);
    let answering = handled(gate, route, request);
    #[cfg(debug_assertions)]
    let answering = polls.watch(answering);
    Ok(answering.await)
}

async fn handled(gate: Arc<Gate>, route: Route, request: Request) -> Response {
    let (mut request, rest) = Rest::of(request);
    let id = RequestId::new();
    let exchange = Exchange::begin(&request, id);
    let dress = Dress::of(&request, &gate);
    let accepted = encoding::take_accepted(request.headers_mut());
    let answered = match gate.admit(request) {
        Ok(request) => answer(route, request).await,
        Err(refused) => refused.into_response(),
    };
    let rendered = problem_body::render(answered, id, &gate.faults).await;
    let mut response =
        body_polls::processor_time::in_slices(compress::compress(accepted, rendered).await);
    exchange.end(&mut response);
    rest.settle(&mut response).await;
    dress.put_on(response.headers_mut(), id);
    response
}

/// The route's answer; a panic of its handler is one too.
async fn answer(mut route: Route, request: Request) -> Response {
    let answering = AssertUnwindSafe(async move { route.call(request).await });
    let answering = answering.catch_unwind().map(|answered| match answered {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(payload) => problem_body::panicked(payload),
    });
    answering.await
}

/// Why a request goes to no route.
enum Turned {
    /// It is refused.
    Away(Problem),
    /// It is a browser's question, with its answer.
    Back(Box<Response>),
}

impl From<Problem> for Turned {
    fn from(problem: Problem) -> Self {
        Self::Away(problem)
    }
}

impl IntoResponse for Turned {
    fn into_response(self) -> Response {
        match self {
            Self::Away(problem) => problem.into_response(),
            Self::Back(answer) => *answer,
        }
    }
}

impl Gate {
    /// Lets in what is addressed to us and well-formed, with a body that is watched and decompressed.
    fn admit(&self, mut request: Request) -> Result<Request, Turned> {
        encoding::check_transfer_coding(request.headers())?;
        self.hosts.check(request.uri(), request.headers(), &self.cors)?;
        if let Some(answer) = self.cors.preflight(&request) {
            return Err(Turned::Back(Box::new(answer)));
        }
        encoding::check_path(request.uri().path())?;
        let coding = encoding::take_content_coding(request.headers_mut())?;
        let request = request.map(|body| body_timeout::watched(body, self.body_silence_max));
        Ok(match coding {
            Some(coding) => decompress::decompress(request, coding),
            None => request,
        })
    }
}

#[cfg(test)]
mod tests;
