//! Garbage: forgotten rows, deleted in small pieces so that no append waits long.
//!
//! SQLite overwrites deleted rows. The garbage is known in memory and found again on opening. Rows come here only when
//! nothing reads them any more.

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
use crate::board::{Revision, SessionId};
use crate::store::{JournalId, StoreError};

/// How many rows are deleted in one transaction at most.
const SWEEP_ROWS_MAX: usize = 1_000;

/// How many bytes of them: a transaction ends with the row that reaches it.
const SWEEP_BYTES_MAX: u64 = 1 << 20;

/// What changes besides a row's own bytes if its neighbour was not deleted too.
const PAGE_BYTES: u64 = 4096;

/// What is left to delete, in this order.
#[derive(Debug, Default)]
pub(crate) struct Garbage {
    rows: VecDeque<JournalId>,
    bases: VecDeque<(SessionId, Revision)>,
    pasts: VecDeque<Past>,
    /// Whose history rows go last, since they say that the others are nobody's.
    discarded: VecDeque<SessionId>,
}

/// What of a session is before its base, or of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Past {
    session: SessionId,
    /// Compacted commits up to this one.
    compacted: Revision,
    /// Snapshots before this revision.
    snapshots: Revision,
}

/// What one transaction has deleted, to be noted once it is durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Swept {
    rows: usize,
    /// How many bytes of frames these rows had.
    pub(crate) row_bytes: u64,
    bases: usize,
    pasts: usize,
    discarded: usize,
    deleted: usize,
    bytes: u64,
    /// How much longer the write-ahead log is, roughly.
    pub(crate) wal_bytes: u64,
}

impl Garbage {
    /// What a store that is opened has left: rows that are in no history, bases that are not in force, and what
    /// is before those that are. `compacted` is where each session's compacted commits begin.
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

    /// What is before a base that came in force.
    pub(crate) fn add_cut(&mut self, cut: Cut) {
        let Cut { session, base, before, rows } = cut;
        self.add(session, rows.into_ids(), before);
        self.add_past(session, base);
    }

    /// What was pinned when it was forgotten, and is not any more.
    pub(crate) fn add_released(&mut self, histories: &RwLock<Histories>, now: Instant) {
        if histories.read().pins.are_due(now) {
            let released = histories.write().pins.take_released(now);
            released.into_iter().for_each(|cut| self.add_cut(cut));
        }
    }

    /// What is compacted of the session up to a base is forgotten, and so are its snapshots before that.
    pub(crate) fn add_past(&mut self, session: SessionId, base: Revision) {
        self.pasts.push_back(Past::before(session, base));
    }

    /// The session's snapshots before a revision are of no use any more.
    pub(crate) fn add_snapshots(&mut self, session: SessionId, before: Revision) {
        self.pasts.push_back(Past { session, compacted: Revision(0), snapshots: before });
    }

    /// A session whose history is nobody's any more, after what it had was added.
    pub(crate) fn add_discarded(&mut self, session: SessionId) {
        self.discarded.push_back(session);
    }

    /// A base whose parts are about to be others is not to be deleted later.
    pub(crate) fn spare(&mut self, session: SessionId, base: Revision) {
        self.bases.retain(|left| *left != (session, base));
    }

    /// Deletes some, in the transaction that is open. Where that fails, `swept` tells what went before it.
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

    /// What comes after that lies on a malformed page: it stays until the next start, which tries again. So do the
    /// rows by which it is nobody's.
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
        // A row of the journal does not tell here whose it is.
        self.discarded.retain(|session| whose.is_some_and(|left| left != *session));
        let session = whose.map(|session| session.to_string());
        tracing::error!(session, %error, "deleted rows on a damaged page are kept");
    }

    /// The mark moves in the same transaction, or the ids of the newest rows would be free again.
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

    /// What was swept is durably gone. The sessions of which nothing is left.
    pub(crate) fn forget(&mut self, swept: Swept) -> Vec<SessionId> {
        self.rows.drain(..swept.rows);
        self.bases.drain(..swept.bases);
        self.pasts.drain(..swept.pasts);
        self.discarded.drain(..swept.discarded).collect()
    }
}

/// The ids up to this one are never used again, though no row tells of them.
pub(crate) fn raise_mark(connection: &Connection, mark: JournalId) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE meta SET journal_mark = max(journal_mark, ?1) WHERE id = 1")?
        .execute([mark.0.cast_signed()])
        .map(drop)
}

/// Deletes parts of a base that is not in force; whether none is left.
pub(crate) fn delete_base(
    connection: &Connection,
    session: SessionId,
    base: Revision,
    swept: &mut Swept,
) -> rusqlite::Result<bool> {
    delete_parts(parts::BASE, connection, session, base, base.next(), swept)
}

/// Deletes parts of what is of these revisions; whether none is left.
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

    /// Deletes some of it; whether none is left.
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
