//! The board of one session: the fold of its commits.
//!
//! Cloning a board is O(1).

use std::collections::BTreeSet;
use std::sync::Arc;

use imbl::OrdMap;

use super::agent::Agent;
use super::attention::unacked::Unacked;
use super::blob::Blob;
use super::checkpoint::Checkpoint;
use super::idempotency::{Kept, Keys};

use super::open_questions::Asked;
use super::settings::{Labels, Settings};
use super::tasks::Tasks;
use crate::state::State;
use crate::values::claim::Work;
use crate::{
    AgentName, Budget, CheckpointName, Cost, Digest, Image, Item, Log, LogName, Revision, Seq,
    SessionId, SessionName, Timestamp,
};

/// The board of one session at one revision.
#[derive(Clone, Debug, PartialEq)]
pub struct Board {
    pub(crate) id: SessionId,
    pub(crate) revision: Revision,
    pub(crate) oldest: Revision,
    pub(crate) updated_at: Timestamp,
    /// The time of the last write by a client. System commits do not count.
    pub(crate) written_at: Timestamp,
    pub(crate) life: Option<Life>,
    pub(crate) logs: [Log; 4],
    /// The memories by agent. A removed agent's empty memory is retained, so that its seqs are not reused.
    pub(crate) memories: OrdMap<AgentName, Log>,
    /// The messages by agent. As of memories, an empty log is retained.
    pub(crate) messages: OrdMap<AgentName, Log>,
    pub(crate) unacked: Unacked,
    pub(crate) state: State,
    pub(crate) agents: OrdMap<AgentName, Agent>,
    /// The revision at which an agent was last registered, changed or removed.
    pub(crate) agents_changed: Revision,
    pub(crate) asked: Asked,
    pub(crate) tasks: Tasks,
    pub(crate) checkpoints: OrdMap<CheckpointName, Checkpoint>,
    /// The revision at which a checkpoint was last made or removed.
    pub(crate) checkpoints_changed: Revision,
    /// The last revision of this name before this history was adopted.
    pub(crate) floor: Revision,
    /// Claims won at or before this revision are not honoured.
    pub(crate) fences_after: Revision,
    pub(crate) keys: Keys,
    pub(crate) images: OrdMap<Digest, u64>,
    /// The uploaded ones among the images.
    pub(crate) blobs: OrdMap<Digest, Blob>,
    /// The number of entries in all logs.
    pub(crate) entries: u64,
    /// The number of messages among them.
    pub(crate) message_entries: u64,
    pub(crate) bytes: u64,
    pub(crate) image_bytes: u64,
    /// The sum of the memories' costs.
    pub(crate) cost: Cost,
}

/// The facts of an existing session.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    /// The session's name.
    pub name: SessionName,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The session's settings.
    pub settings: Arc<Settings>,
    /// The session's labels.
    pub labels: Arc<Labels>,
    /// The revision of the last change of settings or labels.
    pub configured: Revision,
}

/// The identity behind an entity tag: one resource of one session, at its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The session. A reused name belongs to another session.
    pub session: SessionId,
    /// The revision of the resource's last change.
    pub changed: Revision,
}

impl Board {
    /// Creates the minimal board that a session's deletion can follow: its name, revision and time.
    #[must_use]
    pub fn ending(id: SessionId, name: SessionName, after: Revision, at: Timestamp) -> Self {
        let (settings, labels) = (Arc::default(), Arc::default());
        let life = Life { name, created_at: at, settings, labels, configured: after };
        Self { updated_at: at, written_at: at, life: Some(life), ..Self::absent(id, after) }
    }

    /// Creates the board of a session that does not exist. The first commit follows `after`.
    #[must_use]
    pub fn absent(id: SessionId, after: Revision) -> Self {
        Self {
            id,
            revision: after,
            oldest: after,
            updated_at: Timestamp::default(),
            written_at: Timestamp::default(),
            life: None,
            logs: Default::default(),
            memories: OrdMap::new(),
            messages: OrdMap::new(),
            unacked: Unacked::default(),
            state: State::default(),
            agents: OrdMap::new(),
            agents_changed: Revision::default(),
            asked: Asked::default(),
            tasks: Tasks::default(),
            checkpoints: OrdMap::new(),
            checkpoints_changed: Revision::default(),
            floor: Revision::default(),
            fences_after: Revision::default(),
            keys: Keys::default(),
            images: OrdMap::new(),
            blobs: OrdMap::new(),
            entries: 0,
            message_entries: 0,
            bytes: 0,
            image_bytes: 0,
            cost: Cost::default(),
        }
    }

    /// Returns the session.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Returns the revision of the board.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the time of the last write by a client.
    #[must_use]
    pub fn written_at(&self) -> Timestamp {
        self.written_at
    }

    /// Returns the oldest revision that the history can show.
    #[must_use]
    pub fn oldest(&self) -> Revision {
        self.oldest
    }

    /// Returns the lowest cursor from which a reader can continue. All later commits are retained, and the cursor
    /// belongs to this history.
    #[must_use]
    pub fn oldest_cursor(&self) -> Revision {
        self.extent().oldest_cursor()
    }

