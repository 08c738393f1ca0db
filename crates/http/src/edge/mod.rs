//! The edge: processing shared by all requests and responses.
//!
//! [`pass`] calls each step once, in one order. It runs after a request was matched, by the router or by
//! [`front`](super::front), so that it knows the route. It also wraps the router's fallback, so that unknown
//! routes are treated alike.

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
mod route_name;
mod unread_rest;

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::Route;
use futures_util::FutureExt as _;
use tower::layer::layer_fn;
use tower::{Service, service_fn};

use super::access::Guard;
use super::connection::Peer;
use super::response::problem::Problem;
use super::response::request_id::RequestId;
pub use access_log::ANSWERED;
use access_log::Exchange;
use blackboard_fairness::Client;
use blackboard_service as service;
pub(super) use body_timeout::is_inflated;
pub use body_timeout::{is_corrupt, is_late};
use client_address::ClientAddress;
pub use client_address::{InvalidProxies, TrustedProxies};
pub use cors::{CorsOrigins, InvalidOrigin};
pub(super) use decompress::RATIO_MAX;
use fault_log::Faults;
pub use hosts::{AllowedHosts, InvalidHost};
use response_headers::Dress;
pub(super) use route_name::RouteName;
pub(super) use unread_rest::LINGER_BYTES_MAX;
use unread_rest::Rest;

/// The timeout of a silent request body; the connection is closed with it.
const BODY_SILENCE_MAX: Duration = Duration::from_secs(10);

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
pub(super) struct Gate {
    options: EdgeOptions,
    body_silence_max: Duration,
    faults: Faults,
    /// Tells the free space of a full disk.
    service: Option<service::Service>,
}

/// Answers one request: all steps of the edge, in their order. `answer` is what stands behind it.
///
/// Refusals of the admission and panics are rendered as problems, then compressed and logged. The unread rest of a
/// body is drained after the log line, so that a slow client makes no answer look slow.
pub(super) fn pass<F: Future<Output = Response>>(
    gate: &Gate,
    route: RouteName,
    request: Request,
    answer: impl FnOnce(Request) -> F,
) -> impl Future<Output = Response> {
    #[cfg(debug_assertions)]
    let polls = body_polls::slow::Polls::of(&route);
    let answering = passed(gate, route, request, answer);
    #[cfg(debug_assertions)]
    let answering = polls.watch(Box::pin(answering));
    answering
}

/// The steps that few requests need are boxed, or every request's future would have their size.
async fn passed<F: Future<Output = Response>>(
    gate: &Gate,
    route: RouteName,
    mut request: Request,
    answer: impl FnOnce(Request) -> F,
) -> Response {
    let rest = Rest::of(&mut request);
    let id = RequestId::new();
    let (address, client) = gate.identify(&request);
    let exchange = Exchange::begin(&request, route, address, id);
    let dress = Dress::of(&request, gate);
    let accepted = encoding::accepted(request.headers());
    let mut response = match gate.admit(request) {
        Ok(request) => {
            // Pinned in its place: passed on by value, it would have room in each future that it is passed to.
            let answering = pin!(AssertUnwindSafe(answer(request)).catch_unwind());
            let answered = match client {
                Some(client) => client.scope(answering).await,
                None => answering.await,
            };
            answered.unwrap_or_else(problem_body::panicked)
        }
        Err(refused) => refused.into_response(),
    };
    if problem_body::is_refusal(&response) {
        response = Box::pin(problem_body::render(response, id, gate)).await;
    }
    if let Some(accepted) = accepted {
        response = Box::pin(compress::compress(accepted, response)).await;
    }
    response = body_polls::processor_time::in_slices(response);
    exchange.end(&mut response);
    if let Some(left) = rest.left() {
        Box::pin(left.settle(&mut response)).await;
    }
    dress.put_on(response.headers_mut(), id);
    response
}

/// Wraps all routes of a router in the edge, with its fallback. Routes added afterwards are outside it.
pub(super) fn layered(routes: Router, gate: &Arc<Gate>) -> Router {
    let gate = Arc::clone(gate);
    let around = move |route| around(route, &gate, None);
    routes.fallback(problem_body::route_not_found).layer(layer_fn(around))
}

/// Wraps routes in the edge and, within it, in the guard.
pub(super) fn guarded(routes: Router, gate: &Arc<Gate>, guard: &Arc<Guard>) -> Router {
    let (gate, guard) = (Arc::clone(gate), Arc::clone(guard));
    let around = move |route| around(route, &gate, Some(&guard));
    routes.route_layer(layer_fn(around))
}

/// A route with all that stands before it.
type Guarded = (Arc<Gate>, Option<Arc<Guard>>, Route);

/// Wraps one route. Its parts are shared, since axum clones the whole service for each request.
fn around(
    route: Route,
    gate: &Arc<Gate>,
    guard: Option<&Arc<Guard>>,
) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send>
+ Clone
+ Send
+ Sync
+ use<> {
    let shared = Arc::new((Arc::clone(gate), guard.map(Arc::clone), route));
    service_fn(move |request| routed(Arc::clone(&shared), request))
}

/// Answers a request that the router has matched.
async fn routed(guarded: Arc<Guarded>, request: Request) -> Result<Response, Infallible> {
    let (gate, guard, route) = &*guarded;
    let (name, mut route) = (RouteName::matched(&request), Route::clone(route));
    let matched = name.clone();
    let answer = async |request: Request| {
        let handler = |caller, mut request: Request| {
            request.extensions_mut().insert(caller);
            route.call(request).map(|Ok(response)| response)
        };
        match guard {
            Some(guard) => guard.pass(matched.as_str(), request, handler).await,
            None => route.call(request).map(|Ok(response)| response).await,
        }
    };
    Ok(pass(gate, name, request, answer).await)
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
    pub(super) fn new(options: EdgeOptions, service: Option<service::Service>) -> Self {
        let faults = Faults::default();
        Self { options, body_silence_max: BODY_SILENCE_MAX, faults, service }
    }

    /// Returns the address of the client of a request, and the client if it is not the connection's.
    fn identify(&self, request: &Request) -> (Option<ClientAddress>, Option<Client>) {
        let Some(peer) = request.extensions().get::<Peer>().map(|peer| peer.address) else {
            return (None, None);
        };
        let address = self.options.trusted_proxies.client(peer, request.headers());
        let client = Client::at(address.0);
        (Some(address), (client != Client::at(peer)).then_some(client))
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
        encoding::check_content_range(request.method(), request.headers())?;
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
