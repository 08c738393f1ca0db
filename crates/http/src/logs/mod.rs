//! Logs: read a page, append, replace, remove entries.
//!
//! All kinds of log have these handlers. The document describes them for the board's four logs; their descriptions are
//! copied to the agents' logs when it is made.

pub(crate) mod blackboard;
pub(crate) mod entries;
pub(crate) mod memory;
pub(crate) mod messages;
mod page_wait;

use axum::body::Body;
use axum::response::Response;

use super::openapi;
use super::questions::{WaitingQuery, waiting_params};
use super::read::{Early, PastQuery, Reading, RevisionQuery};
use super::request::body::items_bytes_max;
use super::request::items::{posted, replaced};
use super::request::path::LogPath;
use super::response::problem::Problem;
use super::response::{JSON, NDJSON, chunked, prefers, segments};
use super::write::Writing;
use super::write::response::WrittenBody;
use blackboard_api::intake::items::{BodyReading, Intake};

use blackboard_api::intake::query::{Count, many, queries};
use blackboard_api::intake::steps::steps;
use blackboard_api::intake::tasks::{PlanQuery, plan_params};
use blackboard_api::log_page::{EntryPage, FilterQuery, LogQuery, PageQuery};
use blackboard_api::ops::logs::append;
use blackboard_api::params::invalid;
use blackboard_api::schema::shapes::number;
use blackboard_api::tag::Resource;
use blackboard_api::view::entry::ShownQuery;
use blackboard_board::json::Exact;
use blackboard_board::{Command, LogCommand, Which};
use blackboard_service::Published;
use page_wait::SoughtPage;

queries! {
    /// The entries to remove.
    pub(crate) RemovalQuery {
        /// Delete only items whose `step` is one of these JSON numbers, by value (2 equals 2.0); not with `keep`
        steps via steps: Vec<Exact> => many(number()),
        /// Delete all but the newest N
        keep: Count<0, { u64::MAX }>,
    }
}

/// Read a log
///
/// The response is a page of entries. With `Accept: application/x-ndjson` it is the bare items, one per line, all of
/// them unless `limit` is given.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/{log}", operation_id = "get_log", tag = "logs",
    params(PageQuery, FilterQuery, ShownQuery, PastQuery, RevisionQuery, openapi::PageWaitQuery),
    responses(
        (status = 200, description = "The entries, or the items as lines",
            content((EntryPage = "application/json"), (String = "application/x-ndjson")),
            headers(("ETag" = String, description = "Changes with the log and the query"))),
        openapi::ReadLogRefusals,
    )
)]
pub(super) async fn get(
    LogPath { session, log }: LogPath,
    mut reading: Reading,
) -> Result<Response, Early> {
    let lines = prefers(&reading.headers, &[NDJSON, "application/jsonl"]);
    let query = LogQuery::params(session.name(), lines, &mut reading.params)?;
    let (format, media_type) = if query.lines() { ("lines", NDJSON) } else { ("", JSON) };
    let mut sought = SoughtPage::new(session.name(), &log, &query, format);
    let (answer, Published { board, .. }) = reading.seek_at(&session, &mut sought).await?;
    if let Some(page) = query.kept(&board, &log).await? {
        return Ok(answer.body(media_type, segments::body(page, session, board).await?));
    }
    let pieces = Box::pin(query.pieces(session, board, log)).await;
    Ok(answer.body(media_type, Box::pin(chunked::body(pieces)).await?))
}