    /// Returns the questions without an answer.
    #[must_use]
    pub fn asked(&self) -> &Asked {
        &self.asked
    }

    /// Returns the checkpoints, by name.
    #[must_use]
    pub fn checkpoints(&self) -> &OrdMap<CheckpointName, Checkpoint> {
        &self.checkpoints
    }

    /// Returns the version of the list of checkpoints.
    #[must_use]
    pub fn checkpoints_version(&self) -> Version {
        self.at_version(self.checkpoints_changed)
    }

    /// Returns the board with a later start of its history.
    #[must_use]
    pub fn beginning_at(&self, oldest: Revision) -> Self {
        Self { oldest, ..self.clone() }
    }

    /// Returns the board as the start of another session's history, with the images and blobs that it names. No item
    /// is copied.
    #[must_use]
    pub fn forked(&self, id: SessionId) -> Self {
        let named = if self.blobs.is_empty() { BTreeSet::new() } else { self.named_blobs() };
        let blobs = self.blobs.iter().filter(|(sha256, _)| named.contains(sha256));
        let blobs: OrdMap<_, _> = blobs.map(|(sha256, blob)| (*sha256, blob.clone())).collect();
        let uploaded = blobs.keys().filter_map(|sha256| Some((*sha256, *self.images.get(sha256)?)));
        let images = self.named_images().map(|image| (image.sha256, image.bytes));
        let images: OrdMap<_, _> = images.chain(uploaded).collect();
        let image_bytes = images.values().sum();
        let (oldest, keys) = (self.revision, Keys::default());
        Self { id, oldest, keys, images, blobs, image_bytes, ..self.clone() }
    }

    /// Returns the board with the memories of all other agents, and the messages to them, cleared.
    #[must_use]
    pub fn remembering_only(&self, own: &AgentName) -> Self {
        let mut board = self.clone();
        for (log, _) in self.owned_logs().filter(|(log, _)| log.owner() != Some(own)) {
            board.edit_log(&log, |log| log.clear(self.revision));
            board.clear_unacked(&log);
        }
        board
    }

    /// Returns the sum of the costs of all memories.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Returns the session's `cost_max` if the costs have passed it.
    #[must_use]
    pub fn budget_passed(&self) -> Option<Budget> {
        self.life.as_ref()?.settings.cost_max.filter(|max| self.cost > max.cost())
    }

    /// Returns the time of the last commit.
    #[must_use]
    pub fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    /// Returns the session's facts, if it exists.
    #[must_use]
    pub fn life(&self) -> Option<&Life> {
        self.life.as_ref()
    }

    /// Returns a log, or `None` for an agent's log that nobody ever wrote to.
    #[must_use]
    pub fn log(&self, name: &LogName) -> Option<&Log> {
        let [questions, requests, trajectories, screenshots] = &self.logs;
        match name {
            LogName::Questions => Some(questions),
            LogName::Requests => Some(requests),
            LogName::Trajectories => Some(trajectories),
            LogName::Screenshots => Some(screenshots),
            LogName::Memory(agent) => self.memories.get(agent),
            LogName::Messages(agent) => self.messages.get(agent),
        }
    }

    /// Returns a log to change, or `None` for an agent's log that nobody ever wrote to.
    pub(crate) fn log_mut(&mut self, name: &LogName) -> Option<&mut Log> {
        let [questions, requests, trajectories, screenshots] = &mut self.logs;
        match name {
            LogName::Questions => Some(questions),
            LogName::Requests => Some(requests),
            LogName::Trajectories => Some(trajectories),
            LogName::Screenshots => Some(screenshots),
            LogName::Memory(agent) => self.memories.get_mut(agent),
            LogName::Messages(agent) => self.messages.get_mut(agent),
        }
    }

    /// Edits a log and updates the counts of entries and bytes. The first entry creates an agent's log.
    pub(crate) fn edit_log(&mut self, name: &LogName, change: impl FnOnce(&mut Log)) {
        if let LogName::Memory(agent) = name
            && !self.memories.contains_key(agent)
        {
            self.memories.insert(agent.clone(), Log::default().with_costs());
        }
        if let LogName::Messages(agent) = name
            && !self.messages.contains_key(agent)
        {
            self.messages.insert(agent.clone(), Log::default());
        }
        let Some(log) = self.log_mut(name) else { return };
        let (bytes, entries, cost) = (log.bytes(), log.len(), log.cost());
        change(log);
        let (bytes_after, entries_after, cost_after) = (log.bytes(), log.len(), log.cost());
        self.bytes = self.bytes - bytes + bytes_after;
        self.entries = self.entries - entries as u64 + entries_after as u64;
        if let LogName::Memory(_) = name {
            self.cost = self.cost - cost + cost_after;
        }
        if let LogName::Messages(_) = name {
            self.message_entries = self.message_entries - entries as u64 + entries_after as u64;
        }
    }

    /// Edits the state and updates the count of bytes.
    pub(crate) fn edit_state(&mut self, change: impl FnOnce(&mut State)) {
        let before = self.state.bytes();
        change(&mut self.state);
        // An empty document counts for nothing, so its bytes before are not in the sum.
        self.bytes = self.bytes + self.state.bytes() - before;
    }

