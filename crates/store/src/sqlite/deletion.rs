//! Garbage: forgotten rows, deleted in small pieces so that no append waits long.
//!
//! SQLite overwrites deleted rows. The garbage is known in memory and found again on opening. Rows come here only
//! when nothing reads them any more.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::RwLock;
use rusqlite::{Connection, OptionalExtension as _};

use super::index::{Base, Histories};
use super::pins::Cut;
use super::rows::bases::HistoryRow;
use super::rows::parts;
use super::rows::parts::{REVISION_END, Table};
use super::segments;
use super::session_names;
use crate::{JournalId, StoreError};
use blackboard_board::{Revision, SessionId};

/// The maximum number of rows deleted in one transaction.
const SWEEP_ROWS_MAX: usize = 1_000;

/// The maximum number of bytes deleted in one transaction, which ends with the row that reaches it.
const SWEEP_BYTES_MAX: u64 = 1 << 20;

/// Log bytes besides a row's own, if its neighbour is not deleted too.
const PAGE_BYTES: u64 = 4096;

/// Pending deletions, in this order.
#[derive(Debug, Default)]
pub(crate) struct Garbage {
    rows: VecDeque<JournalId>,
    bases: VecDeque<(SessionId, Revision)>,
    pasts: VecDeque<Past>,
    /// Sessions whose history rows are deleted last, since those mark the other rows as discarded.
    discarded: VecDeque<SessionId>,
}

/// The obsolete compacted commits and snapshots of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Past {
    session: SessionId,
    /// Compacted commits up to this revision.
    compacted: Revision,
    /// Snapshots before this revision.
    snapshots: Revision,
}

/// The deletions of one transaction, applied once they are durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Swept {
    rows: usize,
    /// Bytes of frames in these rows.
    pub(crate) row_bytes: u64,
    bases: usize,
    pasts: usize,
    discarded: usize,
    deleted: usize,
    bytes: u64,
    /// Growth of the write-ahead log, roughly.
    pub(crate) wal_bytes: u64,
}

impl Garbage {
    /// Finds the garbage of a store on opening: rows in no history, bases not in force, and history before those in
    /// force. `compacted` has each session's first compacted revision.
    pub(crate) fn find(
        connection: &Connection,
        histories: &Histories,
        rows: Vec<JournalId>,
        compacted: &[(SessionId, Revision)],
        discarded: Vec<SessionId>,
    ) -> Result<Self, StoreError> {
        let in_force = |session| histories.base(session).map(|base| base.revision);
        let ended = |session| histories.base(session).is_some_and(|base| base.ends);
        let mut bases = parts::BASE.revisions(connection)?;
        bases.retain(|(session, revision)| {
            let is_in_force = in_force(*session) == Some(*revision) && !ended(*session);
            !is_in_force && !histories.is_damaged(*session)
        });
        let mut garbage = Self { rows: rows.into(), bases: bases.into(), ..Self::default() };
        for (session, first) in compacted {
            let base = in_force(*session).filter(|base| first <= base);
            garbage.pasts.extend(base.map(|base| Past::before(*session, base)));
        }
        let mut newest: Option<(SessionId, Revision)> = None;
        for (session, revision) in parts::SNAPSHOT.revisions(connection)? {
            let older = newest.replace((session, revision)).is_some_and(|last| last.0 == session);
            let base = in_force(session).unwrap_or_default();
            let is_over = ended(session) || !histories.is_known(session);
            if !histories.is_damaged(session) && (older || revision < base || is_over) {
                let end = if is_over { REVISION_END } else { revision.max(base) };
                garbage.add_snapshots(session, end);
            }
        }
        garbage.pasts.extend(discarded.iter().map(|session| Past::before(*session, REVISION_END)));
        garbage.discarded = discarded.into();
        Ok(garbage)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
            && self.bases.is_empty()
            && self.pasts.is_empty()
            && self.discarded.is_empty()
    }

    pub(crate) fn add(&mut self, session: SessionId, rows: Vec<JournalId>, base: Option<Base>) {
        self.rows.extend(rows);
        self.bases.extend(base.map(|base| (session, base.revision)));
    }

    /// Adds the history before a base that came in force.
    pub(crate) fn add_cut(&mut self, cut: Cut) {
        let Cut { session, base, before, rows } = cut;
        self.add(session, rows.into_ids(), before);
        self.add_past(session, base);
    }

    /// Adds history that was pinned when it was forgotten, and no longer is.
    pub(crate) fn add_released(&mut self, histories: &RwLock<Histories>, now: Instant) {
        if histories.read().pins.are_due(now) {
            let released = histories.write().pins.take_released(now);
            released.into_iter().for_each(|cut| self.add_cut(cut));
        }
    }

    /// Adds the session's compacted commits up to a base and its snapshots before the base.
    pub(crate) fn add_past(&mut self, session: SessionId, base: Revision) {
        self.pasts.push_back(Past::before(session, base));
    }

    /// Adds the session's snapshots before a revision.
    pub(crate) fn add_snapshots(&mut self, session: SessionId, before: Revision) {
        self.pasts.push_back(Past { session, compacted: Revision(0), snapshots: before });
    }

    /// Adds a session whose history is discarded, after everything else of it.
    pub(crate) fn add_discarded(&mut self, session: SessionId) {
        self.discarded.push_back(session);
    }

    /// Removes a base whose parts are about to be replaced.
    pub(crate) fn spare(&mut self, session: SessionId, base: Revision) {
        self.bases.retain(|left| *left != (session, base));
    }

