//! A base: the whole board at one revision, which the kept commits follow.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;

use super::Unreadable;
use super::parts::{StoredAgent, StoredKey, StoredState, StoredWork};
use crate::board::board::Life;
use crate::board::log::Updated;
use crate::board::settings::{Labels, Settings};
use crate::board::{
    AgentName, Board, Claim, Digest, Entry, Image, Item, Log, Revision, Seq, SessionId,
    SessionName, State, Timestamp, Work,
};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredBase {
    id: SessionId,
    revision: Revision,
    updated_at: Timestamp,
    written_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    life: Option<StoredLife>,
    logs: [StoredLog; 4],
    memories: Vec<(AgentName, StoredLog)>,
    state: StoredState,
    agents: Vec<StoredAgent>,
    agents_changed: Revision,
    /// The oldest first.
    keys: Vec<StoredKey>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    work: Option<StoredWork>,
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
        written_at: board.written_at,
        life: board.life.as_ref().map(StoredLife::from),
        logs: board.logs.each_ref().map(StoredLog::from),
        memories: memories.collect(),
        state: StoredState::from(&board.state),
        agents: board.agents.iter().map(StoredAgent::from).collect(),
        agents_changed: board.agents_changed,
        keys: board.keys.iter().map(StoredKey::from).collect(),
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
    board.written_at = stored.written_at;
    board.life = stored.life.map(Life::from);
    board.logs = stored.logs.map(Log::from);
    board.memories =
        stored.memories.into_iter().map(|(agent, log)| (agent, Log::from(log))).collect();
    board.state = State::try_from(stored.state)?;
    let agents = stored.agents.into_iter().map(StoredAgent::restore);
    board.agents = agents.collect::<Result<_, _>>()?;
    board.agents_changed = stored.agents_changed;
    board.keys = stored.keys.into_iter().map(StoredKey::restore).collect();
    board.leases = board.logs.iter().flat_map(Log::iter).filter_map(|entry| lease(entry)).collect();
    board.images = stored.images.into_iter().collect();
    board.image_bytes = board.images.values().sum();
    let profiles = board.agents.values().map(|agent| agent.profile.item().bytes());
    let logs = board.logs.iter().chain(board.memories.values()).map(Log::bytes);
    board.bytes =
        logs.chain(profiles).sum::<u64>() + board.state.bytes() - State::default().bytes();
    Ok(board)
}

fn lease(entry: &Entry) -> Option<(Timestamp, Seq)> {
    let claim: &Claim = entry.work.as_deref().and_then(Work::claim)?;
    Some((claim.expires_at, entry.seq))
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
            work: entry.work.as_deref().map(StoredWork::from),
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
            work: stored.work.map(|work| Box::new(Work::from(work))),
            item: Item::restore(stored.item, stored.image),
        }
    }
}
