//! The journal of all commits, in the order in which they became durable, and the heads that follow from it.

use std::collections::HashMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, Row};
use uuid::Uuid;

use super::schema::open_to_read;
use super::{JournalId, Outcome, Record, Run, StoreError};
use crate::board::{Revision, SessionId};

/// An idle moment is used for a checkpoint from here on: two syncs for less would cost more than they save.
const IDLE_CHECKPOINT_WAL_BYTES: u64 = 1 << 20;

/// A writer that is never idle stops for a checkpoint here. The stall grows with the log, 10 ms at this and
/// 40 ms at four times as much, while the throughput stays: the journal hardly writes a page twice.
const CHECKPOINT_WAL_BYTES: u64 = 4 << 20;

/// What a transaction writes besides its frames: part of a page at either end, and a page above them.
const TRANSACTION_WAL_BYTES: u64 = 3 * 4096;

/// Why a batch was not written.
#[derive(Debug)]
pub(super) enum Failure {
    /// There was no room; everything is as before.
    Full,
    /// Some of it may be in the write-ahead log.
    Broken(rusqlite::Error),
}

/// The only writer of the journal.
#[derive(Debug)]
pub(super) struct Journal {
    connection: Connection,
    heads: HashMap<SessionId, Revision>,
    last: JournalId,
    /// How much the write-ahead log has grown since the last checkpoint, roughly.
    wal_bytes: u64,
}

impl Journal {
    pub(super) fn open(connection: Connection, path: &Path) -> Result<Self, StoreError> {
        let mark: i64 =
            connection
                .query_one("SELECT journal_mark FROM meta WHERE id = 1", [], |row| row.get(0))?;
        let mut journal = Self {
            connection,
            heads: HashMap::new(),
            last: JournalId(mark.cast_unsigned()),
            wal_bytes: fs::metadata(path.with_extension("db-wal")).map_or(0, |wal| wal.len()),
        };
        journal.settle_what_was_left()?;
        journal.read_heads()?;
        Ok(journal)
    }

    /// A killed writer may have left commits in the log that no sync has reached, and that are read from
    /// now on: a power cut must not take them back. A checkpoint syncs the log before it needs any room.
    fn settle_what_was_left(&mut self) -> Result<(), StoreError> {
        match self.checkpoint_from(1) {
            Ok(()) | Err(Failure::Full) => Ok(()),
            Err(Failure::Broken(error)) => Err(error.into()),
        }
    }

