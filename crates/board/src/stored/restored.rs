//! Stored restores in a commit's body.
//!
//! All restored entries and agents have the commit's revision.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Unreadable;
use super::change::{json, restore_profile};
use super::work::{StoredCancel, StoredDone, StoredFailure, StoredReview, StoredTask};
use crate::log::Updated;
use crate::{
    Agent, AgentName, Awaited, Cancel, Done, Entry, Failed, Image, Item, Json, LogName, Restored,
    RestoredLog, Review, Revision, Seq, SeqRange, StatePath, Task, Timestamp, Work,
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredRestored<'a> {
    to: Revision,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    logs: Vec<RestoredOfLog<'a>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    state: Vec<Place<'a>>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    expiries: Cow<'a, [(StatePath, Timestamp)]>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    awaited: Vec<Waiting<'a>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    agents: Vec<(Cow<'a, AgentName>, Option<Known<'a>>)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RestoredOfLog<'a> {
    log: Cow<'a, LogName>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    removed: Cow<'a, [SeqRange]>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<Returned<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Returned<'a> {
    seq: Seq,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<Cow<'a, AgentName>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    updated_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    updated_by: Option<Cow<'a, AgentName>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    in_review: Option<StoredReview<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    done: Option<StoredDone<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<StoredFailure<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cancelled: Option<StoredCancel<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<StoredTask<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    acked_at: Option<Timestamp>,
    item: Cow<'a, RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image: Option<Cow<'a, Image>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place<'a> {
    path: Cow<'a, StatePath>,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    value: Option<Cow<'a, RawValue>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Waiting<'a> {
    seq: Seq,
    expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known<'a> {
    profile: Cow<'a, RawValue>,
    registered_at: Timestamp,
    updated_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_seen: Option<Timestamp>,
}

impl<'a> From<&'a Restored> for StoredRestored<'a> {
    fn from(restored: &'a Restored) -> Self {
        let place = |(path, value): &'a (StatePath, Option<Json>)| Place {
            path: Cow::Borrowed(path),
            value: value.as_ref().map(|value| Cow::Borrowed(value.raw())),
        };
        let waiting = |(seq, until): &'a (Seq, Awaited)| Waiting {
            seq: *seq,
            expires_at: until.expires_at,
            default: until.default.as_deref().map(Cow::Borrowed),
        };
        let agents = restored.agents.iter();
        Self {
            to: restored.to,
            logs: restored.logs.iter().map(RestoredOfLog::from).collect(),
            state: restored.state.iter().map(place).collect(),
            expiries: Cow::Borrowed(&restored.expiries),
            awaited: restored.awaited.iter().map(waiting).collect(),
            agents: agents
                .map(|(name, agent)| (Cow::Borrowed(name), agent.as_ref().map(Known::from)))
                .collect(),
        }
    }
}

impl StoredRestored<'_> {
    pub(super) fn restore(self, revision: Revision) -> Result<Restored, Unreadable> {
        let logs = self.logs.into_iter().map(|log| {
            let entries = log.entries.into_iter().map(|entry| Arc::new(entry.restore(revision)));
            let removed = log.removed.into_owned();
            (log.log.into_owned(), RestoredLog { removed, entries: entries.collect() })
        });
        let state = self.state.into_iter();
        let awaited = self.awaited.into_iter().map(|Waiting { seq, expires_at, default }| {
            let default = default.map(|default| default.into_owned().into_boxed_str());
            (seq, Awaited { expires_at, default })
        });
        let agents = self.agents.into_iter().map(|(name, agent)| {
            let agent = agent.map(|agent| agent.restore(revision)).transpose()?;
            Ok((name.into_owned(), agent))
        });
        Ok(Restored {
            to: self.to,
            logs: logs.collect(),
            state: state.map(|place| (place.path.into_owned(), place.value.map(json))).collect(),
            expiries: self.expiries.into_owned(),
            awaited: awaited.collect(),
            agents: agents.collect::<Result<_, Unreadable>>()?,
        })
    }
}

impl<'a> From<&'a (LogName, RestoredLog)> for RestoredOfLog<'a> {
    fn from((name, log): &'a (LogName, RestoredLog)) -> Self {
        Self {
            log: Cow::Borrowed(name),
            removed: Cow::Borrowed(&log.removed),
            entries: log.entries.iter().map(|entry| Returned::from(&**entry)).collect(),
        }
    }
}

impl<'a> From<&'a Entry> for Returned<'a> {
    fn from(entry: &'a Entry) -> Self {
        let updated = entry.updated.as_ref();
        let work = entry.work.as_deref();
        Self {
            seq: entry.seq,
            at: entry.at,
            agent: entry.agent.as_ref().map(Cow::Borrowed),
            updated_at: updated.map(|updated| updated.at),
            updated_by: updated.and_then(|updated| updated.by.as_ref()).map(Cow::Borrowed),
            in_review: work.and_then(Work::in_review).map(StoredReview::from),
            done: work.and_then(Work::done).map(StoredDone::from),
            failed: work.and_then(Work::failed).map(StoredFailure::from),
            cancelled: work.and_then(Work::cancelled).map(StoredCancel::from),
            task: entry.task.as_deref().map(StoredTask::from),
            acked_at: entry.acked_at,
            item: Cow::Borrowed(entry.item.raw()),
            image: entry.item.image().map(Cow::Borrowed),
        }
    }
}

impl Returned<'_> {
    fn restore(self, revision: Revision) -> Entry {
        let by = self.updated_by.map(Cow::into_owned);
        let in_review = self.in_review.map(|review| Work::InReview(Review::from(review)));
        let done = self.done.map(|done| Work::Done(Done::from(done)));
        let failed = self.failed.map(|failed| Work::Failed(Failed::from(failed)));
        let cancelled = self.cancelled.map(|cancel| Work::Cancelled(Cancel::from(cancel)));
        Entry {
            seq: self.seq,
            revision,
            at: self.at,
            agent: self.agent.map(Cow::into_owned),
            updated: self.updated_at.map(|at| Box::new(Updated { at, by })),
            work: done.or(failed).or(in_review).or(cancelled).map(Box::new),
            task: self.task.map(|task| Box::new(Task::from(task))),
            acked_at: self.acked_at,
            item: Item::restore(self.item.into_owned(), self.image.map(Cow::into_owned)),
        }
    }
}

impl<'a> From<&'a Agent> for Known<'a> {
    fn from(agent: &'a Agent) -> Self {
        Self {
            profile: Cow::Borrowed(agent.profile.item().raw()),
            registered_at: agent.registered_at,
            updated_at: agent.updated_at,
            last_seen: agent.last_seen,
        }
    }
}

impl Known<'_> {
    fn restore(self, changed: Revision) -> Result<Agent, Unreadable> {
        Ok(Agent {
            profile: restore_profile(self.profile)?,
            registered_at: self.registered_at,
            updated_at: self.updated_at,
            changed,
            last_seen: self.last_seen,
        })
    }
}
