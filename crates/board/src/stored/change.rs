//! Stored changes in a commit's body.

use std::borrow::Cow::{self, Borrowed};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Unreadable;
use super::restored::StoredRestored;
use super::work::is_default;
use crate::model::settings::{Labels, Settings};
use crate::{
    AgentChange, AgentName, Awaited, Change, CheckpointChange, CheckpointName, Digest, Due, Image,
    Item, Json, LogChange, LogName, MediaType, Note, Plan, Priority, Profile, RequestChange,
    Revision, Seq, SeqRange, SessionChange, SessionName, StateChange, StatePath, Timestamp,
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(super) enum StoredChange<'a> {
    Created {
        name: Cow<'a, SessionName>,
        settings: Cow<'a, Settings>,
        labels: Cow<'a, Labels>,
    },
    Configured {
        settings: Cow<'a, Settings>,
        labels: Cow<'a, Labels>,
    },
    Deleted {},
    Appended {
        log: Cow<'a, LogName>,
        first: Seq,
        items: Vec<Cow<'a, RawValue>>,
        /// The items' images, each with the index of its item.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<(usize, Cow<'a, Image>)>,
    },
    Cleared {
        log: Cow<'a, LogName>,
    },
    Removed {
        log: Cow<'a, LogName>,
        ranges: Cow<'a, [SeqRange]>,
    },
    Updated {
        log: Cow<'a, LogName>,
        seq: Seq,
        item: Cow<'a, RawValue>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<Cow<'a, Image>>,
    },
    Acked {
        log: Cow<'a, LogName>,
        seq: Seq,
    },
    StatePut {
        path: Cow<'a, StatePath>,
        value: Cow<'a, RawValue>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
    },
    StateSet {
        path: Cow<'a, StatePath>,
        value: Cow<'a, RawValue>,
    },
    StateMerged {
        path: Cow<'a, StatePath>,
        patch: Cow<'a, RawValue>,
    },
    StateAppended {
        path: Cow<'a, StatePath>,
        elements: Vec<Cow<'a, RawValue>>,
    },
    StateRemoved {
        path: Cow<'a, StatePath>,
    },
    AgentPut {
        agent: Cow<'a, AgentName>,
        profile: Cow<'a, RawValue>,
    },
    AgentRemoved {
        agent: Cow<'a, AgentName>,
    },
    Claimed {
        seq: Seq,
        agent: Cow<'a, AgentName>,
        fence: Revision,
        expires_at: Timestamp,
    },
    Released {
        seq: Seq,
    },
    Failed {
        seq: Seq,
        #[serde(
            default,
            deserialize_with = "super::present",
            skip_serializing_if = "Option::is_none"
        )]
        reason: Option<Cow<'a, RawValue>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_at: Option<Timestamp>,
    },
    Retried {
        seq: Seq,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    CancelRequested(StoredReason<'a>),
    Cancelled(StoredReason<'a>),
    Verdict {
        seq: Seq,
        accepted: bool,
        #[serde(
            default,
            deserialize_with = "super::present",
            skip_serializing_if = "Option::is_none"
        )]
        reason: Option<Cow<'a, RawValue>>,
    },
    Planned(StoredPlanned<'a>),
    Finished {
        seq: Seq,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fence: Option<Revision>,
        #[serde(
            default,
            deserialize_with = "super::present",
            skip_serializing_if = "Option::is_none"
        )]
        result: Option<Cow<'a, RawValue>>,
    },
    StateExpired {
        path: Cow<'a, StatePath>,
    },
    ClaimExpired {
        seq: Seq,
    },
    DeadlinePassed {
        seq: Seq,
    },
    Due {
        requests: Cow<'a, [SeqRange]>,
    },
    SessionExpired {},
    QuestionExpired {
        seq: Seq,
    },
    Awaited {
        first: Seq,
        last: Seq,
        expires_at: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default: Option<Cow<'a, str>>,
    },
    CheckpointPut {
        name: Cow<'a, CheckpointName>,
    },
    CheckpointRemoved {
        name: Cow<'a, CheckpointName>,
    },
    Restored(StoredRestored<'a>),
    Adopted {
        name: Cow<'a, SessionName>,
        after: Revision,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fork_of: Option<Cow<'a, SessionName>>,
    },
    ImagesForgotten {
        images: Cow<'a, [Digest]>,
    },
    BudgetExhausted {},
    BlobPut {
        sha256: Digest,
        bytes: u64,
        media_type: Cow<'a, MediaType>,
    },
}

