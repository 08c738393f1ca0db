//! Single entries: read, replace, patch, remove.
use axum::body::Body;
use axum::response::Response;

use crate::openapi;
use crate::read::until::SoughtPart;
use crate::read::{Early, PastQuery, Reading, RevisionQuery};
use crate::request::body::{items_bytes_max, media_type, unpatchable};
use crate::request::items::one_item;
use crate::request::path::EntryPath;
use crate::response::problem::Problem;
use crate::write::Writing;
use crate::write::response::WrittenBody;
use blackboard_api::intake::fields::json_text;
use blackboard_api::intake::items::Intake;
use blackboard_api::intake::until::{EntryUntil, EntryUntilQuery, Prospect};
use blackboard_api::offload::work;
use blackboard_api::ops::logs::entry;
use blackboard_api::refusal::{Place, invalid_item};
use blackboard_api::tag::{Rendering, Resource};
use blackboard_api::view::entry::{EntryBody, ShownQuery, View};
use blackboard_board::{Board, Code, Command, ITEM_DEPTH_MAX, InvalidItem, LogCommand, json};
use blackboard_service::{Patch, Published};

/// The maximum depth of a JSON Patch: an array of operations, each with an item's depth.
const JSON_PATCH_DEPTH_MAX: usize = ITEM_DEPTH_MAX + 2;

const PATCH_TYPES: &str =
    "application/merge-patch+json, application/json, application/json-patch+json";

/// Read an entry
///
/// With `until` and `wait`, the request waits until the question has an answer, or the request was claimed or is done.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/{log}/{seq}", operation_id = "get_entry", tag = "entries",
    params(ShownQuery, PastQuery, RevisionQuery, EntryUntilQuery, openapi::UntilWaitQuery),
    responses(
        (status = 200, description = "The entry", body = EntryBody, headers(("ETag" = String, description = "Changes with the entry"))),
        openapi::ReadEntryRefusals,
    )
)]
pub(crate) async fn get(
    EntryPath { session, log, seq }: EntryPath,
    mut reading: Reading,
) -> Result<Response, Early> {
    let view = View::params(session.name(), &mut reading.params)?;
    let log = &log;
    let rendering = |board: &Board| {
        let version = board.at_version(entry(board, log, seq)?.revision);
        Ok(Rendering::of(Resource::Entry(log.clone(), seq), version))
    };
    let until = EntryUntil::param(&mut reading.params, log)?;
    let holds = |until: EntryUntil| {
        move |board: &Board| {
            entry(board, log, seq).map_or(Prospect::Open, |entry| until.prospect(entry))
        }
    };
    let current = |board: &Board| {
        let mut text = String::new();
        view.write_whole(board, entry(board, log, seq).ok()?, &mut text).then_some(text)
    };
    let mut sought = SoughtPart { session: &session, rendering, until: until.map(holds), current };
    let (answer, Published { board, .. }) = reading.seek_at(&session, &mut sought).await?;
    let mut text = String::new();
    view.write_entry(&session, &board, entry(&board, log, seq)?, &mut text).await?;
    Ok(answer.text(text))
}

/// Replace an entry's item
///
/// The entry keeps its seq, and unchanged members keep their place.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/{log}/{seq}", operation_id = "put_entry", tag = "entries",
    request_body(content = openapi::ItemBody, description = "The item"),
    responses(
        (status = 200, description = "Replaced, or already the same", body = WrittenBody, headers(("ETag" = String, description = "The entry's tag"))),
        openapi::PutEntryRefusals,
    )
)]
pub(crate) async fn put(
    EntryPath { log, seq, .. }: EntryPath,
    mut writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = writing.body(body, items_bytes_max(&log)).await?;
    let Intake { items, images, .. } = one_item(log.clone(), &writing.headers, bytes).await?;
    let Some(item) = items.into_iter().next() else {
        return Err(Problem::new(Code::Internal, "the server failed; its log has the cause"));
    };
    let command = Command::Log(log.clone(), LogCommand::PutEntry { seq, item, basis: None });
    let resource = Resource::Entry(log.clone(), seq);
    writing
        .write(resource, command, images, move |written| {
            written.changed(written.entry_tag(&log, seq), None)
        })
        .await
}

/// Patch an entry's item
#[utoipa::path(
    patch, path = "/v1/sessions/{session}/{log}/{seq}", operation_id = "patch_entry", tag = "entries",
    request_body(description = "A JSON Merge Patch (RFC 7396), also as `application/json`, or a JSON Patch (RFC 6902)",
        content((openapi::ItemBody = "application/json"), (openapi::ItemBody = "application/merge-patch+json"), (openapi::JsonPatchBody = "application/json-patch+json"))),
    responses(
        (status = 200, description = "Patched, or already the same", body = WrittenBody, headers(("ETag" = String, description = "The entry's tag"))),
        openapi::PatchEntryRefusals,
    )
)]
pub(crate) async fn patch(
    EntryPath { log, seq, .. }: EntryPath,
    mut writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = writing.body(body, items_bytes_max(&log)).await?;
    let sent = media_type(&writing.headers);
    let (make, depth_max): (fn(String) -> Patch, usize) = match sent.as_str() {
        "application/merge-patch+json" | "application/json" => (Patch::Merge, ITEM_DEPTH_MAX),
        "application/json-patch+json" => (Patch::Json, JSON_PATCH_DEPTH_MAX),
        _ => {
            return Err(unpatchable(&sent, PATCH_TYPES, "for example with curl -X PATCH --json"));
        }
    };
    let text = work(bytes.len(), move || {
        let text = json_text(&bytes)?;
        let checked = json::check(text, depth_max).map_err(InvalidItem::from);
        checked.map_err(|invalid| invalid_item(&invalid, Place::default()))?;
        Ok(text.to_owned())
    });
    let patch = make(text.await?);
    let of = log.clone();
    writing
        .patch(of, seq, &patch, move |written| written.changed(written.entry_tag(&log, seq), None))
        .await
}

/// Remove an entry
#[utoipa::path(
    delete, path = "/v1/sessions/{session}/{log}/{seq}", operation_id = "delete_entry", tag = "entries",
    responses(
        (status = 200, description = "Removed", body = WrittenBody, headers(("ETag" = String, description = "The log's tag"))),
        openapi::RemoveEntryRefusals,
    )
)]
pub(crate) async fn delete(
    EntryPath { log, seq, .. }: EntryPath,
    mut writing: Box<Writing>,
) -> Result<Response, Problem> {
    writing.finish_query()?;
    let command = Command::Log(log.clone(), LogCommand::DeleteEntry { seq });
    let resource = Resource::Entry(log.clone(), seq);
    writing
        .write(resource, command, Vec::new(), move |written| {
            written.removed(Some(written.log_tag(&log)))
        })
        .await
}
