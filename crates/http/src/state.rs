//! The state: a JSON document per session, accessed by path.
use axum::body::Body;
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::openapi;
use super::read::until::SoughtValue;
use super::read::{Early, PastQuery, Reading, RevisionQuery};
use super::request::body::{BODY_BYTES_MAX, media_type, only_json, unpatchable};
use super::request::path::StateAt;
use super::response::problem::Problem;
use super::write::Writing;
use super::write::response::{ShapeResult, Written, WrittenBody};
use blackboard_address::state_url;
use blackboard_api::intake::fields::json_text;
use blackboard_api::intake::query::{Of, queries};
use blackboard_api::intake::until::UntilQuery;
use blackboard_api::offload::work;
use blackboard_api::ops::state::{self, Changing};
use blackboard_api::tag::{Resource, Tag};
use blackboard_api::view::raw;
use blackboard_api::view::state::text_of;
use blackboard_board as board;
use blackboard_board::{Command, StatePath, Ttl};

/// The maximum size of a value in a keyed answer. The answer is stored with each write and must not cost more as an
/// array grows.
const KEPT_VALUE_BYTES_MAX: u64 = 64 << 10;

const PATCH_TYPES: &str = "application/merge-patch+json, application/json";

/// The outcome of a patch.
#[derive(Serialize, ToSchema)]
pub(super) struct ValueBody {
    /// The session's revision after the write.
    revision: u64,
    /// The tag that `If-Match` of the next write to the same address compares with.
    etag: String,
    /// The new value, after `add` or `append`. With an `Idempotency-Key`, only up to 64 KiB.
    #[schema(required = false, value_type = serde_json::Value)]
    value: Box<RawValue>,
}

/// Read a value
///
/// The value keeps the written order of members and text of numbers. With `until` and `wait`, the request waits until
/// the value is present, absent or as required.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/state/{*path}", operation_id = "get_state", tag = "state",
    params(PastQuery, RevisionQuery, UntilQuery, openapi::UntilWaitQuery),
    responses(
        (status = 200, description = "The value", body = openapi::AnyJson, headers(("ETag" = String, description = "Changes with the value only"))),
        (status = 204, description = "With `until=absent`: the value is absent",
            headers(("Blackboard-Revision" = u64, description = "The session's revision, or the last revision of the name"))),
        openapi::ReadStateRefusals,
    )
)]
pub(super) async fn get(
    StateAt { session, path }: StateAt,
    mut reading: Reading,
) -> Result<Response, Early> {
    let UntilQuery { until } = UntilQuery::take(&mut reading.params)?;
    let mut sought = SoughtValue { session: &session, path: &path, until };
    let (answer, shown) = reading.seek_at(&session, &mut sought).await?;
    let value = state::value(&shown.board, &path)?;
    let bytes = usize::try_from(value.bytes()).unwrap_or(usize::MAX);
    Ok(answer.text(work(bytes, move || Ok(text_of(&value))).await?))
}

queries! {
    /// The time to live of a value.
    pub(crate) LifetimeQuery {
        /// The time to live: the value expires after this time unless it is put again
        ttl: Of<Ttl>,
    }
}

/// Set a value
///
/// Missing parent objects are created. A part that does not change keeps its tag.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/state/{*path}", operation_id = "put_state", tag = "state",
    params(LifetimeQuery),
    request_body(content = openapi::AnyJson, description = "The value; the whole state is an object"),
    responses(
        (status = 200, description = "Set, or already the same", body = WrittenBody, headers(("ETag" = String, description = "The value's tag"))),
        (status = 201, description = "Created", body = WrittenBody,
            headers(("ETag" = String, description = "The value's tag"), ("Location" = String, description = "The value"))),
        openapi::PutStateRefusals,
    )
)]
pub(super) async fn put(
    StateAt { path, .. }: StateAt,
    mut writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    let LifetimeQuery { ttl } = LifetimeQuery::take(&mut writing.params)?;
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    only_json(&writing.headers)?;
    let read = path.clone();
    let command = work(bytes.len(), move || state::put(read, "", json_text(&bytes)?, ttl)).await?;
    edit(writing, path, command).await
}

/// Patch a value
///
/// The body is a merge patch (RFC 7396), or an operation that concurrent clients can apply without losing updates:
/// `add` to a number, `append` to an array.
#[utoipa::path(
    patch, path = "/v1/sessions/{session}/state/{*path}", operation_id = "patch_state", tag = "state",
    request_body(description = "A JSON Merge Patch, or an operation",
        content((openapi::AnyJson = "application/merge-patch+json"), (Changing = "application/json"))),
    responses(
        (status = 200, description = "Patched, or already the same", body = ValueBody, headers(("ETag" = String, description = "The value's tag"))),
        (status = 201, description = "Created", body = ValueBody,
            headers(("ETag" = String, description = "The value's tag"), ("Location" = String, description = "The value"))),
        openapi::PatchStateRefusals,
    )
)]
pub(super) async fn patch(
    StateAt { path, .. }: StateAt,
    mut writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    let sent = media_type(&writing.headers);
    let (length, of) = (bytes.len(), path.clone());
    let command = match sent.as_str() {
        "application/merge-patch+json" => {
            work(length, move || state::merge(of, "", json_text(&bytes)?)).await?
        }
        "application/json" => {
            work(length, move || Changing::read(json_text(&bytes)?)?.of(of)).await?
        }
        _ => return Err(unpatchable(&sent, PATCH_TYPES, "for example with curl -X PATCH --json")),
    };
    edit(writing, path, command).await
}

/// Remove a value
///
/// Removing the whole state empties it.
#[utoipa::path(
    delete, path = "/v1/sessions/{session}/state/{*path}", operation_id = "delete_state", tag = "state",
    responses(
        (status = 200, description = "Removed", body = WrittenBody, headers(("ETag" = String, description = "The parent value's tag"))),
        openapi::RemoveStateRefusals,
    )
)]
pub(super) async fn delete(
    StateAt { path, .. }: StateAt,
    mut writing: Box<Writing>,
) -> Result<Response, Problem> {
    writing.finish_query()?;
    let command = state::remove(path.clone());
    let above = path.parent().unwrap_or_else(StatePath::root);
    writing
        .write(Resource::State(path), command, Vec::new(), move |written| {
            written.changed(tag_of(written, &above), None)
        })
        .await
}

async fn edit(
    writing: Box<Writing>,
    path: StatePath,
    command: Command,
) -> Result<Response, Problem> {
    let resource = Resource::State(path.clone());
    writing.write(resource, command, Vec::new(), move |written| answer(written, &path)).await
}

fn answer(written: &Written<'_>, path: &StatePath) -> ShapeResult {
    let made = written.receipt.committed && !written.receipt.existed;
    let made = made.then(|| state_url(written.session, path));
    let tag = tag_of(written, path);
    let board::Answer::Value(value) = &written.receipt.answer else {
        return written.changed(tag, made);
    };
    if written.keyed && value.bytes() > KEPT_VALUE_BYTES_MAX {
        return written.changed(tag, made);
    }
    let revision = written.receipt.board.revision().0;
    let body = ValueBody { revision, etag: tag.to_string(), value: raw(text_of(value)) };
    written.json(Some(tag), made, &body)
}

fn tag_of(written: &Written<'_>, path: &StatePath) -> Tag {
    state::tag(written.epoch, &written.receipt.board, path)
}
