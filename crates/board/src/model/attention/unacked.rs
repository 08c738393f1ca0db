//! Messages to agents: those that are not acknowledged.

use imbl::{OrdMap, OrdSet};

use crate::{AgentName, Board, Log, LogName, Seq, SeqRange};

/// The maximum number of unacknowledged messages to one agent.
pub const UNACKED_MAX: usize = 10_000;

/// The unacknowledged messages by agent. An agent without any has no set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unacked(OrdMap<AgentName, OrdSet<Seq>>);

impl Unacked {
    /// Returns the unacknowledged messages to an agent, oldest first.
    pub fn of(&self, agent: &AgentName) -> impl DoubleEndedIterator<Item = Seq> {
        self.0.get(agent).into_iter().flatten().copied()
    }

    /// Returns the number of unacknowledged messages to an agent.
    #[must_use]
    pub fn count(&self, agent: &AgentName) -> usize {
        self.0.get(agent).map_or(0, OrdSet::len)
    }

    /// Returns the number of all unacknowledged messages, and of the agents that have any.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        (self.0.values().map(OrdSet::len).sum(), self.0.len())
    }

    pub(crate) fn add(&mut self, agent: &AgentName, messages: impl Iterator<Item = Seq>) {
        self.edit(agent, |set| set.extend(messages));
    }

    pub(crate) fn remove(&mut self, agent: &AgentName, ranges: &[SeqRange]) {
        self.edit(agent, |set| {
            for range in ranges {
                let gone: Vec<Seq> = set.range(range.first..=range.last).copied().collect();
                for seq in gone {
                    set.remove(&seq);
                }
            }
        });
    }

    fn edit(&mut self, agent: &AgentName, edit: impl FnOnce(&mut OrdSet<Seq>)) {
        let mut set = self.0.get(agent).cloned().unwrap_or_default();
        edit(&mut set);
        if set.is_empty() {
            self.0.remove(agent);
        } else {
            self.0.insert(agent.clone(), set);
        }
    }
}

impl Board {
    /// Returns the unacknowledged messages.
    #[must_use]
    pub fn unacked(&self) -> &Unacked {
        &self.unacked
    }

    /// Forgets the unacknowledged messages of a log that was emptied.
    pub(crate) fn clear_unacked(&mut self, log: &LogName) {
        if let LogName::Messages(agent) = log {
            self.unacked.0.remove(agent);
        }
    }

    /// Finds the unacknowledged messages of a log anew.
    pub(crate) fn find_unacked(&mut self, log: &LogName) {
        self.clear_unacked(log);
        let LogName::Messages(agent) = log else { return };
        let messages = self.messages.get(agent).into_iter().flat_map(Log::iter);
        let unacked = messages.filter(|entry| entry.acked_at.is_none()).map(|entry| entry.seq);
        self.unacked.add(agent, unacked);
    }
}
