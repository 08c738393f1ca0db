//! Checkpoints: name a revision, list the names, remove one.
use std::ops::Bound;

use axum::body::Body;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi;
use crate::read::{Early, Reading, RevisionQuery};
use crate::request::body::{BODY_BYTES_MAX, from_json, only_json};
use crate::request::path::{CheckpointPath, SessionPath};
use crate::response::problem::Problem;
use crate::write::Writing;
use crate::write::response::{Written, WrittenBody};
use blackboard_address::checkpoint_url;
use blackboard_api::intake::input::body as body_of;
use blackboard_api::intake::query::{Count, Of, queries};
use blackboard_api::ops::history::Naming;
use blackboard_api::refusal::{Refusal, refused};
use blackboard_api::tag::{Rendering, Resource, Tag};
use blackboard_board::{Board, Checkpoint, CheckpointCommand, CheckpointName, Command, Rejected};
use blackboard_service::Published;

queries! {
    /// The query of a page of checkpoints.
    pub(crate) CheckpointsQuery {
        /// The maximum number of checkpoints on a page; 100 by default
        limit: Count<1, 1000> = 100,
        /// Only names after this one, in byte order
        after: Of<CheckpointName>,
    }
}

/// A name for a revision.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckpointBody {
    /// The named revision.
    revision: u64,
    /// In the answer to a write: the tag that `If-Match` of the next write to the same address compares with, the
    /// list's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    etag: Option<String>,
    /// The name.
    #[schema(example = "before-the-refactoring")]
    name: String,
    /// The time of creation, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    at: String,
    /// The author, if named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    agent: Option<String>,
}

/// A page of checkpoints, in the order of their names.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckpointPage {
    /// At most `limit` checkpoints.
    checkpoints: Vec<CheckpointBody>,
    /// The value of `after` for the next page; null if nothing has been listed yet.
    #[schema(required)]
    next: Option<String>,
    /// True if more checkpoints follow.
    more: bool,
    /// The revision of the checkpoints' last change; the session's is in `Blackboard-Revision`.
    revision: u64,
}

impl CheckpointBody {
    fn of(name: &CheckpointName, checkpoint: &Checkpoint) -> Self {
        Self {
            revision: checkpoint.revision.0,
            etag: None,
            name: name.to_string(),
            at: checkpoint.at.to_string(),
            agent: checkpoint.agent.as_ref().map(ToString::to_string),
        }
    }
}

/// Create a checkpoint
///
/// The name refers to the revision that this commit makes. A name that is already in use moves.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/checkpoints", operation_id = "put_checkpoint", tag = "history",
    request_body(content = Naming, description = "The name"),
    responses(
        (status = 200, description = "Moved", body = CheckpointBody, headers(("ETag" = String, description = "The tag of the list of checkpoints"))),
        (status = 201, description = "Created", body = CheckpointBody,
            headers(("ETag" = String, description = "The checkpoint's tag"), ("Location" = String, description = "The checkpoint"))),
        openapi::CheckpointRefusals,
    )
)]
pub(crate) async fn post(mut writing: Box<Writing>, body: Body) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    only_json(&writing.headers)?;
    let naming = from_json(bytes, body_of::<Naming>).await?;
    let (command, name) = (naming.command(), naming.name);
    writing
        .write(Resource::Checkpoints, command, Vec::new(), move |written| {
            let (receipt, list) = (written.receipt, tag(written));
            let Some(checkpoint) = receipt.board.checkpoints().get(&name) else {
                return written.changed(list, None);
            };
            let etag = Some(list.to_string());
            let body = CheckpointBody { etag, ..CheckpointBody::of(&name, checkpoint) };
            if receipt.existed {
                return written.json(Some(list), None, &body);
            }
            let version = receipt.board.at_version(checkpoint.revision);
            let tag = written.tag(version, &Resource::Checkpoint(name.clone()));
            written.json(Some(tag), Some(checkpoint_url(written.session, &name)), &body)
        })
        .await
}

