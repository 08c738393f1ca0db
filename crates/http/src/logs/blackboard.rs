//! The board as the original's dictionary: read, replace, clear.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use utoipa::ToSchema;

use crate::openapi;
use crate::read::{Early, PastQuery, Reading, RevisionQuery};
use crate::request::body::{BLACKBOARD_BODY_BYTES_MAX, from_json, only_json};
use crate::request::path::SessionPath;
use crate::response::problem::Problem;
use crate::response::{EMPTY_HEADER, JSON, chunked, emptiness};
use crate::write::Writing;
use crate::write::response::{Written, WrittenBody};
use blackboard_address::{image_url, session_url};
use blackboard_api::intake::input::body as body_of;
use blackboard_api::intake::query::{ImagesName, many, queries};
use blackboard_api::ops::logs::Replacing;
use blackboard_api::params::{Params, invalid};
use blackboard_api::pieces::{PIECE_BYTES, Pieces};
use blackboard_api::refusal::Refusal;
use blackboard_api::schema::shapes::one_of;
use blackboard_api::tag::{Rendering, Resource, Tag};
use blackboard_api::view::entry::View;
use blackboard_api::view::inline_image::Inline;
use blackboard_api::view::state::StateText;
use blackboard_board::{
    Board, BoardCommand, Command, Entry, ImagesShown, LogName, Selection, Version, Walk,
};
use blackboard_service::{ServiceError, SessionHandle};

/// The four logs as lists of bare items, and the state if requested.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the OpenAPI schema of the JSON that is parsed here")]
pub(crate) struct BoardBody {
    /// The questions, with their answers if any.
    #[schema(value_type = Vec<BTreeMap<String, serde_json::Value>>)]
    questions: Vec<String>,
    /// The requests.
    #[schema(value_type = Vec<BTreeMap<String, serde_json::Value>>)]
    requests: Vec<String>,
    /// The steps that agents did.
    #[schema(value_type = Vec<BTreeMap<String, serde_json::Value>>)]
    trajectories: Vec<String>,
    /// The screenshots.
    #[schema(value_type = Vec<BTreeMap<String, serde_json::Value>>)]
    screenshots: Vec<String>,
    /// The shared state, with `include=state`.
    #[schema(required = false, value_type = BTreeMap<String, serde_json::Value>)]
    state: String,
}

/// Read the board as a dictionary
///
/// As the original's `blackboard_to_dict`: the four logs as lists of bare items.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/blackboard", operation_id = "get_blackboard", tag = "blackboard",
    params(DictionaryQuery, PastQuery, RevisionQuery, openapi::WaitQuery),
    responses(
        (status = 200, description = "The four logs", body = BoardBody,
            headers(("ETag" = String, description = "Changes with the content shown"), ("Blackboard-Empty" = bool, description = "True if the four logs are empty"))),
        openapi::ReadRefusals,
    )
)]
pub(crate) async fn get(
    SessionPath(session): SessionPath,
    mut reading: Reading,
) -> Result<Response, Early> {
    let DictionaryQuery { include: with_state, images } =
        DictionaryQuery::take(&mut reading.params)?;
    let rendering =
        |board: &Board| Ok(Rendering::of(Resource::Blackboard, version(board, with_state)));
    let (answer, board) = reading.of(&session, rendering).await?;
    let answer = answer.header(EMPTY_HEADER, emptiness(&board));
    let pieces = BoardPieces::new(session, board, images, with_state);
    Ok(answer.body(JSON, chunked::body(pieces).await?))
}

queries! {
    /// The content of a dictionary.
    pub(crate) DictionaryQuery {
        /// Also show the state
        include via with_state: bool = false => many(one_of(["state"])),
        /// The form of a screenshot's stored image in `image_str`: `inline`, the default, as it was sent; `url`, its
        /// address; `none`, without `image_str`
        images: ImagesName = ImagesShown::Inline,
    }

    /// The content to clear.
    pub(crate) ClearingQuery {
        /// Also clear the state
        include via with_state: bool = false => many(one_of(["state"])),
    }
}

/// Takes the parameter `include`, which accepts only `state` here.
fn with_state(params: &mut Params, name: &'static str) -> Result<Option<bool>, Refusal> {
    let names = params.list(name)?.unwrap_or_default();
    match names.iter().find(|name| *name != "state") {
        Some(other) => Err(invalid(name, format!("accepts only 'state' here, not '{other}'"))),
        None => Ok(Some(!names.is_empty())),
    }
}

/// The dictionary, written piece by piece.
struct BoardPieces {
    session: SessionHandle,
    board: Arc<Board>,
    view: View,
    logs: std::array::IntoIter<LogName, 4>,
    walk: Option<Walk>,
    first_log: bool,
    first_item: bool,
    with_state: bool,
    state: Option<StateText>,
    /// The rest of the item being written.
    inline: Option<Inline>,
}

