//! Images of screenshots: stored or scaled, whole or a range.

use std::num::NonZeroU32;
use std::ops::Range;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use blackboard_thumbnail::MAX_PX_MAX;

use super::openapi;
use super::read::{Early, PastQuery, Reading, RevisionQuery};
use super::request::path::EntryPath;
use super::response::stored_bytes;
use super::response::stored_bytes::{IMMUTABLE, describe, requested_part};
use blackboard_api::intake::query::{Whole, queries};
use blackboard_api::ops::screenshots::{Shown, image as image_of};
use blackboard_api::params::{Params, invalid};
use blackboard_api::refusal::Refusal;
use blackboard_api::schema::pattern;
use blackboard_api::signed_url::{SignatureQuery, SignedQuery, not_signed};
use blackboard_api::tag::{Rendering, Resource};
use blackboard_board::{Board, COMMON_IMAGE_TYPES, Digest};
use blackboard_service::{ServiceError, SessionHandle};

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");

/// The address names an entry, whose image may change.
const REVALIDATED: HeaderValue = HeaderValue::from_static("private, no-cache");

queries! {
    /// The size and the digest of an image.
    pub(crate) ImageQuery {
        /// The maximum length of the longest side, in pixels; a larger image is scaled down
        max_px: Whole<1, { MAX_PX_MAX as u64 }>,
        /// The digest of the image; 404 if the entry now has another image. Without `at`, the image never changes and
        /// may be cached forever
        sha256 via digest: Digest => pattern("^[0-9a-f]{64}$"),
    }
}

/// Takes the digest of an image.
fn digest(params: &mut Params, name: &'static str) -> Result<Option<Digest>, Refusal> {
    let Some(text) = params.text(name)? else { return Ok(None) };
    let why = "must be 64 lower-case hexadecimal digits";
    Digest::from_hex(&text).map(Some).ok_or_else(|| invalid(name, why))
}

/// Read a screenshot's image
///
/// Without `max_px`, the response has the stored bytes. With `max_px` it is a thumbnail, a PNG or a JPEG, the same
/// each time; or the stored bytes if no side of the image is longer, it is a PNG, JPEG or WebP, and it need not be turned. A
/// signed address, as in prompts of a server with `--public-url`, opens this image only.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/screenshots/{seq}/image", operation_id = "get_image", tag = "screenshots",
    params(ImageQuery, PastQuery, RevisionQuery, openapi::WaitQuery, SignatureQuery),
    responses(
        (status = 200, description = "The image", content((openapi::Bytes = "image/*")),
            headers(("ETag" = String, description = "Changes with the entry"), ("Accept-Ranges" = String, description = "`bytes`"), ("Cache-Control" = String, description = "For how long the image may be cached"))),
        (status = 206, description = "The requested range", content((openapi::Bytes = "image/*")),
            headers(("ETag" = String, description = "Changes with the entry"), ("Content-Range" = String, description = "The returned range and the image's length"))),
        openapi::ReadImageRefusals,
    )
)]
pub(super) async fn image(
    EntryPath { session, seq, .. }: EntryPath,
    method: Method,
    mut reading: Reading,
) -> Result<Response, Early> {
    let signed = SignedQuery::params(&mut reading.params)?;
    if reading.caller.is_signed() && signed.is_none() {
        return Err(not_signed().into());
    }
    let ImageQuery { max_px, sha256: wanted } = ImageQuery::take(&mut reading.params)?;
    let max_px = max_px.and_then(|max_px| u32::try_from(max_px).ok()).and_then(NonZeroU32::new);
    let service = reading.service.clone();
    let caching = match &signed {
        Some(signed) => kept_while_valid(signed.left_s(&service)),
        // A checkpoint's name may move to another revision.
        None if wanted.is_some() && !reading.params.has("at") => IMMUTABLE,
        None => REVALIDATED,
    };
    let rendering = |board: &Board| {
        let (entry, image) = image_of(board, seq, wanted)?;
        signed.iter().try_for_each(|signed| signed.check(&service, board, seq, image, max_px))?;
        Ok(Rendering::of(Resource::Image(seq), board.at_version(entry.revision)))
    };
    let found = reading.of(&session, rendering).await;
    let (answer, board) = found.map_err(|early| early.cached(&caching))?;
    let (_, image) = image_of(&board, seq, wanted)?;
    let shown = Shown::of(&session, &board, image, max_px, &COMMON_IMAGE_TYPES).await?;
    let mut headers = answer.header(header::CACHE_CONTROL, caching).into_headers();
    describe(shown.media_type(), &mut headers)?;
    if signed.is_some() {
        // Signed addresses are given to pages of other origins.
        headers.insert(CROSS_ORIGIN_RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
    }
    let (status, part) = requested_part(&method, &reading.headers, shown.length(), &mut headers)?;
    let body = body_of(shown, &session, &board, part).await?;
    Ok((status, headers, body).into_response())
}

/// Returns the body of a part of an image.
async fn body_of(
    shown: Shown<'_>,
    session: &SessionHandle,
    board: &Board,
    part: Range<u64>,
) -> Result<Body, ServiceError> {
    let image = match shown {
        Shown::Stored { image, .. } => image,
        Shown::Made { bytes, .. } => {
            let index = |at| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
            return Ok(Body::from(bytes.slice(index(part.start)..index(part.end))));
        }
    };
    stored_bytes::body(session.image_part(board, (image.sha256, image.bytes), part).await?).await
}

/// Returns the caching of an image with a signed address: until the signature expires.
fn kept_while_valid(left_s: u64) -> HeaderValue {
    let text = format!("private, max-age={left_s}, immutable");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("no-store"))
}
