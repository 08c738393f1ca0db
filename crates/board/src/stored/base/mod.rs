//! Bases: the whole board at one revision, followed by the retained commits.
//!
//! A base is a sequence of parts, each a JSON object on one line, so that only one part at a time is in memory.
//! `write` writes a base; `read` reads one and trusts none of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::parts::{
    StoredAgent, StoredAwaited, StoredBlob, StoredCheckpoint, StoredEntry, StoredKey,
};
use crate::model::board::Life;
use crate::model::settings::{Labels, Settings};
use crate::{AgentName, Digest, Log, LogName, Revision, Seq, SessionName, StatePath, Timestamp};

mod read;
mod unsound;
mod write;

pub use read::BaseReader;
pub use unsound::Unsound;
pub use write::base_parts;

/// The version of the format.
const VERSION: u32 = 1;

/// A part of a base. Parts come in this order; parts with many elements may repeat or be absent.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum Part<'a> {
    Head(Box<Head>),
    Memories(Vec<StoredOwned>),
    Messages(Vec<StoredOwned>),
    Entries {
        log: LogName,
        entries: Vec<StoredEntry<'a>>,
    },
    State {
        document: Box<RawValue>,
        /// The revisions of the root and of each member, in document order.
        changed: Vec<Revision>,
    },
    /// The deadlines in the state.
    Expiries(Vec<(StatePath, Timestamp)>),
    Agents(Vec<StoredAgent<'a>>),
    Checkpoints(Vec<StoredCheckpoint>),
    Awaited(Vec<StoredAwaited<'a>>),
    /// Idempotency keys, oldest first.
    Keys(Vec<StoredKey<'a>>),
    Images(Vec<(Digest, u64)>),
    /// The uploaded ones among the images.
    Blobs(Vec<StoredBlob<'a>>),
    /// The number of parts before this one. Without it, the base is truncated.
    End {
        parts: u64,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    version: u32,
    revision: Revision,
    updated_at: Timestamp,
    written_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    life: Option<StoredLife>,
    logs: [StoredLog; 4],
    agents_changed: Revision,
    checkpoints_changed: Revision,
    floor: Revision,
    fences_after: Revision,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredLife {
    name: SessionName,
    created_at: Timestamp,
    settings: Settings,
    labels: Labels,
    configured: Revision,
}

/// A log without its entries.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredLog {
    last_seq: Seq,
    changed: Revision,
}

/// An agent's log without its entries.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredOwned {
    agent: AgentName,
    last_seq: Seq,
    changed: Revision,
}

impl From<&Life> for StoredLife {
    fn from(life: &Life) -> Self {
        Self {
            name: life.name.clone(),
            created_at: life.created_at,
            settings: Settings::clone(&life.settings),
            labels: Labels::clone(&life.labels),
            configured: life.configured,
        }
    }
}

impl From<StoredLife> for Life {
    fn from(stored: StoredLife) -> Self {
        Self {
            name: stored.name,
            created_at: stored.created_at,
            settings: Arc::new(stored.settings),
            labels: Arc::new(stored.labels),
            configured: stored.configured,
        }
    }
}

impl From<&Log> for StoredLog {
    fn from(log: &Log) -> Self {
        Self { last_seq: log.last_seq(), changed: log.changed() }
    }
}

#[cfg(test)]
mod tests;
