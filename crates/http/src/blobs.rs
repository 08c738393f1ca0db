//! Blobs of a session: any bytes, by their digest.

use axum::body::Body;
use axum::http::{HeaderMap, Method, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::openapi;
use super::read::{Early, PastQuery, Reading, RevisionQuery};
use super::request::body::linger;
use super::request::path::{BlobPath, SessionPath};
use super::response::problem::Problem;
use super::response::stored_bytes::{IMMUTABLE, body, describe, requested_part};
use super::write::Writing;
use super::write::response::{ShapeResult, Written};
use blackboard_address::blob_url;
use blackboard_api::refusal::{Refusal, no_blob};
use blackboard_api::tag::{Rendering, Resource};
use blackboard_board::{Blob, Board, Code, Digest, MediaType};

/// The result of an upload.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UploadedBody {
    /// The session's revision after the upload.
    revision: u64,
    /// The blob's tag.
    etag: String,
    /// The SHA-256 of the bytes, in lower-case hexadecimal digits.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    sha256: String,
    /// The number of bytes.
    bytes: u64,
    /// The media type of the first upload.
    media_type: String,
}

/// Read a blob
///
/// The response has the bytes as they were uploaded. They never change, so they may be cached forever.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/blobs/{sha256}", operation_id = "get_blob", tag = "blobs",
    params(PastQuery, RevisionQuery, openapi::WaitQuery),
    responses(
        (status = 200, description = "The bytes, of the media type of their upload", body = openapi::Bytes, content_type = "*/*",
            headers(("ETag" = String, description = "The blob's tag"), ("Accept-Ranges" = String, description = "`bytes`"), ("Cache-Control" = String, description = "Forever"))),
        (status = 206, description = "The requested range", body = openapi::Bytes, content_type = "*/*",
            headers(("ETag" = String, description = "The blob's tag"), ("Content-Range" = String, description = "The returned range and the blob's length"))),
        openapi::ReadBlobRefusals,
    )
)]
pub(super) async fn get(
    BlobPath { session, sha256 }: BlobPath,
    method: Method,
    mut reading: Reading,
) -> Result<Response, Early> {
    let rendering = |board: &Board| {
        blob_of(board, &sha256)?;
        Ok(Rendering::of(Resource::Blob(sha256), board.blobs_version()))
    };
    let found = reading.of(&session, rendering).await;
    let (answer, board) = found.map_err(|early| early.cached(&IMMUTABLE))?;
    let (blob, length) = blob_of(&board, &sha256)?;
    let mut headers = answer.header(header::CACHE_CONTROL, IMMUTABLE).into_headers();
    describe(blob.media_type.as_str(), &mut headers)?;
    let (status, part) = requested_part(&method, &reading.headers, length, &mut headers)?;
    let pieces = session.image_part(&board, (sha256, length), part).await?;
    Ok((status, headers, body(pieces).await?).into_response())
}

/// Upload a blob under its digest
///
/// The body may have any bytes, at most 32 MiB; its `Content-Type` becomes the blob's. They are stored once per
/// session, and kept as long as an item or a value of the state refers to them: `{"$blob": "<sha256>"}`. A blob that
/// nothing in the retained history refers to is deleted an hour after its last upload.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/blobs/{sha256}", operation_id = "put_blob", tag = "blobs",
    request_body(content = openapi::Bytes, content_type = "application/octet-stream", description = "The bytes, of any media type"),
    responses(
        (status = 201, description = "Stored", body = UploadedBody,
            headers(("ETag" = String, description = "The blob's tag"), ("Location" = String, description = "The blob"))),
        (status = 200, description = "The session had it already", body = UploadedBody, headers(("ETag" = String, description = "The blob's tag"))),
        openapi::PutBlobRefusals,
    )
)]
pub(super) async fn put(
    BlobPath { sha256, .. }: BlobPath,
    writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    upload(writing, body, Some(sha256)).await
}

/// Upload a blob
///
/// The response has the digest of the bytes. Otherwise the same as an upload under a digest.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/blobs", operation_id = "post_blob", tag = "blobs",
    request_body(content = openapi::Bytes, content_type = "application/octet-stream", description = "The bytes, of any media type"),
    responses(
        (status = 201, description = "Stored", body = UploadedBody,
            headers(("ETag" = String, description = "The blob's tag"), ("Location" = String, description = "The blob"))),
        (status = 200, description = "The session had it already", body = UploadedBody, headers(("ETag" = String, description = "The blob's tag"))),
        openapi::PostBlobRefusals,
    )
)]
pub(super) async fn post(
    SessionPath(_): SessionPath,
    writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    upload(writing, body, None).await
}

async fn upload(
    writing: Box<Writing>,
    body: Body,
    expected: Option<Digest>,
) -> Result<Response, Problem> {
    let media_type = match media_type(&writing.headers) {
        Ok(media_type) => media_type,
        Err(problem) => {
            linger(body).await;
            return Err(problem);
        }
    };
    writing.upload(body, expected, media_type, written).await
}

/// Returns the media type of a body, with its parameters.
fn media_type(headers: &HeaderMap) -> Result<MediaType, Problem> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(MediaType::default()) };
    let parsed = value.to_str().ok().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| {
        let detail = "the Content-Type is not a media type such as application/pdf";
        Problem::new(Code::UnsupportedMediaType, detail)
    })
}

fn written(written: &Written<'_>, sha256: Digest) -> ShapeResult {
    let board = &written.receipt.board;
    let tag = written.tag(board.blobs_version(), &Resource::Blob(sha256));
    let (media_type, bytes) = match board.blob(&sha256) {
        Some((blob, bytes)) => (blob.media_type.to_string(), bytes),
        None => (String::new(), 0),
    };
    let made = !written.receipt.existed;
    let body = UploadedBody {
        revision: board.revision().0,
        etag: tag.to_string(),
        sha256: sha256.to_string(),
        bytes,
        media_type,
    };
    written.json(Some(tag), made.then(|| blob_url(written.session, &sha256)), &body)
}

fn blob_of<'a>(board: &'a Board, sha256: &Digest) -> Result<(&'a Blob, u64), Refusal> {
    board.blob(sha256).ok_or_else(|| no_blob(board, sha256))
}
