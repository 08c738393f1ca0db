//! Health checks: liveness, and readiness for writes.

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi;
use crate::request::query::Query;
use crate::response::Answer;
use crate::response::problem::Problem;
use blackboard_board::Code;
use blackboard_service::{Service, Status};
use blackboard_store::Health;

/// The state of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HealthBody {
    /// `ok`, `full` if the disk is full, `store-unavailable` while the database service cannot be reached, or `degraded`
    /// while a thread pauses after a panic, or the search index is rebuilt after damage.
    #[schema(example = "ok")]
    status: &'static str,
    /// The number of sessions that are not served because their stored history is damaged.
    damaged_sessions: usize,
    /// The threads that pause after a panic, if any. Each restarts by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    threads_down: Vec<&'static str>,
    /// `rebuilding` while the search index is rebuilt after damage; searches are 503 until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<&'static str>,
}

impl HealthBody {
    fn new(now: Status, status: &'static str) -> Self {
        let down = now.threads.into_iter().filter(|(_, is_up)| !is_up);
        let threads_down: Vec<_> = down.map(|(name, _)| name).collect();
        let search = now.is_search_rebuilding.then_some("rebuilding");
        let is_degraded = status == "ok" && (!threads_down.is_empty() || search.is_some());
        let status = if is_degraded { "degraded" } else { status };
        Self { status, damaged_sessions: now.damaged, threads_down, search }
    }
}

/// Check that the server is alive
#[utoipa::path(get, path = "/healthz", tag = "server",
    responses((status = 200, description = "The server is alive", body = HealthBody), openapi::ServerRefusals))]
pub(crate) async fn healthz(
    State(service): State<Service>,
    Query(params): Query,
) -> Result<Response, Problem> {
    params.finish()?;
    Answer::plain().json(&HealthBody::new(service.status(), "ok"))
}

/// Check that the server accepts writes
#[utoipa::path(get, path = "/readyz", tag = "server",
    responses((status = 200, description = "The server accepts writes; if `full`, only deletions", body = HealthBody), openapi::ReadinessRefusals))]
pub(crate) async fn readyz(
    State(service): State<Service>,
    Query(params): Query,
) -> Result<Response, Problem> {
    params.finish()?;
    let now = service.status();
    let status = match now.health {
        Health::Ready => "ok",
        Health::Full => "full",
        // Red on all replicas at once would take them all out of their service, and clients would meet refused
        // connections instead of the problem.
        Health::Unreachable => "store-unavailable",
        Health::Poisoned => {
            let detail = "the store failed; restart the server to write again";
            return Err(Problem::new(Code::StorePoisoned, detail));
        }
    };
    Answer::plain().json(&HealthBody::new(now, status))
}