/// The plan of requests.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredPlanned<'a> {
    first: Seq,
    last: Seq,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    after: Cow<'a, [Seq]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    priority: Priority,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_default")]
    review: bool,
}

/// A request, and the reason of what happened to it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredReason<'a> {
    seq: Seq,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, RawValue>>,
}

impl<'a> From<&'a Change> for StoredChange<'a> {
    fn from(change: &'a Change) -> Self {
        match change {
            Change::Session(change) => Self::of_session(change),
            Change::Log(log, change) => Self::of_log(log, change),
            Change::State(path, change) => Self::of_state(path, change),
            Change::Agent(agent, AgentChange::Put { profile }) => {
                Self::AgentPut { agent: Borrowed(agent), profile: Borrowed(profile.item().raw()) }
            }
            Change::Agent(agent, AgentChange::Removed) => {
                Self::AgentRemoved { agent: Borrowed(agent) }
            }
            Change::Request(seq, change) => Self::of_request(*seq, change),
            Change::Planned { first, last, plan } => {
                Self::Planned(StoredPlanned::of(*first, *last, plan))
            }
            Change::Expired(due) => Self::from(due),
            Change::Awaited { first, last, until } => {
                let default = until.default.as_deref().map(Borrowed);
                Self::Awaited { first: *first, last: *last, expires_at: until.expires_at, default }
            }
            Change::Checkpoint(name, CheckpointChange::Put) => {
                Self::CheckpointPut { name: Borrowed(name) }
            }
            Change::Checkpoint(name, CheckpointChange::Removed) => {
                Self::CheckpointRemoved { name: Borrowed(name) }
            }
        }
    }
}

impl<'a> StoredChange<'a> {
    fn of_session(change: &'a SessionChange) -> Self {
        match change {
            SessionChange::Created { name, settings, labels } => Self::Created {
                name: Borrowed(name),
                settings: Borrowed(settings),
                labels: Borrowed(labels),
            },
            SessionChange::Configured { settings, labels } => {
                Self::Configured { settings: Borrowed(settings), labels: Borrowed(labels) }
            }
            SessionChange::Deleted => Self::Deleted {},
            SessionChange::Restored(restored) => Self::Restored(StoredRestored::from(&**restored)),
            SessionChange::Adopted { name, after, fork_of } => {
                let fork_of = fork_of.as_ref().map(Borrowed);
                Self::Adopted { name: Borrowed(name), after: *after, fork_of }
            }
            SessionChange::ImagesForgotten { images } => {
                Self::ImagesForgotten { images: Borrowed(images) }
            }
            SessionChange::Noted(Note::BudgetExhausted) => Self::BudgetExhausted {},
            SessionChange::BlobPut { sha256, bytes, media_type } => {
                let media_type = Borrowed(media_type);
                Self::BlobPut { sha256: *sha256, bytes: *bytes, media_type }
            }
        }
    }

