//! Handlers of history: fork, restore and purge.

pub(crate) mod archive;
pub(crate) mod audit;
pub(crate) mod checkpoints;
pub(crate) mod diff;
use axum::body::Body;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::openapi;
use super::request::body::{BODY_BYTES_MAX, from_json, only_json};
use super::response::problem::Problem;
use super::write::Writing;
use super::write::response::WrittenBody;
use blackboard_address::session_url;
use blackboard_api::intake::input::body as body_of;
use blackboard_api::ops::history::{Forking, Restoring};

/// The maximum number of attempts to read a history that is being truncated.
const LOOKS_MAX: usize = 8;

/// The result of a fork.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ForkedBody {
    /// The new session's revision.
    revision: u64,
    /// The new session's tag.
    etag: String,
    /// The new session's name.
    session: String,
    /// The revision of the original session that was forked.
    at: u64,
}

/// Fork a session
///
/// The new session gets the board, current or of an earlier point, and owns its data. Its revisions continue from the
/// board's. All claims are cancelled and all idempotency keys are forgotten.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/fork", operation_id = "fork_session", tag = "history",
    request_body(content = Forking, description = "The new session's name and the point to fork"),
    responses(
        (status = 201, description = "Forked", body = ForkedBody,
            headers(("ETag" = String, description = "The new session's tag"), ("Location" = String, description = "The new session"), ("Blackboard-Revision" = u64, description = "The new session's revision"))),
        openapi::ForkRefusals,
    )
)]
pub(super) async fn fork(mut writing: Box<Writing>, body: Body) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    only_json(&writing.headers)?;
    let forking: Forking = from_json(bytes, body_of).await?;
    writing
        .fork(forking, |written, at| {
            let board = &written.receipt.board;
            let (tag, session) = (written.session_tag(), written.session);
            let body = ForkedBody {
                revision: board.revision().0,
                etag: tag.to_string(),
                session: session.to_string(),
                at: at.0,
            };
            written.json(Some(tag), Some(session_url(session)), &body)
        })
        .await
}

/// Restore a session
///
/// The session's logs, memories, state and agents become as they were at the point, and all claims are cancelled. The
/// restore is a commit, so it can be undone by another restore; no seq is used again.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/restore", operation_id = "restore_session", tag = "history",
    request_body(content = Restoring, description = "The point to restore"),
    responses(
        (status = 200, description = "Restored", body = WrittenBody, headers(("ETag" = String, description = "The session's tag"))),
        openapi::RestoreRefusals,
    )
)]
pub(super) async fn restore(mut writing: Box<Writing>, body: Body) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    only_json(&writing.headers)?;
    let Restoring { at } = from_json(bytes, body_of::<Restoring>).await?;
    writing.restore(&at, |written| written.changed(written.session_tag(), None)).await
}

/// Delete a session's history
///
/// The history before now is deleted, and begins with the current board. The purge makes a commit only with an
/// `Idempotency-Key`.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/purge", operation_id = "purge_session", tag = "history",
    responses(
        (status = 200, description = "Deleted", body = WrittenBody,
            headers(("ETag" = String, description = "The session's tag"), ("Blackboard-Revision" = u64, description = "The session's revision, now also the oldest revision"))),
        openapi::PurgeRefusals,
    )
)]
pub(super) async fn purge(mut writing: Box<Writing>) -> Result<Response, Problem> {
    writing.finish_query()?;
    writing.purge(|written| written.changed(written.session_tag(), None)).await
}
