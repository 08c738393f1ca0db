//! What is special to an agent's memory among the logs: its cost.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::Answer;
use super::docs;
use super::etag::{Resource, Tag};
use super::params::Params;
use super::path::LogPath;
use super::problem::Problem;
use super::read::shown;
use crate::board::{Log, json};
use crate::service::Service;

/// What an agent's steps cost.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CostBody {
    /// The sum of the items' `cost`, where it is a number.
    total_cost: f64,
    /// How many items the memory has.
    steps: usize,
}

/// Sum up what an agent's steps cost
///
/// What the original's `get_total_cost` gives: the sum of `cost` over the memory's items.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/agents/{agent}/memory/cost", operation_id = "get_memory_cost", tag = "memories",
    params(docs::InSession, docs::InMemory, docs::MinRevision, docs::IfNoneMatch),
    responses(
        (status = 200, description = "The cost", body = CostBody,
            headers(("ETag" = String, description = "Changes with the memory"), ("Blackboard-Revision" = u64, description = "The revision shown"))),
        docs::ReadRefusals,
    )
)]
pub(super) async fn cost(
    State(service): State<Service>,
    LogPath { session, log }: LogPath,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, Problem> {
    let board = shown(&service, &session, params).await?.board;
    let memory = board.log(&log);
    let version = board.log_version(&log);
    let tag = Tag::new(service.epoch(), version, &Resource::Cost(log.clone()));
    let answer = match Answer::of(board.revision()).unless_known(&headers, &tag)? {
        Ok(answer) => answer,
        Err(known) => return Ok(known),
    };
    answer.json(&CostBody {
        total_cost: memory.map_or(0.0, total_cost),
        steps: memory.map_or(0, Log::len),
    })
}

/// Summed in the order of the items, as Python's `sum` does.
fn total_cost(memory: &Log) -> f64 {
    let costs = memory.iter().filter_map(|entry| entry.item.get("cost"));
    let numbers = costs.filter(|cost| json::kind(cost) == json::Kind::Number);
    // A sum beyond a double has no JSON form.
    numbers.map(json::to_f64).fold(0.0, |sum, cost| (sum + cost).clamp(f64::MIN, f64::MAX))
}