    fn of_request(seq: Seq, change: &'a RequestChange) -> Self {
        let raw = |json: &'a Option<Json>| json.as_ref().map(|json| Borrowed(json.raw()));
        match change {
            RequestChange::Claimed { agent, fence, expires_at } => {
                let (fence, expires_at) = (*fence, *expires_at);
                Self::Claimed { seq, agent: Borrowed(agent), fence, expires_at }
            }
            RequestChange::Released => Self::Released { seq },
            RequestChange::Finished { fence, result } => {
                Self::Finished { seq, fence: *fence, result: raw(result) }
            }
            RequestChange::Failed { reason, retry_at } => {
                Self::Failed { seq, reason: raw(reason), retry_at: *retry_at }
            }
            RequestChange::Retried { deadline } => Self::Retried { seq, deadline: *deadline },
            RequestChange::CancelRequested { reason } => {
                Self::CancelRequested(StoredReason { seq, reason: raw(reason) })
            }
            RequestChange::Cancelled { reason } => {
                Self::Cancelled(StoredReason { seq, reason: raw(reason) })
            }
            RequestChange::Verdict { accepted, reason } => {
                Self::Verdict { seq, accepted: *accepted, reason: raw(reason) }
            }
        }
    }

    fn of_log(log: &'a LogName, change: &'a LogChange) -> Self {
        match change {
            LogChange::Appended { first, items } => {
                let (texts, images) =
                    (items.iter().map(|item| Borrowed(item.raw())), images(items));
                Self::Appended { log: Borrowed(log), first: *first, items: texts.collect(), images }
            }
            LogChange::Cleared => Self::Cleared { log: Borrowed(log) },
            LogChange::Removed { ranges } => {
                Self::Removed { log: Borrowed(log), ranges: Borrowed(ranges) }
            }
            LogChange::Updated { seq, item } => {
                let (item, image) = (Borrowed(item.raw()), item.image().map(Borrowed));
                Self::Updated { log: Borrowed(log), seq: *seq, item, image }
            }
            LogChange::Acked { seq } => Self::Acked { log: Borrowed(log), seq: *seq },
        }
    }

    fn of_state(path: &'a StatePath, change: &'a StateChange) -> Self {
        match change {
            StateChange::Put { value, expires_at } => {
                let (value, expires_at) = (Borrowed(value.raw()), *expires_at);
                Self::StatePut { path: Borrowed(path), value, expires_at }
            }
            StateChange::Set { value } => {
                Self::StateSet { path: Borrowed(path), value: Borrowed(value.raw()) }
            }
            StateChange::Merged { patch } => {
                Self::StateMerged { path: Borrowed(path), patch: Borrowed(patch.raw()) }
            }
            StateChange::Appended { elements } => Self::StateAppended {
                path: Borrowed(path),
                elements: elements.iter().map(|element| Borrowed(element.raw())).collect(),
            },
            StateChange::Removed => Self::StateRemoved { path: Borrowed(path) },
        }
    }
}

impl<'a> From<&'a Due> for StoredChange<'a> {
    fn from(due: &'a Due) -> Self {
        match due {
            Due::State(path) => Self::StateExpired { path: Borrowed(path) },
            Due::Claim(seq) => Self::ClaimExpired { seq: *seq },
            Due::Deadline(seq) => Self::DeadlinePassed { seq: *seq },
            Due::Requests(requests) => Self::Due { requests: Borrowed(requests) },
            Due::Session => Self::SessionExpired {},
            Due::Question(seq) => Self::QuestionExpired { seq: *seq },
        }
    }
}

fn images(items: &[Item]) -> Vec<(usize, Cow<'_, Image>)> {
    let with_index = items.iter().enumerate();
    with_index.filter_map(|(i, item)| Some((i, Borrowed(item.image()?)))).collect()
}

impl StoredReason<'_> {
    fn restore(self, change: impl FnOnce(Option<Json>) -> RequestChange) -> Change {
        request(self.seq, change(self.reason.map(json)))
    }
}

impl<'a> StoredPlanned<'a> {
    fn of(first: Seq, last: Seq, plan: &'a Plan) -> Self {
        let Plan { after, attempts, priority, not_before, deadline, review } = plan;
        let (attempts, priority, review) = (*attempts, *priority, *review);
        let (not_before, deadline) = (*not_before, *deadline);
        Self {
            first,
            last,
            after: Borrowed(after),
            attempts,
            priority,
            not_before,
            deadline,
            review,
        }
    }