    /// Deletes some garbage in the open transaction. On failure, `swept` has the deletions before it.
    pub(crate) fn sweep(&self, connection: &Connection, swept: &mut Swept) -> rusqlite::Result<()> {
        self.sweep_rows(connection, swept)?;
        for (session, base) in &self.bases {
            if !delete_base(connection, *session, *base, swept)? {
                return Ok(());
            }
            swept.bases += 1;
        }
        for past in &self.pasts {
            if !past.delete(connection, swept)? {
                return Ok(());
            }
            swept.pasts += 1;
        }
        for session in &self.discarded {
            if swept.is_enough() {
                return Ok(());
            }
            HistoryRow::delete(connection, *session)?;
            session_names::delete(connection, *session)?;
            swept.count(PAGE_BYTES);
            swept.discarded += 1;
        }
        Ok(())
    }

    /// Leaves the garbage after `swept`, which lies on a malformed page, until the next start tries again. The row
    /// that marks it as discarded stays too.
    pub(crate) fn leave(&mut self, swept: Swept, error: &rusqlite::Error) {
        let whose = if self.rows.remove(swept.rows).is_some() {
            None
        } else if let Some((session, _)) = self.bases.remove(swept.bases) {
            Some(session)
        } else if let Some(past) = self.pasts.remove(swept.pasts) {
            Some(past.session)
        } else {
            self.discarded.remove(swept.discarded)
        };
        // The session of a journal row is unknown here, so the history rows of all discarded sessions stay.
        self.discarded.retain(|session| whose.is_some_and(|left| left != *session));
        let session = whose.map(|session| session.to_string());
        tracing::error!(session, %error, "failed to delete rows on a damaged page; retrying at the next start");
    }

    /// The mark moves in the same transaction, or the ids of the newest rows would be reused.
    fn sweep_rows(&self, connection: &Connection, swept: &mut Swept) -> rusqlite::Result<()> {
        let mut length =
            connection.prepare_cached("SELECT length(frame) FROM journal WHERE id = ?1")?;
        let mut delete = connection.prepare_cached("DELETE FROM journal WHERE id = ?1")?;
        let mut last = JournalId(0);
        for JournalId(id) in self.rows.iter().copied() {
            if swept.is_enough() {
                break;
            }
            let bytes: Option<i64> =
                length.query_one([id.cast_signed()], |row| row.get(0)).optional()?;
            delete.execute([id.cast_signed()])?;
            let bytes = bytes.unwrap_or(0).cast_unsigned();
            swept.row_bytes += bytes;
            swept.count(bytes);
            swept.wal_bytes += if id == last.0 + 1 { 0 } else { PAGE_BYTES };
            swept.rows += 1;
            last = JournalId(id);
        }
        let mark = self.rows.iter().take(swept.rows).max();
        mark.map_or(Ok(()), |mark| raise_mark(connection, *mark))
    }

    /// Removes durably deleted garbage. Returns the sessions of which nothing is left.
    pub(crate) fn forget(&mut self, swept: Swept) -> Vec<SessionId> {
        self.rows.drain(..swept.rows);
        self.bases.drain(..swept.bases);
        self.pasts.drain(..swept.pasts);
        self.discarded.drain(..swept.discarded).collect()
    }
}

/// Returns the highest id that no row may have again.
pub(crate) fn mark(connection: &Connection) -> rusqlite::Result<JournalId> {
    let mark: i64 =
        connection.query_one("SELECT journal_mark FROM meta WHERE id = 1", [], |row| row.get(0))?;
    Ok(JournalId(mark.cast_unsigned()))
}

/// Keeps the ids up to this one from being reused, although no row has them.
pub(crate) fn raise_mark(connection: &Connection, mark: JournalId) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE meta SET journal_mark = max(journal_mark, ?1) WHERE id = 1")?
        .execute([mark.0.cast_signed()])
        .map(drop)
}

/// Deletes parts of a base that is not in force. Returns true if none is left.
pub(crate) fn delete_base(
    connection: &Connection,
    session: SessionId,
    base: Revision,
    swept: &mut Swept,
) -> rusqlite::Result<bool> {
    delete_parts(parts::BASE, connection, session, base, base.next(), swept)
}

/// Deletes parts in a range of revisions. Returns true if none is left.
pub(crate) fn delete_parts(
    table: Table,
    connection: &Connection,
    session: SessionId,
    from: Revision,
    below: Revision,
    swept: &mut Swept,
) -> rusqlite::Result<bool> {
    while !swept.is_enough() {
        let Some(bytes) = table.delete_first(connection, session, from, below)? else {
            return Ok(true);
        };
        swept.count(bytes);
        swept.wal_bytes += PAGE_BYTES;
    }
    Ok(false)
}

impl Past {
    fn before(session: SessionId, base: Revision) -> Self {
        Self { session, compacted: base, snapshots: base }
    }

    /// Deletes some of it. Returns true if none is left.
    fn delete(self, connection: &Connection, swept: &mut Swept) -> rusqlite::Result<bool> {
        let Self { session, compacted, snapshots } = self;
        while !swept.is_enough() {
            let Some(bytes) = segments::forget_first(connection, session, compacted)? else {
                let (table, from) = (parts::SNAPSHOT, Revision(0));
                return delete_parts(table, connection, session, from, snapshots, swept);
            };
            swept.count(bytes);
            swept.wal_bytes += PAGE_BYTES;
        }
        Ok(false)
    }
}

impl Swept {
    fn is_enough(&self) -> bool {
        self.deleted >= SWEEP_ROWS_MAX || self.bytes >= SWEEP_BYTES_MAX
    }

    fn count(&mut self, bytes: u64) {
        self.deleted += 1;
        self.bytes += bytes;
        self.wal_bytes += bytes;
    }
}

#[cfg(test)]
mod tests;
