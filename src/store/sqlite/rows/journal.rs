//! The journal: the database's only writer of commits, bases and deletions.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;
use rusqlite::Connection;

use super::append::{follows, insert};
use super::bases::HistoryRow;
use super::parts::{REVISION_END, SNAPSHOT, Table};
use super::summaries;
use crate::board::{Revision, SessionId};
use crate::store::sqlite::database::{Database, Failure};
use crate::store::sqlite::deletion;
use crate::store::sqlite::deletion::{Garbage, Swept};
use crate::store::sqlite::index::{Base, Beginning, Histories, Owner, Standing};
use crate::store::sqlite::inventory::Inventory;
use crate::store::sqlite::session_names;
use crate::store::{JournalId, Outcome, Run, StoreError};

/// A writer that is never idle deletes some of what is forgotten after so many batches.
const BATCHES_PER_SWEEP: u32 = 16;

/// The reason runs were not written.
#[derive(Debug)]
pub(crate) enum Unwritten {
    /// What is to be written of this session besides its commits met a malformed page; everything is as before.
    Met { session: SessionId, error: rusqlite::Error },
    /// Whatever they are.
    All(Failure),
}

impl Unwritten {
    /// Commits go to the journal's end, so a malformed page there is in the way of all.
    fn of(failure: Failure, at: Option<SessionId>) -> Self {
        match (failure, at) {
            (Failure::Malformed(error), Some(session)) => Self::Met { session, error },
            (Failure::Malformed(error), None) => Self::All(Failure::Broken(error)),
            (failure, _) => Self::All(failure),
        }
    }
}

/// The only writer.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) database: Database,
    /// Read by all, written only here.
    pub(crate) histories: Arc<RwLock<Histories>>,
    pub(crate) garbage: Garbage,
    pub(crate) last: JournalId,
    /// All rows up to this one are compacted, or cannot be.
    pub(crate) compacted: JournalId,
    batches_since_sweep: u32,
}

impl Journal {
    /// Opens the database in which this was found.
    pub(crate) fn open(
        connection: Connection,
        path: &Path,
        found: Option<Inventory>,
    ) -> Result<Self, StoreError> {
        let mark: i64 =
            connection
                .query_one("SELECT journal_mark FROM meta WHERE id = 1", [], |row| row.get(0))?;
        let mut database = Database::open(connection, path)?;
        session_names::drop_damaged(&mut database)?;
        let found = found.map_or_else(|| Inventory::read(database.connection()), Ok)?;
        let Inventory { histories, garbage, last } = found;
        Ok(Self {
            database,
            histories: Arc::new(RwLock::new(histories)),
            garbage,
            last: last.max(JournalId(mark.cast_unsigned())),
            compacted: JournalId(0),
            batches_since_sweep: 0,
        })
    }

    pub(crate) fn histories(&self) -> Arc<RwLock<Histories>> {
        Arc::clone(&self.histories)
    }

    /// What would become of each run if all that is not refused were written. `roomy` is whether
    /// runs may grow, and `malformed` whose runs meet a malformed page.
    pub(crate) fn judge(
        &self,
        batch: &[Run],
        roomy: bool,
        malformed: &[SessionId],
    ) -> Vec<Outcome> {
        let histories = self.histories.read();
        let mut judged: HashMap<SessionId, Standing> = HashMap::new();
        let mut judge = |run: &Run| {
            if malformed.contains(&run.session) {
                return Outcome::Malformed;
            }
            let stored = || histories.standing(run.session);
            let standing = judged.get(&run.session).copied().unwrap_or_else(stored);
            if !follows(run, standing) {
                return Outcome::Conflict { head: standing.head.unwrap_or_default() };
            }
            if run.grows && !roomy {
                return Outcome::Full;
            }
            if run.grows && self.database.log.is_full() {
                return Outcome::Overloaded;
            }
            let owner = if run.adopts { Owner::Session } else { standing.owner };
            judged.insert(run.session, Standing { owner, head: Some(run.head()) });
            Outcome::Appended
        };
        batch.iter().map(&mut judge).collect()
    }

