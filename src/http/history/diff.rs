//! The diff: additions, changes and removals between two revisions of a session.
use axum::response::Response;

use crate::api::history::diff_page::{DiffBody, DiffPieces, compared};
use crate::api::params::invalid;
use crate::api::tag::{Rendering, Resource};
use crate::board::{Board, Revision};
use crate::http::openapi;
use crate::http::read::{Early, Reading};
use crate::http::request::path::SessionPath;
use crate::http::response::JSON;
use crate::http::response::chunked;
use crate::http::response::{REVISION_HEADER, revision_value};
use crate::service::{At, Published, ServiceError};

/// The number of differences on a page by default.
const LIMIT_DEFAULT: usize = 1000;

/// The maximum number of differences on a page.
const LIMIT_MAX: u64 = 10_000;

/// Compare two revisions
///
/// The response has a page of additions, changes and removals from one revision to the other, in either direction.
/// Their order is fixed: logs, memories, state, agents, settings, labels.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/diff", operation_id = "diff_session", tag = "history",
    params(openapi::InSession, openapi::DiffQuery, openapi::MinRevision, openapi::WaitQuery, openapi::IfNoneMatch),
    responses(
        (status = 200, description = "The differences", body = DiffBody,
            headers(("ETag" = String, description = "Changes with the revisions and the query"), ("Blackboard-Revision" = u64, description = "The revision after"))),
        openapi::DiffRefusals,
    )
)]
pub(crate) async fn get(
    SessionPath(session): SessionPath,
    mut reading: Reading,
) -> Result<Response, Early> {
    let from: Option<At> = reading.params.parsed("from")?;
    let to: Option<At> = reading.params.parsed("to")?;
    let limit = reading.params.count("limit", 1, LIMIT_MAX)?.unwrap_or(LIMIT_DEFAULT);
    let skip = reading.params.count("after", 0, u64::MAX)?.unwrap_or(0);
    let from = from.ok_or_else(|| invalid("from", "is needed: a revision or a checkpoint"))?;
    let ends = |now: &Board| -> Result<(Revision, Revision), ServiceError> {
        let last = to.as_ref().map_or(Ok(now.revision()), |to| to.revision(now));
        Ok((from.revision(now)?, last?))
    };
    let rendering = |now: &Published| {
        let (first, last) = ends(&now.board)?;
        Ok(Rendering::of(Resource::Diff(first, last), now.board.at_version(last)))
    };
    let (answer, now) = reading.published(&session, rendering).await?;
    let (first, last) = ends(&now.board)?;
    let before = session.board_at(&now, &At::Revision(first)).await?;
    let after = session.board_at(&now, &At::Revision(last)).await?;
    let caller = reading.caller.clone();
    let page = compared(caller, before, after, skip, limit).await?;
    let pieces = DiffPieces::new(session.name().clone(), (first, last), skip, page);
    let answer = answer.header(REVISION_HEADER, revision_value(last));
    Ok(answer.body(JSON, chunked::body(pieces).await?))
}
