//! Schema of the SQLite database: creation, recognition, migration and connections.
//!
//! `journal` is in the order of appends and has no other index: commits are written at one end and read from the other.
//! Keyed by session the same writes cost five times as much. `meta` has one row. `history` has a row for each session with
//! a base or a staged history, `base` has the parts of bases.

use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::store::StoreError;
use crate::store::files::disk::FILE_MODE;

const APPLICATION_ID: i32 = i32::from_be_bytes(*b"bbrd");
const FORMAT: i32 = 7;

/// What each format has besides those before it.
const STEPS: [&str; 7] = [JOURNAL, BASES, SETTLED, SIGNING, TOKENS, ENDS, NAMES];

/// What SQLite calls the mode in which a file gives back its free pages when told to.
const INCREMENTAL: i32 = 2;

/// Before it a reset of the write-ahead log could drop commits.
const SQLITE_VERSION_MIN: i32 = 3_051_003;

/// What of a path stands in a URI as it is.
const URI_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/');

/// What the write-ahead log's file may keep of its length when it starts again.
const WAL_FILE_BYTES_MAX: u32 = 16 << 20;

/// How many KiB of the database's pages each connection keeps in memory.
const PAGE_CACHE_KIB_MAX: u32 = 2048;

/// `journal_mark` is the highest id that was ever deleted from the journal, since a row's id is free again
/// once it is gone. `opened_with` is the sync level under which the store runs, NULL after a clean stop.
const JOURNAL: &str = "
    CREATE TABLE journal (
        id INTEGER PRIMARY KEY,
        session BLOB NOT NULL,
        revision INTEGER NOT NULL,
        frame BLOB NOT NULL
    ) STRICT;
    CREATE TABLE meta (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        epoch BLOB NOT NULL,
        journal_mark INTEGER NOT NULL,
        opened_with TEXT CHECK (opened_with IN ('full', 'normal'))
    ) STRICT;
    INSERT INTO meta VALUES (1, randomblob(16), 0, NULL);
";

/// `base` is the revision of the base in force, NULL without one, and `parts` how many rows of `base` it
/// has. Rows of the session up to the journal id `forgotten` are on their way out, and all rows of a
/// `staged` session. `sum` is over the others: a changed bit here would move the beginning of a history.
const BASES: &str = "
    CREATE TABLE history (
        session BLOB PRIMARY KEY,
        base INTEGER,
        parts INTEGER NOT NULL,
        forgotten INTEGER NOT NULL,
        staged INTEGER NOT NULL,
        sum INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE base (
        session BLOB NOT NULL,
        revision INTEGER NOT NULL,
        part INTEGER NOT NULL,
        frame BLOB NOT NULL,
        UNIQUE (session, revision, part)
    ) STRICT;
";

/// `segment` has compacted commits, many in a row: those of `session` from the revision `first` to `last`, how
/// many they are, how many bytes unpacked, and a checksum over all that and the `body`. `session` has the
/// sessions' summaries, `snapshot` the parts of boards; both are caches.
///
/// The index has all that a start needs, which reads no body. It is not unique: a changed bit must not keep
/// others from being written.
const SETTLED: &str = "
    CREATE TABLE segment (
        session BLOB NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        commits INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        crc INTEGER NOT NULL,
        body BLOB NOT NULL
    ) STRICT;
    CREATE INDEX segment_range ON segment (session, last, first);
    CREATE TABLE session (
        session BLOB NOT NULL UNIQUE,
        revision INTEGER NOT NULL,
        frame BLOB NOT NULL
    ) STRICT;
    CREATE TABLE snapshot (
        session BLOB NOT NULL,
        revision INTEGER NOT NULL,
        part INTEGER NOT NULL,
        frame BLOB NOT NULL,
        UNIQUE (session, revision, part)
    ) STRICT;
";

/// `signing_key` is random and made when the store is opened; no row of a session depends on it.
const SIGNING: &str = "
    ALTER TABLE meta ADD COLUMN signing_key BLOB;
";

/// `body` says what a token may do and how it is known again; `crc` is over the id and the body.
const TOKENS: &str = "
    CREATE TABLE token (
        id BLOB PRIMARY KEY,
        crc INTEGER NOT NULL,
        body BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// `ending` has the parts of the bases with which the histories of deleted sessions begin; those histories' rows
/// say so by a number of parts below zero.
const ENDS: &str = "
    CREATE TABLE ending (
        session BLOB NOT NULL,
        revision INTEGER NOT NULL,
        part INTEGER NOT NULL,
        frame BLOB NOT NULL,
        UNIQUE (session, revision, part)
    ) STRICT;
";

/// `name` has the sessions' names, written with what makes or adopts each, so that damage to that does not hide
/// whose it is; `crc` is over the id and the name. Sessions of before have theirs in their summaries besides.
const NAMES: &str = "
    CREATE TABLE name (
        session BLOB PRIMARY KEY,
        crc INTEGER NOT NULL,
        name BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// What a database of that format lacks.
fn missing(format: i32) -> impl Iterator<Item = &'static str> {
    STEPS.into_iter().skip(usize::try_from(format).unwrap_or(0))
}

/// The one connection that writes, to a database that is ours, or is made unless that would be on top of `left`.
/// It syncs fully.
pub(crate) fn open(path: &Path, left: Option<PathBuf>) -> Result<Connection, StoreError> {
    refuse_old_sqlite(rusqlite::version_number())?;
    create_file(path)?;
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let found = format(&connection, path)?;
    if let Some(left) = left.filter(|_| found == 0) {
        return Err(StoreError::DatabaseMissing { path: path.to_owned(), left });
    }
    // Before anything is written: an empty file only can be told that it is to shrink.
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    configure(&connection, path)?;
    if found < FORMAT {
        bring_up(&connection, found)?;
    }
    let_shrink(&connection)?;
    Ok(connection)
}

/// Makes a database of an earlier format, or an empty one, into one of the present format.
fn bring_up(connection: &Connection, found: i32) -> Result<(), StoreError> {
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; {}
         PRAGMA application_id = {APPLICATION_ID};
         PRAGMA user_version = {FORMAT};
         COMMIT",
        missing(found).collect::<String>()
    ))?;
    Ok(())
}

