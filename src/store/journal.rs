//! The one writer of the database: commits in the order in which they become durable, bases, and their end.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use rusqlite::Connection;

use super::bases::{self, HistoryRow};
use super::database::{Database, Failure};
use super::histories::{Base, Beginning, Histories, Owner, Standing};
use super::housekeeping::{self, Garbage, Swept};
use super::{JournalId, Outcome, Run, StoreError, reading};
use crate::board::{Revision, SessionId};

/// A writer that is never idle deletes some of what is forgotten after so many batches.
const BATCHES_PER_SWEEP: u32 = 16;

/// The only writer.
#[derive(Debug)]
pub(super) struct Journal {
    database: Database,
    /// Read by all, written only here.
    histories: Arc<RwLock<Histories>>,
    garbage: Garbage,
    last: JournalId,
    batches_since_sweep: u32,
}

impl Journal {
    pub(super) fn open(connection: Connection, path: &Path) -> Result<Self, StoreError> {
        let mark: i64 =
            connection
                .query_one("SELECT journal_mark FROM meta WHERE id = 1", [], |row| row.get(0))?;
        let mut journal = Self {
            database: Database::open(connection, path)?,
            histories: Arc::default(),
            garbage: Garbage::default(),
            last: JournalId(mark.cast_unsigned()),
            batches_since_sweep: 0,
        };
        journal.read_histories()?;
        Ok(journal)
    }

    pub(super) fn histories(&self) -> Arc<RwLock<Histories>> {
        Arc::clone(&self.histories)
    }

