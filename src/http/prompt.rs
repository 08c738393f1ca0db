//! The prompt: the board as a model reads it, written piece by piece from a snapshot.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::vec::IntoIter;

use axum::response::Response;
use utoipa::ToSchema;

use super::answer::JSON;
use super::docs;
use super::etag::{Rendering, Resource};
use super::params::{Params, invalid};
use super::path::{SessionPath, image_url};
use super::problem::Problem;
use super::read::{Early, Reading};
use super::state_text::StateText;
use super::stream::{self, PIECE_BYTES, Pieces};
use super::view::{Images, keys_param};
use crate::board::{Board, Entry, Log, LogName, Revision, Selection, Seq, SessionName, Walk};
use crate::prompt::{ListPart, OPENING, image_part, metadata_part, state_part};
use crate::service::{Service, ServiceError};

/// How many agents' memories one prompt may include.
const MEMORIES_MAX: usize = 100;

/// How many items of each text log a prompt may be asked for.
const LATEST_MAX: u64 = 1_000_000;

/// A part of a prompt, as `OpenAI`'s chat format has it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of what is written here")]
pub(super) struct PartBody {
    /// `text` or `image_url`.
    #[schema(rename = "type", example = "text")]
    r#type: String,
    /// The text of a text part.
    #[schema(required = false, nullable = false)]
    text: Option<String>,
    /// The image of an image part.
    #[schema(required = false, nullable = false, value_type = Object)]
    image_url: Option<String>,
}

/// A part of the board that a prompt shows.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shown {
    Log(LogName),
    State,
}

/// What the query of a prompt asks for.
struct PromptQuery {
    shown: Vec<Shown>,
    keys: Option<Arc<[String]>>,
    latest: Option<usize>,
    images: Images,
}

impl PromptQuery {
    fn params(params: &mut Params) -> Result<Self, Problem> {
        Ok(Self {
            shown: include_param(params)?,
            keys: keys_param(params)?,
            latest: params.count("latest", 1, LATEST_MAX)?,
            images: Images::param(params)?.unwrap_or(Images::Inline),
        })
    }
}

/// The parameter `include`. The order of the parts is fixed, whatever its order.
fn include_param(params: &mut Params) -> Result<Vec<Shown>, Problem> {
    let Some(names) = params.list("include")? else {
        return Ok(LogName::BOARD.map(Shown::Log).to_vec());
    };
    let (mut board, mut memories, mut state) = (BTreeSet::new(), BTreeSet::new(), None);
    for name in &names {
        match name.strip_prefix("memory:").map(str::parse) {
            Some(Ok(agent)) => _ = memories.insert(LogName::Memory(agent)),
            Some(Err(why)) => return Err(invalid("include", format!("memory: {why}"))),
            None if name == "state" => state = Some(Shown::State),
            None => _ = board.insert(board_log(name)?),
        }
    }
    if memories.len() > MEMORIES_MAX {
        return Err(invalid("include", format!("names at most {MEMORIES_MAX} memories")));
    }
    let (board, memories) = (board.into_iter(), memories.into_iter());
    Ok(board.map(Shown::Log).chain(state).chain(memories.map(Shown::Log)).collect())
}

fn board_log(name: &str) -> Result<LogName, Problem> {
    let named = LogName::of_board(name);
    named.ok_or_else(|| {
        let known = "questions, requests, trajectories, screenshots, state and memory:{agent}";
        invalid("include", format!("knows {known}, and no '{name}'"))
    })
}

/// Read the board as a prompt
///
/// What the original's `blackboard_to_prompt` gives. The order of the parts is fixed.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/prompt", operation_id = "get_prompt", tag = "prompt",
    params(docs::InSession, docs::PromptQuery, docs::PastQuery, docs::MinRevision, docs::WaitQuery, docs::IfNoneMatch),
    responses(
        (status = 200, description = "The parts, in OpenAI's chat format", body = Vec<PartBody>,
            headers(("ETag" = String, description = "Changes with what the prompt shows"), ("Blackboard-Revision" = u64, description = "The revision shown"))),
        docs::ReadRefusals,
    )
)]
pub(super) async fn get(
    SessionPath(session): SessionPath,
    mut reading: Reading,
) -> Result<Response, Early> {
    let query = PromptQuery::params(&mut reading.params)?;
    let rendering = |board: &Board| {
        let version = board.at_version(last_change(board, &query.shown));
        Ok(Rendering::of(Resource::Prompt, version))
    };
    let (answer, board) = reading.of(&session, rendering).await?;
    let pieces = PromptPieces::new(reading.service, board, session, query);
    Ok(answer.body(JSON, stream::body(pieces).await?))
}

