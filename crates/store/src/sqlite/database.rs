//! The write connection: durable transactions, their failures, and the write-ahead log.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::schema::PAGE_BYTES;
use super::wal::length::Log;
use crate::StoreError;
use crate::files::sync_point::SyncPoint;
use crate::types::error::is_index_full;
use blackboard_metrics as metrics;

/// The log size at which an idle moment is used for a checkpoint. Below it, the two syncs cost more than they save.
const IDLE_CHECKPOINT_WAL_BYTES: u64 = 1 << 20;

/// The log size at which a busy writer stops for a checkpoint. The stall grows with the log: 10 ms at this size, 40
/// ms at four times as much. The throughput stays the same: the journal hardly writes a page twice.
const CHECKPOINT_WAL_BYTES: u64 = 4 << 20;

/// Divisor of the file's size: a free part above this is returned. A lower bound would make the file grow and shrink
/// all the time.
const FREE_PART: u64 = 16;

/// Free pages kept while commits wait for compaction, which frees the pages that the next appends use.
const FREE_PAGES_UNCOMPACTED: u64 = (16 << 20) / PAGE_BYTES;

/// The maximum number of pages that one transaction returns to the file system.
const SHRINK_PAGES_MAX: u32 = 256;

/// The time limit for moving pages in such a transaction: SQLite looks each up in a possibly very long list.
const SHRINK_TIME_MAX: Duration = Duration::from_millis(10);

/// SQLite's code for the sync level that syncs each commit.
const SYNCHRONOUS_FULL: i64 = 2;

/// Log bytes of a transaction besides its frames: part of a page at either end, and a page above them.
const TRANSACTION_WAL_BYTES: u64 = 3 * PAGE_BYTES;

/// SQLite's wait for another program's lock, and so the writer's.
const BUSY: Duration = Duration::from_secs(2);

/// The reason a write failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The disk had no room; nothing changed.
    Full,
    /// Another program holds the database's lock; nothing changed.
    Busy,
    /// The write needed a page that SQLite cannot read; nothing changed.
    Malformed(rusqlite::Error),
    /// Part of the write may be in the write-ahead log.
    Broken(rusqlite::Error),
}

/// The only writing connection.
#[derive(Debug)]
pub(crate) struct Database {
    connection: Connection,
    sync_point: Arc<SyncPoint>,
    pub(crate) log: Log,
    /// True if the log may still contain deleted data.
    log_remembers: bool,
    /// True if a page to be moved is unreadable: the file keeps its free pages until a restart.
    is_unshrinkable: bool,
}

/// The result of a checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    was_busy: bool,
    /// Bytes of the log that are not in the database, if known.
    pub(crate) left_bytes: Option<u64>,
}

/// Runs a checkpoint by this statement.
pub(crate) fn move_log(connection: &Connection, pragma: &str) -> rusqlite::Result<Moved> {
    let begun = Instant::now();
    let found: (i64, i64, i64) =
        connection.prepare_cached(pragma)?.query_one([], |row| row.try_into())?;
    metrics::CHECKPOINT_TIMES.observe(begun.elapsed());
    let (busy, pages, moved) = found;
    let left_bytes = (pages >= 0).then(|| (pages - moved).max(0).cast_unsigned() * PAGE_BYTES);
    Ok(Moved { was_busy: busy != 0, left_bytes })
}

/// Creates the sync point of a writing connection.
pub(crate) fn sync_point(writer: &Connection, database: &Path) -> Result<SyncPoint, StoreError> {
    let level: i64 = writer.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    Ok(SyncPoint::new(database, level >= SYNCHRONOUS_FULL))
}

impl Database {
    pub(crate) fn open(connection: Connection, path: &Path) -> Result<Self, StoreError> {
        connection.busy_timeout(BUSY)?;
        let sync_point = Arc::new(sync_point(&connection, path)?);
        let mut database = Self {
            connection,
            sync_point,
            log: Log::of(fs::metadata(path.with_extension("db-wal")).map_or(0, |wal| wal.len())),
            log_remembers: false,
            is_unshrinkable: false,
        };
        database.compact_what_was_left()?;
        Ok(database)
    }

    /// Returns the sync point of the log.
    pub(crate) fn sync_point(&self) -> Arc<SyncPoint> {
        Arc::clone(&self.sync_point)
    }

    /// Returns the connection, for reads at the start.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Records bytes of content written.
    pub(crate) fn note_written(&mut self, bytes: u64) {
        self.log.grow(bytes);
    }

