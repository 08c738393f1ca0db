//! The difference between a board and one of its earlier revisions.
//!
//! Restores are computed from this difference. Both boards share one history, so parts last changed by the same
//! revision are equal. Claims are the exception: a restore ends all of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::restored::{Restored, RestoredLog};
use crate::log::{Entry, Log, LogName, ranges};
use crate::model::agent::Agent;
use crate::values::claim::Work;
use crate::values::task::Task;
use crate::{AgentName, Board, Revision, Seq};

impl Board {
    /// Returns the changes that restore `then` at this revision, or `None` if nothing differs and no request is
    /// claimed.
    pub(crate) fn difference(&self, then: &Self, revision: Revision) -> Option<Restored> {
        let restored = Restored {
            to: then.revision,
            logs: self.logs_difference(then, revision),
            state: self.state.difference(&then.state),
            expiries: then.state.expiries().map(|(path, at)| (path.clone(), at)).collect(),
            awaited: then.asked.awaited.iter().map(|(seq, until)| (*seq, until.clone())).collect(),
            agents: self.agents_difference(then, revision),
        };
        let is_same = restored.logs.is_empty()
            && restored.state.is_empty()
            && restored.agents.is_empty()
            && self.state.expiries().eq(then.state.expiries())
            && self.asked.awaited == then.asked.awaited
            && !self.is_worked_on();
        (!is_same).then_some(restored)
    }

    fn logs_difference(&self, then: &Self, revision: Revision) -> Vec<(LogName, RestoredLog)> {
        let memories = self.memories.keys().cloned().map(LogName::Memory);
        let (mut logs, none) = (Vec::new(), Log::default());
        for name in LogName::BOARD.into_iter().chain(memories) {
            let now = self.log(&name).unwrap_or(&none);
            let then = then.log(&name).unwrap_or(&none);
            if now.changed() == then.changed() {
                continue;
            }
            let log = log_difference(now, then, revision);
            if log != RestoredLog::default() {
                logs.push((name, log));
            }
        }
        logs
    }

    fn agents_difference(&self, then: &Self, changed: Revision) -> Vec<(AgentName, Option<Agent>)> {
        let names: BTreeSet<&AgentName> = self.agents.keys().chain(then.agents.keys()).collect();
        let difference = |name: &AgentName| match (self.agents.get(name), then.agents.get(name)) {
            (Some(now), Some(then)) if is_same_agent(now, then) => None,
            (now, Some(then)) => {
                let last_seen = now.map_or(then.last_seen, |now| now.last_seen);
                Some((name.clone(), Some(Agent { changed, last_seen, ..then.clone() })))
            }
            (_, None) => Some((name.clone(), None)),
        };
        names.into_iter().filter_map(difference).collect()
    }
}

/// Compares all but `last_seen`, which is not restored.
fn is_same_agent(now: &Agent, then: &Agent) -> bool {
    now.profile == then.profile
        && (now.registered_at, now.updated_at) == (then.registered_at, then.updated_at)
}

fn log_difference(now: &Log, then: &Log, revision: Revision) -> RestoredLog {
    let removed: Vec<Seq> =
        now.iter().map(|entry| entry.seq).filter(|seq| then.get(*seq).is_none()).collect();
    let mut entries = Vec::new();
    for entry in then.iter() {
        let stands = now.get(entry.seq).is_some_and(|own| is_same_entry(own, entry));
        if !stands {
            let work = entry.work.clone().filter(|work| !work.is_open());
            // The restore finds what blocks the request.
            let task = entry.task.as_deref().cloned();
            let task = task.map(|task| Box::new(Task { blocked_by: Box::default(), ..task }));
            entries.push(Arc::new(Entry { revision, work, task, ..Entry::clone(entry) }));
        }
    }
    RestoredLog { removed: ranges(now, &removed), entries }
}

/// Returns true if both are the same entry, ignoring claims.
fn is_same_entry(now: &Entry, then: &Entry) -> bool {
    fn work(entry: &Entry) -> Option<&Work> {
        entry.work.as_deref().filter(|work| !work.is_open())
    }
    let is_equal = || {
        (now.at, &now.agent, &now.updated) == (then.at, &then.agent, &then.updated)
            && work(now) == work(then)
            && now.task == then.task
            && now.item == then.item
    };
    now.revision == then.revision || is_equal()
}
