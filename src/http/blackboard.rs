//! The board as the original's dictionary: read it, replace it, clear it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use utoipa::ToSchema;

use super::answer::{Answer, JSON};
use super::body::{BLACKBOARD_BODY_BYTES_MAX, json_text, media_type, unsupported, work};
use super::docs;
use super::error::{array_required, child, object_required, unknown_field};
use super::etag::{Resource, Tag};
use super::intake::Intake;
use super::params::Params;
use super::path::{SessionPath, image_url, session_url};
use super::problem::Problem;
use super::read::shown;
use super::shaped::{Written, WrittenBody};
use super::stream::{self, PIECE_BYTES, Pieces};
use super::view::{Images, View};
use super::write::Writing;
use crate::board::json::{self, Kind};
use crate::board::{Board, Command, Entry, Item, LogName, Selection, SessionName, Walk};
use crate::service::{ImageBytes, Service, ServiceError};

/// The four logs as lists of bare items.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of what is read here")]
pub(super) struct BoardBody {
    /// Questions, with their answers where there are some.
    #[schema(value_type = Vec<Object>)]
    questions: Vec<String>,
    /// What was asked for.
    #[schema(value_type = Vec<Object>)]
    requests: Vec<String>,
    /// What was done, step by step.
    #[schema(value_type = Vec<Object>)]
    trajectories: Vec<String>,
    /// What was seen.
    #[schema(value_type = Vec<Object>)]
    screenshots: Vec<String>,
}

/// The four logs as they are to be; one that is absent becomes empty.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the document's form of what is written here")]
pub(super) struct NewBoardBody {
    /// Questions, with their answers where there are some.
    #[schema(required = false)]
    questions: Vec<docs::ItemBody>,
    /// What was asked for.
    #[schema(required = false)]
    requests: Vec<docs::ItemBody>,
    /// What was done, step by step.
    #[schema(required = false)]
    trajectories: Vec<docs::ItemBody>,
    /// What was seen.
    #[schema(required = false)]
    screenshots: Vec<docs::ItemBody>,
}

/// Read the board as a dictionary
///
/// What the original's `blackboard_to_dict` gives: the four logs as lists of bare items.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/blackboard", operation_id = "get_blackboard", tag = "blackboard",
    params(docs::InSession, docs::DictionaryQuery, docs::MinRevision, docs::IfNoneMatch),
    responses(
        (status = 200, description = "The four logs", body = BoardBody,
            headers(("ETag" = String, description = "Changes with the four logs"), ("Blackboard-Revision" = u64, description = "The revision shown"))),
        docs::ReadRefusals,
    )
)]
pub(super) async fn get(
    State(service): State<Service>,
    SessionPath(session): SessionPath,
    headers: HeaderMap,
    uri: Uri,
    mut params: Params,
) -> Result<Response, Problem> {
    let images = Images::param(&mut params)?.unwrap_or(Images::Inline);
    let board = shown(&service, &session, params).await?.board;
    let tag = Tag::new(service.epoch(), board.logs_version(), &Resource::Blackboard)
        .rendering(uri.query().unwrap_or_default(), "");
    let answer = match Answer::of(board.revision()).unless_known(&headers, &tag)? {
        Ok(answer) => answer,
        Err(known) => return Ok(known),
    };
    let pieces = BoardPieces::new(service, board, session, images);
    Ok(answer.body(JSON, stream::body(pieces).await?))
}

/// The dictionary while it is being written.
struct BoardPieces {
    service: Service,
    board: Arc<Board>,
    view: View,
    logs: std::array::IntoIter<LogName, 4>,
    walk: Option<Walk>,
    first_log: bool,
    first_item: bool,
}

impl BoardPieces {
    fn new(service: Service, board: Arc<Board>, session: SessionName, images: Images) -> Self {
        let view = View { session, keys: None, images };
        let logs = LogName::BOARD.into_iter();
        Self { service, board, view, logs, walk: None, first_log: true, first_item: true }
    }

    /// Opens the next log's list; `false` after the last one.
    fn open(&mut self, out: &mut String) -> bool {
        let Some(log) = self.logs.next() else { return false };
        out.push_str(if self.first_log { "{" } else { "," });
        out.push_str(&format!("\"{log}\":["));
        (self.first_log, self.first_item) = (false, true);
        self.walk = Some(Selection::default().walk(&self.board, &log));
        true
    }