    /// Adds the images of these items to the session's images.
    pub(crate) fn keep_images<'a>(&mut self, items: impl IntoIterator<Item = &'a Item>) {
        for image in items.into_iter().filter_map(Item::image) {
            self.keep_file(image.sha256, image.bytes);
        }
    }

    pub(crate) fn keep_file(&mut self, sha256: Digest, bytes: u64) {
        if self.images.insert(sha256, bytes).is_none() {
            self.image_bytes += bytes;
        }
    }

    /// Returns the work on a request, if any.
    #[must_use]
    pub fn work(&self, request: Seq) -> Option<&Work> {
        self.log(&LogName::Requests)?.get(request)?.work.as_deref()
    }

    /// Returns true if a request has a claim, expired or not.
    pub(crate) fn is_worked_on(&self) -> bool {
        let requests = self.log(&LogName::Requests).into_iter().flat_map(Log::iter);
        requests.filter_map(|entry| entry.work.as_deref()).any(Work::is_open)
    }

    /// Returns the board's four logs, in the order of [`LogName::BOARD`].
    #[must_use]
    pub fn logs(&self) -> &[Log; 4] {
        &self.logs
    }

    /// Returns the memories by agent, including removed agents.
    #[must_use]
    pub fn memories(&self) -> &OrdMap<AgentName, Log> {
        &self.memories
    }

    /// Returns the messages by agent, also to agents that were never registered.
    #[must_use]
    pub fn messages(&self) -> &OrdMap<AgentName, Log> {
        &self.messages
    }

    /// Returns the logs that belong to agents, ordered by name.
    pub fn owned_logs(&self) -> impl Iterator<Item = (LogName, &Log)> {
        let memories = self.memories.iter();
        let memories = memories.map(|(agent, log)| (LogName::Memory(agent.clone()), log));
        let messages = self.messages.iter();
        memories.chain(messages.map(|(agent, log)| (LogName::Messages(agent.clone()), log)))
    }

    /// Returns the logs of the board and of its agents.
    pub(crate) fn all_logs(&self) -> impl Iterator<Item = &Log> {
        self.logs.iter().chain(self.memories.values()).chain(self.messages.values())
    }

    /// Returns the largest of the numbers of agents: registered ones, and those with a log of either kind.
    pub(crate) fn agents_known(&self) -> usize {
        self.agents.len().max(self.memories.len()).max(self.messages.len())
    }

    /// Returns the registered agents, by name.
    #[must_use]
    pub fn agents(&self) -> &OrdMap<AgentName, Agent> {
        &self.agents
    }

    /// Returns the version of the list of agents.
    #[must_use]
    pub fn agents_version(&self) -> Version {
        self.at_version(self.agents_changed)
    }

    /// Returns the shared state.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Returns the retained answers to writes with an idempotency key.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Retains the answer to a write with an idempotency key.
    pub fn remember(&mut self, kept: &Kept, at: Timestamp) {
        self.keys.remember(kept, at);
    }

    /// Returns true if the four logs are empty. Logs of agents do not count, as in the original.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.logs.iter().all(Log::is_empty)
    }

    /// Returns the bytes of text in items, state and agents' profiles, without images.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the total size of [`images`](Self::images), in bytes.
    #[must_use]
    pub fn image_bytes(&self) -> u64 {
        self.image_bytes
    }

    /// Returns the images that the history names and the uploaded blobs, each once with its size in bytes. Forgotten
    /// ones are excluded. The retained history names no others.
    pub fn images(&self) -> impl Iterator<Item = (&Digest, &u64)> {
        self.images.iter()
    }

    /// Returns true if this image is one of [`images`](Self::images).
    #[must_use]
    pub fn has_image(&self, sha256: &Digest) -> bool {
        self.images.contains_key(sha256)
    }

    /// Returns the images that entries name, once for each entry.
    pub fn named_images(&self) -> impl Iterator<Item = &Image> {
        let entries = self.all_logs().flat_map(Log::iter);
        entries.filter_map(|entry| entry.item.image())
    }

    /// Returns the version of the whole session. Every commit changes this version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.at_version(self.revision)
    }

    /// Returns the version of a log, even of a memory that does not exist.
    #[must_use]
    pub fn log_version(&self, name: &LogName) -> Version {
        self.at_version(self.log(name).map(Log::changed).unwrap_or_default())
    }

    /// Returns the version of the board's dictionary, that is, of its four logs.
    #[must_use]
    pub fn logs_version(&self) -> Version {
        self.at_version(self.logs.iter().map(Log::changed).max().unwrap_or_default())
    }

    /// Returns the version of the board's dictionary including the state.
    #[must_use]
    pub fn dictionary_version(&self) -> Version {
        self.at_version(self.logs_version().changed.max(self.state.changed()))
    }

    /// Returns the version of a resource of this session that was last changed at this revision.
    #[must_use]
    pub fn at_version(&self, changed: Revision) -> Version {
        Version { session: self.id, changed }
    }
}
