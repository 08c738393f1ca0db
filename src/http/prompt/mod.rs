//! The prompt: the board as a model reads it, put together from a snapshot. What was made of its items before
//! is sent again as it is.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use axum::body::Bytes;
use axum::response::Response;
use utoipa::ToSchema;

use crate::board::{
    Board, Entry, ImagesShown, Log, LogName, Revision, Run, RunText, SessionName, TextKeys,
};
use crate::http::answer::JSON;
use crate::http::body::work;
use crate::http::docs;
use crate::http::etag::{Rendering, Resource};
use crate::http::params::{Params, invalid};
use crate::http::path::{SessionPath, image_url};
use crate::http::problem::Problem;
use crate::http::read::{Early, Reading};
use crate::http::segments::Segments;
use crate::http::view::{images_param, keys_param};
use crate::prompt::{
    IMAGE_BEGIN, IMAGE_END, LIST_COMMA, LIST_END, OPENING, image_value, list_begin, list_items,
    list_items_once, metadata_parts, state_part,
};
use crate::service::ServiceError;

/// How many agents' memories one prompt may include.
const MEMORIES_MAX: usize = 100;

/// How many items of each text log a prompt may be asked for.
const LATEST_MAX: u64 = 1_000_000;

/// A part of a prompt, as `OpenAI`'s chat format has it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of what is written here")]
pub(in crate::http) struct PartBody {
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
    images: ImagesShown,
}

impl PromptQuery {
    fn params(params: &mut Params) -> Result<Self, Problem> {
        Ok(Self {
            shown: include_param(params)?,
            keys: keys_param(params)?,
            latest: params.count("latest", 1, LATEST_MAX)?,
            images: images_param(params)?.unwrap_or(ImagesShown::Inline),
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
pub(in crate::http) async fn get(
    SessionPath(session): SessionPath,
    mut reading: Reading,
) -> Result<Response, Early> {
    let query = PromptQuery::params(&mut reading.params)?;
    let rendering = |board: &Board| {
        let version = board.at_version(last_change(board, &query.shown));
        Ok(Rendering::of(Resource::Prompt, version))
    };
    let (answer, board) = reading.of(&session, rendering).await?;
    let prompt = Prompt::of(&board, &session, query);
    let segments = prompt.segments().await?;
    let body = segments.body(reading.service, board).await?;
    Ok(answer.body(JSON, body))
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

/// A prompt while it is put together.
struct Prompt<'a> {
    board: &'a Arc<Board>,
    session: &'a SessionName,
    query: PromptQuery,
    keys: TextKeys,
    /// Whether the keys are the session's own, so that others will ask for them too.
    keeps: bool,
    out: Segments,
}

impl<'a> Prompt<'a> {
    fn of(board: &'a Arc<Board>, session: &'a SessionName, mut query: PromptQuery) -> Self {
        let set = board.life().and_then(|life| life.settings.history_keys.as_deref());
        let keeps = query.keys.is_none() || query.keys.as_deref() == set;
        let keys = query.keys.take().or_else(|| set.map(Arc::from));
        Self { board, session, query, keys, keeps, out: Segments::default() }
    }

    /// What its body is made of. The texts of items that were not asked for before are made here.
    async fn segments(mut self) -> Result<Segments, ServiceError> {
        self.out.push_str("[");
        self.out.push_str(OPENING);
        for shown in std::mem::take(&mut self.query.shown) {
            match shown {
                Shown::Log(LogName::Screenshots) => self.screenshots().await,
                Shown::Log(log) => self.list(&log).await,
                Shown::State => {
                    self.out.push_str(", ");
                    self.out.push_bytes(state(self.board).await?);
                }
            }
        }
        self.out.push_str("]\n");
        Ok(self.out)
    }

    async fn list(&mut self, name: &LogName) {
        self.out.push_str(", ");
        self.out.push_str(&list_begin(name));
        let board = Arc::clone(self.board);
        let keys = self.keys_of(name);
        let keeps = keys.is_none() || self.keeps;
        let runs = board.log(name).into_iter().flat_map(|log| log.runs(self.indexes(log)));
        // A comma comes before each item but the first.
        let mut comma = LIST_COMMA.len();
        for run in runs.collect::<Vec<_>>() {
            let skipped = std::mem::take(&mut comma);
            if keeps {
                let items = kept(&run, &keys, |run| list_items(run, &keys)).await;
                let mut pieces = items.whole();
                let first = pieces.next().map(|first| first.slice(skipped..));
                first.into_iter().chain(pieces).for_each(|piece| self.out.push_bytes(piece));
            } else {
                let keys = keys.clone();
                self.out.push_made(move || list_items_once(&run, &keys).split_off(skipped));
            }
        }
        self.out.push_str(LIST_END);
    }

    async fn screenshots(&mut self) {
        let board = Arc::clone(self.board);
        let Some(log) = board.log(&LogName::Screenshots) else { return };
        for run in log.runs(0..log.len()).collect::<Vec<_>>() {
            let metadata = kept(&run, &None, metadata_parts).await;
            if self.query.images == ImagesShown::None {
                metadata.whole().for_each(|piece| self.out.push_bytes(piece));
                continue;
            }
            for (entry, metadata) in run.entries().zip(metadata.each()) {
                self.out.push_bytes(metadata);
                self.image(entry);
            }
        }
    }

    fn image(&mut self, entry: &Entry) {
        self.out.push_str(IMAGE_BEGIN);
        match entry.item.image() {
            Some(image) => {
                self.out.push_str("\"");
                if self.query.images == ImagesShown::Inline {
                    self.out.push_image(image);
                } else {
                    self.out.push_str(&image_url(self.session, entry.seq));
                }
                self.out.push_str("\"");
            }
            None => self.out.push_bytes(image_value(&entry.item).into()),
        }
        self.out.push_str(IMAGE_END);
    }

    /// The last entries of a text log, if only those are wanted.
    fn indexes(&self, log: &Log) -> Range<usize> {
        let latest = self.query.latest.unwrap_or(log.len());
        log.len().saturating_sub(latest)..log.len()
    }

    fn keys_of(&self, log: &LogName) -> TextKeys {
        let selects = matches!(log, LogName::Trajectories | LogName::Memory(_));
        self.keys.clone().filter(|_| selects)
    }
}

/// The part of the state; made where it may block, if the state is large.
async fn state(board: &Arc<Board>) -> Result<Bytes, ServiceError> {
    let board = Arc::clone(board);
    let bytes = usize::try_from(board.state().bytes()).unwrap_or(usize::MAX);
    let part = work(bytes, move || Ok(state_part(&board.state().text()))).await;
    Ok(part.map_err(|_| ServiceError::Fault)?.into())
}

/// The text of a run that is kept with it. Making one takes a while, after which others have their turn.
async fn kept(run: &Run, keys: &TextKeys, make: impl FnOnce(&Run) -> RunText) -> RunText {
    let is_new = !run.has_text(keys);
    let text = make(run);
    if is_new {
        tokio::task::yield_now().await;
    }
    text
}
