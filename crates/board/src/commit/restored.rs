//! The change made by a restore, and its application.

use std::sync::Arc;

use crate::log::{Entry, LogName, SeqRange, Stamp};
use crate::model::agent::Agent;
use crate::model::open_questions::{Asked, Awaited};
use crate::state::StatePath;
use crate::values::task::Task;
use crate::{AgentName, Board, Json, Revision, Seq, Timestamp};

/// The difference between the current board and an earlier revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// The restored revision.
    pub to: Revision,
    /// The logs that differ.
    pub logs: Vec<(LogName, RestoredLog)>,
    /// State paths that differ, none below another, with their values; `None` deletes.
    pub state: Vec<(StatePath, Option<Json>)>,
    /// All deadlines in the state.
    pub expiries: Vec<(StatePath, Timestamp)>,
    /// All questions with a deadline.
    pub awaited: Vec<(Seq, Awaited)>,
    /// The agents that differ; `None` removes.
    pub agents: Vec<(AgentName, Option<Agent>)>,
}

impl Restored {
    /// Returns the entries that the restore brings back.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> + Clone {
        self.logs.iter().flat_map(|(_, log)| &log.entries)
    }
}

/// The difference of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoredLog {
    /// Entries that did not exist at the restored revision.
    pub removed: Vec<SeqRange>,
    /// Entries removed or changed since, in their old form without claims, ordered by seq. Their revision is the
    /// restore's.
    pub entries: Vec<Arc<Entry>>,
}

/// Applies the difference. Impossible parts are ignored, since `admit` compares the result.
pub(crate) fn restore(board: &mut Board, restored: &Restored, stamp: Stamp<'_>) {
    for (name, log) in &restored.logs {
        board.keep_images(log.entries.iter().map(|entry| &entry.item));
        board.edit_log(name, |own| own.put_back(&log.removed, &log.entries, stamp.revision));
        board.find_unacked(name);
    }
    let cancelled = end_open_claims(board, stamp);
    restore_tasks(board, restored);
    stop_all_dependants(board, &cancelled, stamp.revision);
    restore_asked(board, restored);
    board.edit_state(|state| {
        for (path, value) in &restored.state {
            match value {
                Some(value) => state.set(path, value.text(), stamp.revision),
                None => state.remove(path, stamp.revision),
            }
        }
        state.set_expiries(&restored.expiries);
    });
    for (name, agent) in &restored.agents {
        restore_agent(board, name, agent.as_ref());
        board.agents_changed = stamp.revision;
    }
}

/// Finds the requests that block the restored ones.
fn restore_tasks(board: &mut Board, restored: &Restored) {
    let of_requests = restored.logs.iter().filter(|(log, _)| *log == LogName::Requests);
    for entry in of_requests.flat_map(|(_, log)| &log.entries) {
        if let Some(task) = entry.task.as_deref() {
            let blocked_by = board.blockers(&task.plan.after);
            let stopped_by = board.stoppers(&blocked_by);
            let task = Task { blocked_by, stopped_by, ..task.clone() };
            board.edit_log(&LogName::Requests, |log| log.plan(entry.seq, task));
        }
    }
    board.find_tasks();
}

fn restore_asked(board: &mut Board, restored: &Restored) {
    let [questions, ..] = &board.logs;
    if restored.logs.iter().any(|(log, _)| *log == LogName::Questions) {
        board.asked = Asked::of(questions);
    } else {
        let Asked { open, answered, .. } = std::mem::take(&mut board.asked);
        board.asked = Asked { open, answered, ..Asked::default() };
    }
    for (question, until) in &restored.awaited {
        board.asked.wait(SeqRange { first: *question, last: *question }, until);
    }
}

fn restore_agent(board: &mut Board, name: &AgentName, agent: Option<&Agent>) {
    let bytes = |agent: &Agent| agent.profile.item().bytes();
    let before = match agent {
        Some(agent) => board.agents.insert(name.clone(), agent.clone()),
        None => board.agents.remove(name),
    };
    board.bytes = board.bytes - before.as_ref().map_or(0, bytes) + agent.map_or(0, bytes);
}

/// Ends all claims, including expired ones, and invalidates all earlier fences. Entries are otherwise unchanged.
pub(crate) fn end_claims(board: &mut Board, stamp: Stamp<'_>) {
    let cancelled = end_open_claims(board, stamp);
    board.find_tasks();
    stop_all_dependants(board, &cancelled, stamp.revision);
}

/// Ends the claims. Returns the requests that are cancelled by it. Their places among the tasks are not found yet.
fn end_open_claims(board: &mut Board, stamp: Stamp<'_>) -> Vec<Seq> {
    let mut cancelled = Vec::new();
    if board.is_worked_on() {
        board.edit_log(&LogName::Requests, |log| cancelled = log.end_claims(stamp));
    }
    board.fences_after = stamp.revision;
    cancelled
}

/// Notes at the requests that wait for these that they were cancelled.
fn stop_all_dependants(board: &mut Board, cancelled: &[Seq], revision: Revision) {
    for request in cancelled {
        let waiting: Vec<Seq> = board.tasks.dependants(*request).collect();
        for waiting in waiting {
            let [_, requests, ..] = &board.logs;
            let task = requests.get(waiting).and_then(|entry| entry.task.as_deref());
            let Some(task) = task.cloned() else { continue };
            let stopped_by = board.stoppers(&task.blocked_by);
            let task = Task { stopped_by, ..task };
            board.edit_requests(waiting, |log| log.set_task(waiting, task, revision));
        }
    }
}
