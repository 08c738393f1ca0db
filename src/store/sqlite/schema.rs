//! Schema of the SQLite database: creation, recognition, migration and connections.
//!
//! `journal` is in the order of appends and has no other index: commits are written at one end and read from the
//! other. Keyed by session the same writes cost five times as much. `meta` has one row. `history` has a row for each
//! session with a base or a staged history, `base` has the parts of bases.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::owner_files;
use crate::store::StoreError;

const APPLICATION_ID: i32 = i32::from_be_bytes(*b"bbrd");
const FORMAT: i32 = 7;

/// The additions of each format to the one before it.
const STEPS: [&str; 7] = [JOURNAL, BASES, SETTLED, SIGNING, TOKENS, ENDS, NAMES];

/// SQLite's code for the mode in which a file returns free pages on request.
const INCREMENTAL: i32 = 2;

/// The first version whose reset of the write-ahead log cannot drop commits.
const SQLITE_VERSION_MIN: i32 = 3_051_003;

/// The characters of a path that a URI must encode.
const URI_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/');

/// The maximum length that the write-ahead log's file keeps when the log restarts.
const WAL_FILE_BYTES_MAX: u32 = 16 << 20;

/// The page cache of each connection, in KiB.
const PAGE_CACHE_KIB_MAX: u32 = 2048;

/// `journal_mark` is the highest id ever deleted from the journal, since SQLite reuses the ids of deleted rows.
/// `opened_with` is the sync level of a running store, NULL after a clean stop.
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

/// `base` is the revision of the base in force, NULL without one; `parts` is its number of rows in `base`. Rows of
/// the session up to the journal id `forgotten` are obsolete, and so are all rows of a `staged` session at the next
/// start. `sum` covers the other columns: a changed bit would move the beginning of a history.
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

/// `segment` has compacted commits, many to a row: those of `session` from revision `first` to `last`, their number,
/// their unpacked bytes, and a checksum over these columns and `body`. `session` has the sessions' summaries,
/// `snapshot` the parts of boards; both are caches.
///
/// The index has everything that a start needs, so a start reads no body. It is not unique: a changed bit must not
/// block other writes.
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

/// `signing_key` is random and created on opening; no session's row depends on it.
const SIGNING: &str = "
    ALTER TABLE meta ADD COLUMN signing_key BLOB;
";

/// `body` has a token's rights and the data to verify it; `crc` covers the id and the body.
const TOKENS: &str = "
    CREATE TABLE token (
        id BLOB PRIMARY KEY,
        crc INTEGER NOT NULL,
        body BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// `ending` has the parts of the bases with which the histories of deleted sessions begin. The rows of those
/// histories have a negative number of parts.
const ENDS: &str = "
    CREATE TABLE ending (
        session BLOB NOT NULL,
        revision INTEGER NOT NULL,
        part INTEGER NOT NULL,
        frame BLOB NOT NULL,
        UNIQUE (session, revision, part)
    ) STRICT;
";

/// `name` has the sessions' names, written by the run that creates or adopts each, so that a damaged history does not
/// hide its name. `crc` covers the id and the name. Sessions of earlier formats have theirs in their summaries.
const NAMES: &str = "
    CREATE TABLE name (
        session BLOB PRIMARY KEY,
        crc INTEGER NOT NULL,
        name BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// Returns the tables and columns that a database of this format lacks.
fn missing(format: i32) -> impl Iterator<Item = &'static str> {
    STEPS.into_iter().skip(usize::try_from(format).unwrap_or(0))
}

/// Opens the only writing connection, to a database of ours. Creates the database unless remains of a store are
/// `left`. The connection syncs fully.
pub(crate) fn open(path: &Path, left: Option<PathBuf>) -> Result<Connection, StoreError> {
    refuse_old_sqlite(rusqlite::version_number())?;
    create_file(path)?;
    let connection = connect_to_write(path)?;
    let found = format(&connection, path)?;
    if let Some(left) = left.filter(|_| found == 0) {
        return Err(StoreError::DatabaseMissing { path: path.to_owned(), left });
    }
    // Before the first write: only an empty file accepts this setting.
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    configure(&connection, path)?;
    if found < FORMAT {
        bring_up(&connection, found)?;
    }
    let_shrink(&connection)?;
    Ok(connection)
}

/// Migrates an empty database, or one of an earlier format, to the current format.
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

/// Creates a database for a copy, without a log and without syncs: nobody opens it before it is complete and synced.
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

/// Rewrites a database of an earlier format once, so that it can return free pages. On a full disk, a later start
/// tries again.
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

/// Opens a connection that only checkpoints, separate from the writer's.
pub(crate) fn open_to_checkpoint(path: &Path) -> Result<Connection, StoreError> {
    let connection = connect_to_write(path)?;
    configure(&connection, path)?;
    Ok(connection)
}

/// A database and the way to read it.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Read beside the writing connection.
    Shared(PathBuf),
    /// Read in place, without a writer; no file is changed.
    InPlace(PathBuf),
}

