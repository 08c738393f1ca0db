//! The access log: one line for each exchange.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Uri};
use axum::response::Response;
use tracing::Level;

use crate::edge::client_address::ClientAddress;
use crate::edge::route_name::RouteName;
use crate::response::request_id::{ID_BYTES, RequestId};
use crate::response::trace_context::{TRACEPARENT, Trace};
use crate::response::{LoggedReason, LoggedToken};
use blackboard_address::segment;
use blackboard_board::{Code, NAME_BYTES_MAX};
use blackboard_metrics as metrics;
use blackboard_metrics::{Counted, known_method};
use blackboard_printable::cut;

/// The `tracing` target of the access log.
pub const ANSWERED: &str = "blackboard::answered";

const X_AGENT_ID: HeaderName = HeaderName::from_static("x-agent-id");

/// The maximum length of a name in the log. Every valid name fits, percent-encoded.
const LOGGED_BYTES_MAX: usize = 3 * NAME_BYTES_MAX;

/// One exchange, from its request to the head of its answer. The body is left out: a stream may last for days.
pub(super) struct Exchange {
    begun: Instant,
    id: RequestId,
    /// The method, if known: a client may send any word.
    method: &'static str,
    route: RouteName,
    trace: Option<Trace>,
    /// Fields of the log line only; `None` if the log omits the line.
    named: Option<Named>,
    _counted: Counted,
}

/// The address and agent of a request. Names stay percent-encoded as received, so that none can forge a line.
struct Named {
    uri: Uri,
    agent: Option<HeaderValue>,
    client: Option<ClientAddress>,
}

impl Named {
    fn of(request: &Request, client: Option<ClientAddress>) -> Self {
        Self {
            uri: request.uri().clone(),
            agent: request.headers().get(X_AGENT_ID).cloned(),
            client,
        }
    }

    fn session(&self) -> Option<&str> {
        session_of(self.uri.path())
    }

    fn agent(&self) -> Option<&str> {
        self.agent.as_ref().and_then(|agent| agent.to_str().ok())
    }
}

impl Exchange {
    /// Begins the exchange of a request.
    pub(super) fn begin(
        request: &Request,
        route: RouteName,
        client: Option<ClientAddress>,
        id: RequestId,
    ) -> Self {
        let is_logged = tracing::enabled!(target: ANSWERED, Level::INFO);
        Self {
            begun: Instant::now(),
            id,
            method: known_method(request.method().as_str()),
            route,
            trace: Trace::of(request.headers()),
            named: is_logged.then(|| Named::of(request, client)),
            _counted: metrics::REQUESTS_IN_PROGRESS.count(),
        }
    }

    /// Counts and logs the result, and adds `traceparent` to the answer.
    pub(super) fn end(self, response: &mut Response) {
        let took = self.begun.elapsed();
        let status = response.status().as_u16();
        let code = response.extensions().get::<Code>().map(|code| code.as_str());
        metrics::REQUESTS.note(self.method, self.route.shown(), status, took);
        if let Some(code) = code {
            metrics::REFUSALS.add_one(code);
        }
        if let Some(named) = &self.named {
            self.tell(named, response, code, took);
        }
        if let Some(value) = self.trace.as_ref().and_then(Trace::value) {
            response.headers_mut().insert(TRACEPARENT, value);
        }
    }

    fn tell(&self, named: &Named, response: &Response, code: Option<&str>, took: Duration) {
        let (method, route) = (self.method, self.route.shown());
        let ms = (took.as_secs_f64() * 1e6).round() / 1e3;
        let (status, extensions) = (response.status().as_u16(), response.extensions());
        let by_token = extensions.get::<LoggedToken>();
        let token = by_token.map(|token| segment(token.name.as_str()));
        let own = by_token.and_then(|token| Some(segment(token.agent.as_ref()?.as_str())));
        let session = named.session().map(logged);
        let agent = own.as_deref().or(named.agent()).map(logged);
        let (session, agent, token) = (session.as_deref(), agent.as_deref(), token.as_deref());
        let client = named.client.map(|ClientAddress(address)| tracing::field::display(address));
        let reason = extensions.get::<LoggedReason>().map(|LoggedReason(reason)| *reason);
        let trace = self.trace.as_ref();
        let (trace_id, span_id) =
            (trace.map(|trace| trace.id().to_string()), trace.map(Trace::span));
        let (parent_id, sampled) = (trace.map(Trace::parent), trace.map(Trace::is_sampled));
        let mut text = [0; ID_BYTES];
        let request_id = self.id.write(&mut text);
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: ANSWERED,
                    method,
                    route,
                    status,
                    code,
                    ms,
                    session,
                    agent,
                    token,
                    client,
                    reason,
                    request_id,
                    trace_id,
                    span_id,
                    parent_id,
                    sampled,
                    "answered"
                )
            };
        }
        // Probes come every few seconds; successful ones are logged at debug level.
        match route {
            "/healthz" | "/readyz" | "/metrics" if status < 400 => line!(debug),
            _ => line!(info),
        }
    }
}

fn logged(name: &str) -> Cow<'_, str> {
    cut(name, LOGGED_BYTES_MAX)
}

fn session_of(path: &str) -> Option<&str> {
    let name = path.strip_prefix("/v1/sessions/")?.split('/').next()?;
    (!name.is_empty() && name.is_ascii()).then_some(name)
}
