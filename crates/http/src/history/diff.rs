//! The diff: additions, changes and removals between two revisions of a session.
use axum::response::Response;

use crate::openapi;
use crate::read::{Early, Reading, RevisionQuery};
use crate::request::path::SessionPath;
use crate::response::JSON;
use crate::response::chunked;
use crate::response::{REVISION_HEADER, revision_value};
use blackboard_api::history::diff_page::{DiffBody, DiffPieces, compared};
use blackboard_api::intake::query::{Count, Of, queries};
use blackboard_api::tag::{Rendering, Resource};
use blackboard_board::{Board, Revision};
use blackboard_service::{At, Published, ServiceError};

/// The maximum number of differences of a page.
const LIMIT_MAX: u64 = 10_000;

queries! {
    /// The query of a page of differences.
    pub(crate) DiffQuery {
        /// The revision to compare from, or a checkpoint's name
        from: Of<At> as needed("is needed: a revision or a checkpoint"),
        /// The revision to compare to, or a checkpoint's name; the current revision by default
        to: Of<At>,
        /// The maximum number of differences; 1000 by default
        limit: Count<1, LIMIT_MAX> = 1000,
        /// The number of differences to skip
        after: Count<0, { u64::MAX }> = 0,
    }
}

/// Compare two revisions
///
/// The response has a page of additions, changes and removals from one revision to the other, in either direction.
/// Their order is fixed: logs, memories, state, agents, settings, labels.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/diff", operation_id = "diff_session", tag = "history",
    params(DiffQuery, RevisionQuery, openapi::WaitQuery),
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
    let DiffQuery { from, to, limit, after: skip } = DiffQuery::take(&mut reading.params)?;
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
