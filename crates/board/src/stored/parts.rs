//! The repeated parts of a base: entries, agents, checkpoints, open questions and idempotency keys.
//!
//! Writing a part copies no item. Reading one checks only the part itself.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Unreadable;
use super::change::restore_profile;
use super::work::{StoredTask, StoredWork};
use crate::log::Updated;
use crate::{
    Agent, AgentName, Awaited, Blob, Checkpoint, CheckpointName, Digest, Entry, Image, Item, Json,
    MediaType, Remembered, Revision, Seq, Task, Timestamp,
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredEntry<'a> {
    seq: Seq,
    revision: Revision,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    updated_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    updated_by: Option<AgentName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    work: Option<StoredWork<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<StoredTask<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    acked_at: Option<Timestamp>,
    item: Cow<'a, RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image: Option<Cow<'a, Image>>,
}

/// An uploaded blob, one of the images.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredBlob<'a> {
    sha256: Digest,
    media_type: Cow<'a, MediaType>,
    uploaded_at: Timestamp,
}

impl<'a> From<(&'a Digest, &'a Blob)> for StoredBlob<'a> {
    fn from((sha256, blob): (&'a Digest, &'a Blob)) -> Self {
        let media_type = Cow::Borrowed(&blob.media_type);
        Self { sha256: *sha256, media_type, uploaded_at: blob.uploaded_at }
    }
}

impl From<StoredBlob<'_>> for (Digest, Blob) {
    fn from(stored: StoredBlob<'_>) -> Self {
        let media_type = stored.media_type.into_owned();
        (stored.sha256, Blob { media_type, uploaded_at: stored.uploaded_at })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredAgent<'a> {
    name: AgentName,
    profile: Cow<'a, RawValue>,
    registered_at: Timestamp,
    updated_at: Timestamp,
    changed: Revision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_seen: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredCheckpoint {
    name: CheckpointName,
    revision: Revision,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentName>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredAwaited<'a> {
    seq: Seq,
    expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredKey<'a> {
    key: Cow<'a, str>,
    fingerprint: Digest,
    answer: Cow<'a, RawValue>,
    at: Timestamp,
}

impl<'a> From<&'a Entry> for StoredEntry<'a> {
    fn from(entry: &'a Entry) -> Self {
        let updated = entry.updated.as_ref();
        Self {
            seq: entry.seq,
            revision: entry.revision,
            at: entry.at,
            agent: entry.agent.clone(),
            updated_at: updated.map(|updated| updated.at),
            updated_by: updated.and_then(|updated| updated.by.clone()),
            work: entry.work.as_deref().map(StoredWork::from),
            task: entry.task.as_deref().map(StoredTask::from),
            acked_at: entry.acked_at,
            item: Cow::Borrowed(entry.item.raw()),
            image: entry.item.image().map(Cow::Borrowed),
        }
    }
}

impl From<StoredEntry<'_>> for Entry {
    fn from(stored: StoredEntry<'_>) -> Self {
        let by = stored.updated_by;
        let changed_at = stored.updated_at.unwrap_or(stored.at);
        Self {
            seq: stored.seq,
            revision: stored.revision,
            at: stored.at,
            agent: stored.agent,
            updated: stored.updated_at.map(|at| Box::new(Updated { at, by })),
            work: stored.work.map(|work| Box::new(work.restore(changed_at))),
            task: stored.task.map(|task| Box::new(Task::from(task))),
            acked_at: stored.acked_at,
            item: Item::restore(stored.item.into_owned(), stored.image.map(Cow::into_owned)),
        }
    }
}

impl<'a> From<(&'a AgentName, &'a Agent)> for StoredAgent<'a> {
    fn from((name, agent): (&'a AgentName, &'a Agent)) -> Self {
        Self {
            name: name.clone(),
            profile: Cow::Borrowed(agent.profile.item().raw()),
            registered_at: agent.registered_at,
            updated_at: agent.updated_at,
            changed: agent.changed,
            last_seen: agent.last_seen,
        }
    }
}

impl StoredAgent<'_> {
    pub(super) fn restore(self) -> Result<(AgentName, Agent), Unreadable> {
        let agent = Agent {
            profile: restore_profile(self.profile)?,
            registered_at: self.registered_at,
            updated_at: self.updated_at,
            changed: self.changed,
            last_seen: self.last_seen,
        };
        Ok((self.name, agent))
    }
}

impl From<(&CheckpointName, &Checkpoint)> for StoredCheckpoint {
    fn from((name, checkpoint): (&CheckpointName, &Checkpoint)) -> Self {
        let Checkpoint { revision, at, agent } = checkpoint.clone();
        Self { name: name.clone(), revision, at, agent }
    }
}

impl From<StoredCheckpoint> for (CheckpointName, Checkpoint) {
    fn from(stored: StoredCheckpoint) -> Self {
        let StoredCheckpoint { name, revision, at, agent } = stored;
        (name, Checkpoint { revision, at, agent })
    }
}

impl<'a> From<(&Seq, &'a Awaited)> for StoredAwaited<'a> {
    fn from((seq, awaited): (&Seq, &'a Awaited)) -> Self {
        let default = awaited.default.as_deref().map(Cow::Borrowed);
        Self { seq: *seq, expires_at: awaited.expires_at, default }
    }
}

impl From<StoredAwaited<'_>> for (Seq, Awaited) {
    fn from(stored: StoredAwaited<'_>) -> Self {
        let default = stored.default.map(Box::from);
        (stored.seq, Awaited { expires_at: stored.expires_at, default })
    }
}

impl<'a> From<(&'a Arc<str>, &'a Remembered)> for StoredKey<'a> {
    fn from((key, remembered): (&'a Arc<str>, &'a Remembered)) -> Self {
        Self {
            key: Cow::Borrowed(key),
            fingerprint: remembered.fingerprint,
            answer: Cow::Borrowed(remembered.answer.raw()),
            at: remembered.at,
        }
    }
}

impl From<StoredKey<'_>> for (Arc<str>, Remembered) {
    fn from(stored: StoredKey<'_>) -> Self {
        let answer = Json::from(stored.answer.into_owned());
        let remembered = Remembered { fingerprint: stored.fingerprint, answer, at: stored.at };
        (stored.key.into(), remembered)
    }
}