/// Makes a database for a copy. It keeps no log and syncs nothing: nobody opens it before it is whole and synced.
pub(crate) fn make(path: &Path) -> Result<Connection, StoreError> {
    create_file(path)?;
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.execute_batch(
        "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
         PRAGMA temp_store = MEMORY",
    )?;
    bring_up(&connection, 0)?;
    Ok(connection)
}

/// A database of an earlier format does not give back what is free in it until it is written anew, once. A full
/// disk leaves it as it is until another start.
fn let_shrink(connection: &Connection) -> Result<(), StoreError> {
    let mode: i32 = connection.pragma_query_value(None, "auto_vacuum", |row| row.get(0))?;
    if mode == INCREMENTAL {
        return Ok(());
    }
    match connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; VACUUM").map_err(Into::into) {
        Ok(()) | Err(StoreError::Full) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A connection beside the one that writes, which moves the log into the database and writes nothing else.
pub(crate) fn open_to_checkpoint(path: &Path) -> Result<Connection, StoreError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    configure(&connection, path)?;
    Ok(connection)
}

/// A database, and how it is read.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Beside the connection that writes.
    Shared(PathBuf),
    /// Where nobody writes, with no file changed.
    InPlace(PathBuf),
}

impl Source {
    /// A connection that only reads.
    pub(crate) fn connect(&self) -> Result<Connection, StoreError> {
        match self {
            Self::Shared(path) => connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY),
            Self::InPlace(path) => in_place(connect_in_place(path)?, path),
        }
    }

    pub(crate) fn is_in_place(&self) -> bool {
        matches!(self, Self::InPlace(_))
    }
}

/// What an earlier format lacks is there too.
fn in_place(connection: Connection, path: &Path) -> Result<Connection, StoreError> {
    let found = format(&connection, path)?;
    if found == 0 {
        return Err(StoreError::DatabaseEmpty { path: path.to_owned() });
    }
    // What an earlier format has not is empty. No look signs anything.
    let missing = missing(found).filter(|step| *step != SIGNING).collect::<String>();
    let missing = missing.replace("CREATE TABLE ", "CREATE TEMP TABLE ");
    let missing = missing.replace("CREATE INDEX ", "CREATE INDEX temp.");
    connection.execute_batch(&format!("PRAGMA temp_store = MEMORY; {missing}"))?;
    Ok(connection)
}

