//! Schema of the SQLite database: creation, recognition, migration and connections.
//!
//! The tables are in `schema.sql`. A step to a later format goes beside it.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::StoreError;
use blackboard_owner_files as owner_files;

/// Builds before the first release had another.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"blkb");

const BEFORE_RELEASE: i32 = i32::from_be_bytes(*b"bbrd");

/// The steps that make the schema, each from the format before it. The format is the number of steps.
pub(crate) const STEPS: Steps = &[include_str!("schema.sql")];

/// The steps to a format.
pub(crate) type Steps = &'static [&'static str];

/// The first version whose reset of the write-ahead log cannot drop commits.
const SQLITE_VERSION_MIN: i32 = 3_051_003;

/// The characters of a path that a URI must encode.
const URI_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/');

/// The maximum length that the write-ahead log's file keeps when the log restarts.
const WAL_FILE_BYTES_MAX: u32 = 16 << 20;

/// The size of a page.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// The page cache of each connection, in KiB.
const PAGE_CACHE_KIB_MAX: u32 = 2048;

fn format_of(steps: Steps) -> u32 {
    u32::try_from(steps.len()).unwrap_or(u32::MAX)
}

/// Returns the steps that a database of this format lacks.
fn missing(found: u32, steps: Steps) -> String {
    steps.iter().skip(usize::try_from(found).unwrap_or(usize::MAX)).copied().collect()
}

/// Opens the only writing connection, to a database of ours. Creates the database unless remains of a store are
/// `left`. The connection syncs fully.
pub(crate) fn open(
    path: &Path,
    left: Option<PathBuf>,
    steps: Steps,
) -> Result<Connection, StoreError> {
    refuse_old_sqlite(rusqlite::version_number())?;
    create_file(path)?;
    let connection = connect_to_write(path)?;
    let found = format(&connection, path, steps)?;
    if let Some(left) = left.filter(|_| found == 0) {
        return Err(StoreError::DatabaseMissing { path: path.to_owned(), left });
    }
    // Before the first write: only an empty file accepts this setting.
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    configure(&connection, path)?;
    bring_up(&connection, found, steps)?;
    Ok(connection)
}

/// Takes an empty database, or one of an earlier format, through the steps that it lacks, all or none.
fn bring_up(connection: &Connection, found: u32, steps: Steps) -> Result<(), StoreError> {
    let missing = missing(found, steps);
    if missing.is_empty() {
        return Ok(());
    }
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; {missing}
         PRAGMA application_id = {APPLICATION_ID};
         PRAGMA user_version = {};
         COMMIT",
        format_of(steps)
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
    bring_up(&connection, 0, STEPS)?;
    Ok(connection)
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
    InPlace(PathBuf, Steps),
}

impl Source {
    /// Opens a read-only connection.
    pub(crate) fn connect(&self) -> Result<Connection, StoreError> {
        match self {
            Self::Shared(path) => connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY),
            Self::InPlace(path, steps) => in_place(connect_in_place(path)?, path, steps),
        }
    }

    pub(crate) fn is_in_place(&self) -> bool {
        matches!(self, Self::InPlace(..))
    }
}

/// Returns true if a power cut ended the creation of a database without a log, before anything was stored. SQLite rolls back
/// its first page, which may be torn, when it opens the file to write.
fn is_half_made(path: &Path) -> bool {
    let bytes = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    bytes(&path.with_extension("db-journal")) > 0 && bytes(path) <= PAGE_BYTES
}

/// Checks the format, and adds what an earlier one lacks as temporary tables: there they are empty.
fn in_place(connection: Connection, path: &Path, steps: Steps) -> Result<Connection, StoreError> {
    let found = format(&connection, path, steps)?;
    if found == 0 {
        return Err(StoreError::DatabaseEmpty { path: path.to_owned() });
    }
    let missing = missing(found, steps);
    let missing = missing.replace("CREATE TABLE ", "CREATE TEMP TABLE ");
    let missing = missing.replace("CREATE INDEX ", "CREATE INDEX temp.");
    connection.execute_batch(&format!("PRAGMA temp_store = MEMORY; {missing}"))?;
    Ok(connection)
}

/// Opens a connection that keeps the log's index in memory and takes no locks.
fn connect_in_place(path: &Path) -> Result<Connection, StoreError> {
    if !path.with_extension("db-wal").exists() {
        if is_half_made(path) {
            return Err(StoreError::DatabaseEmpty { path: path.to_owned() });
        }
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
    match format(connection, path, STEPS) {
        Ok(0) => Err(StoreError::DatabaseEmpty { path: path.to_owned() }),
        Ok(_) => Ok(None),
        Err(
            unlike @ (StoreError::DamagedFormat { .. }
            | StoreError::NewerFormat { .. }
            | StoreError::BeforeRelease { .. }
            | StoreError::NotABlackboard { .. }),
        ) => Ok(Some(unlike.to_string())),
        Err(error) => Err(error),
    }
}

/// Returns true if the database should have all tables.
pub(crate) fn is_present(connection: &Connection) -> bool {
    connection.pragma_query_one(None, "user_version") == Ok(format_of(STEPS))
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
fn format(connection: &Connection, path: &Path, steps: Steps) -> Result<u32, StoreError> {
    let application: i32 = connection.pragma_query_one(None, "application_id")?;
    let format: i32 = connection.pragma_query_one(None, "user_version")?;
    let (path, known) = (path.to_owned(), format_of(steps));
    match application {
        // Both stand in the header, and are written together.
        APPLICATION_ID => match u32::try_from(format) {
            Ok(0) | Err(_) => Err(StoreError::DamagedFormat { path, found: format }),
            Ok(format) if format <= known => Ok(format),
            Ok(found) => Err(StoreError::NewerFormat { path, found, known }),
        },
        BEFORE_RELEASE => Err(StoreError::BeforeRelease { path }),
        found => {
            let tables: i64 =
                connection.query_one("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            let is_empty = (found, format, tables) == (0, 0, 0);
            if is_empty { Ok(0) } else { Err(StoreError::NotABlackboard { path, found }) }
        }
    }
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
