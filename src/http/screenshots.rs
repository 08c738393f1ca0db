//! The bytes of a screenshot's image.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::docs;
use super::entries::entry_of;
use super::etag::{Rendering, Resource};
use super::image_address::SignedQuery;
use super::path::EntryPath;
use super::problem::Problem;
use super::read::{Early, Reading};
use crate::board::{Board, Code, Entry, IMAGE_TYPES, Image};

/// What a browser may do with bytes that a client sent: show them, and nothing else.
const SANDBOX: HeaderValue = HeaderValue::from_static("sandbox; default-src 'none'");

/// Read a screenshot's image
///
/// The stored bytes, as they came. An address with a signature, as prompts have it where the server has a
/// `--public-url`, opens this image only.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/screenshots/{seq}/image", operation_id = "get_image", tag = "screenshots",
    params(docs::InSession, docs::AtSeq, docs::PastQuery, docs::MinRevision, docs::WaitQuery, docs::SignedQuery, docs::IfNoneMatch),
    responses(
        (status = 200, description = "The image", content((docs::Bytes = "image/png"), (docs::Bytes = "image/jpeg"), (docs::Bytes = "image/webp"), (docs::Bytes = "image/gif"), (docs::Bytes = "image/bmp")),
            headers(("ETag" = String, description = "Changes with the entry"), ("Blackboard-Revision" = u64, description = "The revision shown"))),
        docs::ReadImageRefusals,
    )
)]
pub(super) async fn image(
    EntryPath { session, log, seq }: EntryPath,
    mut reading: Reading,
) -> Result<Response, Early> {
    let signed = SignedQuery::params(&mut reading.params)?;
    let service = reading.service.clone();
    let rendering = |board: &Board| {
        let entry = entry_of(board, &log, seq)?;
        let image = image_of(entry)?;
        signed.iter().try_for_each(|signed| signed.check(&service, board, seq, image, None))?;
        Ok(Rendering::of(Resource::Image(seq), board.at_version(entry.revision)))
    };
    let (answer, board) = reading.of(&session, rendering).await?;
    let image = image_of(entry_of(&board, &log, seq)?)?;
    let bytes = reading.service.image(&board, image).await?;
    let media_type = HeaderValue::from_str(image.media_type())
        .map_err(|error| Problem::new(Code::Internal, "the image has no type").cause(error))?;
    let answer = answer.header(header::CONTENT_SECURITY_POLICY, SANDBOX);
    let mut answer = answer.header(header::CONTENT_TYPE, media_type);
    if let Some(signed) = &signed {
        answer = answer.header(header::CACHE_CONTROL, signed.cache_control(&service));
    }
    if !IMAGE_TYPES.iter().any(|(name, _)| *name == image.media_type()) {
        let attachment = HeaderValue::from_static("attachment");
        answer = answer.header(header::CONTENT_DISPOSITION, attachment);
    }
    Ok((StatusCode::OK, answer.into_headers(), Body::from(bytes)).into_response())
}

fn image_of(entry: &Entry) -> Result<&Image, Problem> {
    let image = entry.item.image();
    image.ok_or_else(|| Problem::new(Code::NoImage, "this entry has no stored image"))
}
