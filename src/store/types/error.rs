//! Errors of opening, reading and writing a store.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::board::{Digest, Revision, SessionId};
use crate::store::JournalId;

/// What went wrong in a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process, or another store in this one, has the directory.
    #[error("{} is in use by another blackboard", dir.display())]
    InUse {
        /// The data directory.
        dir: PathBuf,
    },
    /// The database is some other program's.
    #[error("{} is not a blackboard: its application id is {found:#x}", path.display())]
    NotABlackboard {
        /// The database.
        path: PathBuf,
        /// The application id in it.
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
        found: i32,
        /// The newest known here.
        known: i32,
    },
    /// The database is gone or empty, but not what belongs to it.
    #[error(
        "{} is missing or empty, but {} of a store exists: nothing was changed. Check the directory. To go on, \
         restore the database from a backup; to start over, move the remaining files away",
        path.display(),
        left.display()
    )]
    DatabaseMissing {
        /// The database.
        path: PathBuf,
        /// What is left.
        left: PathBuf,
    },
    /// The log of a store that was not stopped is gone or empty, with all that was written.
    #[error(
        "{} is missing or empty, though the server was not stopped, and the database has no session while {} has \
         images: nothing was changed. To go on, put the log back, or go on from a backup; to begin anew, move \
         away the images",
        path.display(),
        left.display()
    )]
    LogMissing {
        /// The log.
        path: PathBuf,
        /// Where the images are.
        left: PathBuf,
    },
    /// There is a file of that name, and nothing in it.
    #[error("{} is empty: there is no store in it", path.display())]
    DatabaseEmpty {
        /// The database.
        path: PathBuf,
    },
    /// A copy of a store was not finished.
    #[error("{} is an interrupted backup; make it again", path.display())]
    Unfinished {
        /// The directory.
        path: PathBuf,
    },
    /// A copy is to be where something is already.
    #[error("{} already exists and is not an empty directory", path.display())]
    Occupied {
        /// Where it is to be.
        path: PathBuf,
    },
    /// A copy is to be in what it is a copy of.
    #[error("{} is inside the data directory {}", path.display(), dir.display())]
    Within {
        /// Where it is to be.
        path: PathBuf,
        /// The data directory.
        dir: PathBuf,
    },
    /// Another copy is being made.
    #[error("another backup or check is running; try again when it has finished")]
    Copying,
    /// This SQLite may lose commits when it resets its write-ahead log.
    #[error("SQLite {found} is older than {required} and may lose commits")]
    SqliteTooOld {
        /// The version number of the library that runs, as SQLite writes it.
        found: i32,
        /// The oldest that is safe.
        required: i32,
    },
    /// The file system cannot hold a write-ahead log, or the database refused it.
    #[error("{} does not support SQLite's write-ahead log; use a local file system", path.display())]
    NoWriteAheadLog {
        /// The database.
        path: PathBuf,
    },
    /// There is no room, or only the reserve that frees room is left.
    #[error("the disk is full; only deletions are possible until there is room")]
    Full,
    /// Another program has the database locked, and nothing was written.
    #[error("another program has locked the database for 2 s; nothing was written, try again")]
    Busy,
    /// A write failed in a way that leaves its outcome unknown; a restart tells.
    #[error("an earlier write failed; the store takes no writes until a restart")]
    Poisoned,
    /// The store was stopped.
    #[error("the store is closed")]
    Closed,
    /// A row of the journal does not say whose commit it is.
    #[error(
        "row {} of the journal is damaged; 'blackboard salvage --to DIR' copies everything intact to a new store",
        journal_id.0
    )]
    DamagedRow {
        /// Which row.
        journal_id: JournalId,
    },
    /// A row of compacted commits is missing or not as it was written.
    #[error("compacted commits{} after revision {after} are damaged", whose(*session))]
    DamagedSegment {
        /// Whose they are, if the row says.
        session: Option<SessionId>,
        /// The last revision before them that could be read.
        after: Revision,
    },
    /// The row that says where a session's history begins was changed.
    #[error(
        "a session's row in the history table is damaged; 'blackboard salvage --to DIR' copies everything intact to a new store"
    )]
    DamagedHistory,
    /// A part of a base is missing.
    #[error("part {part} of session {session}'s base at revision {revision} is missing")]
    DamagedBase {
        /// Whose it is.
        session: SessionId,
        /// The base's revision.
        revision: Revision,
        /// Which part, from 0.
        part: u64,
    },
    /// The session's history begins later.
    #[error("the history of session {session} begins at revision {base}")]
    Forgotten {
        /// Whose it is.
        session: SessionId,
        /// The revision of its base.
        base: Revision,
    },
    /// The store knows no such session, and nobody staged it.
    #[error("session {session} has no stored history")]
    NoHistory {
        /// Which one.
        session: SessionId,
    },
    /// A history is to be brought in under an id that the store knows already.
    #[error("session {session} already has a stored history")]
    HistoryExists {
        /// Which one.
        session: SessionId,
    },
    /// Commits were durable that SQLite would drop, since its write-ahead log does not hold before them.
    #[error(
        "{} is damaged: frame {frame} of it does not hold, and SQLite would drop {commits} commits from there on, \
         which were synced; nothing was changed. Go on from a backup, or let 'blackboard salvage --to DIR' make a \
         store of what can be read",
        path.display()
    )]
    DamagedLog {
        /// The log.
        path: PathBuf,
        /// The first frame that does not hold, from 1; 0 is the log's header.
        frame: u64,
        /// How many commits are lost with it, at least.
        commits: u64,
    },
    /// The database holds no epoch, or one that is none.
    #[error(
        "the database's meta row is damaged; 'blackboard salvage --to DIR' copies everything intact to a new store"
    )]
    DamagedMeta,
    /// The session has no such blob.
    #[error("session {session} has no blob {digest}")]
    BlobMissing {
        /// Whose it would be.
        session: SessionId,
        /// What it would hash to.
        digest: Digest,
    },
    /// The blob's bytes are not those that were stored.
    #[error("blob {digest} of session {session} is damaged")]
    BlobDamaged {
        /// Whose it is.
        session: SessionId,
        /// What it should hash to.
        digest: Digest,
    },
    /// A file or directory could not be read or written.
    #[error("{}", path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A directory may not keep a name that was made in it.
    #[error("{} could not be synced", path.display())]
    Unsynced {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What was read of the database is not what SQLite wrote.
    #[error(
        "the database file is damaged; 'blackboard salvage --to DIR' copies everything intact to a new store"
    )]
    DamagedFile(#[source] rusqlite::Error),
    /// What was to be changed lies on a page that SQLite cannot read.
    #[error(
        "the write needs a damaged page of the database; nothing was written; \
         'blackboard salvage --to DIR' copies everything intact to a new store"
    )]
    Malformed,
    /// The pages of the journal do not fit together.
    #[error(
        "the journal is damaged: {found}; 'blackboard salvage --to DIR' copies everything intact to a new store"
    )]
    DamagedTree {
        /// What SQLite says of it first.
        found: String,
    },
    /// SQLite failed.
    #[error("SQLite failed")]
    Sqlite(#[source] rusqlite::Error),
}

fn whose(session: Option<SessionId>) -> String {
    session.map_or_else(String::new, |session| format!(" of session {session}"))
}

/// Whether the index of the write-ahead log, which is a file in shared memory, found no room to grow.
pub(crate) fn is_index_full(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE};
    let code = error.sqlite_error().map(|error| error.extended_code);
    code.is_some_and(|code| {
        [SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMMAP].contains(&code)
    })
}

/// Whether a statement met no table or column of its name: SQLite has no code for that.
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
    /// Whether what is stored is damaged, so that all of it cannot be read in one go.
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

    /// What an I/O error at this path is: no room, or a fault.
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