/// Returns the tag of the checkpoints after a write.
fn tag(written: &Written<'_>) -> Tag {
    written.tag(written.receipt.board.checkpoints_version(), &Resource::Checkpoints)
}

/// List checkpoints
///
/// Checkpoints are sorted by name, a page at a time.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/checkpoints", operation_id = "list_checkpoints", tag = "history",
    params(CheckpointsQuery, RevisionQuery, openapi::WaitQuery),
    responses(
        (status = 200, description = "A page of checkpoints", body = CheckpointPage,
            headers(("ETag" = String, description = "Changes with the checkpoints and the query"))),
        openapi::ReadNowRefusals,
    )
)]
pub(crate) async fn list(
    SessionPath(session): SessionPath,
    mut reading: Reading,
) -> Result<Response, Early> {
    let CheckpointsQuery { limit, after } = CheckpointsQuery::take(&mut reading.params)?;
    let rendering =
        |now: &Published| Ok(Rendering::of(Resource::Checkpoints, now.board.checkpoints_version()));
    let (answer, Published { board, .. }) = reading.published(&session, rendering).await?;
    let from = after.clone().map_or(Bound::Unbounded, Bound::Excluded);
    let mut left = board.checkpoints().range((from, Bound::Unbounded));
    let found: Vec<_> = left.by_ref().take(limit).collect();
    let next = found.last().map(|(name, _)| (*name).clone()).or(after);
    Ok(answer.json(&CheckpointPage {
        checkpoints: found.iter().map(|(name, found)| CheckpointBody::of(name, found)).collect(),
        next: next.map(String::from),
        more: left.next().is_some(),
        revision: board.checkpoints_version().changed.0,
    })?)
}

/// Read a checkpoint
#[utoipa::path(
    get, path = "/v1/sessions/{session}/checkpoints/{checkpoint}", operation_id = "get_checkpoint", tag = "history",
    params(RevisionQuery, openapi::WaitQuery),
    responses(
        (status = 200, description = "The checkpoint", body = CheckpointBody,
            headers(("ETag" = String, description = "Changes when the name moves"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        openapi::ReadCheckpointRefusals,
    )
)]
pub(crate) async fn get(
    SessionPath(session): SessionPath,
    CheckpointPath(name): CheckpointPath,
    mut reading: Reading,
) -> Result<Response, Early> {
    let rendering = |now: &Published| {
        let version = now.board.at_version(checkpoint_of(&now.board, &name)?.revision);
        Ok(Rendering::of(Resource::Checkpoint(name.clone()), version))
    };
    let (answer, Published { board, .. }) = reading.published(&session, rendering).await?;
    Ok(answer.json(&CheckpointBody::of(&name, checkpoint_of(&board, &name)?))?)
}

fn checkpoint_of<'a>(board: &'a Board, name: &CheckpointName) -> Result<&'a Checkpoint, Refusal> {
    let found = board.checkpoints().get(name);
    let rejected = || Rejected::NoCheckpoint { checkpoint: name.clone() };
    found.ok_or_else(|| refused(&rejected(), Some(board.revision())))
}

/// Remove a checkpoint
///
/// The name is removed; its revision stays.
#[utoipa::path(
    delete, path = "/v1/sessions/{session}/checkpoints/{checkpoint}", operation_id = "delete_checkpoint", tag = "history",
    responses(
        (status = 200, description = "Removed", body = WrittenBody, headers(("ETag" = String, description = "The tag of the list of checkpoints"))),
        openapi::RemoveCheckpointRefusals,
    )
)]
pub(crate) async fn delete(
    CheckpointPath(name): CheckpointPath,
    mut writing: Box<Writing>,
) -> Result<Response, Problem> {
    writing.finish_query()?;
    let command = Command::Checkpoint(name.clone(), CheckpointCommand::Remove);
    writing
        .write(Resource::Checkpoint(name), command, Vec::new(), |written| {
            written.changed(tag(written), None)
        })
        .await
}
