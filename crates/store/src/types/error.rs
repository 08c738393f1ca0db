//! Errors of opening, reading and writing a store.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::JournalId;
use crate::types::postgres_error::PostgresError;
use crate::types::postgres_failure::PostgresFailure;
use blackboard_board::{Digest, Revision, SessionId};

/// An error of a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The PostgreSQL service is not used.
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    /// The PostgreSQL service did not carry out a statement.
    #[error(transparent)]
    Failed(#[from] PostgresFailure),
    /// Each connection for this purpose is in use.
    #[error("all connections to the database for archives are in use; try again later")]
    NoConnection,
    /// The database service does not answer; nothing was written.
    #[error("the database cannot be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The store is not embedded: its database service has tools of its own.
    #[error(
        "this store has no data directory: use the tools of its database, such as pg_dump for a backup"
    )]
    NotEmbedded,
    /// Another process, or another store in this process, holds the directory.
    #[error("{} is in use by another blackboard", dir.display())]
    InUse {
        /// The data directory.
        dir: PathBuf,
    },
    /// The database belongs to another program.
    #[error("{} is not a blackboard: its application id is {found:#x}", path.display())]
    NotABlackboard {
        /// The database.
        path: PathBuf,
        /// The application id in it.
        found: i32,
    },
    /// A build before the first release wrote the database.
    #[error(
        "{} was written by a version before the first release, which no later version reads; it was not changed",
        path.display()
    )]
    BeforeRelease {
        /// The database.
        path: PathBuf,
    },
    /// The format is none that is written.
    #[error(
        "{} has format {found}, which no blackboard writes: the header of the database is damaged; run \
         'blackboard salvage --to DIR' to copy what is intact to a new store, or restore a backup",
        path.display()
    )]
    DamagedFormat {
        /// The database.
        path: PathBuf,
        /// The format in it.
        found: i32,
    },
    /// A later version of this program wrote the database.
    #[error(
        "{} has format {found}, written by a newer blackboard; this version reads formats up to {known}: \
         upgrade blackboard, or restore an older backup",
        path.display()
    )]
    NewerFormat {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this version reads.
        known: u32,
    },
    /// The database is missing or empty, but other files of a store remain.
    #[error(
        "{} is missing or empty, but {} of a store exists: nothing was changed. Check the directory. To go on, \
         restore the database from a backup; to start over, move the remaining files away",
        path.display(),
        left.display()
    )]
    DatabaseMissing {
        /// The database.
        path: PathBuf,
        /// A remaining file or directory.
        left: PathBuf,
    },
    /// The log of a store that was not stopped cleanly is missing or empty, with all its commits.
    #[error(
        "{} is missing or empty, though the server was not stopped, and the database has no session while {} has \
         images: nothing was changed. To go on, restore the log or a backup; to start over, move the images \
         away",
        path.display(),
        left.display()
    )]
    LogMissing {
        /// The log.
        path: PathBuf,
        /// The directory with the images.
        left: PathBuf,
    },
    /// The database file is empty.
    #[error("{} is empty; it contains no store", path.display())]
    DatabaseEmpty {
        /// The database.
        path: PathBuf,
    },
    /// The directory holds an interrupted copy of a store.
    #[error("{} is an incomplete backup; run the backup again", path.display())]
    Unfinished {
        /// The directory.
        path: PathBuf,
    },
    /// The target of a copy or an archive exists, and is not an empty directory to be filled.
    #[error("{} already exists; choose another path or remove it", path.display())]
    Occupied {
        /// The target.
        path: PathBuf,
    },
    /// The target of a copy lies inside the store that is copied.
    #[error("{} is inside the data directory {}", path.display(), dir.display())]
    Within {
        /// The target.
        path: PathBuf,
        /// The data directory.
        dir: PathBuf,
    },
    /// Another copy is in progress.
    #[error("another backup or check is running; try again when it has finished")]
    Copying,
    /// This SQLite version may lose commits when it resets its write-ahead log.
    #[error("SQLite {found} is older than {required} and may lose commits")]
    SqliteTooOld {
        /// The version number of the loaded library, in SQLite's form.
        found: i32,
        /// The oldest safe version.
        required: i32,
    },
    /// The file system does not support a write-ahead log, or the database refused one.
    #[error("{} does not support SQLite's write-ahead log; use a local file system", path.display())]
    NoWriteAheadLog {
        /// The database.
        path: PathBuf,
    },
    /// The disk is full except for the reserve, which only deletions may use.
    #[error("the disk is full; only deletions are possible until space is free")]
    Full,
    /// Another program holds the database's lock; nothing was written.
    #[error("another program has locked the database for 2 s; nothing was written, try again")]
    Busy,
    /// An earlier write has an unknown outcome; a restart determines it.
    #[error("an earlier write failed; the store accepts no writes until a restart")]
    Poisoned,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// A row of the journal has no readable session.
    #[error(
        "row {} of the journal is damaged; run 'blackboard salvage --to DIR' to copy what is intact to a new store",
        journal_id.0
    )]
    DamagedRow {
        /// The row's id.
        journal_id: JournalId,
    },
    /// A row of compacted commits is missing or damaged.
    #[error("compacted commits{} after revision {after} are damaged", whose(*session))]
    DamagedSegment {
        /// Their session, if readable.
        session: Option<SessionId>,
        /// The last readable revision before them.
        after: Revision,
    },
    /// A row of the history table is damaged.
    #[error(
        "a session's row in the history table is damaged; run 'blackboard salvage --to DIR' to copy what is intact to a new store"
    )]
    DamagedHistory,
    /// A part of a base is missing.
    #[error("part {part} of session {session}'s base at revision {revision} is missing")]
    DamagedBase {
        /// The session.
        session: SessionId,
        /// The base's revision.
        revision: Revision,
        /// The missing part's number, from 0.
        part: u64,
    },
    /// The requested revisions are below the session's base.
    #[error("the history of session {session} begins at revision {base}")]
    Forgotten {
        /// The session.
        session: SessionId,
        /// The revision of its base.
        base: Revision,
    },
    /// The session is unknown and not staged.
    #[error("session {session} has no stored history")]
    NoHistory {
        /// The session.
        session: SessionId,
    },
    /// The id of a history to stage is already known.
    #[error("session {session} already has a stored history")]
    HistoryExists {
        /// The session.
        session: SessionId,
    },
    /// The write-ahead log is damaged before synced commits, so SQLite would drop them.
    #[error(
        "{} is damaged: frame {frame} is invalid, and SQLite would drop {commits} synced commits from there on; \
         nothing was changed. Restore a backup, or run 'blackboard salvage --to DIR' to copy what can be read to \
         a new store",
        path.display()
    )]
    DamagedLog {
        /// The log.
        path: PathBuf,
        /// The first invalid frame, from 1; 0 is the log's header.
        frame: u64,
        /// The minimum number of commits that would be lost.
        commits: u64,
    },
    /// The database ends before a commit that was durable.
    #[error(
        "{} ends with commit {last}, though commit {noted} was stored: the end of its write-ahead log is missing or \
         damaged, or an older copy was put in its place; nothing was changed. Restore the latest files or a backup, \
         or run 'blackboard salvage --to DIR' to copy what is there to a new store",
        path.display(),
        last = last.0,
        noted = noted.0
    )]
    CommitsMissing {
        /// The database.
        path: PathBuf,
        /// The last commit found.
        last: JournalId,
        /// The last commit that was noted as durable.
        noted: JournalId,
    },
    /// The database has no valid epoch or signing key.
    #[error(
        "the database's meta row is damaged; run 'blackboard salvage --to DIR' to copy what is intact to a new store"
    )]
    DamagedMeta,
    /// The session has no such blob.
    #[error("session {session} has no blob {digest}")]
    BlobMissing {
        /// The session.
        session: SessionId,
        /// The digest.
        digest: Digest,
    },
    /// The blob's bytes do not match its digest.
    #[error("blob {digest} of session {session} is damaged")]
    BlobDamaged {
        /// The session.
        session: SessionId,
        /// The expected digest.
        digest: Digest,
    },
    /// A file or directory could not be read or written.
    #[error("{}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A directory could not be synced; a name made in it may be lost.
    #[error("{} could not be synced", path.display())]
    Unsynced {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The database file is malformed.
    #[error(
        "the database file is damaged; run 'blackboard salvage --to DIR' to copy what is intact to a new store"
    )]
    DamagedFile(#[source] rusqlite::Error),
    /// The write needs a page that SQLite cannot read.
    #[error(
        "the write needs a damaged page of the database; nothing was written; \
         run 'blackboard salvage --to DIR' to copy what is intact to a new store"
    )]
    Malformed,
    /// The b-tree of the journal is malformed.
    #[error(
        "the journal is damaged ({found}); run 'blackboard salvage --to DIR' to copy what is intact to a new store"
    )]
    DamagedTree {
        /// SQLite's first finding.
        found: String,
    },
    /// SQLite failed.
    #[error("SQLite failed")]
    Sqlite(#[source] rusqlite::Error),
}