    fn restore(self) -> Change {
        let Self { first, last, after, attempts, priority, not_before, deadline, review } = self;
        let after = after.into_owned().into();
        let plan = Plan { after, attempts, priority, not_before, deadline, review };
        Change::Planned { first, last, plan }
    }
}

impl StoredChange<'_> {
    /// Returns the change as part of the commit that creates this revision.
    pub(super) fn restore(self, revision: Revision) -> Result<Change, Unreadable> {
        Ok(match self {
            Self::Created { name, settings, labels } => {
                let (name, settings, labels) = (name.into_owned(), arc(settings), arc(labels));
                session(SessionChange::Created { name, settings, labels })
            }
            Self::Configured { settings, labels } => {
                let (settings, labels) = (arc(settings), arc(labels));
                session(SessionChange::Configured { settings, labels })
            }
            Self::Deleted {} => session(SessionChange::Deleted),
            Self::Appended { log, first, items, images } => {
                log_of(log, LogChange::Appended { first, items: restore_items(items, images)? })
            }
            Self::Cleared { log } => log_of(log, LogChange::Cleared),
            Self::Removed { log, ranges } => {
                log_of(log, LogChange::Removed { ranges: ranges.into_owned() })
            }
            Self::Updated { log, seq, item, image } => {
                let item = Item::restore(item.into_owned(), image.map(Cow::into_owned));
                log_of(log, LogChange::Updated { seq, item })
            }
            Self::Acked { log, seq } => log_of(log, LogChange::Acked { seq }),
            Self::StatePut { path, value, expires_at } => {
                at(path, StateChange::Put { value: json(value), expires_at })
            }
            Self::StateSet { path, value } => at(path, StateChange::Set { value: json(value) }),
            Self::StateMerged { path, patch } => {
                at(path, StateChange::Merged { patch: json(patch) })
            }
            Self::StateAppended { path, elements } => state_appended(path, elements),
            Self::StateRemoved { path } => at(path, StateChange::Removed),
            Self::AgentPut { agent, profile } => agent_put(agent, restore_profile(profile)?),
            Self::AgentRemoved { agent } => Change::Agent(agent.into_owned(), AgentChange::Removed),
            Self::Claimed { seq, agent, fence, expires_at } => {
                let agent = agent.into_owned();
                request(seq, RequestChange::Claimed { agent, fence, expires_at })
            }
            Self::Released { seq } => request(seq, RequestChange::Released),
            Self::Finished { seq, fence, result } => finished(seq, fence, result),
            Self::Failed { seq, reason, retry_at } => failed(seq, reason, retry_at),
            Self::Retried { seq, deadline } => request(seq, RequestChange::Retried { deadline }),
            Self::CancelRequested(stored) => stored.restore(cancel_requested),
            Self::Cancelled(stored) => stored.restore(cancelled),
            Self::Verdict { seq, accepted, reason } => verdict(seq, accepted, reason),
            Self::Planned(planned) => planned.restore(),
            Self::StateExpired { path } => Change::Expired(Due::State(path.into_owned())),
            Self::ClaimExpired { seq } => Change::Expired(Due::Claim(seq)),
            Self::DeadlinePassed { seq } => Change::Expired(Due::Deadline(seq)),
            Self::Due { requests } => Change::Expired(Due::Requests(requests.into_owned())),
            Self::SessionExpired {} => Change::Expired(Due::Session),
            Self::QuestionExpired { seq } => Change::Expired(Due::Question(seq)),
            Self::Awaited { first, last, expires_at, default } => {
                awaited(first, last, expires_at, default)
            }
            Self::CheckpointPut { name } => checkpoint(name, CheckpointChange::Put),
            Self::CheckpointRemoved { name } => checkpoint(name, CheckpointChange::Removed),
            Self::Restored(stored) => {
                session(SessionChange::Restored(Box::new(stored.restore(revision)?)))
            }
            Self::Adopted { name, after, fork_of } => {
                let (name, fork_of) = (name.into_owned(), fork_of.map(Cow::into_owned));
                Change::Session(SessionChange::Adopted { name, after, fork_of })
            }
            Self::ImagesForgotten { images } => forgotten(images),
            Self::BudgetExhausted {} => session(SessionChange::Noted(Note::BudgetExhausted)),
            Self::BlobPut { sha256, bytes, media_type } => blob_put(sha256, bytes, media_type),
        })
    }
}

