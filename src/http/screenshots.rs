//! The bytes of a screenshot's image.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::answer::Answer;
use super::docs;
use super::error::no_entry;
use super::etag::{Resource, Tag};
use super::params::Params;
use super::path::EntryPath;
use super::problem::Problem;
use super::read::shown;
use crate::board::{Code, IMAGE_TYPES};
use crate::service::Service;

/// What a browser may do with bytes that a client sent: show them, and nothing else.
const SANDBOX: HeaderValue = HeaderValue::from_static("sandbox; default-src 'none'");

/// Read a screenshot's image
///
/// The stored bytes, as they came.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/screenshots/{seq}/image", operation_id = "get_image", tag = "screenshots",
    params(docs::InSession, docs::AtSeq, docs::MinRevision, docs::IfNoneMatch),
    responses(
        (status = 200, description = "The image", content((docs::Bytes = "image/png"), (docs::Bytes = "image/jpeg"), (docs::Bytes = "image/webp"), (docs::Bytes = "image/gif"), (docs::Bytes = "image/bmp")),
            headers(("ETag" = String, description = "Changes with the entry"), ("Blackboard-Revision" = u64, description = "The revision shown"))),
        docs::ReadImageRefusals,
    )
)]
pub(super) async fn image(
    State(service): State<Service>,
    EntryPath { session, log, seq }: EntryPath,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, Problem> {
    let board = shown(&service, &session, params).await?.board;
    let entry = board.log(&log).and_then(|found| found.get(seq));
    let entry = entry.ok_or_else(|| no_entry(&board, &log, seq))?;
    let image = entry.item.image();
    let image =
        image.ok_or_else(|| Problem::new(Code::NoImage, "this entry has no stored image"))?;
    let version = board.at_version(entry.revision);
    let tag = Tag::new(service.epoch(), version, &Resource::Image(seq));
    let answer = match Answer::of(board.revision()).unless_known(&headers, &tag)? {
        Ok(answer) => answer.header(header::CONTENT_SECURITY_POLICY, SANDBOX),
        Err(known) => return Ok(known),
    };
    let bytes = service.image(&board, image).await?;
    let media_type = HeaderValue::from_str(image.media_type())
        .map_err(|error| Problem::new(Code::Internal, "the image has no type").cause(error))?;
    let mut answer = answer.header(header::CONTENT_TYPE, media_type);
    if !IMAGE_TYPES.iter().any(|(name, _)| *name == image.media_type()) {
        let attachment = HeaderValue::from_static("attachment");
        answer = answer.header(header::CONTENT_DISPOSITION, attachment);
    }
    Ok((StatusCode::OK, answer.into_headers(), Body::from(bytes)).into_response())
}
