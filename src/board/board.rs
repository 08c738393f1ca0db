//! The board of one session: the fold of its commits. Cloning one is O(1).

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::agent::Agent;
use super::claim::Work;
use super::commit::Due;
use super::idempotency::{Kept, Keys};
use super::settings::{Labels, Settings};
use super::state::State;
use super::{AgentName, Digest, Log, LogName, Revision, Seq, SessionId, SessionName, Timestamp};

/// One session's board as it is at one revision.
#[derive(Clone, Debug, PartialEq)]
pub struct Board {
    pub(super) id: SessionId,
    pub(super) revision: Revision,
    pub(super) oldest: Revision,
    pub(super) updated_at: Timestamp,
    /// When somebody wrote last; an expiry is nobody's write.
    pub(super) written_at: Timestamp,
    pub(super) life: Option<Life>,
    pub(super) logs: [Log; 4],
    /// One that was emptied with its agent stays, so that its seqs are not used again.
    pub(super) memories: OrdMap<AgentName, Log>,
    pub(super) state: State,
    pub(super) agents: OrdMap<AgentName, Agent>,
    /// The revision at which an agent was last registered, changed or removed.
    pub(super) agents_changed: Revision,
    /// When the claims on requests run out.
    pub(super) leases: OrdSet<(Timestamp, Seq)>,
    pub(super) keys: Keys,
    pub(super) images: OrdMap<Digest, u64>,
    pub(super) bytes: u64,
    pub(super) image_bytes: u64,
}

/// What only a session that exists has.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    /// Its name.
    pub name: SessionName,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its settings.
    pub settings: Arc<Settings>,
    /// Its labels.
    pub labels: Arc<Labels>,
    /// The revision at which settings or labels changed last.
    pub configured: Revision,
}

/// What an entity tag stands for: one resource of one session as it was left by its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The session; a name that is used again belongs to another one.
    pub session: SessionId,
    /// The revision of the resource's last change.
    pub changed: Revision,
}

impl Board {
    /// The board of a session that does not exist yet, or any more; its first commit follows `after`.
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
            state: State::default(),
            agents: OrdMap::new(),
            agents_changed: Revision::default(),
            leases: OrdSet::new(),
            keys: Keys::default(),
            images: OrdMap::new(),
            bytes: 0,
            image_bytes: 0,
        }
    }

    /// Its session.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// The revision that it shows.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The oldest revision that its history can show.
    #[must_use]
    pub fn oldest(&self) -> Revision {
        self.oldest
    }

    /// When its last commit was.
    #[must_use]
    pub fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    /// What it has only if it exists.
    #[must_use]
    pub fn life(&self) -> Option<&Life> {
        self.life.as_ref()
    }

    /// A log; `None` for the memory of an agent that never wrote one.
    #[must_use]
    pub fn log(&self, name: &LogName) -> Option<&Log> {
        let [questions, requests, trajectories, screenshots] = &self.logs;
        match name {
            LogName::Questions => Some(questions),
            LogName::Requests => Some(requests),
            LogName::Trajectories => Some(trajectories),
            LogName::Screenshots => Some(screenshots),
            LogName::Memory(agent) => self.memories.get(agent),
        }
    }

    /// What has become of a request, where anything has.
    #[must_use]
    pub fn work(&self, request: Seq) -> Option<&Work> {
        self.log(&LogName::Requests)?.get(request)?.work.as_deref()
    }

    /// The four logs of the board, in the order of [`LogName::BOARD`].
    #[must_use]
    pub fn logs(&self) -> &[Log; 4] {
        &self.logs
    }

    /// The agents that take part, by name.
    #[must_use]
    pub fn agents(&self) -> &OrdMap<AgentName, Agent> {
        &self.agents
    }

    /// The version of the agents together.
    #[must_use]
    pub fn agents_version(&self) -> Version {
        self.at_version(self.agents_changed)
    }

    /// The state that its writers share.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The answers to its last keyed writes.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Keeps the answer to a keyed write.
    pub(crate) fn remember(&mut self, kept: &Kept, at: Timestamp) {
        self.keys.remember(kept, at);
    }

    /// When the next thing in it comes to its end by time, if anything does.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        let lease = self.leases.get_min().map(|(at, _)| *at);
        let times = [self.ends_at(), self.state.next_expiry(), lease];
        times.into_iter().flatten().min()
    }

    /// At most so much of what in it has come to its end by time. Where that is the session, it is nothing
    /// else.
    #[must_use]
    pub fn due(&self, now: Timestamp, limit: usize) -> Vec<Due> {
        if self.ends_at().is_some_and(|at| at <= now) {
            return vec![Due::Session];
        }
        let leases = self.leases.iter().take_while(|(at, _)| *at <= now);
        let paths = self.state.due(now, limit).into_iter().map(Due::State);
        paths.chain(leases.map(|(_, seq)| Due::Claim(*seq))).take(limit).collect()
    }

    fn ends_at(&self) -> Option<Timestamp> {
        let ttl = self.life.as_ref()?.settings.ttl?;
        Some(self.written_at.after(ttl))
    }

    /// Whether its four logs are empty; memories do not count, as in the original.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.logs.iter().all(Log::is_empty)
    }

    /// The bytes of the text of its items, its state and its agents' profiles; images not counted.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes of all images that its history names, each counted once.
    #[must_use]
    pub fn image_bytes(&self) -> u64 {
        self.image_bytes
    }

    /// The images that its history names, with their bytes.
    pub fn images(&self) -> impl Iterator<Item = (&Digest, &u64)> {
        self.images.iter()
    }

    /// The version of the whole session: any commit changes it.
    #[must_use]
    pub fn version(&self) -> Version {
        self.at_version(self.revision)
    }

    /// The version of a log; a memory that was never written has one too.
    #[must_use]
    pub fn log_version(&self, name: &LogName) -> Version {
        self.at_version(self.log(name).map(Log::changed).unwrap_or_default())
    }

    /// The version of the board's dictionary: of its four logs together.
    #[must_use]
    pub fn logs_version(&self) -> Version {
        self.at_version(self.logs.iter().map(Log::changed).max().unwrap_or_default())
    }

    /// The version of the board's dictionary with its state.
    #[must_use]
    pub fn dictionary_version(&self) -> Version {
        self.at_version(self.logs_version().changed.max(self.state.changed()))
    }

    /// The version of something of this session that was last changed by this revision.
    #[must_use]
    pub fn at_version(&self, changed: Revision) -> Version {
        Version { session: self.id, changed }
    }
}
