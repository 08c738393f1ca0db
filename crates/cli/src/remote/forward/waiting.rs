//! The part of what waits for an agent that one message delivers.

use std::borrow::Cow;
use std::collections::BTreeSet;

use clap::ValueEnum as _;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::remote::attention::{Kind, List, Lists};
use crate::remote::refusal::Refusal;

/// The maximum number of entries of a list in one message, as many as the server shows.
const ENTRIES_MAX: usize = 20;

/// The maximum size of the entries in one message, in bytes; a larger one goes alone.
const ENTRIES_BYTES_MAX: usize = 1 << 20;

/// What waits for an agent, with entries as the server sends them.
pub(super) type Waiting<'a> = Lists<&'a RawValue>;

/// The members of an entry by which it is told from others, and from itself when it waits for something else.
#[derive(Deserialize)]
struct Thing<'a> {
    seq: u64,
    revision: u64,
    #[serde(borrow)]
    at: Cow<'a, str>,
    #[serde(borrow)]
    updated_at: Option<Cow<'a, str>>,
    #[serde(borrow)]
    cancel: Option<Moment<'a>>,
    #[serde(borrow)]
    in_review: Option<Moment<'a>>,
}

#[derive(Deserialize)]
struct Moment<'a> {
    #[serde(borrow)]
    at: Cow<'a, str>,
}

/// The data of a message.
#[derive(Debug, Serialize)]
pub(super) struct Parcel<'a> {
    agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<List<&'a RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claimable: Option<List<&'a RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<List<&'a RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancels: Option<List<&'a RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reviews: Option<List<&'a RawValue>>,
    paused: bool,
    next: u64,
    #[serde(skip)]
    pub(super) contents: Contents,
}

/// What a message delivers.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// The keys of the entries, in their order.
    pub(super) keys: Vec<String>,
    /// The seqs of the messages to the agent, with their keys.
    pub(super) messages: Vec<(u64, String)>,
    /// The time of the newest entry.
    pub(super) at: String,
    /// Everything that waits besides messages is in it, or was delivered before.
    pub(super) is_whole: bool,
    bytes: usize,
}

impl<'a> Lists<&'a RawValue> {
    /// Returns the part of what waits that was not delivered: of each list the oldest entries first, within the bounds
    /// of a message. Messages are those of the list, or of this page of their log.
    pub(super) fn parcel(
        &self,
        agent: &'a str,
        page: Option<&[&'a RawValue]>,
        delivered: &BTreeSet<String>,
    ) -> Result<Option<Parcel<'a>>, Refusal> {
        let mut contents = Contents { is_whole: true, ..Contents::default() };
        let paged = page.map(|page| List { count: self.messages_count(), newest: page.to_vec() });
        let mut part = |kind: Kind, list: Option<&List<&'a RawValue>>| {
            list.map(|list| contents.taken(kind, list, delivered)).transpose()
        };
        let messages = part(Kind::Messages, paged.as_ref().or(self.list(Kind::Messages)))?;
        let cancels = part(Kind::Cancels, self.list(Kind::Cancels))?;
        let answers = part(Kind::Answers, self.list(Kind::Answers))?;
        let reviews = part(Kind::Reviews, self.list(Kind::Reviews))?;
        let claimable = part(Kind::Claimable, self.list(Kind::Claimable))?;
        if contents.keys.is_empty() {
            return Ok(None);
        }
        let (paused, next) = (self.paused, self.next);
        let parcel = Parcel {
            agent,
            messages,
            claimable,
            answers,
            cancels,
            reviews,
            paused,
            next,
            contents,
        };
        Ok(Some(parcel))
    }

    /// Returns true if messages wait that are older than the list shows, and may not be delivered. They are delivered
    /// in their order, so if one was, those before it were too.
    pub(super) fn hides_messages(&self, delivered: &BTreeSet<String>) -> Result<bool, Refusal> {
        let Some(list) = self.list(Kind::Messages) else { return Ok(false) };
        match list.newest.first() {
            Some(oldest) if list.hidden() > 0 => {
                Ok(!delivered.contains(&key(Kind::Messages, oldest)?))
            }
            Some(_) | None => Ok(false),
        }
    }

    /// Forgets the keys of what does not wait any more, unless a list is cut: then it may.
    pub(super) fn retain(&self, delivered: &mut BTreeSet<String>) -> Result<(), Refusal> {
        for kind in Kind::value_variants().iter().copied() {
            let Some(list) = self.list(kind).filter(|list| list.hidden() == 0) else { continue };
            let kept = keys(kind, &list.newest)?;
            delivered.retain(|key| !is_of(key, kind) || kept.contains(key));
        }
        Ok(())
    }

    fn messages_count(&self) -> u64 {
        self.list(Kind::Messages).map_or(0, |list| list.count)
    }
}

