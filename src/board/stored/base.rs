//! A base: the whole board at one revision, which the kept commits follow.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;

use super::Unreadable;
use crate::board::board::Life;
use crate::board::log::Updated;
use crate::board::settings::{Labels, Settings};
use crate::board::{
    AgentName, Board, Digest, Entry, Image, Item, Log, Revision, Seq, SessionId, SessionName,
    Timestamp,
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredBase {
    id: SessionId,
    revision: Revision,
    updated_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    life: Option<StoredLife>,
    logs: [StoredLog; 4],
    memories: Vec<(AgentName, StoredLog)>,
    images: Vec<(Digest, u64)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredLife {
    name: SessionName,
    created_at: Timestamp,
    settings: Settings,
    labels: Labels,
    configured: Revision,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredLog {
    last_seq: Seq,
    changed: Revision,
    entries: Vec<StoredEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredEntry {
    seq: Seq,
    revision: Revision,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    updated_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    updated_by: Option<AgentName>,
    item: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image: Option<Image>,
}

/// The body of a base, as its frame holds it.
///
/// # Errors
///
/// [`Unreadable`] where it cannot be written as JSON; no board of ours is so.
pub fn encode_base(board: &Board) -> Result<Vec<u8>, Unreadable> {
    let memories = board.memories.iter().map(|(agent, log)| (agent.clone(), log.into()));
    let stored = StoredBase {
        id: board.id,
        revision: board.revision,
        updated_at: board.updated_at,
        life: board.life.as_ref().map(StoredLife::from),
        logs: board.logs.each_ref().map(StoredLog::from),
        memories: memories.collect(),
        images: board.images.iter().map(|(digest, bytes)| (*digest, *bytes)).collect(),
    };
    Ok(serde_json::to_vec(&stored)?)
}

/// Reads the body of a base; the board's history begins with it.
///
/// # Errors
///
/// [`Unreadable`] where it is not in this format.
pub fn decode_base(body: &[u8]) -> Result<Board, Unreadable> {
    let stored: StoredBase = serde_json::from_slice(body)?;
    let mut board = Board::absent(stored.id, stored.revision);
    board.updated_at = stored.updated_at;
    board.life = stored.life.map(Life::from);
    board.logs = stored.logs.map(Log::from);
    board.memories =
        stored.memories.into_iter().map(|(agent, log)| (agent, Log::from(log))).collect();
    board.images = stored.images.into_iter().collect();
    board.image_bytes = board.images.values().sum();
    board.bytes = board.logs.iter().chain(board.memories.values()).map(Log::bytes).sum();
    Ok(board)
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
        let entries = log.iter().map(|entry| StoredEntry::from(&**entry)).collect();
        Self { last_seq: log.last_seq(), changed: log.changed(), entries }
    }
}

impl From<StoredLog> for Log {
    fn from(stored: StoredLog) -> Self {
        let entries = stored.entries.into_iter().map(Entry::from).collect();
        Self::restore(entries, stored.last_seq, stored.changed)
    }
}

impl From<&Entry> for StoredEntry {
    fn from(entry: &Entry) -> Self {
        let updated = entry.updated.as_ref();
        Self {
            seq: entry.seq,
            revision: entry.revision,
            at: entry.at,
            agent: entry.agent.clone(),
            updated_at: updated.map(|updated| updated.at),
            updated_by: updated.and_then(|updated| updated.by.clone()),
            item: entry.item.raw().to_owned(),
            image: entry.item.image().cloned(),
        }
    }
}

impl From<StoredEntry> for Entry {
    fn from(stored: StoredEntry) -> Self {
        let by = stored.updated_by;
        Self {
            seq: stored.seq,
            revision: stored.revision,
            at: stored.at,
            agent: stored.agent,
            updated: stored.updated_at.map(|at| Updated { at, by }),
            item: Item::restore(stored.item, stored.image),
        }
    }
}
