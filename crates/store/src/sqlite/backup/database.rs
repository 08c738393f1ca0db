//! Backup of the database, session by session while others write.
//!
//! Read transactions are short, so that the log can be emptied meanwhile. Each session that existed at the beginning
//! has a history that ends then or later. Commits move from the journal into segments and from there into bases; they
//! are read in that order, so none is missed. Duplicates are deleted from the copy's journal in the end.
//!
//! Rows are copied as they are, damaged ones too. A commit that is not found has a row in the copy that every reader
//! reports as damaged.

use std::collections::HashMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Params};

use super::raw_rows::{RawRow, select};
use crate::files::disk::Room;
use crate::sqlite::index::{Base, Owner};
use crate::sqlite::rows::bases::{HistoryRow, session_of};
use crate::sqlite::rows::parts::{REVISION_END, SNAPSHOT};
use crate::sqlite::schema;
use crate::{IsOver, JournalId, Progress, SqliteStore, StoreError, StoredSession};
use blackboard_board::{Revision, SessionId};

/// The maximum bytes of rows in one read, which ends with the row that reaches it, and in one sync: a writer's sync
/// waits for the disk meanwhile.
const PAGE_BYTES: usize = 1 << 20;

/// The time limit of one read, unless its first row alone takes longer.
const PAGE_TIME_MAX: Duration = Duration::from_millis(50);

/// The rest after a period of work, as a multiple of it, while others write.
const REST_TIMES: u32 = 2;

/// The maximum number of tries to copy a session whose beginning changes meanwhile. No base can be put during the
/// copy, so hardly anything but a base put before, or the session's end, can intervene.
const TRIES_MAX: usize = 8;

/// The delay before the next try.
const TRY_AFTER: Duration = Duration::from_millis(5);

/// The column with the number of a part.
const PART: usize = 2;

/// A database that is being copied.
pub(crate) struct Copying<'a> {
    store: &'a SqliteStore,
    to: Connection,
    file: File,
    room: &'a Room,
    is_over: &'a IsOver,
    progress: &'a Progress,
    /// The last commit of each session found in the journal.
    in_journal: HashMap<SessionId, Revision>,
    /// Bytes written since the last rest, the time of that rest, and the journal's bytes then.
    unsynced: usize,
    rested: Instant,
    uncompacted: u64,
}

/// The outcome of one try to copy a session.
enum Tried {
    Done,
    /// The beginning of its history has changed.
    Moved,
}

impl<'a> Copying<'a> {
    pub(crate) fn begin(
        store: &'a SqliteStore,
        path: &Path,
        room: &'a Room,
        (is_over, progress): (&'a IsOver, &'a Progress),
    ) -> Result<Self, StoreError> {
        let to = schema::make(path)?;
        to.execute_batch(
            "CREATE TEMP TABLE compacted (session BLOB PRIMARY KEY, last INTEGER); BEGIN",
        )?;
        Ok(Self {
            store,
            to,
            file: File::open(path).map_err(StoreError::io(path))?,
            room,
            is_over,
            progress,
            in_journal: HashMap::new(),
            unsynced: 0,
            rested: Instant::now(),
            uncompacted: 0,
        })
    }

    /// Copies everything and syncs the copy. Returns its length.
    pub(crate) fn run(mut self) -> Result<u64, StoreError> {
        // Listed before the journal is read, so that the reads from now on find all their commits.
        let sessions = self.store.histories.read().sessions();
        self.in_journal = sessions.iter().map(|one| (one.session, Revision::default())).collect();
        self.copy("token", "SELECT * FROM token", ())?;
        self.journal()?;
        for session in &sessions {
            self.session(session)?;
        }
        self.to.execute_batch(
            "DELETE FROM journal WHERE revision <=
                 (SELECT last FROM compacted WHERE compacted.session = journal.session);
             COMMIT;
             DROP TABLE compacted",
        )?;
        let Self { to, file, .. } = self;
        to.close().map_err(|(_, error)| error)?;
        let io = StoreError::io(&self.store.path);
        file.sync_all().and_then(|()| file.metadata()).map(|file| file.len()).map_err(io)
    }

