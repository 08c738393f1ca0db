//! Search over all sessions: the query, and the hits as JSON.

use std::ops::Not;
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use super::intake::query::{Count, Of, Text, queries};
use super::params::{Params, invalid};
use super::refusal::Refusal;
use super::schema::shapes::{one_of, some_text};
use blackboard_auth::{Caller, SessionPattern};
use blackboard_board::{AgentName, LogName, SessionName, Timestamp};
use blackboard_search::{Logs, Names, Query, RANKED_MAX, Reach};
use blackboard_service::{Hit, Hits, Service, ServiceError, Sought};

/// The number of hits on a page by default.
const LIMIT_DEFAULT: usize = 20;

/// The maximum number of hits on a page.
const LIMIT_MAX: u64 = 100;

/// The names of logs in hits.
const SEARCHED: [&str; 6] =
    ["questions", "requests", "trajectories", "screenshots", MEMORY, MESSAGES];

/// The name of all memories in hits.
const MEMORY: &str = "memory";

/// The name of the messages to all agents in hits.
const MESSAGES: &str = "messages";

/// A page of hits.
#[derive(Serialize, ToSchema)]
pub struct SearchPage {
    /// At most `limit` hits, best first.
    hits: Vec<HitBody>,
    /// The value of `after` for the next page; null at the end.
    #[schema(required)]
    next: Option<String>,
    /// True if only the best 10,000 matches were ranked, or not all could be examined. Else absent.
    #[serde(skip_serializing_if = "Not::not")]
    #[schema(required = false)]
    cut: bool,
}

impl SearchPage {
    /// Returns the number of hits.
    pub fn count(&self) -> usize {
        self.hits.len()
    }
}

/// An entry with the words.
#[derive(Serialize, ToSchema)]
struct HitBody {
    /// The session's name.
    #[schema(example = "sess_12345")]
    session: String,
    /// The log: `questions`, `requests`, `trajectories`, `screenshots`, or `memory`.
    log: &'static str,
    /// The entry.
    seq: u64,
    /// The rank by the entry's text alone; higher is better.
    score: f64,
    /// The words around the best match, as HTML whose only tags are `<mark>` and `</mark>`.
    #[schema(example = "the <mark>disk</mark> is full")]
    snippet: String,
    /// The time of the append.
    #[schema(format = DateTime)]
    at: String,
    /// The owner of a memory or of messages, else the author; null if not named.
    #[schema(required)]
    agent: Option<String>,
}

impl HitBody {
    fn of(hit: Hit) -> Self {
        let Hit { session, log, entry, agent, score, snippet } = hit;
        Self {
            session: session.to_string(),
            log: searched(&log),
            seq: entry.seq.0,
            score,
            snippet,
            at: entry.at.to_string(),
            agent: agent.map(|agent| agent.to_string()),
        }
    }
}

fn searched(log: &LogName) -> &'static str {
    match log {
        LogName::Questions => "questions",
        LogName::Requests => "requests",
        LogName::Trajectories => "trajectories",
        LogName::Screenshots => "screenshots",
        LogName::Memory(_) => MEMORY,
        LogName::Messages(_) => MESSAGES,
    }
}

/// Returns the names that a pattern may match.
fn names_of(pattern: &SessionPattern) -> Names {
    match pattern.name() {
        Some(name) => Names::One(name.to_string()),
        None => Names::From(pattern.stem().to_owned()),
    }
}

queries! {
    /// The query of a search.
    pub SearchQuery {
        /// Words, `"phrases"`, `prefix*` and `-exclusions`, all of which must hold; at most 32 of them, and 1 KiB. A
        /// minus excludes if it is at the start or after a space, and before a letter or a quotation mark; `"-xzf"`
        /// finds a flag. Other characters than letters and digits are ignored
        q via words: Query as needed("is needed") => some_text(),
        /// Only entries of this session
        session: Of<SessionName>,
        /// Only entries of sessions whose names begin with this text
        prefix: Text = String::new(),
        /// Only entries of this log; `memory` and `messages` are those of all agents whose logs the token may read
        log via searched_log: &'static str => one_of(SEARCHED),
        /// Only this agent's memory, the messages to it, and entries by this agent
        agent: Of<AgentName>,
        /// Only entries appended at or after this time, RFC 3339
        since: Of<Timestamp>,
        /// The maximum number of hits; 20 by default
        limit: Count<1, LIMIT_MAX> = LIMIT_DEFAULT,
        /// The `next` of another page
        after: Count<0, { RANKED_MAX as u64 }> = 0,
    }
}

/// Takes the words. A query without them is refused as one without a word.
fn words(params: &mut Params, name: &'static str) -> Result<Option<Query>, Refusal> {
    let words = params.text(name)?.unwrap_or_default();
    words.parse().map(Some).map_err(|why| invalid(name, why))
}

/// Takes the name of a log in hits.
fn searched_log(params: &mut Params, name: &'static str) -> Result<Option<&'static str>, Refusal> {
    params.choice(name, &SEARCHED.map(|log| (log, log)))
}

impl SearchQuery {
    /// Searches the entries that the caller may read.
    pub async fn hits(
        self,
        service: &Service,
        caller: &Caller,
    ) -> Result<SearchPage, ServiceError> {
        let reach = self.reach(caller);
        let sought = Sought { query: self.q, reach };
        let Hits { hits, next, is_cut } = service.search(sought, self.after, self.limit).await?;
        let hits = hits.into_iter().map(HitBody::of).collect();
        Ok(SearchPage { hits, next: next.map(|next| next.to_string()), cut: is_cut })
    }

    /// Returns what is asked for of that which the caller may read.
    fn reach(&self, caller: &Caller) -> Reach {
        let names = match (&self.session, caller.patterns()) {
            (Some(session), _) => vec![Names::One(session.to_string())],
            (None, None) => vec![Names::From(String::new())],
            (None, Some(patterns)) => patterns.iter().map(names_of).collect(),
        };
        let names = names.into_iter().filter_map(|names| names.within(&self.prefix)).collect();
        let reader = caller.clone();
        let admits = Arc::new(move |name: &SessionName| reader.reaches(name));
        let logs = self.logs(caller);
        let mut reach = Reach::new(names, admits, logs);
        (reach.agent, reach.since) = (self.agent.clone(), self.since);
        reach
    }

    fn logs(&self, caller: &Caller) -> Vec<Logs> {
        let board = match self.log {
            None => Some(Logs::Board),
            Some(log) => LogName::of_board(log).map(Logs::One),
        };
        // Of an agent there is one memory, and one log of messages.
        let owner = self.agent.as_ref().or_else(|| caller.limited_to());
        let owned = match owner {
            None => vec![(MEMORY, Logs::Memories), (MESSAGES, Logs::Messages)],
            Some(owner) if caller.sees_logs_of(owner) => {
                let [memory, messages] = LogName::owned_by(owner).map(Logs::One);
                vec![(MEMORY, memory), (MESSAGES, messages)]
            }
            Some(_) => Vec::new(),
        };
        let is_wanted = |name: &str| self.log.is_none_or(|log| log == name);
        let owned = owned.into_iter().filter(|(name, _)| is_wanted(name));
        board.into_iter().chain(owned.map(|(_, logs)| logs)).collect()
    }
}
