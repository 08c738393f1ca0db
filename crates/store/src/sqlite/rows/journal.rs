//! The journal: the database's only writer of commits, bases and deletions.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;
use rusqlite::Connection;

use super::bases::HistoryRow;
use super::insert::{follows, hold_together, insert, owns_name};
use super::parts::{REVISION_END, SNAPSHOT, Table};
use super::summaries;
use crate::sqlite::database::{Database, Failure};
use crate::sqlite::deletion;
use crate::sqlite::deletion::{Garbage, Swept};
use crate::sqlite::index::{Base, Beginning, Histories, Owner, Standing};
use crate::sqlite::inventory::Inventory;
use crate::sqlite::last_commit::LastCommit;
use crate::sqlite::session_names;
use crate::{JournalId, Outcome, Run, StoreError};
use blackboard_board::{Revision, SessionId};

/// The number of batches after which a busy writer deletes some garbage.
const BATCHES_PER_SWEEP: u32 = 16;

/// The reason runs were not written.
#[derive(Debug)]
pub(crate) enum Unwritten {
    /// A write for this session, besides its commits, met a malformed page; nothing changed.
    Met { session: SessionId, error: rusqlite::Error },
    /// The failure concerns all runs.
    All(Failure),
}

impl Unwritten {
    /// Commits go to the journal's end, so a malformed page there blocks all runs.
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
    /// Shared with readers, changed only here.
    pub(crate) histories: Arc<RwLock<Histories>>,
    pub(crate) garbage: Garbage,
    pub(crate) last: JournalId,
    /// `None` if commits are not synced.
    noted: Option<LastCommit>,
    /// All rows up to this one are compacted, or cannot be.
    pub(crate) compacted: JournalId,
    batches_since_sweep: u32,
}

impl Journal {
    /// Opens the journal of a database with this inventory.
    pub(crate) fn open(
        connection: Connection,
        path: &Path,
        found: Option<Inventory>,
    ) -> Result<Self, StoreError> {
        let mut database = Database::open(connection, path)?;
        session_names::drop_damaged(&mut database)?;
        let found = found.map_or_else(|| Inventory::read(database.connection()), Ok)?;
        let Inventory { histories, garbage, last } = found;
        Ok(Self {
            database,
            histories: Arc::new(RwLock::new(histories)),
            garbage,
            last,
            noted: None,
            compacted: JournalId(0),
            batches_since_sweep: 0,
        })
    }

    /// Notes the last commit from now on, each time that it is durable.
    pub(crate) fn note_in(&mut self, noted: LastCommit) {
        self.noted = Some(noted);
    }

    pub(crate) fn histories(&self) -> Arc<RwLock<Histories>> {
        Arc::clone(&self.histories)
    }

    /// Returns the outcome of each run if all accepted ones are written. Runs may grow if `roomy`; the runs of
    /// `malformed` sessions meet a malformed page.
    pub(crate) fn judge<'a>(
        &self,
        batch: &'a [Run],
        roomy: bool,
        malformed: &[SessionId],
    ) -> Vec<Outcome> {
        let histories = self.histories.read();
        let mut judged: HashMap<SessionId, Standing> = HashMap::new();
        let mut claimed = HashMap::new();
        let mut judge = |run: &'a Run| {
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
            if !owns_name(run, &histories, &mut claimed) {
                return Outcome::Conflict { head: standing.head.unwrap_or_default() };
            }
            let owner = if run.adopts { Owner::Session } else { standing.owner };
            judged.insert(run.session, Standing { owner, head: Some(run.head()) });
            Outcome::Appended
        };
        let mut outcomes: Vec<_> = batch.iter().map(&mut judge).collect();
        hold_together(batch, &mut outcomes);
        outcomes
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
            if let Some(claim) = &run.claim {
                histories.name(run.session, &claim.name);
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
        drop(histories);
        self.note_last();
        self.batches_since_sweep = self.batches_since_sweep.saturating_add(1);
        Ok(())
    }

    /// Returns the id of the next write.
    fn next_id(&self) -> JournalId {
        JournalId(self.last.0.saturating_add(1))
    }

    fn note_last(&mut self) {
        if let Some(noted) = &mut self.noted {
            noted.set(self.last);
        }
    }

    /// Writes what is no commit, synced at every sync level, under an id of its own: a start finds its loss too.
    pub(crate) fn write_synced(
        &mut self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<(), Failure> {
        let id = self.next_id();
        self.database.transact_synced(|connection| {
            write(connection)?;
            deletion::raise_mark(connection, id)
        })?;
        self.last = id;
        self.note_last();
        Ok(())
    }

    /// Begins a staged history. Returns false if the id is known.
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

    /// Clears the way for a base: one put before becomes garbage, and some remaining parts of this one are deleted.
    /// Returns true if none is left.
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

    /// Deletes some parts of snapshots from this revision on, since the parts are about to be replaced. Returns true
    /// if none is left.
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

    /// Stores these parts, numbered from `from`. Returns false if the session's base is above them by now.
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

    /// Records that all parts of a base are stored.
    pub(crate) fn put_base(&mut self, session: SessionId, base: Base) {
        if self.histories.read().is_past(session, base.revision) {
            self.abandon_base(session, base.revision);
        } else {
            self.histories.write().put(session, base);
        }
    }

    /// Marks the stored parts of a base for deletion.
    pub(crate) fn abandon_base(&mut self, session: SessionId, base: Revision) {
        self.garbage.add(session, Vec::new(), Some(Base { revision: base, parts: 0, ends: false }));
    }

    /// Puts the stored base in force, under an id of its own: a start finds its loss too.
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
        let id = self.next_id();
        self.database.transact(|connection| {
            row.write(connection)?;
            summaries::delete(connection, session, base)?;
            deletion::raise_mark(connection, id)
        })?;
        self.last = id;
        self.note_last();
        begin(&mut self.histories.write(), &mut self.garbage, session);
        Ok(Outcome::Appended)
    }

    /// Deletes some garbage if the writer has been busy for long. Returns true if it did.
    pub(crate) fn sweep_if_busy(&mut self) -> Result<bool, Failure> {
        if self.batches_since_sweep < BATCHES_PER_SWEEP {
            return Ok(false);
        }
        self.sweep().map(|_| true)
    }

    /// Does some housekeeping in an idle moment. Returns true if more is left.
    pub(crate) fn housekeep(&mut self) -> Result<bool, Failure> {
        let all_compacted = self.compacted == self.last;
        let more = self.sweep()? || self.database.shrink(all_compacted)?;
        if !more {
            self.database.forget_deleted()?;
        }
        self.database.checkpoint_if_worthwhile()?;
        Ok(more)
    }

    /// Like `housekeep`, for a store with little room: returns deleted pages to the file system at once, piece by
    /// piece, and keeps the log as short as one piece. Returns true if more is left.
    pub(crate) fn make_room(&mut self) -> Result<bool, Failure> {
        let sweeps = !self.garbage.is_empty();
        if sweeps {
            // A checkpointed log is written from its beginning again, and takes no more room.
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

    /// Deletes some garbage. Returns true if more is left.
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

/// Puts the stored base in force: history before it becomes garbage, unless it is pinned.
fn begin(histories: &mut Histories, garbage: &mut Garbage, session: SessionId) {
    histories.set_beginning(session).into_iter().for_each(|cut| garbage.add_cut(cut));
    if histories.base(session).is_some_and(|base| base.ends) {
        garbage.add_snapshots(session, REVISION_END);
    }
}