    /// Copies the rows that the journal has now.
    fn journal(&mut self) -> Result<(), StoreError> {
        let (mark, last): (i64, i64) = self.store.readers.read(|from| {
            let sql = "SELECT journal_mark, (SELECT ifnull(max(id), 0) FROM journal) FROM meta";
            Ok(from.query_one(sql, [], |row| row.try_into())?)
        })?;
        // A served copy is another store: its first opening draws a new epoch and key.
        self.to.execute(
            "UPDATE meta SET epoch = zeroblob(16), journal_mark = ?1 WHERE id = 1",
            [mark.max(last)],
        )?;
        let sql = "SELECT * FROM journal WHERE id > ?1 AND id <= ?2 ORDER BY id";
        let mut after = 0;
        loop {
            let rows = self.read(sql, (after, last))?;
            let Some(end) = rows.last().map(|row| row.number(0).cast_signed()) else {
                return Ok(());
            };
            after = end;
            for row in rows {
                if self.is_to_be_copied(&row) {
                    self.write("journal", &row)?;
                }
            }
            self.breathe()?;
        }
    }

    /// Returns true if a row of the journal is in a history that existed at the beginning. A row without a readable
    /// session leaves a gap in its history.
    fn is_to_be_copied(&mut self, row: &RawRow) -> bool {
        let Some(session) = session_of(row.blob(1).into()) else { return false };
        let Some(last) = self.in_journal.get_mut(&session) else { return false };
        if self.store.histories.read().is_forgotten(session, JournalId(row.number(0))) {
            return false;
        }
        *last = (*last).max(Revision(row.number(2)));
        true
    }

    fn session(&mut self, one: &StoredSession) -> Result<(), StoreError> {
        let store = self.store;
        let _turn = store.putting.take(one.session);
        for _ in 0..TRIES_MAX {
            if let Tried::Done = self.history(one)? {
                return self.breathe();
            }
            self.remove(one.session)?;
            thread::sleep(TRY_AFTER);
        }
        let base = self.base(one.session).map(|base| base.revision).unwrap_or_default();
        Err(StoreError::Forgotten { session: one.session, base })
    }

    /// Copies a session's rows, except those in the journal.
    fn history(&mut self, one: &StoredSession) -> Result<Tried, StoreError> {
        let session = one.session;
        let id = session.0.as_bytes().as_slice();
        if !self.is_own(session) {
            // The session was forgotten meanwhile, with everything copied of it.
            self.note_compacted(session, REVISION_END)?;
            return Ok(Tried::Done);
        }
        let base = self.base(session);
        if self.stored_base(session)?.is_some_and(|stored| stored != base) {
            return Ok(Tried::Moved);
        }
        let damaged_row = self.store.histories.read().damaged_row(session);
        let row = damaged_row.unwrap_or(session);
        let row_id = row.0.as_bytes().as_slice();
        self.copy("history", "SELECT * FROM history WHERE session = ?1", [row_id])?;
        self.copy("name", "SELECT * FROM name WHERE session = ?1", [id])?;
        if let Some(Base { revision, ends, .. }) = base {
            self.parts(if ends { "ending" } else { "base" }, session, revision)?;
        }
        if damaged_row.is_some() {
            // The base with which the history begins is unknown.
            self.copy("base", "SELECT * FROM base WHERE session = ?1", [id])?;
            self.copy("ending", "SELECT * FROM ending WHERE session = ?1", [id])?;
        }
        let begins = base.map(|base| base.revision).unwrap_or_default();
        let Some((compacted, lacks)) = self.segments(session, begins)? else {
            return Ok(Tried::Moved);
        };
        let found = self.in_journal.get(&session).copied().unwrap_or_default();
        let head = compacted.max(found);
        if lacks || head < one.head {
            self.mark_missing(session, head.min(one.head), one.head)?;
        }
        self.caches(session, begins, head)?;
        if self.base(session) != base || !self.is_own(session) {
            return Ok(Tried::Moved);
        }
        // A damaged row may name a revision beyond everything compacted.
        let is_compacted = compacted.0 > 0 && self.is_compacted_after(session, compacted.0 - 1);
        self.note_compacted(session, if is_compacted { compacted } else { begins })?;
        Ok(Tried::Done)
    }

