//! Summaries of sessions, one row each: a cache, never replaced by an older one.

use std::ops::ControlFlow;

use rusqlite::Connection;

use super::bases::session_of;
use super::journal::Journal;
use crate::sqlite::database::Failure;
use crate::sqlite::index::Owner;
use crate::{StoreError, SummaryRow};
use blackboard_board::{Revision, SessionId};

/// Stores a summary of a session at `head`, in place of the previous one. A stored summary above `head` is damaged,
/// and replaced by any.
pub(crate) fn put(
    connection: &Connection,
    SummaryRow { session, revision, frame }: &SummaryRow,
    head: Revision,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO session VALUES (?1, ?2, ?3)
             ON CONFLICT (session) DO UPDATE
             SET revision = excluded.revision, frame = excluded.frame
             WHERE revision <= excluded.revision OR revision > ?4",
        )?
        .execute((
            session.0.as_bytes().as_slice(),
            revision.0.cast_signed(),
            frame,
            head.0.cast_signed(),
        ))
        .map(drop)
}

/// Deletes the session's summary if its revision is below this one.
pub(crate) fn delete(
    connection: &Connection,
    session: SessionId,
    below: Revision,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM session WHERE session = ?1 AND revision < ?2")?
        .execute((session.0.as_bytes().as_slice(), below.0.cast_signed()))
        .map(drop)
}

/// Visits all summaries. Rows without a readable session are skipped.
pub(crate) fn visit(
    connection: &Connection,
    visit: &mut dyn FnMut(&SummaryRow) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let mut select = connection.prepare("SELECT session, revision, frame FROM session")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let Some(session) = session_of(row.get_ref(0)?) else { continue };
        let revision = Revision(row.get::<_, i64>(1)?.cast_unsigned());
        if visit(&SummaryRow { session, revision, frame: row.get(2)? }).is_break() {
            break;
        }
    }
    Ok(())
}

impl Journal {
    /// Returns the summaries of durable revisions at or above the base, each with its session's head.
    pub(crate) fn sound_summaries<'a>(
        &self,
        summaries: &'a [SummaryRow],
    ) -> Vec<(&'a SummaryRow, Revision)> {
        let histories = self.histories.read();
        let sound = |summary: &'a SummaryRow| {
            let standing = histories.standing(summary.session);
            let base = histories.base(summary.session).map(|base| base.revision);
            let head = standing.head.filter(|_| standing.owner == Owner::Session)?;
            (Some(summary.revision) >= base && summary.revision <= head).then_some((summary, head))
        };
        summaries.iter().filter_map(sound).collect()
    }

    /// Stores summaries.
    pub(crate) fn put_summaries(&mut self, new_summaries: &[SummaryRow]) -> Result<(), Failure> {
        let summaries = self.sound_summaries(new_summaries);
        let bytes: usize = summaries.iter().map(|(summary, _)| summary.frame.len()).sum();
        self.database.transact(|connection| {
            summaries.iter().try_for_each(|(row, head)| put(connection, row, *head))
        })?;
        self.database.note_written(u64::try_from(bytes).unwrap_or(u64::MAX));
        Ok(())
    }
}
