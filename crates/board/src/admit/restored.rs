//! Admission of restores: restored entries, values, agents and deadlines.

use super::{Misfit, admit_default, admit_images, admit_ranges, admit_value};
use crate::commit::apply::apply_change;
use crate::commit::restored::{Restored, RestoredLog};
use crate::commit::{Change, SessionChange};
use crate::log::{Entry, Log, LogName, Stamp};
use crate::values::claim::Work;
use crate::{Board, Seq, Task};

pub(crate) fn admit_restored(
    board: &Board,
    stamp: Stamp<'_>,
    restored: &Restored,
) -> Result<(), Misfit> {
    let past = Misfit::Past { to: restored.to };
    let ascends = restored.logs.is_sorted_by(|(a, _), (b, _)| a < b)
        && restored.agents.is_sorted_by(|(a, _), (b, _)| a < b);
    if restored.to >= stamp.revision || !ascends {
        return Err(past);
    }
    for (name, log) in &restored.logs {
        admit_log(board, stamp, name, log)?;
    }
    let entries = restored.logs.iter().flat_map(|(_, log)| &log.entries);
    admit_images(board, entries.map(|entry| &entry.item))?;
    admit_state(board, stamp, restored)?;
    for (name, agent) in &restored.agents {
        let fits = match agent {
            Some(agent) => agent.changed == stamp.revision,
            None => board.agents.contains_key(name),
        };
        if !fits {
            return Err(Misfit::Agent { agent: name.clone() });
        }
    }
    admit_deadlines(board, stamp, restored)
}

fn admit_log(
    board: &Board,
    stamp: Stamp<'_>,
    name: &LogName,
    restored: &RestoredLog,
) -> Result<(), Misfit> {
    let misfit = |seq| Misfit::Entry { log: name.clone(), seq };
    let last = board.log(name).map(Log::last_seq).ok_or_else(|| misfit(Seq(0)))?;
    admit_ranges(board, name, &restored.removed)?;
    let mut after = Seq(0);
    for entry in &restored.entries {
        let follows = after < entry.seq && entry.seq <= last && entry.revision == stamp.revision;
        if !follows || !is_free(name, entry) {
            return Err(misfit(entry.seq));
        }
        after = entry.seq;
    }
    Ok(())
}

/// Returns true if the entry has no claim. Only a request can be done, and a cancellation waits for a verdict alone.
fn is_free(log: &LogName, entry: &Entry) -> bool {
    let is_in_review = matches!(entry.work.as_deref(), Some(Work::InReview(_)));
    let fits = |task: &Task| task.is_sound(entry.seq) && (is_in_review || task.cancel.is_none());
    let is_task = *log == LogName::Requests && entry.task.as_deref().is_none_or(fits);
    if entry.acked_at.is_some() && !matches!(log, LogName::Messages(_)) {
        return false;
    }
    if !is_task && entry.task.is_some() {
        return false;
    }
    match entry.work.as_deref() {
        None => true,
        Some(Work::InReview(_) | Work::Done(_) | Work::Failed(_) | Work::Cancelled(_)) => {
            *log == LogName::Requests
        }
        Some(Work::Claimed(_) | Work::Lapsed { .. }) => false,
    }
}

/// Checks each value against the document after the values before it.
fn admit_state(board: &Board, stamp: Stamp<'_>, restored: &Restored) -> Result<(), Misfit> {
    let mut state = board.state.clone();
    for (path, value) in &restored.state {
        match value {
            Some(value) => {
                admit_value(&state, path, value)?;
                state.set(path, value.text(), stamp.revision);
            }
            None if state.value(path).is_none() => {
                return Err(Misfit::State { path: path.clone() });
            }
            None => state.remove(path, stamp.revision),
        }
    }
    Ok(())
}

/// Checks the deadlines against the board after the restore: paths must exist, and questions must be open.
fn admit_deadlines(board: &Board, stamp: Stamp<'_>, restored: &Restored) -> Result<(), Misfit> {
    let mut after = board.clone();
    apply_change(
        &mut after,
        &Change::Session(SessionChange::Restored(Box::new(restored.clone()))),
        stamp,
    );
    let lives = after.state.expiries().map(|(path, at)| (path.clone(), at));
    let awaited = after.asked.awaited.iter().map(|(seq, until)| (*seq, until.clone()));
    let fits = lives.eq(restored.expiries.iter().cloned())
        && awaited.eq(restored.awaited.iter().cloned())
        && restored.awaited.iter().all(|(_, until)| admit_default(until));
    if fits { Ok(()) } else { Err(Misfit::Past { to: restored.to }) }
}
