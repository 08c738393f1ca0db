//! Attention: all that waits for one agent, in one answer.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::inbox::PAGE_BYTES;
use super::intake::query::{AnyRevision, many_to, queries};
use super::intake::tasks::wanted_members;
use super::params::{Params, invalid};
use super::refusal::Refusal;
use super::schema::shapes::{one_of, text};
use super::view::entry::{EntryBody, write_envelope};
use super::view::{raw, write_json};
use super::yielding::Turns;
use blackboard_board::{
    AgentName, Attention, Awaiting, Board, Entry, Revision, Waking, Wanted, json,
};
use blackboard_service::{Matches, Service, ServiceError, SessionHandle};

/// The size in bytes at which a list of an attention ends. One entry is always shown.
const LIST_BYTES: usize = PAGE_BYTES / Waking::ALL.len();

/// The work to match a request, in bytes of text.
const MATCH_BYTES: u64 = 256;

queries! {
    /// The query of an agent's attention.
    pub AttentionQuery {
        /// Only claimable requests and answers that came after this revision, the `next` of another response. With `wait`:
        /// wait until something waits for the agent
        after: AnyRevision,
        /// Only requests with these members: a JSON object, such as `{"device":"linux"}`, of at most 16 members, each
        /// compared by value
        r#match via wanted: Wanted = Wanted::default() => text(),
        /// Only these lists
        include via included: Vec<Waking> => many_to(one_of(Waking::ALL.map(Waking::name)), Waking::ALL.len()),
    }
}

/// Takes the members that requests must have.
fn wanted(params: &mut Params, name: &'static str) -> Result<Option<Wanted>, Refusal> {
    let Some(text) = params.text(name)? else { return Ok(None) };
    json::syntax(text.as_bytes()).map_err(|why| invalid(name, format!("must be JSON: {why}")))?;
    let wanted = wanted_members("", &text);
    wanted.map(Some).map_err(|refusal| invalid(name, refusal.detail()))
}

/// Takes the names of lists.
fn included(params: &mut Params, name: &'static str) -> Result<Option<Vec<Waking>>, Refusal> {
    let Some(names) = params.list(name)? else { return Ok(None) };
    let is_known = |name: &String| Waking::ALL.iter().any(|waking| waking.name() == name);
    if !names.iter().all(is_known) {
        let known = Waking::ALL.map(Waking::name).join(", ");
        return Err(invalid(name, format!("must be a list of {known}")));
    }
    let is_wanted = |waking: &Waking| names.iter().any(|name| name == waking.name());
    Ok(Some(Waking::ALL.into_iter().filter(is_wanted).collect()))
}

/// All that waits for an agent.
#[derive(Serialize, ToSchema)]
pub struct AttentionBody {
    /// The messages to the agent that it has not acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    messages: Option<AwaitingBody>,
    /// The requests that can be claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    claimable: Option<AwaitingBody>,
    /// The agent's questions that got an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    answers: Option<AwaitingBody>,
    /// The requests that the agent has claimed and that are cancelled: it should stop, and end its claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    cancels: Option<AwaitingBody>,
    /// The results of other agents that wait for a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    reviews: Option<AwaitingBody>,
    /// True if the state asks the agent to pause or to stop all of its work.
    paused: bool,
    /// The value of `after` for the next request: the revision of the newest thing found, or the `after` of this request.
    next: u64,
}

/// The entries of one kind that wait for an agent.
#[derive(Serialize, ToSchema)]
struct AwaitingBody {
    /// The number of all entries.
    count: usize,
    /// The newest of them by ascending seq: at most 20, and fewer if they have more than 200 KiB.
    #[schema(value_type = Vec<EntryBody>)]
    newest: Vec<Box<RawValue>>,
}

/// A reader of what waits for an agent, which looks again at each commit.
pub struct AttentionReader {
    agent: AgentName,
    kinds: Vec<Waking>,
    after: Option<Revision>,
    matches: Matches,
    turns: Turns,
}

impl AttentionQuery {
    /// Returns a reader for an agent of this session.
    #[must_use]
    pub fn reader(
        self,
        service: &Service,
        session: &SessionHandle,
        agent: AgentName,
    ) -> AttentionReader {
        let kinds = self.include.unwrap_or_else(|| Waking::ALL.to_vec());
        let matches = service.matches(session.name(), &self.r#match);
        AttentionReader { agent, kinds, after: self.after, matches, turns: Turns::default() }
    }
}

impl AttentionReader {
    /// Returns true if the reader goes on after a revision, so that it may wait until something comes.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.after.is_some()
    }

    /// Returns what waits on this board.
    pub async fn look(&mut self, board: &Arc<Board>) -> Result<Attention, ServiceError> {
        let matching = match self.matches.known(board) {
            Some(matching) => matching,
            None => {
                let work = MATCH_BYTES * self.matches.unexamined(board) as u64;
                let (matches, of) = (self.matches.clone(), Arc::clone(board));
                self.turns.make(work, move || matches.on(&of)).await?
            }
        };
        Ok(board.attention(&self.agent, &self.kinds, &matching, self.after))
    }

    /// Returns the attention as JSON.
    pub async fn text(
        &mut self,
        board: &Arc<Board>,
        attention: Attention,
    ) -> Result<String, ServiceError> {
        let entries = self.entries(board, &attention);
        let bytes = entries.iter().flatten().map(|entry| entry.bytes()).sum();
        let write = move || {
            let mut text = String::new();
            write_json(&AttentionBody::of(&attention, &entries), &mut text);
            text.push('\n');
            text
        };
        self.turns.make(bytes, write).await
    }

    /// Returns the entries to show of each list.
    fn entries(&self, board: &Board, attention: &Attention) -> Vec<Vec<Arc<Entry>>> {
        let lists = attention.lists.iter().map(|list| {
            let log = board.log(&list.waking.log(&self.agent));
            let newest = list.newest.iter().rev();
            let entries = newest.filter_map(|(seq, _)| log?.get(*seq).cloned());
            let mut bytes = 0;
            let mut shown: Vec<Arc<Entry>> = entries
                .take_while(|entry| {
                    let fits = bytes < LIST_BYTES as u64;
                    bytes += entry.bytes();
                    fits
                })
                .collect();
            shown.reverse();
            shown
        });
        lists.collect()
    }
}

impl AttentionBody {
    fn of(attention: &Attention, entries: &[Vec<Arc<Entry>>]) -> Self {
        let list = |waking: Waking| {
            let mut lists = attention.lists.iter().zip(entries);
            let (list, entries) = lists.find(|(list, _)| list.waking == waking)?;
            Some(AwaitingBody::of(list, entries))
        };
        Self {
            messages: list(Waking::Messages),
            claimable: list(Waking::Claimable),
            answers: list(Waking::Answers),
            cancels: list(Waking::Cancels),
            reviews: list(Waking::Reviews),
            paused: attention.paused,
            next: attention.next.0,
        }
    }
}

impl AwaitingBody {
    fn of(list: &Awaiting, entries: &[Arc<Entry>]) -> Self {
        let newest = entries.iter().map(|entry| {
            let mut text = String::new();
            write_envelope(entry, &mut text);
            raw(text)
        });
        Self { count: list.count, newest: newest.collect() }
    }
}
