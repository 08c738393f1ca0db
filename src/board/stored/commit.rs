//! A commit's body.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Unreadable;
use crate::board::settings::{Labels, Settings};
use crate::board::{
    AgentName, Change, Commit, Image, Item, LogName, Nonce, Revision, Seq, SeqRange, SessionName,
    Timestamp,
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredCommit<'a> {
    revision: Revision,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<Cow<'a, AgentName>>,
    nonce: Nonce,
    changes: Vec<StoredChange<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum StoredChange<'a> {
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
}

/// The body of a commit, as its frame holds it.
///
/// # Errors
///
/// [`Unreadable`] where it cannot be written as JSON; no commit of ours is so.
pub fn encode_commit(commit: &Commit) -> Result<Vec<u8>, Unreadable> {
    let stored = StoredCommit {
        revision: commit.revision,
        at: commit.at,
        agent: commit.agent.as_ref().map(Cow::Borrowed),
        nonce: commit.nonce,
        changes: commit.changes.iter().map(StoredChange::from).collect(),
    };
    Ok(serde_json::to_vec(&stored)?)
}

/// Reads the body of a commit.
///
/// # Errors
///
/// [`Unreadable`] where it is not in this format.
pub fn decode_commit(body: &[u8]) -> Result<Commit, Unreadable> {
    let stored: StoredCommit<'_> = serde_json::from_slice(body)?;
    Ok(Commit {
        revision: stored.revision,
        at: stored.at,
        agent: stored.agent.map(Cow::into_owned),
        nonce: stored.nonce,
        changes: stored.changes.into_iter().map(Change::try_from).collect::<Result<_, _>>()?,
    })
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
        })
    }
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
