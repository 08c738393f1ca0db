//! Filters of entries, sped up by the marks of chunks.

use std::borrow::Cow;

use caseless::Caseless as _;
use unicode_normalization::UnicodeNormalization as _;

use super::{Entry, LogName, Mark, Probe};
use crate::json;
use crate::json::tokens::{Token, Tokens};
use crate::json::{Exact, Kind};
use crate::{IMAGE_MEMBER, Item};

macro_rules! fields {
    ($($(#[$attribute:meta])+ $field:ident $name:literal $texts:expr;)+) => {
        /// A field of an entry that a filter compares as text.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Field {
            $($(#[$attribute])+ $field,)+
        }

        impl Field {
            const ALL: [Self; [$($name),+].len()] = [$(Self::$field),+];

            /// Returns the name of its marks.
            const fn name(self) -> &'static str {
                match self {
                    $(Self::$field => $name,)+
                }
            }

            /// Shows the texts that an entry has in it, until one is accepted; true if one was.
            fn has(self, entry: &Entry, accepts: &mut dyn FnMut(&str) -> bool) -> bool {
                match self {
                    $(Self::$field => $texts(entry).any(|text| accepts(&text)),)+
                }
            }
        }
    };
}

fields! {
    /// The `status` of the item, or of one of its `results`.
    Status "status" statuses;
    /// The author, or the item's `agent` if no author is named.
    Agent "agent" author;
    /// The item's `key`.
    Key "key" key;
}

/// A filter of entries. An entry must match every member that is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// The accepted numbers in the item's `step`.
    pub steps: Option<Vec<Exact>>,
    /// The texts that fields must have.
    pub texts: Vec<(Field, String)>,
    /// A text that one of the item's string values contains, ignoring case and normal forms.
    pub contains: Option<Contains>,
    /// True to accept only open questions, and only claimable requests. Other logs are not
    /// filtered.
    pub pending: bool,
    /// True to accept only requests whose results wait for a verdict. Other logs are not filtered.
    pub in_review: bool,
    /// True to accept only messages that are not acknowledged. Other logs are not filtered.
    pub unacked: bool,
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
    /// Creates a filter by texts of fields. A field without one is not filtered.
    pub fn of_texts(texts: impl IntoIterator<Item = (Field, Option<String>)>) -> Self {
        let texts = texts.into_iter().filter_map(|(field, text)| Some((field, text?))).collect();
        Self { texts, ..Self::default() }
    }

    /// Returns true if the filter accepts every entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the marks that a match must have. `contains` has no marks.
    #[must_use]
    pub fn probe(&self, log: &LogName) -> Probe {
        let steps = self.steps.as_ref();
        let steps = steps.map(|steps| steps.iter().map(|step| Mark::of(STEP, step)).collect());
        let pending = match log {
            LogName::Questions => Some(Mark::of(OPEN, "")),
            LogName::Requests => Some(Mark::of(FREE, "")),
            LogName::Trajectories
            | LogName::Screenshots
            | LogName::Memory(_)
            | LogName::Messages(_) => None,
        };
        let pending = pending.filter(|_| self.pending).map(|pending| vec![pending]);
        let texts =
            self.texts.iter().map(|(field, text)| vec![Mark::of(field.name(), text.as_str())]);
        let in_review =
            (self.in_review && *log == LogName::Requests).then(|| vec![Mark::of(REVIEW, "")]);
        Probe(steps.into_iter().chain(texts).chain(pending).chain(in_review).collect())
    }

    /// Returns true if this entry of this log matches.
    #[must_use]
    pub fn matches(&self, log: &LogName, entry: &Entry) -> bool {
        let item = &entry.item;
        self.steps.as_ref().is_none_or(|steps| has_step(item, steps))
            && self.texts.iter().all(|(field, text)| field.has(entry, &mut |own| own == text))
            && self.contains.as_ref().is_none_or(|text| contains(log, item, text))
            && (!self.pending || is_pending(log, entry))
            && (!self.in_review || *log != LogName::Requests || is_in_review(entry))
            && (!self.unacked || entry.acked_at.is_none() || !matches!(log, LogName::Messages(_)))
    }
}

/// Names of the marks of filters by other things than a text; those of texts are their fields'.
const STEP: &str = "step";
/// An item that is an open question, in any log.
const OPEN: &str = "open";
/// A claimable entry, in any log.
const FREE: &str = "free";

/// An entry whose result waits for a verdict, in any log.
const REVIEW: &str = "review";

/// Adds all marks of an entry, whatever its log.
pub(super) fn push_marks(entry: &Entry, marks: &mut Vec<Mark>) {
    let item = &entry.item;
    marks.extend(step_of(item).map(|step| Mark::of(STEP, &step)));
    for field in Field::ALL {
        field.has(entry, &mut |text| {
            marks.push(Mark::of(field.name(), text));
            false
        });
    }
    marks.extend(is_open(item).then(|| Mark::of(OPEN, "")));
    marks.extend(entry.is_claimable().then(|| Mark::of(FREE, "")));
    marks.extend(is_in_review(entry).then(|| Mark::of(REVIEW, "")));
}

fn is_in_review(entry: &Entry) -> bool {
    entry.work.as_deref().is_some_and(|work| work.in_review().is_some())
}

fn step_of(item: &Item) -> Option<Exact> {
    item.get("step").filter(|step| json::kind(step) == Kind::Number).and_then(Exact::parse)
}

fn has_step(item: &Item, steps: &[Exact]) -> bool {
    step_of(item).is_some_and(|step| steps.contains(&step))
}

/// Returns the status of the item and those of its results.
fn statuses(entry: &Entry) -> impl Iterator<Item = Cow<'_, str>> {
    let item = &entry.item;
    let results = item.get("results").filter(|r| json::kind(r) == Kind::Array);
    let objects =
        results.into_iter().flat_map(json::elements).filter(|r| json::kind(r) == Kind::Object);
    let of_results = objects.filter_map(|result| text_of(json::get(result, "status")));
    text_of(item.get("status")).into_iter().chain(of_results)
}

fn author(entry: &Entry) -> impl Iterator<Item = Cow<'_, str>> {
    let author = match &entry.agent {
        Some(author) => Some(Cow::Borrowed(author.as_str())),
        None => text_of(entry.item.get("agent")),
    };
    author.into_iter()
}

fn key(entry: &Entry) -> impl Iterator<Item = Cow<'_, str>> {
    text_of(entry.item.get("key")).into_iter()
}

fn is_pending(log: &LogName, entry: &Entry) -> bool {
    match log {
        LogName::Questions => is_open(&entry.item),
        LogName::Requests => entry.is_claimable(),
        LogName::Trajectories
        | LogName::Screenshots
        | LogName::Memory(_)
        | LogName::Messages(_) => true,
    }
}

/// Returns true for an open question.
#[must_use]
pub fn is_open(item: &Item) -> bool {
    let is_text = |name| item.get(name).is_some_and(|value| json::kind(value) == Kind::String);
    (is_text("question") || is_text("text")) && item.get("answer").is_none()
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