    fn is_own(&self, session: SessionId) -> bool {
        let histories = self.store.histories.read();
        matches!(histories.standing_of_known(session), Some(Owner::Session | Owner::Damaged))
    }

    fn base(&self, session: SessionId) -> Option<Base> {
        self.store.histories.read().base(session)
    }

    fn is_compacted_after(&self, session: SessionId, after: u64) -> bool {
        self.store.histories.read().is_compacted_after(session, Revision(after))
    }

    /// Returns the base in the session's stored row, `None` if the row is damaged. The row may be newer than the
    /// index.
    fn stored_base(&self, session: SessionId) -> Result<Option<Option<Base>>, StoreError> {
        let row = self.store.readers.read(|from| HistoryRow::of(from, session))?;
        Ok(match row {
            None => Some(None),
            Some(row) => row.map(|row| row.beginning.base),
        })
    }

    fn parts(
        &mut self,
        table: &str,
        session: SessionId,
        revision: Revision,
    ) -> Result<(), StoreError> {
        let of = "session = ?1 AND revision = ?2 AND part >= ?3";
        let sql = format!("SELECT * FROM {table} WHERE {of} ORDER BY part");
        let mut next = 0;
        loop {
            let of = (session.0.as_bytes().as_slice(), revision.0.cast_signed(), next);
            let rows = self.read(&sql, of)?;
            let Some(last) = rows.last() else { return Ok(()) };
            next = last.number(PART).cast_signed().saturating_add(1);
            rows.iter().try_for_each(|row| self.write(table, row))?;
            self.breathe()?;
        }
    }

