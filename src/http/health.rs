//! Whether the server lives, and whether it takes writes.

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::Answer;
use super::docs;
use super::params::Params;
use super::problem::Problem;
use crate::board::Code;
use crate::service::Service;
use crate::store::Health;

/// The state of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HealthBody {
    /// `ok`, or `full` where the disk has no room for more.
    #[schema(example = "ok")]
    status: &'static str,
    /// How many sessions are not served, because their stored history is damaged.
    damaged_sessions: usize,
}

/// Tell whether the server lives
#[utoipa::path(get, path = "/healthz", tag = "server",
    responses((status = 200, description = "It lives", body = HealthBody), docs::ServerRefusals))]
pub(super) async fn healthz(
    State(service): State<Service>,
    params: Params,
) -> Result<Response, Problem> {
    params.finish()?;
    Answer::plain().json(&HealthBody { status: "ok", damaged_sessions: service.damage().len() })
}

/// Tell whether the server takes writes
#[utoipa::path(get, path = "/readyz", tag = "server",
    responses((status = 200, description = "It does", body = HealthBody), docs::ReadinessRefusals))]
pub(super) async fn readyz(
    State(service): State<Service>,
    params: Params,
) -> Result<Response, Problem> {
    params.finish()?;
    let status = match service.health() {
        Health::Ready => "ok",
        Health::Full => "full",
        Health::Poisoned => {
            let detail = "the store failed and takes no writes until the server is started again";
            return Err(Problem::new(Code::StorePoisoned, detail));
        }
    };
    Answer::plain().json(&HealthBody { status, damaged_sessions: service.damage().len() })
}
