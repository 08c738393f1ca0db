//! Stored changes, within a commit's body.

use std::borrow::Cow::{self, Borrowed};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Unreadable;
use super::restored::StoredRestored;
use crate::board::model::settings::{Labels, Settings};
use crate::board::{
    AgentName, Awaited, Change, CheckpointName, Digest, Due, Image, Item, Json, LogName, Profile,
    Revision, Seq, SeqRange, SessionName, StatePath, Timestamp,
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
        /// The images of those items that have one, each with its item's index.
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
}

impl<'a> From<&'a Change> for StoredChange<'a> {
    fn from(change: &'a Change) -> Self {
        match change {
            Change::Created { name, settings, labels } => Self::Created {
                name: Borrowed(name),
                settings: Borrowed(settings),
                labels: Borrowed(labels),
            },
            Change::Configured { settings, labels } => {
                Self::Configured { settings: Borrowed(settings), labels: Borrowed(labels) }
            }
            Change::Deleted => Self::Deleted {},
            Change::Appended { log, first, items } => {
                let (texts, images) =
                    (items.iter().map(|item| Borrowed(item.raw())), images(items));
                Self::Appended { log: Borrowed(log), first: *first, items: texts.collect(), images }
            }
            Change::Cleared { log } => Self::Cleared { log: Borrowed(log) },
            Change::Removed { log, ranges } => {
                Self::Removed { log: Borrowed(log), ranges: Borrowed(ranges) }
            }
            Change::Updated { log, seq, item } => {
                let (item, image) = (Borrowed(item.raw()), item.image().map(Borrowed));
                Self::Updated { log: Borrowed(log), seq: *seq, item, image }
            }
            Change::StatePut { path, value, expires_at } => {
                let (value, expires_at) = (Borrowed(value.raw()), *expires_at);
                Self::StatePut { path: Borrowed(path), value, expires_at }
            }
            Change::StateSet { path, value } => {
                Self::StateSet { path: Borrowed(path), value: Borrowed(value.raw()) }
            }
            Change::StateMerged { path, patch } => {
                Self::StateMerged { path: Borrowed(path), patch: Borrowed(patch.raw()) }
            }
            Change::StateAppended { path, elements } => Self::StateAppended {
                path: Borrowed(path),
                elements: elements.iter().map(|element| Borrowed(element.raw())).collect(),
            },
            Change::StateRemoved { path } => Self::StateRemoved { path: Borrowed(path) },
            Change::AgentPut { agent, profile } => {
                Self::AgentPut { agent: Borrowed(agent), profile: Borrowed(profile.item().raw()) }
            }
            Change::AgentRemoved { agent } => Self::AgentRemoved { agent: Borrowed(agent) },
            Change::Claimed { seq, agent, fence, expires_at } => {
                let (fence, expires_at) = (*fence, *expires_at);
                Self::Claimed { seq: *seq, agent: Borrowed(agent), fence, expires_at }
            }
            Change::Released { seq } => Self::Released { seq: *seq },
            Change::Finished { seq, fence, result } => {
                let result = result.as_ref().map(|result| Borrowed(result.raw()));
                Self::Finished { seq: *seq, fence: *fence, result }
            }
            Change::Expired(due) => Self::from(due),
            Change::Awaited { first, last, until } => {
                let default = until.default.as_deref().map(Borrowed);
                Self::Awaited { first: *first, last: *last, expires_at: until.expires_at, default }
            }
            Change::CheckpointPut { name } => Self::CheckpointPut { name: Borrowed(name) },
            Change::CheckpointRemoved { name } => Self::CheckpointRemoved { name: Borrowed(name) },
            Change::Restored(restored) => Self::Restored(StoredRestored::from(&**restored)),
            Change::Adopted { name, after, fork_of } => {
                let fork_of = fork_of.as_ref().map(Borrowed);
                Self::Adopted { name: Borrowed(name), after: *after, fork_of }
            }
            Change::ImagesForgotten { images } => {
                Self::ImagesForgotten { images: Borrowed(images) }
            }
        }
    }
}