/// The last change of anything that the prompt shows, the session's settings among it.
fn last_change(board: &Board, shown: &[Shown]) -> Revision {
    let configured = board.life().map(|life| life.configured).unwrap_or_default();
    let changed = shown.iter().filter_map(|part| match part {
        Shown::Log(log) => board.log(log).map(Log::changed),
        Shown::State => Some(board.state().changed()),
    });
    changed.fold(configured, Revision::max)
}

/// A prompt while it is being written.
struct PromptPieces {
    service: Service,
    board: Arc<Board>,
    session: SessionName,
    shown: IntoIter<Shown>,
    latest: Option<usize>,
    keys: Option<Arc<[String]>>,
    images: Images,
    open: Option<Open>,
    begun: bool,
}

/// A part while it is being written.
enum Open {
    List(Walk, ListPart),
    Screenshots(Walk),
    State(StateText),
}

impl PromptPieces {
    fn new(service: Service, board: Arc<Board>, session: SessionName, query: PromptQuery) -> Self {
        let set = board.life().and_then(|life| life.settings.history_keys.clone());
        Self {
            service,
            session,
            shown: query.shown.into_iter(),
            latest: query.latest,
            keys: query.keys.or_else(|| set.map(Arc::from)),
            images: query.images,
            open: None,
            begun: false,
            board,
        }
    }

    /// Begins the next part; `None` after the last one.
    async fn begin(&mut self, out: &mut String) -> Result<Option<Open>, ServiceError> {
        let Some(shown) = self.shown.next() else { return Ok(None) };
        let log = match shown {
            Shown::Log(log) => log,
            Shown::State => {
                out.push_str(", ");
                let text = StateText::of(&self.board, |board| state_part(&board.state().text()));
                return Ok(Some(Open::State(text.await?)));
            }
        };
        let selection = Selection { after: self.after(&log), ..Selection::default() };
        let walk = selection.walk(&self.board, &log);
        if log == LogName::Screenshots {
            return Ok(Some(Open::Screenshots(walk)));
        }
        out.push_str(", ");
        Ok(Some(Open::List(walk, ListPart::open(&log, out))))
    }

    /// Writes some more of a part; `None` when it has come to its end.
    async fn go_on(&self, open: Open, out: &mut String) -> Result<Option<Open>, ServiceError> {
        Ok(match open {
            Open::List(mut walk, mut part) => {
                let Some(entry) = walk.next() else {
                    part.close(out);
                    return Ok(None);
                };
                part.item(&entry.item, self.keys_of(walk.log()).as_deref(), out);
                Some(Open::List(walk, part))
            }
            Open::Screenshots(mut walk) => {
                let Some(entry) = walk.next() else { return Ok(None) };
                self.screenshot(&entry, out).await?;
                Some(Open::Screenshots(walk))
            }
            Open::State(mut text) => text.write(out).then_some(Open::State(text)),
        })
    }

    /// Where the last items of a text log begin, if only those are wanted.
    fn after(&self, log: &LogName) -> Option<Seq> {
        let latest = self.latest.filter(|_| *log != LogName::Screenshots)?;
        let entries = self.board.log(log)?;
        let before = entries.len().checked_sub(latest)?.checked_sub(1)?;
        entries.at(before).map(|entry| entry.seq)
    }

    fn keys_of(&self, log: &LogName) -> Option<Arc<[String]>> {
        let selects = matches!(log, LogName::Trajectories | LogName::Memory(_));
        self.keys.clone().filter(|_| selects)
    }

    async fn screenshot(&self, entry: &Entry, out: &mut String) -> Result<(), ServiceError> {
        out.push_str(", ");
        metadata_part(&entry.item, out);
        let url = match (self.images, entry.item.image()) {
            (Images::None, _) => return Ok(()),
            (Images::Url, Some(_)) => Some(image_url(&self.session, entry.seq)),
            (Images::Inline, Some(image)) => {
                Some(self.service.image_url(&self.board, image).await?)
            }
            (Images::Inline | Images::Url, None) => None,
        };
        out.push_str(", ");
        image_part(&entry.item, url.as_deref(), out);
        Ok(())
    }
}

impl Pieces for PromptPieces {
    async fn write(&mut self, out: &mut String) -> Result<bool, ServiceError> {
        let start = out.len();
        if !self.begun {
            self.begun = true;
            out.push('[');
            out.push_str(OPENING);
        }
        while out.len() - start < PIECE_BYTES {
            self.open = match self.open.take() {
                Some(open) => self.go_on(open, out).await?,
                None => match self.begin(out).await? {
                    Some(open) => Some(open),
                    None => {
                        out.push_str("]\n");
                        return Ok(false);
                    }
                },
            };
        }
        Ok(true)
    }
}
