//! Filters of entries, sped up by the marks of chunks.

use std::borrow::Cow;

use caseless::Caseless as _;
use unicode_normalization::UnicodeNormalization as _;

use super::{Entry, LogName, Mark, Probe};
use crate::json;
use crate::json::tokens::{Token, Tokens};
use crate::json::{Exact, Kind};
use crate::{AgentName, IMAGE_MEMBER, Item};

/// A filter of entries. An entry must match every member that is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// The accepted numbers in the item's `step`.
    pub steps: Option<Vec<Exact>>,
    /// The `status` of the item, or of one of its `results`.
    pub status: Option<String>,
    /// The author, or the item's `agent` if no author is named.
    pub agent: Option<AgentName>,
    /// The item's `key`.
    pub trajectory_key: Option<String>,
    /// A text that one of the item's string values contains, ignoring case and normal forms.
    pub contains: Option<Contains>,
    /// True to accept only open questions, and only claimable requests. Other logs are not
    /// filtered.
    pub pending: bool,
}

/// A search text under Unicode's full case folding, in one normal form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contains {
    folded: String,
}

impl Contains {
    /// Creates a search for this text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { folded: folded(text) }
    }

    fn is_in(&self, literal: &str) -> bool {
        let text = json::decode(literal);
        // For ASCII, case folding is lower-casing, which is many times faster.
        if text.is_ascii() {
            return self.folded.is_ascii() && text.to_ascii_lowercase().contains(&self.folded);
        }
        folded(&text).contains(&self.folded)
    }
}

/// Returns a text without case. Characters are put together, so that a letter is not found in one with an accent.
fn folded(text: &str) -> String {
    text.nfd().default_case_fold().nfc().collect()
}

impl Filter {
    /// Returns true if the filter accepts every entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the marks that a match must have. `contains` has no marks.
    #[must_use]
    pub fn probe(&self, log: &LogName) -> Probe {
        let one = |name, text: Option<&str>| text.map(|text| vec![Mark::of(name, text)]);
        let steps = self.steps.as_ref();
        let steps = steps.map(|steps| steps.iter().map(|step| Mark::of(STEP, step)).collect());
        let pending = match log {
            LogName::Questions => Some(Mark::of(OPEN, "")),
            LogName::Requests => Some(Mark::of(FREE, "")),
            LogName::Trajectories | LogName::Screenshots | LogName::Memory(_) => None,
        };
        let all = [
            steps,
            one(STATUS, self.status.as_deref()),
            one(AGENT, self.agent.as_ref().map(AgentName::as_str)),
            one(KEY, self.trajectory_key.as_deref()),
            pending.filter(|_| self.pending).map(|pending| vec![pending]),
        ];
        Probe(all.into_iter().flatten().collect())
    }

    /// Returns true if this entry of this log matches.
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

/// Names of the marks, one for each kind of filter.
const STEP: &str = "step";
const STATUS: &str = "status";
const AGENT: &str = "agent";
const KEY: &str = "key";
/// An item that is an open question, in any log.
const OPEN: &str = "open";
/// A claimable entry, in any log.
const FREE: &str = "free";

/// Adds all marks of an entry, whatever its log.
pub(super) fn push_marks(entry: &Entry, marks: &mut Vec<Mark>) {
    let item = &entry.item;
    marks.extend(step_of(item).map(|step| Mark::of(STEP, &step)));
    marks.extend(statuses(item).map(|status| Mark::of(STATUS, &*status)));
    match &entry.agent {
        Some(author) => marks.push(Mark::of(AGENT, author.as_str())),
        None => marks.extend(text_of(item.get("agent")).map(|agent| Mark::of(AGENT, &*agent))),
    }
    marks.extend(text_of(item.get("key")).map(|key| Mark::of(KEY, &*key)));
    marks.extend(is_open(item).then(|| Mark::of(OPEN, "")));
    marks.extend(entry.is_claimable().then(|| Mark::of(FREE, "")));
}

fn step_of(item: &Item) -> Option<Exact> {
    item.get("step").filter(|step| json::kind(step) == Kind::Number).and_then(Exact::parse)
}

fn has_step(item: &Item, steps: &[Exact]) -> bool {
    step_of(item).is_some_and(|step| steps.contains(&step))
}

/// Returns the status of the item and those of its results.
fn statuses(item: &Item) -> impl Iterator<Item = Cow<'_, str>> {
    let results = item.get("results").filter(|r| json::kind(r) == Kind::Array);
    let objects =
        results.into_iter().flat_map(json::elements).filter(|r| json::kind(r) == Kind::Object);
    let of_results = objects.filter_map(|result| text_of(json::get(result, "status")));
    text_of(item.get("status")).into_iter().chain(of_results)
}

fn has_status(item: &Item, status: &str) -> bool {
    statuses(item).any(|own| own == status)
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
        LogName::Requests => entry.is_claimable(),
        LogName::Trajectories | LogName::Screenshots | LogName::Memory(_) => true,
    }
}

/// Returns true for an open question.
#[must_use]
pub fn is_open(item: &Item) -> bool {
    let is_text = |name| item.get(name).is_some_and(|value| json::kind(value) == Kind::String);
    (is_text("question") || is_text("text")) && item.get("answer").is_none()
}

fn is_text(value: Option<&str>, text: &str) -> bool {
    text_of(value).is_some_and(|own| own == text)
}

fn text_of(value: Option<&str>) -> Option<Cow<'_, str>> {
    value.filter(|value| json::kind(value) == Kind::String).map(json::decode)
}

/// Searches the text in one pass, at any depth.
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