impl BoardPieces {
    fn new(
        session: SessionHandle,
        board: Arc<Board>,
        images: ImagesShown,
        with_state: bool,
    ) -> Self {
        Self {
            view: View { session: session.name().clone(), keys: None, images },
            session,
            board,
            logs: LogName::BOARD.into_iter(),
            walk: None,
            first_log: true,
            first_item: true,
            with_state,
            state: None,
            inline: None,
        }
    }

    /// Opens the next log's list; returns false after the last log.
    fn open(&mut self, out: &mut String) -> bool {
        let Some(log) = self.logs.next() else { return false };
        out.push_str(if self.first_log { "{" } else { "," });
        out.push_str(&format!("\"{log}\":["));
        (self.first_log, self.first_item) = (false, true);
        self.walk = Some(Selection::default().walk(&self.board, &log));
        true
    }

    /// Writes an item up to its inline image, if it has one.
    async fn begin_one(
        &mut self,
        entry: &Entry,
        out: &mut String,
    ) -> Result<Option<Inline>, ServiceError> {
        if !self.first_item {
            out.push(',');
        }
        self.first_item = false;
        match (self.view.images, entry.item.image()) {
            (ImagesShown::Url, Some(_)) => {
                let url = image_url(&self.view.session, entry.seq);
                out.push_str(&entry.item.with_image_text(&url));
                Ok(None)
            }
            _ => self.view.begin_item(&self.session, &self.board, &entry.item, out).await,
        }
    }

    /// Writes the part after the logs; returns false after its last piece.
    async fn end(&mut self, out: &mut String) -> Result<bool, ServiceError> {
        if self.with_state && self.state.is_none() {
            out.push_str(",\"state\":");
            let text = StateText::of(&self.board, |board| board.state().text());
            self.state = Some(text.await?);
        }
        if self.state.as_mut().is_some_and(|state| state.write(out)) {
            return Ok(true);
        }
        out.push_str("}\n");
        Ok(false)
    }
}

impl Pieces for BoardPieces {
    async fn write(&mut self, out: &mut String) -> Result<bool, ServiceError> {
        let start = out.len();
        while out.len() - start < PIECE_BYTES {
            if let Some(inline) = &mut self.inline {
                if !inline.write(out).await? {
                    self.inline = None;
                }
                continue;
            }
            match self.walk.as_mut().map(Iterator::next) {
                Some(Some(entry)) => self.inline = self.begin_one(&entry, out).await?,
                Some(None) => {
                    out.push(']');
                    self.walk = None;
                }
                None if self.open(out) => {}
                None => return self.end(out).await,
            }
        }
        Ok(true)
    }
}

/// Replace the board
///
/// As the original's `blackboard_from_dict`, but all or nothing: the four logs get these items, and an absent log
/// becomes empty. The state is replaced if present, and unchanged if absent.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/blackboard", operation_id = "put_blackboard", tag = "blackboard",
    request_body(content = Replacing, description = "The four logs as lists of items, and the state"),
    responses(
        (status = 200, description = "Replaced, or already the same", body = WrittenBody, headers(("ETag" = String, description = "The board's tag"))),
        (status = 201, description = "Created, with its session", body = WrittenBody,
            headers(("ETag" = String, description = "The board's tag"), ("Location" = String, description = "The board"))),
        openapi::PutRefusals,
    )
)]
pub(crate) async fn put(mut writing: Box<Writing>, body: Body) -> Result<Response, Problem> {
    let bytes = writing.body(body, BLACKBOARD_BODY_BYTES_MAX).await?;
    only_json(&writing.headers)?;
    let replacing: Replacing = from_json(bytes, body_of).await?;
    let with_state = replacing.state.is_some();
    let (command, images) = replacing.command();
    writing
        .write(Resource::Blackboard, command, images, move |written| {
            let made = !written.receipt.existed;
            let location = made.then(|| format!("{}/blackboard", session_url(written.session)));
            written.changed(board_tag(written, with_state), location)
        })
        .await
}

fn board_tag(written: &Written<'_>, with_state: bool) -> Tag {
    written.tag(version(&written.receipt.board, with_state), &Resource::Blackboard)
}

fn version(board: &Board, with_state: bool) -> Version {
    if with_state { board.dictionary_version() } else { board.logs_version() }
}

/// Clear the board
///
/// As the original's `clear`: the four logs become empty. Memories stay, and so does the state unless `include=state`
/// is given.
#[utoipa::path(
    delete, path = "/v1/sessions/{session}/blackboard", operation_id = "clear_blackboard", tag = "blackboard",
    params(ClearingQuery),
    responses(
        (status = 200, description = "Cleared", body = WrittenBody, headers(("ETag" = String, description = "The board's tag"))),
        openapi::RemoveRefusals,
    )
)]
pub(crate) async fn delete(mut writing: Box<Writing>) -> Result<Response, Problem> {
    let ClearingQuery { include: state } = ClearingQuery::take(&mut writing.params)?;
    writing.finish_query()?;
    let shape = move |written: &Written<'_>| written.removed(Some(board_tag(written, state)));
    writing
        .write(
            Resource::Blackboard,
            Command::Board(BoardCommand::Clear { state }),
            Vec::new(),
            shape,
        )
        .await
}