    /// Records bytes overwritten by deletions.
    pub(crate) fn note_deleted(&mut self, bytes: u64) {
        self.note_written(bytes);
        self.log_remembers = true;
    }

    /// Checkpoints the log of a killed writer. Its commits may be unsynced, and are read from now on: a power cut
    /// must not undo them. A checkpoint syncs the log before it needs any room.
    fn compact_what_was_left(&mut self) -> Result<(), StoreError> {
        match self.checkpoint_from(1) {
            Ok(()) | Err(Failure::Full | Failure::Busy) => Ok(()),
            Err(Failure::Broken(error) | Failure::Malformed(error)) => Err(error.into()),
        }
    }

    /// Writes durably in one transaction.
    pub(crate) fn transact<T>(
        &mut self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Failure> {
        self.log.grow(TRANSACTION_WAL_BYTES);
        self.execute("BEGIN IMMEDIATE").map_err(|error| self.undo(error))?;
        let written = write(&self.connection).map_err(|error| self.undo_part(error))?;
        let begun = Instant::now();
        self.execute("COMMIT").map_err(|error| {
            // The log has the whole transaction by then; only its index does not.
            if is_index_full(&error) { Failure::Broken(error) } else { self.undo(error) }
        })?;
        self.sync_point.note_committed();
        metrics::SYNC_TIMES.observe(begun.elapsed());
        Ok(written)
    }

    /// Like `transact`, but synced at every sync level: for writes that a power cut must neither undo nor lose.
    pub(crate) fn transact_synced<T>(
        &mut self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Failure> {
        let level: i64 = self
            .connection
            .pragma_query_value(None, "synchronous", |row| row.get(0))
            .map_err(Failure::Broken)?;
        self.set_synchronous(SYNCHRONOUS_FULL)?;
        let written = self.transact(write);
        self.set_synchronous(level)?;
        written
    }

    fn set_synchronous(&self, level: i64) -> Result<(), Failure> {
        self.connection.pragma_update(None, "synchronous", level).map_err(Failure::Broken)
    }

    /// Rolls back, and maps the error to a failure. A full disk does no damage if the transaction is gone.
    /// `SQLITE_FULL` comes only from writing to the log, also in COMMIT, and always before the sync, whose failure
    /// has another code. Another program's lock is met before anything is written.
    pub(crate) fn undo(&self, error: rusqlite::Error) -> Failure {
        let harmless = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Failure::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Failure::Busy,
            Some(_) if is_index_full(&error) => Failure::Full,
            Some(_) | None => return Failure::Broken(error),
        };
        if self.connection.is_autocommit() || self.execute("ROLLBACK").is_ok() {
            harmless
        } else {
            Failure::Broken(error)
        }
    }

    /// Like `undo`, but before COMMIT: after a damaged page it is certain that nothing was written.
    fn undo_part(&self, error: rusqlite::Error) -> Failure {
        let is_malformed = error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt);
        if is_malformed && (self.connection.is_autocommit() || self.execute("ROLLBACK").is_ok()) {
            Failure::Malformed(error)
        } else {
            self.undo(error)
        }
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    /// Returns the bytes by which the database may still grow, roughly.
    pub(crate) fn owed(&self) -> u64 {
        self.log.bytes()
    }

    /// Checkpoints the log at any length, also after a failed attempt.
    pub(crate) fn checkpoint_now(&mut self) -> Result<(), Failure> {
        if self.owed() == 0 { Ok(()) } else { self.checkpoint_passively() }
    }

    /// Checkpoints the log if it has become long.
    pub(crate) fn checkpoint_if_long(&mut self) -> Result<(), Failure> {
        self.checkpoint_from(CHECKPOINT_WAL_BYTES)
    }

    /// Checkpoints the log if that is worth an idle moment.
    pub(crate) fn checkpoint_if_worthwhile(&mut self) -> Result<(), Failure> {
        self.checkpoint_from(IDLE_CHECKPOINT_WAL_BYTES)
    }

    fn checkpoint_from(&mut self, bytes: u64) -> Result<(), Failure> {
        if self.log.is_due(bytes) { self.checkpoint_passively() } else { Ok(()) }
    }

    fn checkpoint_passively(&mut self) -> Result<(), Failure> {
        let moved = self.checkpoint("PRAGMA wal_checkpoint(PASSIVE)");
        moved.inspect_err(|_| self.log.note_stuck()).map(drop)
    }

    /// Returns some free pages to the file system if much of the file is free. Returns true if that freed any. More
    /// pages may be free while commits wait for compaction.
    pub(crate) fn shrink(&mut self, all_compacted: bool) -> Result<bool, Failure> {
        let before = self.pages("PRAGMA freelist_count")?;
        let least = if all_compacted { 0 } else { FREE_PAGES_UNCOMPACTED };
        if self.is_unshrinkable || before <= least.max(self.pages("PRAGMA page_count")? / FREE_PART)
        {
            return Ok(false);
        }
        let begun = Instant::now();
        let shrunk = self.transact(|connection| {
            let pragma = format!("PRAGMA incremental_vacuum({SHRINK_PAGES_MAX})");
            let mut shrink = connection.prepare_cached(&pragma)?;
            let mut pages = shrink.query([])?;
            while pages.next()?.is_some() && begun.elapsed() < SHRINK_TIME_MAX {}
            Ok(())
        });
        let shrunk = shrunk.inspect_err(|failure| {
            self.is_unshrinkable |= matches!(failure, Failure::Malformed(_));
        });
        shrunk?;
        let after = self.pages("PRAGMA freelist_count")?;
        self.note_written(before.saturating_sub(after).saturating_mul(2 * PAGE_BYTES));
        Ok(after < before)
    }

    fn pages(&self, pragma: &str) -> Result<u64, Failure> {
        self.connection
            .prepare_cached(pragma)
            .and_then(|mut pragma| pragma.query_one([], |row| row.get(0)))
            .map(i64::cast_unsigned)
            .map_err(|error| self.undo(error))
    }

    /// Empties the log if it may still contain deleted data and has no reader.
    pub(crate) fn forget_deleted(&mut self) -> Result<(), Failure> {
        if !self.log_remembers || self.log.is_left_to_mover() {
            return Ok(());
        }
        // Does not wait for readers: the next idle moment will do.
        self.connection.busy_timeout(Duration::ZERO).map_err(Failure::Broken)?;
        let emptied = self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)");
        self.connection.busy_timeout(BUSY).map_err(Failure::Broken)?;
        if emptied? {
            self.log_remembers = false;
        }
        Ok(())
    }

