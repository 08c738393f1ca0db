//! The difference between a board and one of its earlier revisions.
//!
//! Restores are computed from this difference. Both boards share one history, so parts last changed by the same
//! revision are equal. Claims are the exception: a restore ends all of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::restored::{Restored, RestoredLog};
use crate::log::{Entry, Log, LogName, Stamp, ranges};
use crate::model::agent::Agent;
use crate::values::attempt::{Outcome, PastAttempt};
use crate::values::claim::{Claim, Work};
use crate::values::task::Task;
use crate::{AgentName, Board, Revision, Seq};

impl Board {
    /// Returns the changes that restore `then` at this revision, or `None` if nothing differs and no request is
    /// claimed.
    pub(crate) fn difference(&self, then: &Self, stamp: Stamp<'_>) -> Option<Restored> {
        let restored = Restored {
            to: then.revision,
            logs: self.logs_difference(then, stamp),
            state: self.state.difference(&then.state),
            expiries: then.state.expiries().map(|(path, at)| (path.clone(), at)).collect(),
            awaited: then.asked.awaited.iter().map(|(seq, until)| (*seq, until.clone())).collect(),
            agents: self.agents_difference(then, stamp.revision),
        };
        let is_same = restored.logs.is_empty()
            && restored.state.is_empty()
            && restored.agents.is_empty()
            && self.state.expiries().eq(then.state.expiries())
            && self.asked.awaited == then.asked.awaited
            && !self.is_worked_on();
        (!is_same).then_some(restored)
    }

    fn logs_difference(&self, then: &Self, stamp: Stamp<'_>) -> Vec<(LogName, RestoredLog)> {
        let owned = self.owned_logs().map(|(name, _)| name);
        let (mut logs, none) = (Vec::new(), Log::default());
        for name in LogName::BOARD.into_iter().chain(owned) {
            let now = self.log(&name).unwrap_or(&none);
            let then = then.log(&name).unwrap_or(&none);
            if now.changed() == then.changed() {
                continue;
            }
            let log = log_difference(now, then, stamp);
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

fn log_difference(now: &Log, then: &Log, stamp: Stamp<'_>) -> RestoredLog {
    let removed: Vec<Seq> =
        now.iter().map(|entry| entry.seq).filter(|seq| then.get(*seq).is_none()).collect();
    let mut entries = Vec::new();
    for entry in then.iter() {
        let own = now.get(entry.seq);
        if !own.is_some_and(|own| is_same_entry(own, entry)) {
            entries.push(Arc::new(restored(own.map(|own| &**own), entry, stamp)));
        }
    }
    RestoredLog { removed: ranges(now, &removed), entries }
}

/// Returns an entry as it was, without a claim. The claims of then and of now count as released. A message stays
/// acknowledged.
fn restored(now: Option<&Entry>, then: &Entry, stamp: Stamp<'_>) -> Entry {
    fn claim(entry: &Entry) -> Option<&Claim> {
        entry.work.as_deref().and_then(Work::claim)
    }
    let acked_at = now.and_then(|now| now.acked_at).or(then.acked_at);
    let mut entry = Entry { revision: stamp.revision, acked_at, ..then.freed(stamp.at) };
    let ended = now.and_then(claim);
    let known = claim(then).map(|claim| claim.fence);
    if let Some(claim) = ended.filter(|claim| Some(claim.fence) != known) {
        let task = entry.task.get_or_insert_default();
        let attempt = claim.attempt(stamp.at, Outcome::Released, None);
        task.past_attempts = PastAttempt::added(&task.past_attempts, attempt);
    }
    if let Some(task) = &mut entry.task {
        // The restore finds what blocks the request.
        (task.blocked_by, task.stopped_by) = Default::default();
    }
    entry.task = entry.task.filter(|task| **task != Task::default());
    entry
}

/// Returns the task without the attempts that were released. Restores add such, and end no other way.
fn unreleased(entry: &Entry) -> Option<Task> {
    let mut task = entry.task.as_deref().cloned()?;
    let past = task.past_attempts.iter().filter(|attempt| attempt.outcome != Outcome::Released);
    task.past_attempts = past.cloned().collect();
    Some(task).filter(|task| *task != Task::default())
}

/// Returns true if a restore of the second entry would give the first, but for its claim.
fn is_same_entry(now: &Entry, then: &Entry) -> bool {
    let is_equal = || {
        // The work that a claim of then leaves, if it was cancelled.
        let then = then.freed(then.at);
        let work = now.work.as_deref().filter(|work| !work.is_open());
        // An acknowledgement stays, so it is no difference.
        let is_ack = now.acked_at.is_some()
            && now.acked_at == now.updated.as_deref().map(|updated| updated.at);
        (now.at, &now.agent) == (then.at, &then.agent)
            && (is_ack || now.updated == then.updated)
            && work == then.work.as_deref()
            && unreleased(now) == unreleased(&then)
            && now.item == then.item
    };
    now.revision == then.revision || is_equal()
}
