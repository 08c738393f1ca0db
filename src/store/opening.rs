//! How the store in a data directory is opened: who has its lock, and what was left there by whoever had it before.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::blobs::Blobs;
use super::condition::Condition;
use super::disk::{Room, create_dir, sync_dir};
use super::journal::Journal;
use super::lock::Lock;
use super::reading::Readers;
use super::sqlite::DATABASE;
use super::turns::Turns;
use super::wal::{self, End};
use super::{SigningKey, SqliteOptions, SqliteStore, StoreError, SyncLevel, backup, epoch, schema};

impl SqliteStore {
    /// Whether a directory has a store in it. Nothing is made or changed.
    #[must_use]
    pub fn is_in(dir: &Path) -> bool {
        dir.join(DATABASE).is_file()
    }

    /// Opens the store in a data directory, or makes one; nobody else can until it is dropped.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if somebody has it, [`StoreError::NewerFormat`] or
    /// [`StoreError::NotABlackboard`] if it is not ours to write to; otherwise why it could not be opened.
    pub fn open(dir: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        Self::open_as(dir, options, true)
    }

    /// Opens the store in a data directory, or makes one, for somebody who shows no tags of it: a copy of a store
    /// stays one that no server opened yet.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_unserved(dir: &Path) -> Result<Self, StoreError> {
        Self::open_as(dir, SqliteOptions::default(), false)
    }

    fn open_as(dir: &Path, options: SqliteOptions, serves: bool) -> Result<Self, StoreError> {
        create_dir(dir)?;
        let lock = Lock::take(dir)?;
        let path = dir.join(DATABASE);
        if !path.exists() && Blobs::are_in(dir) {
            return Err(StoreError::DatabaseMissing { path });
        }
        if !path.exists() && backup::is_unfinished(dir) {
            return Err(StoreError::Unfinished { path: dir.to_owned() });
        }
        backup::remove_looked_at(dir)?;
        let log = read_log(&path)?;
        let connection = schema::open(&path)?;
        sync_dir(dir)?;
        let epoch = epoch::begin(&connection, options.sync, serves, log)?;
        let signing_key = SigningKey::keep(&connection)?;
        if options.sync == SyncLevel::Normal {
            connection.execute_batch("PRAGMA synchronous = NORMAL")?;
        }
        let condition = Arc::new(Condition::new());
        let room = Arc::new(Room { dir: dir.to_owned(), free_bytes_min: options.free_bytes_min });
        let journal = Journal::open(connection, &path)?;
        Ok(Self {
            epoch,
            signing_key,
            blobs: Blobs::open(dir, Arc::clone(&room), Arc::clone(&condition))?,
            histories: journal.histories(),
            journal: Mutex::new(Some(journal)),
            readers: Readers::new(&path),
            putting: Turns::default(),
            settling: Mutex::default(),
            copying: Mutex::default(),
            path,
            condition,
            room,
            _lock: lock,
        })
    }
}

/// How the write-ahead log ends that is beside the database, if there is one. SQLite would write over what it does
/// not read of it, so this comes first.
fn read_log(database: &Path) -> Result<Option<End>, StoreError> {
    let path = database.with_extension("db-wal");
    let end = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.and_then(|log| wal::end(&mut BufReader::new(log))),
    };
    let end = end.map_err(StoreError::io(&path))?;
    let (End::Early(found) | End::Damaged(found)) = end else { return Ok(Some(end)) };
    let wal::Break { frame, commits } = found;
    // Without a sync for each commit a power cut leaves the same.
    if matches!(end, End::Damaged(_)) && !ran_unsynced(database) {
        return Err(StoreError::DamagedLog { path, frame, commits });
    }
    let path = path.display();
    tracing::warn!(%path, frame, commits, "the write-ahead log does not hold from a frame on: what follows is dropped");
    Ok(Some(end))
}

/// Whether the last run had `--sync normal`. A database that cannot be read does not say so.
fn ran_unsynced(database: &Path) -> bool {
    schema::open_in_place(database)
        .and_then(|connection| epoch::ran_unsynced(&connection))
        .unwrap_or(false)
}
