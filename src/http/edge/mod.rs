//! What every request and every answer passes, whichever route it is for.
//!
//! The layers live behind the router's matching, so that they know the matched route, and around
//! its fallback, so that an unknown route is treated like any other.

mod body;
mod decompress;
mod encoding;
mod hosts;
mod observe;
mod render;

use std::time::Duration;

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_http::timeout::RequestBodyTimeoutLayer;

pub use body::{is_corrupt, is_late};
pub(super) use encoding::percent_decode;
pub use hosts::{AllowedHosts, InvalidHost};
pub use observe::RequestId;

/// A body that sends nothing for so long fails, and its connection with it.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Puts the edge around a complete router; routes added afterwards would stand outside it.
pub fn edge(router: Router, hosts: AllowedHosts) -> Router {
    layered(router, hosts, BODY_TIMEOUT)
}

fn layered(router: Router, hosts: AllowedHosts, body_timeout: Duration) -> Router {
    // From the outside in. The line in the log tells the final status; compression sees rendered
    // problems; rendering sees those of a panic and of the admission.
    let layers = (
        from_fn(observe::observe),
        CompressionLayer::new(),
        from_fn(render::render),
        CatchPanicLayer::custom(render::panicked),
        from_fn_with_state(hosts, admit),
        RequestBodyTimeoutLayer::new(body_timeout),
        MapRequestBodyLayer::new(Body::new),
        from_fn(decompress::decompress),
    );
    router.fallback(render::route_not_found).layer(layers)
}

/// Lets in what is addressed to us and well-formed.
async fn admit(State(hosts): State<AllowedHosts>, mut request: Request, next: Next) -> Response {
    let admitted = hosts
        .check(request.uri(), request.headers())
        .and_then(|()| encoding::check_path(request.uri().path()))
        .and_then(|()| encoding::normalize_content_encoding(request.headers_mut()));
    match admitted {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

#[cfg(test)]
#[path = "edge_tests.rs"]
mod tests;

#[cfg(test)]
mod coding_tests;

#[cfg(test)]
mod log_tests;
