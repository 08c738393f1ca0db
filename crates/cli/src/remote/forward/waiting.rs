//! What waits for an agent, by the server's lists, and the part of it that one message delivers.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::remote::refusal::Refusal;

/// The maximum number of entries of a list in one message, as many as the server shows.
const ENTRIES_MAX: usize = 20;

/// The maximum size of the entries in one message, in bytes; a larger one goes alone.
const ENTRIES_BYTES_MAX: usize = 1 << 20;

/// The name of the list of messages, in keys too.
const MESSAGES: &str = "messages";

/// An answer to a look at an agent's attention.
#[derive(Debug, Deserialize)]
pub(super) struct Waiting<'a> {
    #[serde(borrow)]
    messages: Option<List<'a>>,
    #[serde(borrow)]
    claimable: Option<List<'a>>,
    #[serde(borrow)]
    answers: Option<List<'a>>,
    #[serde(borrow)]
    cancels: Option<List<'a>>,
    #[serde(borrow)]
    reviews: Option<List<'a>>,
    paused: bool,
    pub(super) next: u64,
}

/// A list: how many things wait, and the newest of them.
#[derive(Debug, Deserialize, Serialize)]
struct List<'a> {
    count: u64,
    #[serde(borrow)]
    newest: Vec<&'a RawValue>,
}

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
    messages: Option<List<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claimable: Option<List<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<List<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancels: Option<List<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reviews: Option<List<'a>>,
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

impl<'a> Waiting<'a> {
    /// Returns the part of what waits that was not delivered: of each list the oldest entries first, within the bounds
    /// of a message. Messages are those of the list, or of this page of their log.
    pub(super) fn parcel(
        &self,
        agent: &'a str,
        page: Option<&[&'a RawValue]>,
        delivered: &BTreeSet<String>,
    ) -> Result<Option<Parcel<'a>>, Refusal> {
        let mut contents = Contents { is_whole: true, ..Contents::default() };
        let mut part = |name: &str, list: &Option<List<'a>>| match list {
            Some(list) => contents.taken(name, list, delivered).map(Some),
            None => Ok(None),
        };
        let paged = page.map(|page| List { count: self.messages_count(), newest: page.to_vec() });
        let messages = match paged {
            Some(paged) => part(MESSAGES, &Some(paged))?,
            None => part(MESSAGES, &self.messages)?,
        };
        let cancels = part("cancels", &self.cancels)?;
        let answers = part("answers", &self.answers)?;
        let reviews = part("reviews", &self.reviews)?;
        let claimable = part("claimable", &self.claimable)?;
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
        let Some(list) = &self.messages else { return Ok(false) };
        match list.newest.first() {
            Some(oldest) if list.is_cut() => Ok(!delivered.contains(&key(MESSAGES, oldest)?)),
            Some(_) | None => Ok(false),
        }
    }

    /// Forgets the keys of what does not wait any more, unless a list is cut: then it may.
    pub(super) fn retain(&self, delivered: &mut BTreeSet<String>) -> Result<(), Refusal> {
        for (name, list) in self.lists() {
            let Some(list) = list.as_ref().filter(|list| !list.is_cut()) else { continue };
            let kept = keys(name, &list.newest)?;
            delivered.retain(|key| !is_of(key, name) || kept.contains(key));
        }
        Ok(())
    }

    fn messages_count(&self) -> u64 {
        self.messages.as_ref().map_or(0, |list| list.count)
    }

    const fn lists(&self) -> [(&'static str, &Option<List<'a>>); 5] {
        [
            (MESSAGES, &self.messages),
            ("claimable", &self.claimable),
            ("answers", &self.answers),
            ("cancels", &self.cancels),
            ("reviews", &self.reviews),
        ]
    }
}

impl Parcel<'_> {
    pub(super) const fn agent(&self) -> &str {
        self.agent
    }

    /// Returns what it delivers, and the revision that it shows.
    pub(super) fn ended(self) -> (u64, Contents) {
        (self.next, self.contents)
    }
}

impl List<'_> {
    fn is_cut(&self) -> bool {
        self.count > self.newest.len() as u64
    }
}

impl Contents {
    /// Takes entries of a list that were not delivered, while there is room.
    fn taken<'a>(
        &mut self,
        name: &str,
        list: &List<'a>,
        delivered: &BTreeSet<String>,
    ) -> Result<List<'a>, Refusal> {
        let mut newest = Vec::new();
        for entry in &list.newest {
            let key = key(name, entry)?;
            if delivered.contains(&key) {
                continue;
            }
            let bytes = self.bytes.saturating_add(entry.get().len());
            let is_full = bytes > ENTRIES_BYTES_MAX && !self.keys.is_empty();
            if is_full || newest.len() >= ENTRIES_MAX {
                self.is_whole &= name == MESSAGES;
                break;
            }
            let thing = thing(entry)?;
            let at = thing.updated_at.as_ref().unwrap_or(&thing.at);
            if **at > *self.at {
                self.at = at.to_string();
            }
            if name == MESSAGES {
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
    keys(MESSAGES, page)
}

/// Returns true if a key is that of a message.
pub(super) fn is_message(key: &str) -> bool {
    is_of(key, MESSAGES)
}

/// Returns true if a key is of something that `after` leaves out once it was delivered.
pub(super) fn is_passing(key: &str) -> bool {
    is_of(key, "claimable") || is_of(key, "answers")
}

fn is_of(key: &str, name: &str) -> bool {
    key.split(' ').next() == Some(name)
}

fn keys(name: &str, entries: &[&RawValue]) -> Result<BTreeSet<String>, Refusal> {
    entries.iter().map(|entry| key(name, entry)).collect()
}

/// Returns the key of an entry: the same while it waits for the same reason. A session that was made again under its
/// name has the same seqs at other times, and a claim that is renewed is a new revision.
fn key(name: &str, entry: &RawValue) -> Result<String, Refusal> {
    let Thing { seq, revision, at, cancel, in_review, .. } = thing(entry)?;
    let mark = match (name, cancel, in_review) {
        ("cancels", Some(moment), _) | ("reviews", _, Some(moment)) => moment.at.into_owned(),
        (MESSAGES, ..) => at.into_owned(),
        _ => revision.to_string(),
    };
    Ok(format!("{name} {seq} {mark}"))
}

fn thing(entry: &RawValue) -> Result<Thing<'_>, Refusal> {
    serde_json::from_str(entry.get()).map_err(Refusal::Event)
}

#[cfg(test)]
mod tests;
