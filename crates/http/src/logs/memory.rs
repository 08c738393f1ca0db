//! Total cost of an agent's memory.

use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi;
use crate::read::{Early, PastQuery, Reading, RevisionQuery};
use crate::request::path::LogPath;
use blackboard_api::tag::{Rendering, Resource};
use blackboard_board::{Board, Log, json};

/// The total cost of an agent's steps.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CostBody {
    /// The sum of `cost` over the items in which it is a number.
    total_cost: f64,
    /// The number of items in the memory.
    steps: usize,
}

/// Sum up the cost of an agent's steps
///
/// As the original's `get_total_cost`: the sum of `cost` over the memory's items.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/agents/{agent}/memory/cost", operation_id = "get_memory_cost", tag = "memories",
    params(PastQuery, RevisionQuery, openapi::WaitQuery),
    responses(
        (status = 200, description = "The cost", body = CostBody, headers(("ETag" = String, description = "Changes with the memory"))),
        openapi::ReadRefusals,
    )
)]
pub(crate) async fn cost(
    LogPath { session, log }: LogPath,
    mut reading: Reading,
) -> Result<Response, Early> {
    let cost = Resource::Cost(log.clone());
    let rendering = |board: &Board| Ok(Rendering::of(cost.clone(), board.log_version(&log)));
    let (answer, board) = reading.of(&session, rendering).await?;
    let memory = board.log(&log);
    let (total_cost, steps) = (memory.map_or(0.0, total_cost), memory.map_or(0, Log::len));
    Ok(answer.json(&CostBody { total_cost, steps })?)
}

/// Sums the costs in the order of the items, as Python's `sum` does.
fn total_cost(memory: &Log) -> f64 {
    let costs = memory.iter().filter_map(|entry| entry.item.get("cost"));
    let numbers = costs.filter(|cost| json::kind(cost) == json::Kind::Number);
    // A sum beyond a double's range has no JSON form.
    numbers.map(json::to_f64).fold(0.0, |sum, cost| (sum + cost).clamp(f64::MIN, f64::MAX))
}