    async fn write_one(&mut self, entry: &Entry, out: &mut String) -> Result<(), ServiceError> {
        if !self.first_item {
            out.push(',');
        }
        self.first_item = false;
        match (self.view.images, entry.item.image()) {
            (Images::Url, Some(_)) => {
                let url = image_url(&self.view.session, entry.seq);
                out.push_str(&entry.item.with_image_text(&url));
                Ok(())
            }
            _ => self.view.write_item(&self.service, &self.board, &entry.item, out).await,
        }
    }
}

impl Pieces for BoardPieces {
    async fn write(&mut self, out: &mut String) -> Result<bool, ServiceError> {
        let start = out.len();
        while out.len() - start < PIECE_BYTES {
            match self.walk.as_mut().map(Iterator::next) {
                Some(Some(entry)) => self.write_one(&entry, out).await?,
                Some(None) => {
                    out.push(']');
                    self.walk = None;
                }
                None if self.open(out) => {}
                None => {
                    out.push_str("}\n");
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Replace the board
///
/// What the original's `blackboard_from_dict` does, but all or nothing: the four logs hold these items
/// from now on; an absent log becomes empty.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/blackboard", operation_id = "put_blackboard", tag = "blackboard",
    params(docs::InSession, docs::Writes),
    request_body(content = NewBoardBody, description = "The four logs as lists of items"),
    responses(
        (status = 200, description = "Replaced, or as it was", body = WrittenBody,
            headers(("ETag" = String, description = "The board's tag"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        (status = 201, description = "Made, with its session", body = WrittenBody,
            headers(("ETag" = String, description = "The board's tag"), ("Location" = String, description = "The board"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        docs::PutRefusals,
    )
)]
pub(super) async fn put(mut writing: Writing, body: Body) -> Result<Response, Problem> {
    let bytes = writing.body(body, BLACKBOARD_BODY_BYTES_MAX).await?;
    let sent = media_type(&writing.headers);
    if sent != "application/json" {
        return Err(unsupported(&sent, "application/json", "for example with curl --json"));
    }
    let (logs, images) = work(bytes.len(), move || dictionary(json_text(&bytes)?)).await?;
    let command = Command::ReplaceBoard { logs, state: None };
    writing
        .write(Resource::Blackboard, command, images, |written| {
            let made = !written.receipt.existed;
            let location = made.then(|| format!("{}/blackboard", session_url(written.session)));
            written.changed(board_tag(written), location)
        })
        .await
}

fn board_tag(written: &Written<'_>) -> Tag {
    written.tag(written.receipt.board.logs_version(), &Resource::Blackboard)
}

/// Reads the four logs of a dictionary.
fn dictionary(text: &str) -> Result<([Vec<Item>; 4], Vec<ImageBytes>), Problem> {
    if json::kind(text) != Kind::Object {
        return Err(object_required(String::new(), json::kind(text)));
    }
    let (mut logs, mut images) = ([const { Vec::new() }; 4], Vec::new());
    for member in json::members(text) {
        let pointer = child("", member.name);
        let named = NAMES.iter().zip(LogName::BOARD).zip(&mut logs);
        let found = named.into_iter().find(|((name, _), _)| pointer.get(1..) == Some(**name));
        let Some(((name, log), items)) = found else { return Err(unknown_field(pointer)) };
        match json::kind(member.value) {
            Kind::Array => {
                let mut intake = Intake::default();
                intake.take_array(&log, member.value, Some(*name))?;
                *items = intake.items;
                images.extend(intake.images);
            }
            found @ (Kind::Object | Kind::String | Kind::Number | Kind::Bool | Kind::Null) => {
                return Err(array_required(pointer, found));
            }
        }
    }
    Ok((logs, images))
}

/// The names of the four logs, in the order of [`LogName::BOARD`].
const NAMES: [&str; 4] = ["questions", "requests", "trajectories", "screenshots"];

/// Clear the board
///
/// What the original's `clear` does: the four logs become empty. Memories stay.
#[utoipa::path(
    delete, path = "/v1/sessions/{session}/blackboard", operation_id = "clear_blackboard", tag = "blackboard",
    params(docs::InSession, docs::Removes),
    responses(
        (status = 200, description = "Cleared", body = WrittenBody,
            headers(("ETag" = String, description = "The board's tag"), ("Blackboard-Revision" = u64, description = "The session's revision"))),
        docs::RemoveRefusals,
    )
)]
pub(super) async fn delete(mut writing: Writing) -> Result<Response, Problem> {
    writing.no_body()?;
    let shape = |written: &Written<'_>| written.removed(Some(board_tag(written)));
    writing
        .write(Resource::Blackboard, Command::ClearBoard { state: false }, Vec::new(), shape)
        .await
}