impl Parcel<'_> {
    pub(super) const fn agent(&self) -> &str {
        self.agent
    }
}

impl Contents {
    /// Takes entries of a list that were not delivered, while there is room.
    fn taken<'a>(
        &mut self,
        kind: Kind,
        list: &List<&'a RawValue>,
        delivered: &BTreeSet<String>,
    ) -> Result<List<&'a RawValue>, Refusal> {
        let mut newest = Vec::new();
        for entry in &list.newest {
            let key = key(kind, entry)?;
            if delivered.contains(&key) {
                continue;
            }
            let bytes = self.bytes.saturating_add(entry.get().len());
            let is_full = bytes > ENTRIES_BYTES_MAX && !self.keys.is_empty();
            if is_full || newest.len() >= ENTRIES_MAX {
                self.is_whole &= kind == Kind::Messages;
                break;
            }
            let thing = thing(entry)?;
            let at = thing.updated_at.as_ref().unwrap_or(&thing.at);
            if **at > *self.at {
                self.at = at.to_string();
            }
            if kind == Kind::Messages {
                self.messages.push((thing.seq, key.clone()));
            }
            self.bytes = bytes;
            self.keys.push(key);
            newest.push(*entry);
        }
        Ok(List { count: list.count, newest })
    }
}

/// Returns the keys of messages on a page of their log.
pub(super) fn message_keys(page: &[&RawValue]) -> Result<BTreeSet<String>, Refusal> {
    keys(Kind::Messages, page)
}

/// Returns true if a key is that of a message.
pub(super) fn is_message(key: &str) -> bool {
    is_of(key, Kind::Messages)
}

/// Returns true if a key is of something that `after` leaves out once it was delivered.
pub(super) fn is_passing(key: &str) -> bool {
    is_of(key, Kind::Claimable) || is_of(key, Kind::Answers)
}

fn is_of(key: &str, kind: Kind) -> bool {
    key.split(' ').next() == Some(kind.name())
}

fn keys(kind: Kind, entries: &[&RawValue]) -> Result<BTreeSet<String>, Refusal> {
    entries.iter().map(|entry| key(kind, entry)).collect()
}

/// Returns the key of an entry: the same while it waits for the same reason. A session that was made again under its
/// name has the same seqs at other times, and a claim that is renewed is a new revision.
fn key(kind: Kind, entry: &RawValue) -> Result<String, Refusal> {
    let Thing { seq, revision, at, cancel, in_review, .. } = thing(entry)?;
    let mark = match (kind, cancel, in_review) {
        (Kind::Cancels, Some(moment), _) | (Kind::Reviews, _, Some(moment)) => {
            moment.at.into_owned()
        }
        (Kind::Messages, ..) => at.into_owned(),
        (Kind::Cancels | Kind::Reviews | Kind::Answers | Kind::Claimable, ..) => {
            revision.to_string()
        }
    };
    Ok(format!("{} {seq} {mark}", kind.name()))
}

fn thing(entry: &RawValue) -> Result<Thing<'_>, Refusal> {
    serde_json::from_str(entry.get()).map_err(Refusal::Event)
}

#[cfg(test)]
mod tests;
