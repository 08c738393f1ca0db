//! Archives: export of a session as lines, and import under an unused name.

use axum::body::Body;
use axum::response::Response;

use super::LOOKS_MAX;
use crate::openapi;
use crate::read::{Early, Reading, RevisionQuery};
use crate::request::body::{linger, media_type, unsupported};
use crate::request::path::SessionPath;
use crate::response::chunked;
use crate::response::problem::Problem;
use crate::response::{Answer, NDJSON};
use crate::write::Writing;
use crate::write::response::WrittenBody;
use blackboard_address::session_url;
use blackboard_api::tag::{Rendering, Resource, Tag};
use blackboard_service::{Cut, Published, ServiceError, SessionHandle};

/// Export a session as an archive
///
/// The archive holds the retained history with its images: a line each for its base, every commit and every image. It
/// shows the session at one moment. An archive without its last line, `{"end":…}`, is incomplete. The archive of a
/// damaged session has the readable part. Then `head` in its last line is the session's last revision, and
/// `Blackboard-Revision` is the last revision in the archive.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/archive", operation_id = "get_archive", tag = "history",
    params(RevisionQuery, openapi::WaitQuery),
    responses(
        (status = 200, description = "The archive", body = String, content_type = "application/x-ndjson",
            headers(("ETag" = String, description = "Changes with every commit and with the retained history"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        openapi::ReadArchiveRefusals,
    )
)]
pub(crate) async fn get(
    SessionPath(session): SessionPath,
    mut reading: Reading,
) -> Result<Response, Early> {
    reading.caller.sees_all_memories()?;
    if let Err(ServiceError::Damaged) = session.published().await {
        return damaged(&session, reading).await;
    }
    // The archive changes when history is compacted.
    let rendering = |now: &Published| {
        let rendering = Rendering::of(Resource::Session, now.board.version());
        Ok(rendering.in_format(format!("archive from {}", now.board.oldest())))
    };
    for _ in 0..LOOKS_MAX {
        let (answer, Published { board, .. }) = reading.published(&session, rendering).await?;
        match session.export(board).await {
            // The history was compacted meanwhile; the next attempt uses the new base.
            Err(ServiceError::Compacted { .. }) => session.renew().await?,
            export => return Ok(answer.body(NDJSON, chunked::body(export?).await?)),
        }
    }
    Err(ServiceError::Overloaded.into())
}

/// Exports the readable part of a session that is not served.
async fn damaged(session: &SessionHandle, mut reading: Reading) -> Result<Response, Early> {
    // A damaged session has nothing to wait for.
    for waits in ["min_revision", "wait"] {
        reading.params.text(waits)?;
    }
    std::mem::take(&mut reading.params).finish()?;
    let (export, Cut { version, revision, .. }) = session.export_damaged().await?;
    let rendering = Rendering::of(Resource::Session, version);
    let rendering = rendering.in_format(format!("archive up to {revision}"));
    let answer = Answer::of(revision).tag(&Tag::of(reading.service.epoch(), &rendering, ""));
    Ok(answer.body(NDJSON, chunked::body(export).await?))
}

/// Import an archive
///
/// The import creates the session, whose revisions continue from the archive's. A damaged session of this name is
/// replaced. All claims are cancelled and all idempotency keys are forgotten. A changed or truncated archive is
/// rejected as a whole; the error names the line.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/archive", operation_id = "put_archive", tag = "history",
    request_body(content = String, content_type = "application/x-ndjson", description = "An archive, as exported"),
    responses(
        (status = 201, description = "Imported", body = WrittenBody,
            headers(("ETag" = String, description = "The session's tag"), ("Location" = String, description = "The session"))),
        openapi::PutArchiveRefusals,
    )
)]
pub(crate) async fn put(writing: Box<Writing>, body: Body) -> Result<Response, Problem> {
    let sent = media_type(&writing.headers);
    if sent != NDJSON {
        linger(body).await;
        return Err(unsupported(&sent, NDJSON, "an archive as exported"));
    }
    writing
        .import(body, |written| {
            written.changed(written.session_tag(), Some(session_url(written.session)))
        })
        .await
}
