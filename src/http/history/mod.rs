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
use crate::api::address::session_url;
use crate::api::intake::fields::{named, needed};
use crate::api::intake::history::{at_member, name_member};
use crate::api::refusal::Refusal;
use crate::api::tag::Resource;
use crate::board::SessionName;
use crate::service::At;

/// The maximum number of attempts to read a history that is being truncated.
const LOOKS_MAX: usize = 8;

/// The name of a fork, and the point to fork.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the OpenAPI schema of the JSON that is parsed here")]
pub(super) struct NewForkBody {
    #[schema(schema_with = openapi::new_session_name)]
    to: String,
    #[schema(required = false, schema_with = openapi::point)]
    at: Option<String>,
}

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

/// The point to restore a session to.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the OpenAPI schema of the JSON that is parsed here")]
pub(super) struct NewRestoreBody {
    #[schema(schema_with = openapi::point)]
    at: String,
}

/// Fork a session
///
/// The new session gets the board, current or of an earlier point, and owns its data. Its revisions continue from the
/// board's. All claims are cancelled and all idempotency keys are forgotten.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/fork", operation_id = "fork_session", tag = "history",
    params(openapi::InSession, openapi::Writes),
    request_body(content = NewForkBody, description = "The new session's name and the point to fork"),
    responses(
        (status = 201, description = "Forked", body = ForkedBody,
            headers(("ETag" = String, description = "The new session's tag"), ("Location" = String, description = "The new session"), ("Blackboard-Revision" = u64, description = "The new session's revision"))),
        openapi::ForkRefusals,
    )
)]
pub(super) async fn fork(mut writing: Writing, body: Body) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    only_json(&writing.headers)?;
    let (to, at) = from_json(bytes, new_fork).await?;
    if let Some(answer) = writing.repeated(&Resource::Session).await? {
        return Ok(answer);
    }
    let source = writing.redirect(&to).await?;
    if let Some(answer) = writing.repeated(&Resource::Session).await? {
        return Ok(answer);
    }
    let board = writing.board_at(&source, at.as_ref()).await?;
    let at = board.revision().0;
    writing
        .fork(board, source.name().clone(), move |written| {
            let board = &written.receipt.board;
            let session = written.session;
            let (tag, revision) = (written.session_tag(), board.revision().0);
            let body =
                ForkedBody { revision, etag: tag.to_string(), session: session.to_string(), at };
            written.json(Some(tag), Some(session_url(session)), &body)
        })
        .await
}

/// Reads `{"to": …, "at": …}`.
fn new_fork(text: &str) -> Result<(SessionName, Option<At>), Refusal> {
    let [to, at] = named(text, ["to", "at"])?;
    let to = name_member("/to", to.ok_or_else(|| needed("to"))?)?;
    Ok((to, at.map(|at| at_member("/at", at)).transpose()?))
}

/// Restore a session
///
/// The session's logs, memories, state and agents become as they were at the point, and all claims are cancelled. The
/// restore is a commit, so it can be undone by another restore; no seq is used again.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/restore", operation_id = "restore_session", tag = "history",
    params(openapi::InSession, openapi::Writes),
    request_body(content = NewRestoreBody, description = "The point to restore"),
    responses(
        (status = 200, description = "Restored", body = WrittenBody,
            headers(("ETag" = String, description = "The session's tag"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        openapi::RestoreRefusals,
    )
)]
pub(super) async fn restore(mut writing: Writing, body: Body) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    only_json(&writing.headers)?;
    let at = from_json(bytes, new_restore).await?;
    writing.caller().restores()?;
    if let Some(answer) = writing.repeated(&Resource::Session).await? {
        return Ok(answer);
    }
    let then = writing.board_at(writing.session(), Some(&at)).await?;
    writing.restore(then, |written| written.changed(written.session_tag(), None)).await
}

/// Reads `{"at": …}`.
fn new_restore(text: &str) -> Result<At, Refusal> {
    let [at] = named(text, ["at"])?;
    at_member("/at", at.ok_or_else(|| needed("at"))?)
}

/// Delete a session's history
///
/// The history before now is deleted, and begins with the current board. The purge makes a commit only with an
/// `Idempotency-Key`.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/purge", operation_id = "purge_session", tag = "history",
    params(openapi::InSession, openapi::Writes),
    responses(
        (status = 200, description = "Deleted", body = WrittenBody,
            headers(("ETag" = String, description = "The session's tag"), ("Blackboard-Revision" = u64, description = "The session's revision, now also the oldest revision"))),
        openapi::PurgeRefusals,
    )
)]
pub(super) async fn purge(mut writing: Writing) -> Result<Response, Problem> {
    writing.finish_query()?;
    writing.purge(|written| written.changed(written.session_tag(), None)).await
}