fn blob_put(sha256: Digest, bytes: u64, media_type: Cow<'_, MediaType>) -> Change {
    let media_type = media_type.into_owned();
    Change::Session(SessionChange::BlobPut { sha256, bytes, media_type })
}

fn forgotten(images: Cow<'_, [Digest]>) -> Change {
    session(SessionChange::ImagesForgotten { images: images.into_owned() })
}

fn log_of(log: Cow<'_, LogName>, change: LogChange) -> Change {
    Change::Log(log.into_owned(), change)
}

fn session(change: SessionChange) -> Change {
    Change::Session(change)
}

fn state_appended(path: Cow<'_, StatePath>, elements: Vec<Cow<'_, RawValue>>) -> Change {
    at(path, StateChange::Appended { elements: elements.into_iter().map(json).collect() })
}

fn at(path: Cow<'_, StatePath>, change: StateChange) -> Change {
    Change::State(path.into_owned(), change)
}

fn request(seq: Seq, change: RequestChange) -> Change {
    Change::Request(seq, change)
}

fn agent_put(agent: Cow<'_, AgentName>, profile: Profile) -> Change {
    Change::Agent(agent.into_owned(), AgentChange::Put { profile })
}

fn finished(seq: Seq, fence: Option<Revision>, result: Option<Cow<'_, RawValue>>) -> Change {
    request(seq, RequestChange::Finished { fence, result: result.map(json) })
}

fn failed(seq: Seq, reason: Option<Cow<'_, RawValue>>, retry_at: Option<Timestamp>) -> Change {
    request(seq, RequestChange::Failed { reason: reason.map(json), retry_at })
}

fn cancel_requested(reason: Option<Json>) -> RequestChange {
    RequestChange::CancelRequested { reason }
}

fn cancelled(reason: Option<Json>) -> RequestChange {
    RequestChange::Cancelled { reason }
}

fn verdict(seq: Seq, accepted: bool, reason: Option<Cow<'_, RawValue>>) -> Change {
    request(seq, RequestChange::Verdict { accepted, reason: reason.map(json) })
}

fn awaited(first: Seq, last: Seq, expires_at: Timestamp, default: Option<Cow<'_, str>>) -> Change {
    let default = default.map(|default| default.into_owned().into());
    Change::Awaited { first, last, until: Awaited { expires_at, default } }
}

fn checkpoint(name: Cow<'_, CheckpointName>, change: CheckpointChange) -> Change {
    Change::Checkpoint(name.into_owned(), change)
}

fn arc<T: Clone>(shown: Cow<'_, T>) -> Arc<T> {
    Arc::new(shown.into_owned())
}

pub(super) fn json(text: Cow<'_, RawValue>) -> Json {
    Json::from(text.into_owned())
}

pub(super) fn restore_profile(text: Cow<'_, RawValue>) -> Result<Profile, Unreadable> {
    let item = Item::restore(text.into_owned(), None);
    Profile::new(item).ok_or(Unreadable::Profile)
}

fn restore_items(
    texts: Vec<Cow<'_, RawValue>>,
    images: Vec<(usize, Cow<'_, Image>)>,
) -> Result<Vec<Item>, Unreadable> {
    let items = texts.len();
    let mut places: Vec<Option<Image>> = vec![None; items];
    for (index, image) in images {
        let place = places.get_mut(index).ok_or(Unreadable::Image { index, items })?;
        *place = Some(image.into_owned());
    }
    let pairs = texts.into_iter().zip(places);
    Ok(pairs.map(|(text, image)| Item::restore(text.into_owned(), image)).collect())
}
