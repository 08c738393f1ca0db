//! Selecting entries of a log: where to begin, which way to go, and what matches.

use std::ops::Range;
use std::sync::Arc;

use super::asked::is_open;
use super::json::tokens::{Token, Tokens};
use super::json::{self, Exact, Kind};
use super::{AgentName, Board, Entry, IMAGE_MEMBER, Item, Log, LogName, Seq, Work};

/// Which way a page goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// From the oldest.
    #[default]
    Ascending,
    /// From the newest.
    Descending,
}

/// Which entries of a log are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Only entries after this seq.
    pub after: Option<Seq>,
    /// Only entries before this seq.
    pub before: Option<Seq>,
    /// Which way to go.
    pub order: Order,
    /// What an entry must be.
    pub filter: Filter,
}

/// What an entry must be; every member that is set must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Its item's `step` is one of these numbers.
    pub steps: Option<Vec<Exact>>,
    /// Its item's `status`, or that of one of its `results`, is this.
    pub status: Option<String>,
    /// Its author, or its item's `agent` where nobody is named, is this.
    pub agent: Option<AgentName>,
    /// Its item's `key` is this.
    pub trajectory_key: Option<String>,
    /// One of its item's string values has this in it, letter case aside.
    pub contains: Option<Contains>,
    /// It is a question without an answer, or a request that is neither claimed nor done; of the other
    /// logs, any entry.
    pub pending: bool,
}

/// A text to look for, with Unicode's full case folding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contains {
    folded: String,
}

impl Contains {
    /// Looks for this text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { folded: caseless::default_case_fold_str(text) }
    }

    fn is_in(&self, literal: &str) -> bool {
        caseless::default_case_fold_str(&json::decode(literal)).contains(&self.folded)
    }
}

impl Filter {
    /// Whether it lets every entry through.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether this entry of this log is wanted.
    #[must_use]
    pub fn matches(&self, log: &LogName, entry: &Entry) -> bool {
        let item = &entry.item;
        self.steps.as_ref().is_none_or(|steps| has_step(item, steps))
            && self.status.as_ref().is_none_or(|status| has_status(item, status))
            && self.agent.as_ref().is_none_or(|agent| is_by(entry, agent))
            && self.trajectory_key.as_ref().is_none_or(|key| is_text(item.get("key"), key))
            && self.contains.as_ref().is_none_or(|text| contains(log, item, text))
            && (!self.pending || is_pending(log, entry))
    }
}

fn has_step(item: &Item, steps: &[Exact]) -> bool {
    let step = item.get("step").filter(|step| json::kind(step) == Kind::Number);
    step.and_then(Exact::parse).is_some_and(|step| steps.contains(&step))
}

fn has_status(item: &Item, status: &str) -> bool {
    is_text(item.get("status"), status)
        || item.get("results").filter(|r| json::kind(r) == Kind::Array).is_some_and(|results| {
            let objects = json::elements(results).filter(|r| json::kind(r) == Kind::Object);
            objects.into_iter().any(|result| is_text(json::get(result, "status"), status))
        })
}

fn is_by(entry: &Entry, agent: &AgentName) -> bool {
    match &entry.agent {
        Some(author) => author == agent,
        None => is_text(entry.item.get("agent"), agent.as_str()),
    }
}

fn is_pending(log: &LogName, entry: &Entry) -> bool {
    match log {
        LogName::Questions => is_open(&entry.item),
        LogName::Requests => match entry.work.as_deref() {
            None | Some(Work::Lapsed { .. }) => true,
            Some(Work::Claimed(_) | Work::Done(_)) => false,
        },
        LogName::Trajectories | LogName::Screenshots | LogName::Memory(_) => true,
    }
}

fn is_text(value: Option<&str>, text: &str) -> bool {
    value.is_some_and(|v| json::kind(v) == Kind::String && json::decode(v) == text)
}

/// One pass over the text, however deep it is.
fn contains(log: &LogName, item: &Item, text: &Contains) -> bool {
    let is_image = |name: &str| *log == LogName::Screenshots && json::decode(name) == IMAGE_MEMBER;
    let (mut levels, mut of_image) = (0_usize, false);
    for (_, token) in Tokens::new(item.text()) {
        match token {
            Token::Name(name) if levels == 1 => of_image = is_image(name),
            Token::String(value) if !of_image && text.is_in(value) => return true,
            Token::ObjectOpen | Token::ArrayOpen => levels += 1,
            Token::ObjectClose | Token::ArrayClose => levels = levels.saturating_sub(1),
            Token::Name(_) | Token::String(_) | Token::Number(_) | Token::Word(_) => {}
        }
    }
    false
}

impl Selection {
    /// A walk over the entries between its bounds, in its order, whether they match or not.
    #[must_use]
    pub fn walk(&self, board: &Arc<Board>, log: &LogName) -> Walk {
        let range = board.log(log).map_or(0..0, |log| self.indexes(log));
        Walk { board: Arc::clone(board), log: log.clone(), range, order: self.order }
    }

    fn indexes(&self, log: &Log) -> Range<usize> {
        let start = self.after.map_or(0, |after| log.count_through(after));
        let end = match self.before {
            Some(Seq(0)) => 0,
            Some(Seq(before)) => log.count_through(Seq(before - 1)),
            None => log.len(),
        };
        start..end.max(start)
    }
}

/// A walk over a log's entries that owns the board it walks on, so that it can go on later.
#[derive(Clone, Debug)]
pub struct Walk {
    board: Arc<Board>,
    log: LogName,
    range: Range<usize>,
    order: Order,
}

impl Walk {
    /// The board that it walks on.
    #[must_use]
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// The log that it walks along.
    #[must_use]
    pub fn log(&self) -> &LogName {
        &self.log
    }

    /// Whether it has come to its end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.range.is_empty()
    }
}

impl Iterator for Walk {
    type Item = Arc<Entry>;

    fn next(&mut self) -> Option<Arc<Entry>> {
        let index = match self.order {
            Order::Ascending => self.range.next()?,
            Order::Descending => self.range.next_back()?,
        };
        self.board.log(&self.log)?.at(index).cloned()
    }
}