impl<'a> From<&'a Due> for StoredChange<'a> {
    fn from(due: &'a Due) -> Self {
        match due {
            Due::State(path) => Self::StateExpired { path: Borrowed(path) },
            Due::Claim(seq) => Self::ClaimExpired { seq: *seq },
            Due::Session => Self::SessionExpired {},
            Due::Question(seq) => Self::QuestionExpired { seq: *seq },
        }
    }
}

fn images(items: &[Item]) -> Vec<(usize, Cow<'_, Image>)> {
    let with_index = items.iter().enumerate();
    with_index.filter_map(|(i, item)| Some((i, Borrowed(item.image()?)))).collect()
}

impl StoredChange<'_> {
    /// The change, as one of the commit that makes this revision.
    pub(super) fn restore(self, revision: Revision) -> Result<Change, Unreadable> {
        Ok(match self {
            Self::Created { name, settings, labels } => {
                let (settings, labels) = configuration(settings, labels);
                Change::Created { name: name.into_owned(), settings, labels }
            }
            Self::Configured { settings, labels } => {
                let (settings, labels) = configuration(settings, labels);
                Change::Configured { settings, labels }
            }
            Self::Deleted {} => Change::Deleted,
            Self::Appended { log, first, items, images } => {
                let items = restore_items(items, images)?;
                Change::Appended { log: log.into_owned(), first, items }
            }
            Self::Cleared { log } => Change::Cleared { log: log.into_owned() },
            Self::Removed { log, ranges } => {
                Change::Removed { log: log.into_owned(), ranges: ranges.into_owned() }
            }
            Self::Updated { log, seq, item, image } => {
                let item = Item::restore(item.into_owned(), image.map(Cow::into_owned));
                Change::Updated { log: log.into_owned(), seq, item }
            }
            Self::StatePut { path, value, expires_at } => {
                Change::StatePut { path: path.into_owned(), value: json(value), expires_at }
            }
            Self::StateSet { path, value } => {
                Change::StateSet { path: path.into_owned(), value: json(value) }
            }
            Self::StateMerged { path, patch } => {
                Change::StateMerged { path: path.into_owned(), patch: json(patch) }
            }
            Self::StateAppended { path, elements } => Change::StateAppended {
                path: path.into_owned(),
                elements: elements.into_iter().map(json).collect(),
            },
            Self::StateRemoved { path } => Change::StateRemoved { path: path.into_owned() },
            Self::AgentPut { agent, profile } => {
                Change::AgentPut { agent: agent.into_owned(), profile: restore_profile(profile)? }
            }
            Self::AgentRemoved { agent } => Change::AgentRemoved { agent: agent.into_owned() },
            Self::Claimed { seq, agent, fence, expires_at } => {
                Change::Claimed { seq, agent: agent.into_owned(), fence, expires_at }
            }
            Self::Released { seq } => Change::Released { seq },
            Self::Finished { seq, fence, result } => {
                Change::Finished { seq, fence, result: result.map(json) }
            }
            Self::StateExpired { path } => Change::Expired(Due::State(path.into_owned())),
            Self::ClaimExpired { seq } => Change::Expired(Due::Claim(seq)),
            Self::SessionExpired {} => Change::Expired(Due::Session),
            Self::QuestionExpired { seq } => Change::Expired(Due::Question(seq)),
            Self::Awaited { first, last, expires_at, default } => {
                let default = default.map(|default| default.into_owned().into_boxed_str());
                Change::Awaited { first, last, until: Awaited { expires_at, default } }
            }
            Self::CheckpointPut { name } => Change::CheckpointPut { name: name.into_owned() },
            Self::CheckpointRemoved { name } => {
                Change::CheckpointRemoved { name: name.into_owned() }
            }
            Self::Restored(stored) => Change::Restored(Box::new(stored.restore(revision)?)),
            Self::Adopted { name, after, fork_of } => {
                let fork_of = fork_of.map(Cow::into_owned);
                Change::Adopted { name: name.into_owned(), after, fork_of }
            }
            Self::ImagesForgotten { images } => {
                Change::ImagesForgotten { images: images.into_owned() }
            }
        })
    }
}

fn configuration(
    settings: Cow<'_, Settings>,
    labels: Cow<'_, Labels>,
) -> (Arc<Settings>, Arc<Labels>) {
    (Arc::new(settings.into_owned()), Arc::new(labels.into_owned()))
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
