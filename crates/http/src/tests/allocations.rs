//! Tests of the allocations of a request on the threads that answer requests.
//!
//! The counts do not depend on the machine. One that grows says that each request became more expensive; lower the bound
//! when one falls.

use std::sync::Arc;

use allocation_counter::{AllocationInfo, measure};
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use http_body_util::BodyExt as _;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

use super::bounded::World;
use crate::front::Front;
use crate::{EdgeOptions, Streams, edge, router};
use blackboard_auth::{TokenLimits, Tokens};
use blackboard_clock::Clock;

/// The number of requests, of which the one with the fewest allocations counts: some make what later ones share.
const ROUNDS: usize = 20;

const ITEM_BYTES: usize = 800;

struct Door {
    runtime: Runtime,
    front: Front,
    _world: World,
}

impl Door {
    fn new() -> Self {
        let world = World::new();
        let limits = TokenLimits { rate: None, streams_max: 8 };
        let tokens = Tokens::open(Arc::clone(&world.store), Clock::system(), limits).unwrap();
        let service = world.service.clone();
        let routes = router(service.clone(), tokens, None, Streams::new(8), Vec::new(), None);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, front: edge(routes, EdgeOptions::default(), service), _world: world }
    }

    fn answer(&self, request: Request<Body>) -> Response {
        self.runtime.block_on(async {
            let response = self.front.clone().oneshot(request).await.unwrap();
            let (parts, mut body) = response.into_parts();
            while let Some(frame) = body.frame().await {
                frame.unwrap();
            }
            Response::from_parts(parts, Body::empty())
        })
    }

    /// Returns the fewest allocations of a request, and the fewest bytes.
    fn fewest(&self, status: StatusCode, request: impl Fn() -> Request<Body>) -> (u64, u64) {
        let one = || {
            let request = request();
            let mut answered = None;
            let took: AllocationInfo = measure(|| answered = Some(self.answer(request)));
            assert_eq!(answered.unwrap().status(), status);
            (took.count_total, took.bytes_total)
        };
        let all: Vec<_> = (0..ROUNDS).map(|_| one()).collect();
        let fewest = |of: fn(&(u64, u64)) -> u64| all.iter().map(of).min().unwrap();
        (fewest(|took| took.0), fewest(|took| took.1))
    }
}

fn request(method: &str, path: &str) -> axum::http::request::Builder {
    Request::builder().method(method).uri(path).header(header::HOST, "127.0.0.1")
}

fn append() -> Request<Body> {
    let item = format!("{{\"step\":1,\"thought\":\"{}\"}}", "x".repeat(ITEM_BYTES - 26));
    let request = request("POST", "/v1/sessions/s/trajectories");
    request.header(header::CONTENT_TYPE, "application/json").body(Body::from(item)).unwrap()
}

fn within((count, bytes): (u64, u64), count_max: u64, bytes_max: u64) {
    assert!(count <= count_max && bytes <= bytes_max, "{count} allocations of {bytes} B");
}

#[test]
fn a_write_allocates_little() {
    let door = Door::new();
    within(door.fewest(StatusCode::CREATED, append), 42, 19_000);
}

#[test]
fn a_page_and_a_prompt_are_not_copied() {
    let door = Door::new();
    (0..200).for_each(|_| _ = door.answer(append()));
    let read = |path| move || request("GET", path).body(Body::empty()).unwrap();
    let page = read("/v1/sessions/s/trajectories?limit=100");
    within(door.fewest(StatusCode::OK, page), 64, 19_000);
    within(door.fewest(StatusCode::OK, read("/v1/sessions/s/prompt")), 78, 22_000);
}

#[test]
fn an_unchanged_board_is_answered_without_a_look_at_it() {
    let door = Door::new();
    door.answer(append());
    let path = "/v1/sessions/s/prompt";
    let response = door.answer(request("GET", path).body(Body::empty()).unwrap());
    let tag = response.headers().get(header::ETAG).cloned().unwrap();
    let again = || {
        let request = request("GET", path).header(header::IF_NONE_MATCH, tag.clone());
        request.body(Body::empty()).unwrap()
    };
    within(door.fewest(StatusCode::NOT_MODIFIED, again), 24, 15_500);
}
