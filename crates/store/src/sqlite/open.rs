//! Opening a data directory, to serve it or to inspect it.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rusqlite::Connection;

use super::DATABASE;
use super::backup::stray_blobs;
use super::index::Histories;
use super::inventory::Inventory;
use super::last_commit::LastCommit;
use super::rows::journal::Journal;
use super::rows::read::Readers;
use super::rows::{summaries, tokens};
use super::schema::{Source, Steps};
use super::wal;
use super::wal::End;
use super::{backup, database, epoch, last_commit, schema};
use crate::blobs::Blobs;
use crate::files::disk::{Room, SPARE_BYTES, create_dir, sync_dir};
use crate::files::lock::Lock;
use crate::keyed_lock::KeyedLock;
use crate::types::health::Condition;
use crate::{Health, SigningKey, SqliteOptions, SqliteStore, StoreError, SyncLevel};
use blackboard_board::Epoch;

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

impl SqliteStore {
    /// Returns true if a directory has a store. Creates and changes nothing.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read, as without the permission.
    pub fn is_in(dir: &Path) -> io::Result<bool> {
        match fs::metadata(dir.join(DATABASE)) {
            Ok(found) => Ok(found.is_file()),
            Err(error) if is_absence(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Opens or creates the store in a data directory, exclusively until it is dropped.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another store holds it, [`StoreError::NewerFormat`] or [`StoreError::NotABlackboard`]
    /// if it is not ours to write, [`StoreError::DatabaseMissing`] or [`StoreError::DamagedLog`] if opening would
    /// lose remaining data, [`StoreError::CommitsMissing`] if it has lost some; otherwise the reason it could not be opened.
    pub fn open(dir: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        Self::open_with(dir, options, true, schema::STEPS)
    }

    /// Opens or creates the store in a data directory for a caller that shows no tags. A copy of a store still
    /// counts as never opened by a server.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_unserved(dir: &Path) -> Result<Self, StoreError> {
        Self::open_with(dir, SqliteOptions::default(), false, schema::STEPS)
    }

    /// Opens the store in a data directory to read it in place. No file there is changed or created. Every write
    /// fails with [`StoreError::Closed`] or is [`Outcome::Refused`](crate::Outcome::Refused).
    ///
    /// # Errors
    /// As for [`open`](Self::open), and [`StoreError::DatabaseEmpty`].
    pub fn look(dir: &Path) -> Result<Self, StoreError> {
        let lock = Lock::take_if_there(dir)?;
        let path = dir.join(DATABASE);
        refuse_remains(dir, &path)?;
        read_log(&path)?;
        let source = Source::InPlace(path.clone(), schema::STEPS);
        let connection = source.connect()?;
        let inventory = Inventory::read(&connection)?;
        stray_blobs::refuse(&connection, dir, &path, &inventory)?;
        last_commit::refuse_less(&connection, dir, &inventory)?;
        let Inventory { histories, .. } = inventory;
        let histories = Arc::new(RwLock::new(histories));
        let condition = Arc::new(Condition::new());
        let room = Arc::new(Room::read_only(dir));
        let sync_point = Arc::new(database::sync_point(&connection, &path)?);
        let opened = Opened {
            epoch: epoch::stored(&connection)?,
            signing_key: SigningKey::ephemeral()?,
            blobs: Blobs::at(dir, Arc::clone(&room), Arc::clone(&condition), sync_point),
            histories,
            journal: None,
            path,
            source,
            condition,
            room,
            lock,
        };
        Ok(opened.into_store())
    }

    /// Returns the first frame of the log that is not read, if acknowledged commits may be missing from there on. A
    /// power cut leaves such a frame, and so does damage to the last commit.
    ///
    /// # Errors
    /// [`StoreError::DamagedLog`] if the damage is certain, or the reason the store cannot be read.
    pub fn log_breaks_at(dir: &Path) -> Result<Option<u64>, StoreError> {
        let path = dir.join(DATABASE);
        let log = read_log(&path)?;
        if !log.is_some_and(End::is_cut) {
            return Ok(None);
        }
        let connection = Source::InPlace(path, schema::STEPS).connect()?;
        let log = whole_if_killed(log, &connection, dir, &Inventory::read(&connection)?)?;
        Ok(log.and_then(End::cut).map(|found| found.frame))
    }

    /// Refuses changes to any file, blobs included, in a store opened to inspect.
    pub(crate) fn may_change(&self) -> Result<(), StoreError> {
        if self.source.is_in_place() { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// Opens the store as the format of these steps has it.
    pub(crate) fn open_with(
        dir: &Path,
        options: SqliteOptions,
        serves: bool,
        steps: Steps,
    ) -> Result<Self, StoreError> {
        create_dir(dir)?;
        let lock = Lock::take(dir)?;
        let path = dir.join(DATABASE);
        refuse_remains(dir, &path)?;
        let log = read_log(&path)?;
        let content = content_in(dir, &path, log, steps)?;
        let log = content.as_ref().map_or(log, |content| content.log);
        let room = Arc::new(Room::of_store(dir, options));
        // Even a start needs a few pages.
        room.give_up_reserve_for(SPARE_BYTES);
        let connection = schema::open(&path, Blobs::are_in(dir).then(|| dir.join("blobs")), steps)?;
        sync_dir(dir)?;
        let epoch = epoch::begin(&connection, options.sync, serves, log)?;
        let signing_key = SigningKey::keep(&connection)?;
        if options.sync == SyncLevel::Normal {
            connection.execute_batch("PRAGMA synchronous = NORMAL")?;
        }
        let condition = Arc::new(Condition::new());
        let has_lost_log = content.as_ref().is_some_and(|content| content.has_lost_log);
        let inventory = content.map(|content| content.inventory);
        let mut journal = Journal::open(connection, &path, inventory)?;
        if serves && options.sync == SyncLevel::Full {
            journal.note_in(LastCommit::open(dir, epoch));
        }
        let (source, histories) = (Source::Shared(path.clone()), journal.histories());
        if has_lost_log {
            stray_blobs::keep(dir, &histories.read())?;
        }
        let sync_point = journal.database.sync_point();
        room.note_owed(journal.database.owed());
        let opened = Opened {
            epoch,
            signing_key,
            blobs: Blobs::open(dir, Arc::clone(&room), Arc::clone(&condition), sync_point)?,
            histories,
            journal: Some(journal),
            path,
            source,
            condition,
            room,
            lock: Some(lock),
        };
        let store = opened.into_store();
        // What the last run knew of a full disk is not stored: close to the reserve the store stays full until there is
        // ample room, as without the restart.
        if !store.room.is_for(SPARE_BYTES) {
            store.turn(Health::Full);
        }
        Ok(store)
    }
}

/// The parts that differ between a served store and an inspected one.
struct Opened {
    epoch: Epoch,
    signing_key: SigningKey,
    blobs: Blobs,
    histories: Arc<RwLock<Histories>>,
    journal: Option<Journal>,
    path: PathBuf,
    source: Source,
    condition: Arc<Condition>,
    room: Arc<Room>,
    lock: Option<Lock>,
}

impl Opened {
    fn into_store(self) -> SqliteStore {
        let Self { epoch, signing_key, blobs, histories, journal, .. } = self;
        let Self { path, source, condition, room, lock, .. } = self;
        SqliteStore {
            readers: Arc::new(Readers::new(source.clone(), Arc::clone(&histories))),
            journal: Mutex::new(journal),
            putting: KeyedLock::default(),
            compaction: Mutex::default(),
            checkpointer: Mutex::default(),
            copying: Mutex::default(),
            epoch,
            signing_key,
            blobs: Arc::new(blobs),
            histories,
            path,
            source,
            condition,
            room,
            _lock: lock,
        }
    }
}

pub(crate) fn log_of(database: &Path) -> PathBuf {
    database.with_extension("db-wal")
}

/// Refuses a directory with remains of a store but no database. SQLite would delete the log of an empty database, and
/// a new store would know none of the images.
fn refuse_remains(dir: &Path, database: &Path) -> Result<(), StoreError> {
    if has_bytes(database) {
        return Ok(());
    }
    let log = Some(log_of(database)).filter(|log| has_bytes(log));
    let left = log.or_else(|| Blobs::are_in(dir).then(|| dir.join("blobs")));
    if let Some(left) = left {
        return Err(StoreError::DatabaseMissing { path: database.to_owned(), left });
    }
    if backup::is_unfinished(dir) {
        return Err(StoreError::Unfinished { path: dir.to_owned() });
    }
    Ok(())
}

pub(crate) fn has_bytes(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() > 0)
}

/// The content of an existing store.
struct StoreContent {
    inventory: Inventory,
    log: Option<End>,
    /// True if the store was not stopped cleanly and its log is missing or cut off.
    has_lost_log: bool,
}

/// Reads everything that a start needs before it changes anything: a refused store stays unchanged. Returns `None` if
/// no table exists yet.
fn content_in(
    dir: &Path,
    database: &Path,
    log: Option<End>,
    steps: Steps,
) -> Result<Option<StoreContent>, StoreError> {
    if !has_bytes(database) {
        return Ok(None);
    }
    let connection = match Source::InPlace(database.to_owned(), steps).connect() {
        Err(StoreError::DatabaseEmpty { .. }) => return Ok(None),
        connected => connected?,
    };
    epoch::stored(&connection)?;
    let inventory = Inventory::read(&connection)?;
    stray_blobs::refuse(&connection, dir, database, &inventory)?;
    last_commit::refuse_less(&connection, dir, &inventory)?;
    let log = whole_if_killed(log, &connection, dir, &inventory)?;
    let has_lost_log = stray_blobs::is_log_lost(&connection, database, log)?;
    summaries::visit(&connection, &mut |_| ControlFlow::Continue(()))?;
    tokens::all(&connection)?;
    Ok(Some(StoreContent { inventory, log, has_lost_log }))
}

/// Returns the end of the log, as whole if it was cut off in a write that was never acknowledged. A killed process may
/// leave a part of its last write that a changed bit in the last commit would leave too.
fn whole_if_killed(
    log: Option<End>,
    connection: &Connection,
    dir: &Path,
    found: &Inventory,
) -> Result<Option<End>, StoreError> {
    let is_early = matches!(log, Some(End::Early(_)));
    let is_whole = is_early && last_commit::are_all_there(connection, dir, found)?;
    Ok(if is_whole { Some(End::Whole) } else { log })
}

/// Returns the end of the database's write-ahead log, if the file exists. SQLite would overwrite the part that it
/// does not read, so this comes first.
fn read_log(database: &Path) -> Result<Option<End>, StoreError> {
    let path = log_of(database);
    let end = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.and_then(|log| wal::end(&mut BufReader::new(log))),
    };
    let end = end.map_err(StoreError::io(&path))?;
    let Some(wal::Break { frame, commits }) = end.cut() else { return Ok(Some(end)) };
    // Without a sync per commit, a power cut leaves the same.
    if matches!(end, End::Damaged(_)) && !ran_unsynced(database) {
        return Err(StoreError::DamagedLog { path, frame, commits });
    }
    let path = path.display();
    tracing::warn!(%path, frame, commits, "the write-ahead log is invalid from this frame on; the rest is not read");
    Ok(Some(end))
}

/// Returns true if the last run had `--sync normal`. An unreadable database counts as false.
fn ran_unsynced(database: &Path) -> bool {
    Source::InPlace(database.to_owned(), schema::STEPS)
        .connect()
        .and_then(|connection| epoch::ran_unsynced(&connection))
        .unwrap_or(false)
}
