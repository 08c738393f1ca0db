//! Runs: which may follow what is there, and their rows.

use parking_lot::RwLock;
use rusqlite::Connection;

use super::bases::HistoryRow;
use super::histories::{Beginning, Histories, Owner, Standing};
use super::{JournalId, Run};
use crate::board::SessionId;

/// Whether a run can be appended to a session that stands so.
pub(super) fn follows(run: &Run, Standing { owner, head }: Standing) -> bool {
    match owner {
        Owner::Session if run.adopts => false,
        // It came to a name before, which had another session then.
        Owner::Staged => head.is_none_or(|head| head <= run.expected),
        Owner::Session => head.is_none_or(|head| head == run.expected),
        Owner::Discarded => false,
    }
}

/// Writes these runs, in the transaction that is open, with the ids that follow.
pub(super) fn insert<'a>(
    connection: &Connection,
    histories: &RwLock<Histories>,
    JournalId(mut id): JournalId,
    runs: impl Iterator<Item = &'a Run>,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached("INSERT INTO journal VALUES (?1, ?2, ?3, ?4)")?;
    for run in runs {
        if run.adopts {
            adopt(connection, run.session, histories.read().beginning(run.session))?;
        }
        let mut revision = run.expected;
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
#[path = "staged_tests.rs"]
mod staged_tests;