    fn read_histories(&mut self) -> Result<(), StoreError> {
        let connection = self.database.connection();
        let mut histories = Histories::default();
        let (mut forgotten, mut discarded) = (Vec::new(), Vec::new());
        for HistoryRow { session, beginning, staged } in HistoryRow::all(connection)? {
            // What nobody adopted until now nobody will.
            let owner = if staged { Owner::Discarded } else { Owner::Session };
            histories.begin(session, owner, beginning);
            discarded.extend(staged.then_some(session));
        }
        let mut select =
            connection.prepare("SELECT id, session, revision FROM journal ORDER BY id")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let id = reading::journal_id(row)?;
            self.last = self.last.max(id);
            // A row that does not say whose it is has no place; a replay reports it.
            if let Some((session, revision)) = reading::whose(row)?
                && !histories.find(session, revision, id)
            {
                forgotten.push(id);
            }
        }
        self.garbage = Garbage::find(connection, &histories, forgotten, discarded)?;
        *self.histories.write() = histories;
        Ok(())
    }

    /// What would become of each run if all that is not refused were written. `roomy` is whether
    /// runs may grow.
    pub(super) fn judge(&self, batch: &[Run], roomy: bool) -> Vec<Outcome> {
        let histories = self.histories.read();
        let mut judged: HashMap<SessionId, Standing> = HashMap::new();
        let mut judge = |run: &Run| {
            let stored = || histories.standing(run.session);
            let standing = judged.get(&run.session).copied().unwrap_or_else(stored);
            if !follows(run, standing) {
                return Outcome::Conflict { head: standing.head.unwrap_or_default() };
            }
            if run.grows && !roomy {
                return Outcome::Full;
            }
            let owner = if run.adopts { Owner::Session } else { standing.owner };
            judged.insert(run.session, Standing { owner, head: Some(run.head()) });
            Outcome::Appended
        };
        batch.iter().map(&mut judge).collect()
    }

    /// Writes these runs in one transaction, durably.
    pub(super) fn write<'a>(
        &mut self,
        runs: impl Iterator<Item = &'a Run> + Clone,
    ) -> Result<(), Failure> {
        let (last, histories) = (self.last, &self.histories);
        self.database.transact(|connection| insert(connection, histories, last, runs.clone()))?;
        let mut histories = histories.write();
        for run in runs {
            if run.adopts {
                let (rows, base) = histories.set_beginning(run.session);
                self.garbage.add(run.session, rows, base);
            }
            let mut revision = run.expected;
            for _ in &run.frames {
                self.last.0 += 1;
                revision = revision.next();
                histories.append(run.session, revision, self.last);
            }
            self.database.note_written(run.frame_bytes());
        }
        self.batches_since_sweep = self.batches_since_sweep.saturating_add(1);
        Ok(())
    }

    /// Begins a history that is nobody's; whether the id was unknown.
    pub(super) fn stage(&mut self, session: SessionId) -> Result<bool, Failure> {
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
    pub(super) fn clear_base(
        &mut self,
        session: SessionId,
        base: Revision,
    ) -> Result<bool, Failure> {
        let before = self.histories.write().take_put(session);
        self.garbage.add(session, Vec::new(), before);
        self.garbage.spare(session, base);
        let mut swept = Swept::default();
        let cleared = self.database.transact(|connection| {
            housekeeping::delete_base(connection, session, base, &mut swept)
        });
        self.database.note_written(swept.wal_bytes);
        cleared.inspect_err(|_| self.abandon_base(session, base))
    }

    /// Stores these parts of a base, the first as number `from`.
    pub(super) fn put_parts(
        &mut self,
        session: SessionId,
        base: Revision,
        from: u64,
        parts: &[Vec<u8>],
    ) -> Result<(), Failure> {
        self.database
            .transact(|connection| bases::write_parts(connection, session, base, from, parts))?;
        let bytes: usize = parts.iter().map(Vec::len).sum();
        self.database.note_written(u64::try_from(bytes).unwrap_or(u64::MAX));
        Ok(())
    }

    /// All parts of a base are stored.
    pub(super) fn put_base(&mut self, session: SessionId, base: Base) {
        self.histories.write().put(session, base);
    }

    /// The parts that were stored of a base are of no use.
    pub(super) fn abandon_base(&mut self, session: SessionId, base: Revision) {
        self.garbage.add(session, Vec::new(), Some(Base { revision: base, parts: 0 }));
    }

    /// Lets the session's history begin with the base that was put.
    pub(super) fn set_base(
        &mut self,
        session: SessionId,
        base: Revision,
    ) -> Result<Outcome, Failure> {
        let beginning = {
            let histories = self.histories.read();
            if histories.base(session).is_some_and(|set| set.revision == base) {
                return Ok(Outcome::Appended);
            }
            let put = histories.put_base(session).map(|put| put.revision);
            let standing = histories.standing(session);
            if put != Some(base) || standing.owner != Owner::Session || standing.head < put {
                return Ok(Outcome::Conflict { head: standing.head.unwrap_or_default() });
            }
            histories.beginning(session)
        };
        let row = HistoryRow { session, beginning, staged: false };
        self.database.transact(|connection| row.write(connection))?;
        let (rows, before) = self.histories.write().set_beginning(session);
        self.garbage.add(session, rows, before);
        Ok(Outcome::Appended)
    }

    /// Forgets a staged history. Its row says that it is nobody's until all else of it is deleted, so
    /// that a crash changes nothing.
    pub(super) fn discard(&mut self, session: SessionId) {
        let mut histories = self.histories.write();
        if histories.standing(session).owner == Owner::Staged {
            let (rows, base) = histories.discard(session);
            self.garbage.add(session, rows, base);
            self.garbage.add_discarded(session);
        }
    }

    /// Deletes some of what is forgotten if the writer has been busy for long.
    pub(super) fn sweep_if_busy(&mut self) -> Result<(), Failure> {
        if self.batches_since_sweep < BATCHES_PER_SWEEP {
            return Ok(());
        }
        self.sweep().map(drop)
    }

    /// What is worth doing in an idle moment; whether there is more of it.
    pub(super) fn housekeep(&mut self) -> Result<bool, Failure> {
        let more = self.sweep()?;
        if !more {
            self.database.forget_deleted()?;
        }
        self.database.checkpoint_if_worthwhile()?;
        Ok(more)
    }

    /// Deletes some of what is forgotten; whether more is left.
    fn sweep(&mut self) -> Result<bool, Failure> {
        self.batches_since_sweep = 0;
        if self.garbage.is_empty() {
            return Ok(false);
        }
        let swept = self.database.transact(|connection| self.garbage.sweep(connection))?;
        self.database.note_deleted(swept.wal_bytes);
        let mut histories = self.histories.write();
        for session in self.garbage.forget(swept) {
            histories.remove(session);
        }
        Ok(!self.garbage.is_empty())
    }

    /// Moves the log into the database if it has become long.
    pub(super) fn checkpoint_if_long(&mut self) -> Result<(), Failure> {
        self.database.checkpoint_if_long()
    }

    pub(super) fn close(self) -> Result<(), StoreError> {
        self.database.close()
    }
}

/// Whether a run can be appended to a session that stands so.
fn follows(run: &Run, Standing { owner, head }: Standing) -> bool {
    match owner {
        Owner::Session if run.adopts => false,
        // It came to a name before, which had another session then.
        Owner::Staged => head.is_none_or(|head| head <= run.expected),
        Owner::Session => head.is_none_or(|head| head == run.expected),
        Owner::Discarded => false,
    }
}

fn insert<'a>(
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