/// It makes no index of the log beside the database but one of its own in memory, and takes no locks.
fn connect_in_place(path: &Path) -> Result<Connection, StoreError> {
    if !path.with_extension("db-wal").exists() {
        // SQLite would make an empty log.
        return connect_without_log(path);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags_and_vfs(path, flags, c"unix-none")?;
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE")?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

fn connect_without_log(path: &Path) -> Result<Connection, StoreError> {
    let path = percent_encode(path.as_os_str().as_bytes(), URI_PATH);
    let uri = format!("file:{path}?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Ok(Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?)
}

/// What is wrong with a database whatever else of it can be read; fails where it has no table at all.
pub(crate) fn unlike(connection: &Connection, path: &Path) -> Result<Option<String>, StoreError> {
    match format(connection, path) {
        Ok(0) => Err(StoreError::DatabaseEmpty { path: path.to_owned() }),
        Ok(_) => Ok(None),
        Err(unlike @ (StoreError::NewerFormat { .. } | StoreError::NotABlackboard { .. })) => {
            Ok(Some(unlike.to_string()))
        }
        Err(error) => Err(error),
    }
}

/// Whether it is to have all tables.
pub(crate) fn is_present(connection: &Connection) -> bool {
    connection.pragma_query_one(None, "user_version") == Ok(FORMAT)
}

/// A connection to a database that is to be read or filled whatever its state is.
pub(crate) fn open_as_is(path: &Path) -> Result<Connection, StoreError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, StoreError> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.execute_batch(&format!("PRAGMA cache_size = -{PAGE_CACHE_KIB_MAX}"))?;
    Ok(connection)
}

fn refuse_old_sqlite(found: i32) -> Result<(), StoreError> {
    if found < SQLITE_VERSION_MIN {
        return Err(StoreError::SqliteTooOld { found, required: SQLITE_VERSION_MIN });
    }
    Ok(())
}

/// SQLite would make it readable for all; its log and index take over the mode that they find.
pub(crate) fn create_file(path: &Path) -> Result<(), StoreError> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(FILE_MODE)
        .open(path)
        .map(drop)
        .map_err(StoreError::io(path))
}

/// Which format it has, 0 if nothing is in it yet; fails if what is in it is not ours to write to.
fn format(connection: &Connection, path: &Path) -> Result<i32, StoreError> {
    let application: i32 = connection.pragma_query_one(None, "application_id")?;
    let format: i32 = connection.pragma_query_one(None, "user_version")?;
    if application == APPLICATION_ID && format <= FORMAT {
        return Ok(format);
    }
    if application == APPLICATION_ID {
        return Err(StoreError::NewerFormat {
            path: path.to_owned(),
            found: format,
            known: FORMAT,
        });
    }
    let tables: i64 =
        connection.query_one("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if (application, format, tables) == (0, 0, 0) {
        return Ok(0);
    }
    Err(StoreError::NotABlackboard { path: path.to_owned(), found: application })
}

fn configure(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let mode: String = connection.query_one("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::NoWriteAheadLog { path: path.to_owned() });
    }
    // SQLite's own checkpoints hide their errors, and one at closing would sync again after a failed sync:
    // the journal makes its own. The fullfsyncs are for macOS, where a plain one stops at the drive's cache.
    // What is forgotten is overwritten, the pages that it leaves empty too.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.execute_batch(&format!(
        "PRAGMA synchronous = FULL;
         PRAGMA secure_delete = ON;
         PRAGMA fullfsync = ON;
         PRAGMA checkpoint_fullfsync = ON;
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA journal_size_limit = {WAL_FILE_BYTES_MAX};
         PRAGMA trusted_schema = OFF;"
    ))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sqlite_that_may_lose_commits_is_refused() {
        assert!(matches!(
            refuse_old_sqlite(3_051_002),
            Err(StoreError::SqliteTooOld { found: 3_051_002, required: 3_051_003 })
        ));
        assert!(refuse_old_sqlite(3_051_003).is_ok());
    }
}
