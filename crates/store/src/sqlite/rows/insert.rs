//! Rows that an append inserts, and the checks of its runs against the heads before that.

use std::collections::HashMap;

use parking_lot::RwLock;
use rusqlite::Connection;

use super::bases::HistoryRow;
use super::summaries;
use crate::sqlite::index::{Base, Beginning, Histories, Owner, Standing};
use crate::sqlite::session_names;
use crate::{End, JournalId, NameClaim, Outcome, Run};
use blackboard_board::SessionId;

/// Returns true if a run can be appended to a history in this state.
pub(crate) fn follows(run: &Run, Standing { owner, head }: Standing) -> bool {
    match owner {
        Owner::Session if run.adopts => false,
        // Its name may have had another session before.
        Owner::Staged => head.is_none_or(|head| head <= run.expected),
        Owner::Session => head.is_none_or(|head| head == run.expected),
        Owner::Discarded | Owner::Damaged => false,
    }
}

/// Returns true if a run's name belongs to the session that it expects. `claimed` has the names that the batch gave
/// before it.
pub(crate) fn owns_name<'a>(
    run: &'a Run,
    histories: &Histories,
    claimed: &mut HashMap<&'a [u8], SessionId>,
) -> bool {
    let Some(NameClaim { name, before }) = &run.claim else { return true };
    let known = claimed.get(name.as_slice()).copied().or_else(|| histories.named(name));
    let owns = match (known, before) {
        (None, _) => true,
        // Ids are in the order of time: an earlier one is left where the row of the last one was damaged.
        (Some(known), Some((session, _))) => known <= *session,
        // The caller forgot the end of a session before the store did.
        (Some(known), None) => histories.base(known).is_some_and(|base| base.ends),
    };
    if owns {
        claimed.insert(name, run.session);
    }
    owns
}

/// Gives all runs of a group the outcome of its first run that is not appended.
pub(crate) fn hold_together(batch: &[Run], outcomes: &mut [Outcome]) {
    let mut failed: HashMap<u32, Outcome> = HashMap::new();
    for (run, outcome) in batch.iter().zip(&*outcomes) {
        if let Some(group) = run.group.filter(|_| *outcome != Outcome::Appended) {
            failed.entry(group).or_insert(*outcome);
        }
    }
    for (run, outcome) in batch.iter().zip(outcomes) {
        if let Some(first) = run.group.and_then(|group| failed.get(&group)) {
            *outcome = *first;
        }
    }
}

/// Writes these runs in the open transaction, with the ids that follow. If a write besides the commits fails, `at` is
/// its session.
pub(crate) fn insert<'a>(
    connection: &Connection,
    histories: &RwLock<Histories>,
    JournalId(mut id): JournalId,
    runs: impl Iterator<Item = &'a Run>,
    at: &mut Option<SessionId>,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached("INSERT INTO journal VALUES (?1, ?2, ?3, ?4)")?;
    for run in runs {
        *at = Some(run.session);
        if let Some(end) = &run.ends {
            let base = end.base();
            let beginning = if run.frames.is_empty() {
                // The deletion is stored already, and stays.
                histories.read().beginning_with(run.session, base)
            } else {
                // All rows of the session so far are before its end.
                Beginning { base: Some(base), forgotten: JournalId(id) }
            };
            write_end(connection, run, end, beginning)?;
        } else if run.adopts {
            adopt(connection, run.session, histories.read().beginning(run.session))?;
        }
        if let Some(NameClaim { name, .. }) = run.claim.as_ref().filter(|_| run.ends.is_none()) {
            session_names::put(connection, run.session, name)?;
        }
        *at = None;
        let mut revision = run.after();
        for frame in &run.frames {
            id += 1;
            revision = revision.next();
            insert.execute((
                id.cast_signed(),
                run.session.0.as_bytes().as_slice(),
                revision.0.cast_signed(),
                frame,
            ))?;
        }
    }
    Ok(())
}

fn write_end(
    connection: &Connection,
    run: &Run,
    end: &End,
    beginning: Beginning,
) -> rusqlite::Result<()> {
    let (session, base) = (run.session, end.base());
    base.table().write(connection, session, base.revision, 0, &end.parts)?;
    HistoryRow { session, beginning, staged: false }.write(connection)?;
    summaries::delete(connection, session, run.head())
}

impl End {
    pub(crate) fn base(&self) -> Base {
        let parts = u64::try_from(self.parts.len()).unwrap_or(u64::MAX);
        Base { revision: self.revision, parts, ends: true }
    }

    fn bytes(&self) -> u64 {
        u64::try_from(self.parts.iter().map(Vec::len).sum::<usize>()).unwrap_or(u64::MAX)
    }
}

impl Run {
    /// Returns the bytes of content that it writes.
    pub(crate) fn bytes(&self) -> u64 {
        self.frame_bytes().saturating_add(self.ends.as_ref().map_or(0, End::bytes))
    }
}

fn adopt(
    connection: &Connection,
    session: SessionId,
    beginning: Beginning,
) -> rusqlite::Result<()> {
    if beginning.base.is_some() {
        HistoryRow { session, beginning, staged: false }.write(connection)
    } else {
        HistoryRow::delete(connection, session)
    }
}

#[cfg(test)]
mod tests;
