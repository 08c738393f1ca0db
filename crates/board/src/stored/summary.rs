//! Stored summaries, one JSON object each.
//!
//! A summary is a cache of its history. A summary of another version or shape is discarded and rebuilt, so the format
//! may change with its version.

use serde::{Deserialize, Serialize};

use super::Unreadable;
use super::base::StoredLife;
use super::parts::StoredEntry;
use crate::model::board::Life;
use crate::{
    Cost, Entry, Extent, OpenEntry, Questions, Revision, SessionId, SessionName, Summary, Timestamp,
};

/// The version of the format.
const VERSION: u32 = 2;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSummary<'a> {
    version: u32,
    name: SessionName,
    revision: Revision,
    oldest: Revision,
    floor: Revision,
    updated_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    life: Option<StoredLife>,
    counts: [usize; 4],
    agents: usize,
    memory_entries: u64,
    state_bytes: u64,
    bytes: u64,
    image_bytes: u64,
    blobs: usize,
    history_bytes: u64,
    snapshot_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_due: Option<Timestamp>,
    /// All open questions; absent if too large.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    questions: Option<Vec<StoredQuestion<'a>>>,
    claimable: usize,
    cost: Cost,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredQuestion<'a> {
    #[serde(borrow)]
    entry: StoredEntry<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

/// Encodes a summary, without the session's id.
///
/// # Errors
///
/// [`Unreadable`] if the summary cannot be written as JSON, which happens for no valid summary.
pub fn encode_summary(summary: &Summary) -> Result<Vec<u8>, Unreadable> {
    let questions = match &summary.questions {
        Questions::All(questions) => Some(questions.iter().map(StoredQuestion::from).collect()),
        Questions::TooLarge => None,
    };
    Ok(serde_json::to_vec(&StoredSummary {
        version: VERSION,
        name: summary.name.clone(),
        revision: summary.extent.revision,
        oldest: summary.extent.oldest,
        floor: summary.extent.floor,
        updated_at: summary.updated_at,
        life: summary.life.as_ref().map(StoredLife::from),
        counts: summary.counts,
        agents: summary.agents,
        memory_entries: summary.memory_entries,
        state_bytes: summary.state_bytes,
        bytes: summary.bytes,
        image_bytes: summary.image_bytes,
        blobs: summary.blobs,
        history_bytes: summary.history_bytes,
        snapshot_bytes: summary.snapshot_bytes,
        next_due: summary.next_due,
        questions,
        claimable: summary.claimable,
        cost: summary.cost,
    })?)
}

/// Decodes a summary of this session.
///
/// # Errors
///
/// [`Unreadable::Summary`] for one of another version, another [`Unreadable`] if the bytes were not written by
/// [`encode_summary`].
pub fn decode_summary(session: SessionId, bytes: &[u8]) -> Result<Summary, Unreadable> {
    let read: Result<StoredSummary<'_>, _> = serde_json::from_slice(bytes);
    let stored = match read {
        Ok(stored) if stored.version == VERSION => stored,
        Ok(_) => return Err(Unreadable::Summary),
        Err(error) => return Err(other_version(bytes).unwrap_or_else(|| error.into())),
    };
    let StoredSummary { name, revision, oldest, floor, .. } = stored;
    let questions = match stored.questions {
        Some(questions) => Questions::All(questions.into_iter().map(OpenEntry::from).collect()),
        None => Questions::TooLarge,
    };
    Ok(Summary {
        extent: Extent { session, oldest, floor, revision },
        name,
        updated_at: stored.updated_at,
        life: stored.life.map(|life| Life::from(life).lean()),
        counts: stored.counts,
        agents: stored.agents,
        memory_entries: stored.memory_entries,
        state_bytes: stored.state_bytes,
        bytes: stored.bytes,
        image_bytes: stored.image_bytes,
        blobs: stored.blobs,
        history_bytes: stored.history_bytes,
        snapshot_bytes: stored.snapshot_bytes,
        next_due: stored.next_due,
        questions,
        claimable: stored.claimable,
        cost: stored.cost,
    })
}

/// Another version may have other members.
fn other_version(bytes: &[u8]) -> Option<Unreadable> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let Versioned { version } = serde_json::from_slice(bytes).ok()?;
    (version != VERSION).then_some(Unreadable::Summary)
}

impl<'a> From<&'a OpenEntry> for StoredQuestion<'a> {
    fn from(question: &'a OpenEntry) -> Self {
        Self { entry: StoredEntry::from(&*question.entry), expires_at: question.expires_at }
    }
}

impl From<StoredQuestion<'_>> for OpenEntry {
    fn from(stored: StoredQuestion<'_>) -> Self {
        Self { entry: Entry::from(stored.entry).into(), expires_at: stored.expires_at }
    }
}
