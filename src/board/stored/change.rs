//! A change within a commit's body.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Unreadable;
use crate::board::settings::{Labels, Settings};
use crate::board::{
    AgentName, Change, Due, Image, Item, Json, LogName, Profile, Revision, Seq, SeqRange,
    SessionName, StatePath, Timestamp,
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
}

impl<'a> From<&'a Change> for StoredChange<'a> {
    fn from(change: &'a Change) -> Self {
        match change {
            Change::Created { name, settings, labels } => Self::Created {
                name: Cow::Borrowed(name),
                settings: Cow::Borrowed(settings),
                labels: Cow::Borrowed(labels),
            },
            Change::Configured { settings, labels } => Self::Configured {
                settings: Cow::Borrowed(settings),
                labels: Cow::Borrowed(labels),
            },
            Change::Deleted => Self::Deleted {},
            Change::Appended { log, first, items } => Self::Appended {
                log: Cow::Borrowed(log),
                first: *first,
                items: items.iter().map(|item| Cow::Borrowed(item.raw())).collect(),
                images: images(items),
            },
            Change::Cleared { log } => Self::Cleared { log: Cow::Borrowed(log) },
            Change::Removed { log, ranges } => {
                Self::Removed { log: Cow::Borrowed(log), ranges: Cow::Borrowed(ranges) }
            }
            Change::Updated { log, seq, item } => Self::Updated {
                log: Cow::Borrowed(log),
                seq: *seq,
                item: Cow::Borrowed(item.raw()),
                image: item.image().map(Cow::Borrowed),
            },
            Change::StatePut { path, value, expires_at } => Self::StatePut {
                path: Cow::Borrowed(path),
                value: Cow::Borrowed(value.raw()),
                expires_at: *expires_at,
            },
            Change::StateSet { path, value } => {
                Self::StateSet { path: Cow::Borrowed(path), value: Cow::Borrowed(value.raw()) }
            }
            Change::StateMerged { path, patch } => {
                Self::StateMerged { path: Cow::Borrowed(path), patch: Cow::Borrowed(patch.raw()) }
            }
            Change::StateAppended { path, elements } => Self::StateAppended {
                path: Cow::Borrowed(path),
                elements: elements.iter().map(|element| Cow::Borrowed(element.raw())).collect(),
            },
            Change::StateRemoved { path } => Self::StateRemoved { path: Cow::Borrowed(path) },
            Change::AgentPut { agent, profile } => Self::AgentPut {
                agent: Cow::Borrowed(agent),
                profile: Cow::Borrowed(profile.item().raw()),
            },
            Change::AgentRemoved { agent } => Self::AgentRemoved { agent: Cow::Borrowed(agent) },
            Change::Claimed { seq, agent, fence, expires_at } => Self::Claimed {
                seq: *seq,
                agent: Cow::Borrowed(agent),
                fence: *fence,
                expires_at: *expires_at,
            },
            Change::Released { seq } => Self::Released { seq: *seq },
            Change::Finished { seq, fence, result } => Self::Finished {
                seq: *seq,
                fence: *fence,
                result: result.as_ref().map(|result| Cow::Borrowed(result.raw())),
            },
            Change::Expired(Due::State(path)) => Self::StateExpired { path: Cow::Borrowed(path) },
            Change::Expired(Due::Claim(seq)) => Self::ClaimExpired { seq: *seq },
            Change::Expired(Due::Session) => Self::SessionExpired {},
        }
    }
}

fn images(items: &[Item]) -> Vec<(usize, Cow<'_, Image>)> {
    let with_index = items.iter().enumerate();
    with_index.filter_map(|(i, item)| Some((i, Cow::Borrowed(item.image()?)))).collect()
}

impl TryFrom<StoredChange<'_>> for Change {
    type Error = Unreadable;

    fn try_from(stored: StoredChange<'_>) -> Result<Self, Unreadable> {
        Ok(match stored {
            StoredChange::Created { name, settings, labels } => Self::Created {
                name: name.into_owned(),
                settings: Arc::new(settings.into_owned()),
                labels: Arc::new(labels.into_owned()),
            },
            StoredChange::Configured { settings, labels } => Self::Configured {
                settings: Arc::new(settings.into_owned()),
                labels: Arc::new(labels.into_owned()),
            },
            StoredChange::Deleted {} => Self::Deleted,
            StoredChange::Appended { log, first, items, images } => {
                Self::Appended { log: log.into_owned(), first, items: restore(items, images)? }
            }
            StoredChange::Cleared { log } => Self::Cleared { log: log.into_owned() },
            StoredChange::Removed { log, ranges } => {
                Self::Removed { log: log.into_owned(), ranges: ranges.into_owned() }
            }
            StoredChange::Updated { log, seq, item, image } => Self::Updated {
                log: log.into_owned(),
                seq,
                item: Item::restore(item.into_owned(), image.map(Cow::into_owned)),
            },
            StoredChange::StatePut { path, value, expires_at } => {
                Self::StatePut { path: path.into_owned(), value: json(value), expires_at }
            }
            StoredChange::StateSet { path, value } => {
                Self::StateSet { path: path.into_owned(), value: json(value) }
            }
            StoredChange::StateMerged { path, patch } => {
                Self::StateMerged { path: path.into_owned(), patch: json(patch) }
            }
            StoredChange::StateAppended { path, elements } => Self::StateAppended {
                path: path.into_owned(),
                elements: elements.into_iter().map(json).collect(),
            },
            StoredChange::StateRemoved { path } => Self::StateRemoved { path: path.into_owned() },
            StoredChange::AgentPut { agent, profile } => {
                Self::AgentPut { agent: agent.into_owned(), profile: restore_profile(profile)? }
            }
            StoredChange::AgentRemoved { agent } => {
                Self::AgentRemoved { agent: agent.into_owned() }
            }
            StoredChange::Claimed { seq, agent, fence, expires_at } => {
                Self::Claimed { seq, agent: agent.into_owned(), fence, expires_at }
            }
            StoredChange::Released { seq } => Self::Released { seq },
            StoredChange::Finished { seq, fence, result } => {
                Self::Finished { seq, fence, result: result.map(json) }
            }
            StoredChange::StateExpired { path } => Self::Expired(Due::State(path.into_owned())),
            StoredChange::ClaimExpired { seq } => Self::Expired(Due::Claim(seq)),
            StoredChange::SessionExpired {} => Self::Expired(Due::Session),
        })
    }
}

fn json(text: Cow<'_, RawValue>) -> Json {
    Json::from(text.into_owned())
}

pub(super) fn restore_profile(text: Cow<'_, RawValue>) -> Result<Profile, Unreadable> {
    let item = Item::restore(text.into_owned(), None);
    Profile::new(item).ok_or(Unreadable::Profile)
}

fn restore(
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