fn whose(session: Option<SessionId>) -> String {
    session.map_or_else(String::new, |session| format!(" of session {session}"))
}

/// Returns true if the write-ahead log's index, a file in shared memory, had no room to grow.
pub(crate) fn is_index_full(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE};
    let code = error.sqlite_error().map(|error| error.extended_code);
    code.is_some_and(|code| {
        [SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMMAP].contains(&code)
    })
}

/// Returns true if a statement named a missing table or column: SQLite has no code for that.
fn is_schema_damaged(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::Unknown) && {
        let message = error.to_string();
        message.contains("no such table") || message.contains("no such column")
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        if is_index_full(&error) {
            return Self::Full;
        }
        if is_schema_damaged(&error) {
            return Self::DamagedFile(error);
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::DamagedFile(error),
            Some(_) | None => Self::Sqlite(error),
        }
    }
}

impl StoreError {
    /// Returns true if stored data is damaged, so that it cannot be read in full.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::DamagedRow { .. }
                | Self::DamagedSegment { .. }
                | Self::DamagedHistory
                | Self::DamagedBase { .. }
                | Self::DamagedMeta
                | Self::DamagedFile(_)
                | Self::Malformed
                | Self::DamagedTree { .. }
        )
    }

    /// Maps an I/O error at this path to a full disk or a fault.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        move |source| {
            if matches!(source.kind(), StorageFull | QuotaExceeded) {
                return Self::Full;
            }
            Self::Io { path: path.to_owned(), source }
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn sqlite(extended_code: i32) -> StoreError {
        rusqlite::Error::SqliteFailure(ffi::Error::new(extended_code), None).into()
    }

    #[test]
    fn a_wal_index_without_room_is_a_full_disk() {
        let full = [
            ffi::SQLITE_FULL,
            ffi::SQLITE_IOERR_SHMSIZE,
            ffi::SQLITE_IOERR_SHMOPEN,
            ffi::SQLITE_IOERR_SHMMAP,
        ];
        for code in full {
            assert!(matches!(sqlite(code), StoreError::Full), "{code}");
        }
        for code in [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_SHMLOCK] {
            assert!(matches!(sqlite(code), StoreError::Sqlite(_)), "{code}");
        }
    }
}