    /// Copies the segments after a base. Returns the last revision, and true if segments after it are missing.
    /// Returns `None` if segments were rewritten meanwhile, which would duplicate commits.
    fn segments(
        &mut self,
        session: SessionId,
        base: Revision,
    ) -> Result<Option<(Revision, bool)>, StoreError> {
        let sql = "SELECT * FROM segment WHERE session = ?1 AND last > ?2 ORDER BY last";
        let (mut after, mut is_first) = (base.0, true);
        loop {
            // Read before the segments: more may be compacted since.
            let expects = self.is_compacted_after(session, after);
            let rows = self.read(sql, (session.0.as_bytes().as_slice(), after.cast_signed()))?;
            let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
                return Ok(Some((Revision(after), expects)));
            };
            if !is_first && first.number(1) <= after {
                return Ok(None);
            }
            (after, is_first) = (last.number(2), false);
            rows.iter().try_for_each(|row| self.write("segment", row))?;
            self.breathe()?;
        }
    }

    /// Marks missing commits by an empty segment, which readers of the copy report as damaged.
    fn mark_missing(
        &mut self,
        session: SessionId,
        Revision(after): Revision,
        Revision(last): Revision,
    ) -> Result<(), StoreError> {
        let first = after.saturating_add(1);
        let of =
            (session.0.as_bytes().as_slice(), first.cast_signed(), last.max(first).cast_signed());
        let sql = "INSERT INTO segment VALUES (?1, ?2, ?3, 1, 0, 0, x'')";
        Ok(self.to.execute(sql, of).map(drop)?)
    }

    /// Copies the session's summary and snapshot if the copy has their revisions.
    fn caches(
        &mut self,
        session: SessionId,
        base: Revision,
        head: Revision,
    ) -> Result<(), StoreError> {
        let id = session.0.as_bytes().as_slice();
        let stored_head = self.store.histories.read().standing(session).head.unwrap_or_default();
        for row in self.read("SELECT * FROM session WHERE session = ?1", [id])? {
            // A summary above the stored head is damaged, and copied as it is.
            let revision = Revision(row.number(1));
            if revision <= head || revision > stored_head {
                self.write("session", &row)?;
            }
        }
        let newest = self.store.readers.read(|from| Ok(SNAPSHOT.newest(from, session, head)?))?;
        let Some(revision) = newest.filter(|revision| *revision >= base) else { return Ok(()) };
        self.parts("snapshot", session, revision)?;
        let first = |from: &Connection| Ok(SNAPSHOT.read(from, session, revision, 0)?);
        if self.store.readers.read(first)?.is_none() {
            // Deleted meanwhile, its first part first.
            self.to.execute("DELETE FROM snapshot WHERE session = ?1", [id])?;
        }
        Ok(())
    }

    /// Removes a session's rows from the copy, except those in the journal.
    fn remove(&self, session: SessionId) -> Result<(), StoreError> {
        for table in ["history", "name", "base", "ending", "segment", "session", "snapshot"] {
            let delete = format!("DELETE FROM {table} WHERE session = ?1");
            self.to.prepare_cached(&delete)?.execute([session.0.as_bytes().as_slice()])?;
        }
        Ok(())
    }

    /// Excludes the session's journal rows up to this commit from the copy.
    fn note_compacted(&self, session: SessionId, last: Revision) -> Result<(), StoreError> {
        let row = (session.0.as_bytes().as_slice(), last.0.cast_signed());
        let mut insert =
            self.to.prepare_cached("INSERT OR REPLACE INTO compacted VALUES (?1, ?2)")?;
        Ok(insert.execute(row).map(drop)?)
    }

    /// Copies the selected rows, which must be few.
    fn copy(&mut self, table: &str, sql: &str, params: impl Params) -> Result<(), StoreError> {
        let mut rows = Vec::new();
        self.store.readers.read(|from| {
            let take = &mut |row| {
                rows.push(row);
                ControlFlow::Continue(())
            };
            Ok(select(from, sql, params, take)?)
        })?;
        rows.iter().try_for_each(|row| self.write(table, row))
    }

    /// Reads a page of rows: enough for one transaction, at least one if there is any.
    fn read(&self, sql: &str, params: impl Params) -> Result<Vec<RawRow>, StoreError> {
        let (mut rows, mut bytes, begun) = (Vec::new(), 0, Instant::now());
        self.store.readers.read(|from| {
            let take = &mut |row: RawRow| {
                bytes += row.bytes();
                rows.push(row);
                if bytes < PAGE_BYTES && begun.elapsed() < PAGE_TIME_MAX {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            };
            Ok(select(from, sql, params, take)?)
        })?;
        Ok(rows)
    }

    fn write(&mut self, table: &str, row: &RawRow) -> Result<(), StoreError> {
        row.write(&self.to, table)?;
        self.unsynced += row.bytes();
        self.progress.advance(u64::try_from(row.bytes()).unwrap_or(u64::MAX));
        Ok(())
    }

    /// Yields to others after enough work: syncs the written rows, so that no writer's sync waits for more than that,
    /// and rests if anybody writes.
    fn breathe(&mut self) -> Result<(), StoreError> {
        if (self.is_over)() {
            return Err(StoreError::Closed);
        }
        if self.unsynced < PAGE_BYTES && self.rested.elapsed() < PAGE_TIME_MAX {
            return Ok(());
        }
        self.to.execute_batch("COMMIT; BEGIN")?;
        self.file.sync_data().map_err(StoreError::io(&self.store.path))?;
        if !self.room.is_for(u64::try_from(PAGE_BYTES).unwrap_or(u64::MAX)) {
            return Err(StoreError::Full);
        }
        let uncompacted = self.store.histories.read().journal_bytes();
        if std::mem::replace(&mut self.uncompacted, uncompacted) != uncompacted {
            thread::sleep(self.rested.elapsed() * REST_TIMES);
        }
        (self.unsynced, self.rested) = (0, Instant::now());
        Ok(())
    }
}