    fn read_heads(&mut self) -> Result<(), StoreError> {
        let mut select =
            self.connection.prepare("SELECT id, session, revision FROM journal ORDER BY id")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            self.last = self.last.max(journal_id(row)?);
            // A row that does not say whose it is has no head; a replay reports it.
            if let Some((session, revision)) = whose(row)? {
                self.heads.insert(session, revision);
            }
        }
        Ok(())
    }

    /// What would become of each run if all that is not refused were written. `roomy` is whether
    /// runs may grow.
    pub(super) fn judge(&self, batch: &[Run], roomy: bool) -> Vec<Outcome> {
        let mut staged = HashMap::new();
        let mut judge = |run: &Run| {
            let stored = || self.heads.get(&run.session).copied().unwrap_or(run.expected);
            let head = staged.get(&run.session).copied().unwrap_or_else(stored);
            if head != run.expected {
                return Outcome::Conflict { head };
            }
            if run.grows && !roomy {
                return Outcome::Full;
            }
            staged.insert(run.session, run.head());
            Outcome::Appended
        };
        batch.iter().map(&mut judge).collect()
    }

    /// Writes these runs in one transaction, durably.
    pub(super) fn write<'a>(
        &mut self,
        runs: impl Iterator<Item = &'a Run> + Clone,
    ) -> Result<(), Failure> {
        match self.transact(runs.clone()) {
            Ok(last) => self.last = last,
            Err(error) => return Err(self.undo(error)),
        }
        for run in runs {
            self.heads.insert(run.session, run.head());
            self.wal_bytes += run.frame_bytes();
        }
        self.wal_bytes += TRANSACTION_WAL_BYTES;
        Ok(())
    }

    fn transact<'a>(&self, runs: impl Iterator<Item = &'a Run>) -> rusqlite::Result<JournalId> {
        self.execute("BEGIN IMMEDIATE")?;
        let mut insert =
            self.connection.prepare_cached("INSERT INTO journal VALUES (?1, ?2, ?3, ?4)")?;
        let JournalId(mut id) = self.last;
        for run in runs {
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
        self.execute("COMMIT")?;
        Ok(JournalId(id))
    }

    /// A full disk is no damage if the transaction is gone. `SQLITE_FULL` comes only from writing to the log,
    /// in COMMIT too, where most is written: always before its sync, whose failure has another code.
    fn undo(&self, error: rusqlite::Error) -> Failure {
        let full = error.sqlite_error_code() == Some(ErrorCode::DiskFull);
        if full && (self.connection.is_autocommit() || self.execute("ROLLBACK").is_ok()) {
            Failure::Full
        } else {
            Failure::Broken(error)
        }
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    /// Moves the log into the database if it has become long.
    pub(super) fn checkpoint_if_long(&mut self) -> Result<(), Failure> {
        self.checkpoint_from(CHECKPOINT_WAL_BYTES)
    }

    /// Moves the log into the database if that is worth an idle moment.
    pub(super) fn checkpoint_if_worthwhile(&mut self) -> Result<(), Failure> {
        self.checkpoint_from(IDLE_CHECKPOINT_WAL_BYTES)
    }

    fn checkpoint_from(&mut self, wal_bytes: u64) -> Result<(), Failure> {
        if self.wal_bytes < wal_bytes {
            return Ok(());
        }
        // Whatever comes of it, the next is due after as much again: a reader may pin the log for a while.
        self.wal_bytes = 0;
        self.checkpoint("PRAGMA wal_checkpoint(PASSIVE)")
    }

    fn checkpoint(&self, pragma: &str) -> Result<(), Failure> {
        let moved = self
            .connection
            .prepare_cached(pragma)
            .and_then(|mut pragma| pragma.query_one([], |_| Ok(())));
        match moved {
            Ok(()) => Ok(()),
            Err(error) => Err(self.undo(error)),
        }
    }

    /// Marks a clean stop, then empties the log, so that the database alone is the whole store.
    pub(super) fn close(self) -> Result<(), StoreError> {
        super::epoch::end(&self.connection)?;
        match self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)") {
            Ok(()) | Err(Failure::Full) => Ok(()),
            Err(Failure::Broken(error)) => Err(error.into()),
        }
    }
}

/// Visits every commit in journal order. A long visit keeps checkpoints from emptying the log.
pub(super) fn replay(
    path: &Path,
    visit: &mut dyn FnMut(Record<'_>) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let connection = open_to_read(path)?;
    let mut select =
        connection.prepare("SELECT id, session, revision, frame FROM journal ORDER BY id")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let journal_id = journal_id(row)?;
        let (Some((session, revision)), ValueRef::Blob(frame)) = (whose(row)?, row.get_ref(3)?)
        else {
            return Err(StoreError::DamagedRow { journal_id });
        };
        let record = Record { journal_id, session, revision, frame };
        if visit(record).is_break() {
            break;
        }
    }
    Ok(())
}

fn journal_id(row: &Row<'_>) -> rusqlite::Result<JournalId> {
    row.get(0).map(|id: i64| JournalId(id.cast_unsigned()))
}

fn whose(row: &Row<'_>) -> rusqlite::Result<Option<(SessionId, Revision)>> {
    let (ValueRef::Blob(session), ValueRef::Integer(revision)) = (row.get_ref(1)?, row.get_ref(2)?)
    else {
        return Ok(None);
    };
    Ok(Uuid::from_slice(session).ok().map(|id| (SessionId(id), Revision(revision.cast_unsigned()))))
}
