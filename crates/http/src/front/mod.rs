//! The one service of all connections: hot path or router, within the edge.

mod hot_path;

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::future::RouteFuture;
use futures_util::future::{BoxFuture, Either};
use http_body::Body as _;
use tower::Service;

use super::access::Guard;
use super::edge::{EdgeOptions, Gate, RouteName, guarded, layered, pass};
use super::routes::{GuardedRoutes, Handles, Routes};
use blackboard_service as service;
use hot_path::HotRequest;

/// All routes within the edge, as one service.
#[derive(Clone)]
pub struct Front(Arc<Parts>);

struct Parts {
    gate: Arc<Gate>,
    /// What the hot path needs, if the routes have a guard.
    hot: Option<(Arc<Guard>, Handles)>,
    router: Router,
}

type Answer = Result<Response, Infallible>;

/// Wraps all routes in the edge.
pub fn edge(routes: impl Into<Routes>, options: EdgeOptions, service: service::Service) -> Front {
    let gate = Arc::new(Gate::new(options, Some(service)));
    let Routes { guarded: within, open } = routes.into();
    let router = layered(open, &gate);
    let Some(GuardedRoutes { guard, router: within, handles }) = within else {
        return Front(Arc::new(Parts { gate, hot: None, router }));
    };
    let router = guarded(within, &gate, &guard).merge(router);
    Front(Arc::new(Parts { gate, hot: Some((guard, handles)), router }))
}

impl Service<Request> for Front {
    type Response = Response;
    type Error = Infallible;
    /// The hot path's future is boxed: a connection keeps room for its service's future while it is idle.
    type Future = Either<BoxFuture<'static, Answer>, RouteFuture<Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let front = Arc::clone(&self.0);
        match HotRequest::of(&request) {
            // A block, which is made in its box; the future of a function would be copied there.
            Some(hot) if front.hot.is_some() => Either::Left(Box::pin(async move {
                let Some((guard, handles)) = &front.hot else { return Ok(Response::default()) };
                let route = hot.route();
                let handler = |caller, request| hot.answer(handles, caller, request);
                let guarded = |request| guard.pass(route, request, handler);
                let response = pass(&front.gate, RouteName::Fixed(route), request, guarded).await;
                Ok(with_length(response))
            })),
            _ => Either::Right(self.0.router.clone().call(request)),
        }
    }
}

/// Adds the length as the router does. hyper would add it too, but after a `Connection` of its own; of a 304 it sends none.
fn with_length(mut response: Response) -> Response {
    let has_none = response.status() == StatusCode::NOT_MODIFIED;
    if !has_none
        && !response.headers().contains_key(CONTENT_LENGTH)
        && let Some(length) = response.body().size_hint().exact()
    {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}