    /// Runs a checkpoint. Returns false if another connection was in its way.
    fn checkpoint(&mut self, pragma: &str) -> Result<bool, Failure> {
        let moved = move_log(&self.connection, pragma).map_err(|error| self.undo(error))?;
        self.log.note_tried(self.log.unmoved_bytes(), moved.left_bytes);
        Ok(!moved.was_busy)
    }

    /// Marks a clean stop, then empties the log, so that the database alone is the whole store.
    pub(crate) fn close(mut self) -> Result<(), StoreError> {
        super::epoch::end(&self.connection)?;
        match self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)") {
            Ok(_) | Err(Failure::Full | Failure::Busy) => Ok(()),
            Err(Failure::Broken(error) | Failure::Malformed(error)) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;
    use tempfile::TempDir;

    use super::*;
    use crate::sqlite::schema;

    fn sqlite(extended_code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(extended_code), None)
    }

    #[test]
    fn a_failure_before_a_commit_is_undone_unless_the_disk_failed() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("blackboard.db");
        let mut database =
            Database::open(schema::open(&path, None, schema::STEPS).unwrap(), &path).unwrap();
        let faults = [
            (ffi::SQLITE_FULL, "Full"),
            (ffi::SQLITE_IOERR_SHMSIZE, "Full"),
            (ffi::SQLITE_IOERR_SHMMAP, "Full"),
            (ffi::SQLITE_CORRUPT, "Malformed"),
            (ffi::SQLITE_CORRUPT_INDEX, "Malformed"),
            (ffi::SQLITE_IOERR_WRITE, "Broken"),
        ];
        for (code, kind) in faults {
            let failed = database.transact(|connection| {
                connection.execute("INSERT INTO journal VALUES (1, x'', 1, x'')", [])?;
                Err::<(), _>(sqlite(code))
            });
            let failure = format!("{:?}", failed.unwrap_err());
            assert!(failure.starts_with(kind), "{code}: {failure}");
            if kind != "Broken" {
                let rows = "SELECT count(*) FROM journal";
                assert!(database.connection.is_autocommit(), "{code}");
                assert_eq!(database.connection.query_one(rows, [], |row| row.get(0)), Ok(0));
            }
        }
    }
}
