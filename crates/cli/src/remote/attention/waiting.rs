//! What waits for an agent: each thing in the server's lists.
//!
//! A thing has a key, which is the same for as long as it waits for the same reason.

use std::borrow::Cow;

use clap::ValueEnum as _;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::lists::{Kind, List, Lists};
use crate::remote::screen::Table;
use blackboard_printable::{cut, line};

/// The maximum size of an item in a line, in bytes.
const ITEM_BYTES_MAX: usize = 2_000;

/// The maximum size of a name or a reason in a line, in bytes.
const PART_BYTES_MAX: usize = 500;

/// What waits for an agent.
pub(super) type Waiting<'a> = Lists<Entry<'a>>;

/// An entry of one of the lists.
#[derive(Debug, Deserialize)]
pub(super) struct Entry<'a> {
    seq: u64,
    revision: u64,
    #[serde(borrow)]
    at: Cow<'a, str>,
    #[serde(borrow)]
    agent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    item: &'a RawValue,
    #[serde(borrow)]
    cancel: Option<End<'a>>,
    #[serde(borrow)]
    in_review: Option<End<'a>>,
}

/// A cancellation, or the end of the work that is to be reviewed.
#[derive(Debug, Deserialize)]
struct End<'a> {
    #[serde(borrow)]
    agent: Option<Cow<'a, str>>,
    #[serde(borrow)]
    at: Cow<'a, str>,
    #[serde(borrow)]
    reason: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

/// The members of a message that mean the same to all agents.
#[derive(Default, Deserialize)]
struct Message {
    text: Option<String>,
    thread: Option<String>,
    reply_to: Option<u64>,
}

/// A thing that waits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Thing {
    pub(crate) kind: Kind,
    pub(crate) seq: u64,
    /// The entry's last change.
    pub(super) revision: u64,
    pub(super) key: String,
    /// The agent or person it comes from.
    pub(crate) from: Option<String>,
    /// The thread of a message, and the message that it replies to.
    pub(crate) thread: Option<String>,
    pub(crate) reply_to: Option<u64>,
    /// The text of a message that has nothing else to say, as it was sent.
    pub(crate) text: Option<String>,
    /// What it is about, in one line.
    pub(crate) sentence: String,
}

impl Lists<Entry<'_>> {
    /// Returns true if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.things().is_empty()
    }

    /// Returns what waits, of each kind the oldest first.
    pub(super) fn things(&self) -> Vec<Thing> {
        let lists = Kind::value_variants().iter().map(|kind| (*kind, self.list(*kind)));
        let of = |(kind, list): (Kind, Option<&List<Entry<'_>>>)| {
            let entries = list.into_iter().flat_map(|list| &list.newest);
            entries.map(|entry| entry.thing(kind)).collect::<Vec<_>>()
        };
        lists.flat_map(of).collect()
    }

    /// Returns how many things wait that are older than those of their lists.
    pub(super) fn hidden(&self) -> u64 {
        let lists = Kind::value_variants().iter().filter_map(|kind| self.list(*kind));
        lists.map(List::hidden).sum()
    }

    /// Returns what waits for people.
    pub(super) fn text(&self) -> String {
        let mut table = Table::of(&["KIND", "SEQ", "FROM", "WHAT"]);
        for thing in self.things() {
            let from = thing.from.unwrap_or_default();
            table.row([thing.kind.one().to_owned(), thing.seq.to_string(), from, thing.sentence]);
        }
        let mut rest = Table::without_head();
        if self.hidden() > 0 {
            rest.fact(&format!("… {} older ones wait too", self.hidden()), "");
        }
        if self.paused {
            rest.fact("the agent is paused", "");
        }
        table.text() + &rest.text()
    }
}

impl Entry<'_> {
    fn thing(&self, kind: Kind) -> Thing {
        let message: Message = match kind {
            Kind::Messages => serde_json::from_str(self.item.get()).unwrap_or_default(),
            Kind::Cancels | Kind::Answers | Kind::Reviews | Kind::Claimable => Message::default(),
        };
        let end = match kind {
            Kind::Cancels => self.cancel.as_ref(),
            Kind::Reviews => self.in_review.as_ref(),
            Kind::Messages | Kind::Answers | Kind::Claimable => None,
        };
        let from = match end {
            Some(end) => end.agent.as_ref(),
            None => self.agent.as_ref().filter(|_| kind != Kind::Answers),
        };
        let from = from.map(|name| shown(name, PART_BYTES_MAX));
        let mark = match kind {
            // It changes when a claim ends, after which the request waits again.
            Kind::Claimable => self.revision.to_string(),
            Kind::Cancels | Kind::Messages | Kind::Answers | Kind::Reviews => {
                shown(end.map_or(&self.at, |end| &end.at), PART_BYTES_MAX)
            }
        };
        Thing {
            kind,
            seq: self.seq,
            revision: self.revision,
            key: format!("{} {} {mark}", kind.name(), self.seq),
            sentence: self.sentence(kind, end, from.as_deref()),
            from,
            thread: message.thread,
            reply_to: message.reply_to,
            text: message.text,
        }
    }

    fn sentence(&self, kind: Kind, end: Option<&End<'_>>, from: Option<&str>) -> String {
        let (seq, item) = (self.seq, shown(self.item.get(), ITEM_BYTES_MAX));
        let by = |word: &str| from.map(|from| format!(" {word} {from}")).unwrap_or_default();
        let part = |name: &str, value: Option<&RawValue>| {
            let value = value.map(|value| shown(value.get(), PART_BYTES_MAX));
            value.map(|value| format!(", {name} {value}")).unwrap_or_default()
        };
        match kind {
            Kind::Cancels => {
                let reason = part("reason", end.and_then(|end| end.reason));
                format!("request {seq}, which you hold, is cancelled{}{reason}: {item}", by("by"))
            }
            Kind::Messages => format!("message {seq}{}: {item}", by("from")),
            Kind::Answers => format!("question {seq}, which you asked, has an answer: {item}"),
            Kind::Reviews => {
                let result = part("result", end.and_then(|end| end.result));
                format!("request {seq} waits for a review{}{result}: {item}", by("of the work of"))
            }
            Kind::Claimable => format!("request {seq}{} can be claimed: {item}", by("from")),
        }
    }
}

/// Returns a text of the board as one line within a bound.
/// Returns the beginning of a JSON text as one line. A tab stands between its tokens only, where a space means the same.
fn shown(text: &str, max: usize) -> String {
    line(&cut(&text.replace('\t', " "), max)).into_owned()
}

#[cfg(test)]
mod tests;