/// Append to a log
///
/// The request appends one item or several, all or none. The first write creates the session. A screenshot may also
/// be sent as the bytes of its image, with `metadata` and `image_path` in the query, or as a form. The type of
/// `application/octet-stream` is detected from its first bytes.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/{log}", operation_id = "append_to_log", tag = "logs",
    params(BodyReading, WaitingQuery, PlanQuery),
    request_body(description = "An object is an item, a string is the item `{\"text\": …}`, an array is a list of items",
        content((openapi::ItemsBody = "application/json"), (String = "application/x-ndjson"), (String = "application/jsonl"),
            (openapi::Bytes = "image/*"), (openapi::ScreenshotForm = "multipart/form-data"))),
    responses(
        (status = 201, description = "Appended", body = WrittenBody,
            headers(("ETag" = String, description = "The tag of the new entry, or of the log if there are several"), ("Location" = String, description = "The new entry; absent if there are several"), ("Blackboard-Revision" = u64, description = "The commit's revision"))),
        (status = 200, description = "Nothing to append", body = WrittenBody, headers(("ETag" = String, description = "The log's tag"))),
        openapi::AppendRefusals,
    )
)]
pub(super) async fn post(
    LogPath { log, .. }: LogPath,
    mut writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    let reading = BodyReading::take(&mut writing.params)?;
    let waiting = waiting_params(&log, &mut writing.params)?;
    let plan = plan_params(&log, &mut writing.params)?;
    let bytes = writing.body(body, items_bytes_max(&log)).await?;
    let intake = posted(log.clone(), &writing.headers, bytes, reading).await?;
    let Intake { items, images, remarks, blob_places, .. } = intake;
    writing.items_at(blob_places);
    let command = append(log.clone(), items, plan, waiting);
    writing
        .write(Resource::Log(log.clone()), command, images, move |written| {
            written.appended(&log, &remarks)
        })
        .await
}

/// Replace a log
///
/// The sent items replace all items of the log. Items that are already there in the same order stay unchanged.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/{log}", operation_id = "replace_log", tag = "logs",
    request_body(description = "All items of the log", content((openapi::ItemArray = "application/json"), (String = "application/x-ndjson"), (String = "application/jsonl"))),
    responses(
        (status = 200, description = "Replaced", body = WrittenBody, headers(("ETag" = String, description = "The log's tag"))),
        (status = 201, description = "Created: the session or the memory did not exist", body = WrittenBody,
            headers(("ETag" = String, description = "The log's tag"), ("Location" = String, description = "The log"))),
        openapi::ReplaceRefusals,
    )
)]
pub(super) async fn put(
    LogPath { log, .. }: LogPath,
    mut writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = writing.body(body, items_bytes_max(&log)).await?;
    let Intake { items, images, remarks, blob_places, .. } =
        replaced(log.clone(), &writing.headers, bytes).await?;
    writing.items_at(blob_places);
    let command = Command::Log(log.clone(), LogCommand::Replace { items });
    writing
        .write(Resource::Log(log.clone()), command, images, move |written| {
            written.replaced(&log, &remarks)
        })
        .await
}

/// Remove entries from a log
///
/// The query selects the entries whose items have given steps, or all but the newest. Without it, all are removed.
#[utoipa::path(
    delete, path = "/v1/sessions/{session}/{log}", operation_id = "remove_entries", tag = "logs",
    params(RemovalQuery),
    responses(
        (status = 200, description = "Removed", body = WrittenBody, headers(("ETag" = String, description = "The log's tag"))),
        openapi::RemoveEntriesRefusals,
    )
)]
pub(super) async fn delete(
    LogPath { log, .. }: LogPath,
    mut writing: Box<Writing>,
) -> Result<Response, Problem> {
    let RemovalQuery { steps, keep } = RemovalQuery::take(&mut writing.params)?;
    let which = match (steps, keep) {
        (Some(_), Some(_)) => return Err(invalid("keep", "cannot be combined with steps").into()),
        (Some(steps), None) if steps.is_empty() => {
            return Err(invalid("steps", "must name at least one step").into());
        }
        (Some(steps), None) => Which::Steps(steps),
        (None, Some(keep)) => Which::AllButNewest(keep),
        (None, None) => Which::All,
    };
    writing.finish_query()?;
    let command = Command::Log(log.clone(), LogCommand::Remove { which });
    writing
        .write(Resource::Log(log.clone()), command, Vec::new(), move |written| {
            written.removed(Some(written.log_tag(&log)))
        })
        .await
}
