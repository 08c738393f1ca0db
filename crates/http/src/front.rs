//! The one service of all connections: all routes, within the edge.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::future::RouteFuture;
use tower::Service;

use super::edge::{EdgeOptions, Gate, guarded, layered};
use super::routes::{GuardedRoutes, Routes};
use blackboard_service as service;

/// All routes within the edge, as one service.
#[derive(Clone)]
pub struct Front(Router);

/// Wraps all routes in the edge.
pub fn edge(routes: impl Into<Routes>, options: EdgeOptions, service: service::Service) -> Front {
    let gate = Arc::new(Gate::new(options, Some(service)));
    let Routes { guarded: within, open } = routes.into();
    let open = layered(open, &gate);
    Front(match within {
        Some(GuardedRoutes { guard, router }) => guarded(router, &gate, &guard).merge(open),
        None => open,
    })
}

impl Service<Request> for Front {
    type Response = Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        self.0.call(request)
    }
}
