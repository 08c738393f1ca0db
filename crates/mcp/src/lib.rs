//! The MCP door: the board as tools, resources and prompts of any agent, by streamable HTTP without sessions.
//!
//! `rmcp` speaks the protocol, in its generations 2026-07-28 and 2025-11-25 and earlier. A request is served alone:
//! its caller, its default session and its set of tools come with it. Tools parse their arguments with `api`, decide
//! nothing themselves, and answer with text that suffices alone.

mod call;
mod catalog;
mod completion;
mod direct;
mod extra;
mod instructions;
mod message;
mod prompts;
mod resources;
mod server;
mod subscription;
mod tools;

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use futures_util::future::{BoxFuture, FutureExt as _};
use http_body_util::Full;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use blackboard_accept::MediaType;
use blackboard_fairness::Client;
use blackboard_service::Service;
use direct::Direct;
pub use extra::{Context, Extra, Maybe};
use server::Server;

/// The path of the door.
pub const PATH: &str = "/mcp";

/// The maximum size of a request in bytes. The caller of the door limits it first.
const REQUEST_BYTES_MAX: usize = 64 << 20;

/// Answers a request. Its extensions have the [`Caller`](blackboard_auth::Caller), and a
/// [`CancellationToken`](tokio_util::sync::CancellationToken) that is cancelled when the client departs.
pub type Answer =
    Arc<dyn Fn(axum::http::Request<Bytes>) -> BoxFuture<'static, Response> + Send + Sync>;

/// Opens the door to the boards of a service.
#[must_use]
pub fn answer(service: &Service) -> Answer {
    answer_with(service, None)
}

/// Opens the door with tools, resources and prompts beside those of the board, as a conformance suite needs them.
#[must_use]
pub fn answer_with(service: &Service, extra: Option<Arc<dyn Extra>>) -> Answer {
    // Host and origin were checked at the edge, and the size of the body where it was read. Waits and notices end by
    // themselves when the server stops, so that each call is answered.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_retry(None)
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(REQUEST_BYTES_MAX);
    let has_extra = extra.is_some();
    let server = Server::new(service.clone(), extra);
    let sessions = Arc::new(NeverSessionManager::default());
    let of_library = server.clone();
    let protocol = StreamableHttpService::new(move || Ok(of_library.clone()), sessions, config);
    let door = Arc::new(Door { server, protocol, has_extra });
    Arc::new(move |request| Arc::clone(&door).answer(request).boxed())
}

/// The door: the board's side, and the protocol's library.
struct Door {
    server: Server,
    protocol: StreamableHttpService<Server, NeverSessionManager>,
    has_extra: bool,
}

impl Door {
    async fn answer(self: Arc<Self>, request: axum::http::Request<Bytes>) -> Response {
        let (mut parts, mut body) = request.into_parts();
        // The protocol's library runs each request in a task of its own, which knows no client.
        parts.extensions.insert(Client::current());
        accept_anything(&mut parts.headers);
        let is_json = is_json(&parts.headers);
        if is_json {
            let received = match message::received(body, self.has_extra).await {
                Ok(received) => received,
                Err(refusal) => return *refusal,
            };
            if let Some(direct) = Direct::of(&parts, &received) {
                return direct.answer(&self.server).await;
            }
            body = received.message;
            if let Some(arguments) = received.arguments {
                parts.extensions.insert(arguments);
            }
        }
        let request = axum::http::Request::from_parts(parts, Full::new(body));
        // Boxed, since few calls need it.
        let answer = Box::pin(self.protocol.handle(request)).await;
        message::answered(answer.map(Body::new), is_json)
    }
}

/// Reads a missing `Accept`, and one that takes JSON, as the two media types that the protocol's library insists on, so
/// that `curl --json` needs no header. An answer is an event stream only if the client asks for progress or listens.
fn accept_anything(headers: &mut HeaderMap) {
    if headers.get(header::ACCEPT) == Some(&direct::ACCEPTED) {
        return;
    }
    let ranges = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    if MediaType::JSON.weight(ranges).is_none_or(|weight| weight > 0.0) {
        headers.insert(header::ACCEPT, direct::ACCEPTED);
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = media_type.and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}