    /// Writes these runs durably in one transaction.
    pub(crate) fn write<'a>(
        &mut self,
        runs: impl Iterator<Item = &'a Run> + Clone,
    ) -> Result<(), Unwritten> {
        let (last, histories, mut at) = (self.last, &self.histories, None);
        let written = self
            .database
            .transact(|connection| insert(connection, histories, last, runs.clone(), &mut at));
        written.map_err(|failure| Unwritten::of(failure, at))?;
        let mut histories = histories.write();
        for run in runs {
            if let Some(end) = &run.ends {
                let put = histories.take_put(run.session);
                self.garbage.add(run.session, Vec::new(), put);
                histories.put(run.session, end.base());
            }
            if run.adopts || run.ends.is_some() {
                begin(&mut histories, &mut self.garbage, run.session);
            }
            let mut revision = run.after();
            for _ in &run.frames {
                self.last.0 += 1;
                revision = revision.next();
                histories.append(run.session, revision, self.last);
            }
            histories.add_journal_bytes(run.frame_bytes());
            self.database.note_written(run.bytes());
        }
        self.batches_since_sweep = self.batches_since_sweep.saturating_add(1);
        Ok(())
    }

    /// Begins a history that is nobody's; whether the id was unknown.
    pub(crate) fn stage(&mut self, session: SessionId) -> Result<bool, Failure> {
        if self.histories.read().is_known(session) {
            return Ok(false);
        }
        let beginning = Beginning::default();
        let row = HistoryRow { session, beginning, staged: true };
        self.database.transact(|connection| row.write(connection))?;
        self.histories.write().begin(session, Owner::Staged, beginning);
        Ok(true)
    }

    /// What was put before is not needed any more, and what is left of this base must go at once, since
    /// its parts are about to be others: some of it. Whether none is left.
    pub(crate) fn clear_base(
        &mut self,
        session: SessionId,
        base: Revision,
    ) -> Result<bool, Failure> {
        let before = self.histories.write().take_put(session);
        self.garbage.add(session, Vec::new(), before);
        self.garbage.spare(session, base);
        let mut swept = Swept::default();
        let cleared = self
            .database
            .transact(|connection| deletion::delete_base(connection, session, base, &mut swept));
        self.database.note_written(swept.wal_bytes);
        cleared.inspect_err(|_| self.abandon_base(session, base))
    }

    /// What is left of snapshots from this revision on must go, since the parts are about to be others: some of
    /// it. Whether none is left.
    pub(crate) fn clear_snapshots(
        &mut self,
        session: SessionId,
        from: Revision,
    ) -> Result<bool, Failure> {
        let mut swept = Swept::default();
        let cleared = self.database.transact(|connection| {
            let (to, swept) = (REVISION_END, &mut swept);
            deletion::delete_parts(SNAPSHOT, connection, session, from, to, swept)
        })?;
        self.database.note_written(swept.wal_bytes);
        Ok(cleared)
    }

    /// Marks the session's snapshots before a revision for deletion.
    pub(crate) fn forget_snapshots(&mut self, session: SessionId, before: Revision) {
        self.garbage.add_snapshots(session, before);
    }

    /// Stores these parts, the first as number `from`; not if the session's base is above them by now.
    pub(crate) fn put_parts(
        &mut self,
        table: Table,
        session: SessionId,
        revision: Revision,
        from: u64,
        parts: &[Vec<u8>],
    ) -> Result<bool, Failure> {
        if self.histories.read().is_past(session, revision) {
            return Ok(false);
        }
        self.database
            .transact(|connection| table.write(connection, session, revision, from, parts))?;
        let bytes: usize = parts.iter().map(Vec::len).sum();
        self.database.note_written(u64::try_from(bytes).unwrap_or(u64::MAX));
        Ok(true)
    }

    /// All parts of a base are stored.
    pub(crate) fn put_base(&mut self, session: SessionId, base: Base) {
        if self.histories.read().is_past(session, base.revision) {
            self.abandon_base(session, base.revision);
        } else {
            self.histories.write().put(session, base);
        }
    }

    /// The parts that were stored of a base are of no use.
    pub(crate) fn abandon_base(&mut self, session: SessionId, base: Revision) {
        self.garbage.add(session, Vec::new(), Some(Base { revision: base, parts: 0, ends: false }));
    }

    /// Lets the session's history begin with the base that was put.
    pub(crate) fn set_base(
        &mut self,
        session: SessionId,
        base: Revision,
    ) -> Result<Outcome, Failure> {
        let beginning = {
            let histories = self.histories.read();
            if histories.base(session).is_some_and(|set| set.revision == base && !set.ends) {
                return Ok(Outcome::Appended);
            }
            let put = histories.put_base(session).map(|put| put.revision);
            let standing = histories.standing(session);
            if put != Some(base)
                || standing.owner != Owner::Session
                || standing.head < put
                || histories.is_past(session, base)
            {
                return Ok(Outcome::Conflict { head: standing.head.unwrap_or_default() });
            }
            histories.beginning(session)
        };
        let row = HistoryRow { session, beginning, staged: false };
        self.database.transact(|connection| {
            row.write(connection)?;
            summaries::delete(connection, session, base)
        })?;
        begin(&mut self.histories.write(), &mut self.garbage, session);
        Ok(Outcome::Appended)
    }

    /// Deletes some of what is forgotten if the writer has been busy for long; whether it has.
    pub(crate) fn sweep_if_busy(&mut self) -> Result<bool, Failure> {
        if self.batches_since_sweep < BATCHES_PER_SWEEP {
            return Ok(false);
        }
        self.sweep().map(|_| true)
    }

    /// What is worth doing in an idle moment; whether there is more of it.
    pub(crate) fn housekeep(&mut self) -> Result<bool, Failure> {
        let all_compacted = self.compacted == self.last;
        let more = self.sweep()? || self.database.shrink(all_compacted)?;
        if !more {
            self.database.forget_deleted()?;
        }
        self.database.checkpoint_if_worthwhile()?;
        Ok(more)
    }

    /// The same where there is little room: what is deleted is given back at once, piece by piece, and the log is
    /// kept as short as one of them. Whether there is more.
    pub(crate) fn make_room(&mut self) -> Result<bool, Failure> {
        let sweeps = !self.garbage.is_empty();
        if sweeps {
            // A log that is in the database is written from its beginning again, and takes no more room.
            self.database.checkpoint_now()?;
            self.sweep()?;
            self.database.checkpoint_now()?;
        }
        let more = self.database.shrink(true)? || sweeps;
        if more {
            self.database.checkpoint_now()?;
        } else {
            self.database.forget_deleted()?;
            self.database.checkpoint_if_worthwhile()?;
        }
        Ok(more)
    }

    /// Deletes some of what is forgotten; whether more is left.
    fn sweep(&mut self) -> Result<bool, Failure> {
        self.batches_since_sweep = 0;
        self.garbage.add_released(&self.histories, Instant::now());
        if self.garbage.is_empty() {
            return Ok(false);
        }
        let mut swept = Swept::default();
        let done = self.database.transact(|connection| self.garbage.sweep(connection, &mut swept));
        match done {
            Ok(()) => {}
            Err(Failure::Malformed(error)) => {
                self.garbage.leave(swept, &error);
                return Ok(!self.garbage.is_empty());
            }
            Err(failure) => return Err(failure),
        }
        self.database.note_deleted(swept.wal_bytes);
        let mut histories = self.histories.write();
        histories.take_journal_bytes(swept.row_bytes);
        for session in self.garbage.forget(swept) {
            histories.remove(session);
        }
        Ok(!self.garbage.is_empty())
    }

    /// Checkpoints the write-ahead log if it has become long.
    pub(crate) fn checkpoint_if_long(&mut self) -> Result<(), Failure> {
        self.database.checkpoint_if_long()
    }

    pub(crate) fn close(self) -> Result<(), StoreError> {
        self.database.close()
    }
}

/// The base that was put for the session is in force: what is before it is to be deleted, unless it is pinned.
fn begin(histories: &mut Histories, garbage: &mut Garbage, session: SessionId) {
    histories.set_beginning(session).into_iter().for_each(|cut| garbage.add_cut(cut));
    if histories.base(session).is_some_and(|base| base.ends) {
        garbage.add_snapshots(session, REVISION_END);
    }
}
