//! The edge: processing shared by all requests and responses.
//!
//! The edge runs after the router's matching, so that it knows the matched route. It also wraps the fallback, so
//! that unknown routes are treated alike. It is one service instead of a layer for each step: each layer would
//! clone the layers below it and box its response, for every request.

mod access_log;
mod body_polls;
mod body_timeout;
pub(super) use body_polls::wrapped::wrapped;
pub(super) mod client_address;
mod compress;
mod cors;
mod decompress;
mod encoding;
mod fault_log;
mod hosts;
mod problem_body;
mod response_headers;
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

use super::connection::Peer;
use super::response::problem::Problem;
use super::response::request_id::RequestId;
use crate::fairness::Client;
use crate::service::Service;
pub use access_log::ANSWERED;
use access_log::Exchange;
pub(super) use body_timeout::is_inflated;
pub use body_timeout::{is_corrupt, is_late};
pub use client_address::{InvalidProxies, TrustedProxies};
pub use cors::{CorsOrigins, InvalidOrigin};
pub(super) use decompress::RATIO_MAX;
use fault_log::Faults;
pub use hosts::{AllowedHosts, InvalidHost};
use response_headers::Dress;
pub(super) use unread_rest::LINGER_BYTES_MAX;
use unread_rest::Rest;

/// The timeout of a silent request body; the connection is closed with it.
const BODY_SILENCE_MAX: Duration = Duration::from_secs(10);

/// Wraps a complete router in the edge. Routes added afterwards are outside it.
pub fn edge(router: Router, options: EdgeOptions, service: Service) -> Router {
    layered(router, Gate::new(options, Some(service)))
}

fn layered(router: Router, gate: Gate) -> Router {
    let gate = Arc::new(gate);
    let around = move |route: Route| {
        // Shared, since axum clones the whole service for each request.
        let (gate, route) = (Arc::clone(&gate), Arc::new(route));
        service_fn(move |request| pass(Arc::clone(&gate), Route::clone(&route), request))
    };
    router.fallback(problem_body::route_not_found).layer(layer_fn(around))
}

/// The edge's settings. By default, no foreign host, site or proxy is trusted.
#[derive(Clone, Debug, Default)]
pub struct EdgeOptions {
    /// Names by which clients may address the server.
    pub allowed_hosts: AllowedHosts,
    /// Sites whose pages may call the server.
    pub cors_origins: CorsOrigins,
    /// Proxies that tell the addresses of their clients.
    pub trusted_proxies: TrustedProxies,
}

/// The edge's settings, and its log of faults.
struct Gate {
    options: EdgeOptions,
    body_silence_max: Duration,
    faults: Faults,
    /// Tells the free space of a full disk.
    service: Option<Service>,
}

/// Answers one request. Refusals of the admission and panics are rendered as problems, then compressed and logged.
/// The unread rest of a body is drained after the log line, so that a slow client makes no answer look slow.
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
    let client = gate.identify(&mut request);
    let exchange = Exchange::begin(&request, id);
    let dress = Dress::of(&request, &gate);
    let accepted = encoding::accepted(request.headers());
    let answered = match gate.admit(request) {
        Ok(request) => match client {
            Some(client) => client.scope(answer(route, request)).await,
            None => answer(route, request).await,
        },
        Err(refused) => refused.into_response(),
    };
    let rendered = problem_body::render(answered, id, &gate).await;
    let mut response =
        body_polls::processor_time::in_slices(compress::compress(accepted, rendered).await);
    exchange.end(&mut response);
    rest.settle(&mut response).await;
    dress.put_on(response.headers_mut(), id);
    response
}

/// Calls the route, and turns a panic of its handler into an answer.
async fn answer(mut route: Route, request: Request) -> Response {
    let answering = AssertUnwindSafe(async move { route.call(request).await });
    let answering = answering.catch_unwind().map(|answered| match answered {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(payload) => problem_body::panicked(payload),
    });
    answering.await
}

/// The reason why a request reaches no route.
enum Turned {
    /// The request is refused.
    Away(Problem),
    /// The request is a preflight, with its answer.
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
    fn new(options: EdgeOptions, service: Option<Service>) -> Self {
        let faults = Faults::default();
        Self { options, body_silence_max: BODY_SILENCE_MAX, faults, service }
    }

    /// Adds the address of the client to a request. Returns the client if it is not the connection's.
    fn identify(&self, request: &mut Request) -> Option<Client> {
        let peer = request.extensions().get::<Peer>()?.address;
        let address = self.options.trusted_proxies.client(peer, request.headers());
        request.extensions_mut().insert(address);
        let client = Client::at(address.0);
        (client != Client::at(peer)).then_some(client)
    }

    /// Checks the encodings, host and origin of a request, and adds timeout and decompression to its body.
    fn admit(&self, mut request: Request) -> Result<Request, Turned> {
        encoding::check_transfer_coding(request.headers())?;
        let EdgeOptions { allowed_hosts, cors_origins, .. } = &self.options;
        allowed_hosts.check(request.uri(), request.headers(), cors_origins)?;
        if let Some(answer) = cors_origins.preflight(&request) {
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