impl Source {
    /// Opens a read-only connection.
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

/// Checks the format, and adds what an earlier one lacks as temporary tables.
fn in_place(connection: Connection, path: &Path) -> Result<Connection, StoreError> {
    let found = format(&connection, path)?;
    if found == 0 {
        return Err(StoreError::DatabaseEmpty { path: path.to_owned() });
    }
    // Tables missing from an earlier format are empty. Inspection signs nothing.
    let missing = missing(found).filter(|step| *step != SIGNING).collect::<String>();
    let missing = missing.replace("CREATE TABLE ", "CREATE TEMP TABLE ");
    let missing = missing.replace("CREATE INDEX ", "CREATE INDEX temp.");
    connection.execute_batch(&format!("PRAGMA temp_store = MEMORY; {missing}"))?;
    Ok(connection)
}

/// Opens a connection that keeps the log's index in memory and takes no locks.
fn connect_in_place(path: &Path) -> Result<Connection, StoreError> {
    if !path.with_extension("db-wal").exists() {
        // SQLite would create an empty log.
        return connect_without_log(path);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags_and_vfs(path, flags, c"unix-none")?;
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE")?;
    keep_log_on_close(&connection)?;
    Ok(connection)
}

fn connect_without_log(path: &Path) -> Result<Connection, StoreError> {
    let path = percent_encode(path.as_os_str().as_bytes(), URI_PATH);
    let uri = format!("file:{path}?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Ok(Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?)
}

/// Returns the reason a database's format is unsupported, however readable the rest is. Fails if it has no tables.
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

/// Returns true if the database should have all tables.
pub(crate) fn is_present(connection: &Connection) -> bool {
    connection.pragma_query_one(None, "user_version") == Ok(FORMAT)
}

/// Opens a database in any state, to read or fill it.
pub(crate) fn open_as_is(path: &Path) -> Result<Connection, StoreError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, StoreError> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.execute_batch(&format!("PRAGMA cache_size = -{PAGE_CACHE_KIB_MAX}"))?;
    Ok(connection)
}

/// Opens a connection to a store's database, which may yet be refused: its close changes nothing.
fn connect_to_write(path: &Path) -> Result<Connection, StoreError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    keep_log_on_close(&connection)?;
    Ok(connection)
}

fn refuse_old_sqlite(found: i32) -> Result<(), StoreError> {
    if found < SQLITE_VERSION_MIN {
        return Err(StoreError::SqliteTooOld { found, required: SQLITE_VERSION_MIN });
    }
    Ok(())
}

/// Creates a private file: SQLite would make it readable for all. The log and its index inherit the mode, but if they are
/// there already.
pub(crate) fn create_file(path: &Path) -> Result<(), StoreError> {
    for beside in ["db-wal", "db-shm"] {
        owner_files::narrow(&path.with_extension(beside));
    }
    owner_files::make_file(path).map_err(StoreError::io(path))
}

/// Returns the format, 0 for an empty database; fails if the content is not ours to write.
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
    // SQLite's own checkpoints hide their errors: the journal checkpoints itself. The fullfsyncs are for macOS, where a
    // plain sync stops at the drive's cache. Deleted content is overwritten, and so are the pages that become free.
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

/// Lets a close write nothing: a checkpoint then would sync again after a failed sync.
fn keep_log_on_close(connection: &Connection) -> Result<(), StoreError> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
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
