//! The change made by a restore, and its application.

use std::sync::Arc;

use imbl::OrdSet;

use crate::log::{Entry, LogName, SeqRange, Stamp};
use crate::model::agent::Agent;
use crate::model::open_questions::{Asked, Awaited};
use crate::model::tasks::Tasks;
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
    }
    end_claims(board, stamp.revision);
    restore_tasks(board, restored);
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
            let task = Task { blocked_by: board.blockers(&task.plan.after), ..task.clone() };
            board.edit_log(&LogName::Requests, |log| log.plan(entry.seq, task));
        }
    }
    note_requests(board);
}

/// Finds the claimable and the blocked requests anew.
fn note_requests(board: &mut Board) {
    let [_, requests, ..] = &board.logs;
    board.tasks = Tasks::of(requests);
}

fn restore_asked(board: &mut Board, restored: &Restored) {
    let [questions, ..] = &board.logs;
    if restored.logs.iter().any(|(log, _)| *log == LogName::Questions) {
        board.asked = Asked::of(questions);
    } else {
        let open = std::mem::take(&mut board.asked).open;
        board.asked.open = open;
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
pub(crate) fn end_claims(board: &mut Board, revision: Revision) {
    if board.is_worked_on() {
        board.edit_log(&LogName::Requests, |log| log.end_claims(revision));
        note_requests(board);
    }
    board.claim_deadlines = OrdSet::new();
    board.fences_after = revision;
}
