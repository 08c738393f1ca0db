//! Blobs as files, `blobs/<session>/<sha256>`: immutable, verified at every read.
//!
//! A put returns once file and names are synced. A file under its final name is complete, but only a returned put
//! guarantees its durability; puts of one blob therefore exclude each other.

pub(super) mod draft;
mod quarantine;
mod trash;

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use uuid::Uuid;

use super::files::disk::{FILE_MODE, Room, create_dir, sync_dir};
use super::files::sync_point::SyncPoint;
use super::keyed_lock::KeyedLock;
use super::types::health::Condition;
use super::{StoreError, StoredBlob};
use blackboard_board::{Digest, SessionId};
use blackboard_metrics as metrics;
use blackboard_owner_files as owner_files;
use quarantine::Quarantine;
use trash::Trash;

const TEMPORARY: &str = "tmp";

/// The blobs of all sessions in one data directory.
#[derive(Debug)]
pub(super) struct Blobs {
    pub(super) root: PathBuf,
    pub(super) aside: Quarantine,
    room: Arc<Room>,
    condition: Arc<Condition>,
    /// Reached before a blob is removed.
    sync_point: Arc<SyncPoint>,
    trash: Trash,
    /// The directories that this run created or found durable.
    homes: Mutex<HashMap<SessionId, Home>>,
    /// Locked while a session's directory is created.
    pub(super) making: KeyedLock<SessionId>,
    turns: KeyedLock<(SessionId, Digest)>,
    /// The id of this run, with which the names of its drafts begin.
    run: Uuid,
}

/// A session's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Making,
    /// The directory's name is synced.
    Durable,
}

impl Blobs {
    /// Returns true if a data directory has any blobs.
    pub(super) fn are_in(dir: &Path) -> bool {
        dir.join("blobs").read_dir().is_ok_and(|mut homes| homes.next().is_some())
    }

    pub(super) fn open(
        dir: &Path,
        room: Arc<Room>,
        condition: Arc<Condition>,
        sync_point: Arc<SyncPoint>,
    ) -> Result<Self, StoreError> {
        let blobs = Self::at(dir, room, condition, sync_point);
        create_dir(&blobs.root)?;
        owner_files::narrow(&blobs.root);
        // A backup may have crashed.
        blobs.trash.take(blobs.aside.dir())?;
        Ok(blobs)
    }

    /// Refers to the blobs of a directory without creating anything.
    pub(super) fn at(
        dir: &Path,
        room: Arc<Room>,
        condition: Arc<Condition>,
        sync_point: Arc<SyncPoint>,
    ) -> Self {
        let root = dir.join("blobs");
        let (aside, trash) = (Quarantine::in_root(&root), Trash::in_root(&root));
        let (homes, making, turns) = (Mutex::default(), KeyedLock::default(), KeyedLock::default());
        let run = Uuid::new_v4();
        Self { root, aside, room, condition, sync_point, trash, homes, making, turns, run }
    }

    pub(super) fn put(
        &self,
        session: SessionId,
        digest: Digest,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        debug_assert_eq!(Digest::of(bytes), digest);
        self.once(session, digest, |path| self.write(path, bytes))
    }

    pub(super) fn link(
        &self,
        from: SessionId,
        to: SessionId,
        digests: &mut dyn Iterator<Item = Digest>,
    ) -> Result<(), StoreError> {
        let mut is_one_there = false;
        for digest in digests {
            let _turn = self.turns.take((to, digest));
            self.make(to, digest, |path| {
                // Copies if the file system has no links, the file has too many, or a damaged file is in the way.
                fs::hard_link(self.path(from, digest), path)
                    .or_else(|_| self.write(path, &self.read(from, digest)?))
            })?;
            is_one_there = true;
        }
        // A concurrent put finds the link, and syncs its name itself.
        if is_one_there { self.sync_home(to) } else { Ok(()) }
    }

    pub(super) fn read(&self, session: SessionId, digest: Digest) -> Result<Vec<u8>, StoreError> {
        let path = self.path(session, digest);
        match fs::read(&path) {
            Ok(bytes) if Digest::of(&bytes) == digest => Ok(bytes),
            Ok(_) => Err(StoreError::BlobDamaged { session, digest }),
            Err(error) => Err(unread(&path, session, digest, error)),
        }
    }

    /// Opens a blob for streaming; nothing is verified.
    pub(super) fn open_one(&self, session: SessionId, digest: Digest) -> Result<File, StoreError> {
        let path = self.path(session, digest);
        File::open(&path).map_err(|error| unread(&path, session, digest, error))
    }

    pub(super) fn remove_one(
        &self,
        session: SessionId,
        digest: Digest,
        is_free: &dyn Fn() -> bool,
    ) -> Result<bool, StoreError> {
        let _turn = self.turns.take((session, digest));
        if !is_free() {
            return Ok(false);
        }
        // Checked after `is_free`: a store poisoned meanwhile may have stored a commit unknown to it.
        self.unless_poisoned()?;
        // The blob may be free by a commit that a power cut would undo.
        self.poisoning(self.sync_point.reach())?;
        let path = self.path(session, digest);
        if self.aside.takes_one(session, digest, &path) {
            return Ok(true);
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io(&path)(error))
            }
            Ok(()) | Err(_) => Ok(true),
        }
    }

    /// Moves the blobs of sessions to the quarantine or the trash, one step per session.
    pub(super) fn remove(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        // Until then a power cut could undo the sessions' deletions.
        self.poisoning(self.sync_point.reach())?;
        let mut removed = Ok(());
        for session in sessions {
            let home = self.home(*session);
            if !self.aside.takes_home(*session, &home) {
                removed = removed.and(self.trash.take(&home));
            }
            self.homes.lock().remove(session);
        }
        removed
    }

    pub(super) fn sweep(&self) -> Result<bool, StoreError> {
        self.trash.sweep()
    }

    pub(super) fn clear(
        &self,
        live: &HashSet<SessionId>,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), StoreError> {
        // A session may be absent from `live` by a commit that the last run did not sync.
        self.poisoning(self.sync_point.reach())?;
        for home in list(&self.root)? {
            if !go_on() {
                break;
            }
            let Some(session) = session_of(&home) else { continue };
            if live.contains(&session) {
                self.remove_temporaries(session)?;
            } else if !self.homes.lock().contains_key(&session) {
                self.trash.take(&home)?;
            }
        }
        Ok(())
    }

    /// Removes the temporary files of interrupted puts.
    fn remove_temporaries(&self, session: SessionId) -> Result<(), StoreError> {
        for path in list(&self.home(session))? {
            let is_temporary = path.extension().is_some_and(|end| end == TEMPORARY);
            if !is_temporary || self.is_own_draft(&path) {
                continue;
            }
            // A put in progress renames its file before this lock is free.
            let digest = digest_of(&path.with_extension(""));
            let _turn = digest.map(|digest| self.turns.take((session, digest)));
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::io(&path)(error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Returns true if a temporary file is a draft of this run.
    fn is_own_draft(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(&self.run.to_string()))
    }

    pub(super) fn visit(
        &self,
        visit: &mut dyn FnMut(StoredBlob) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        for home in list(&self.root)? {
            let Some(session) = session_of(&home) else {
                continue;
            };
            if self.visit_home(session, visit)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Visits the blobs of a session. Returns `Break` if `visit` did.
    pub(super) fn visit_home(
        &self,
        session: SessionId,
        visit: &mut dyn FnMut(StoredBlob) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, StoreError> {
        for path in list(&self.home(session))? {
            let Some(digest) = digest_of(&path) else {
                continue;
            };
            let found = fs::metadata(&path).and_then(|found| Ok((found.len(), found.modified()?)));
            let (bytes, modified) = match found {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(StoreError::io(&path)(error)),
            };
            if visit(StoredBlob { session, digest, bytes, modified }).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn unless_poisoned(&self) -> Result<(), StoreError> {
        if self.condition.is_poisoned() { Err(StoreError::Poisoned) } else { Ok(()) }
    }

    /// Makes a blob with `make` unless it is stored intact, and syncs its name.
    fn once(
        &self,
        session: SessionId,
        digest: Digest,
        make: impl FnOnce(&Path) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let _turn = self.turns.take((session, digest));
        self.make(session, digest, make)?;
        // An existing blob too: its maker may have crashed before this sync.
        self.sync_home(session)
    }

    /// Makes a blob unless it is stored intact; its name may not be durable.
    fn make(
        &self,
        session: SessionId,
        digest: Digest,
        make: impl FnOnce(&Path) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.unless_poisoned()?;
        self.make_home(session)?;
        match self.read(session, digest) {
            Err(StoreError::BlobMissing { .. } | StoreError::BlobDamaged { .. }) => {
                make(&self.path(session, digest))
            }
            found => found.map(drop),
        }
    }

    /// Writes a new file and renames it into place. After a failed sync, a retry writes a new file.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        if !self.room.is_for(u64::try_from(bytes.len()).unwrap_or(u64::MAX)) {
            return Err(StoreError::Full);
        }
        let temporary = path.with_extension(TEMPORARY);
        let written = write_synced(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            // The file takes scarce room; if this fails, the next start removes it.
            drop(fs::remove_file(&temporary));
        }
        written.map_err(StoreError::io(path))
    }

    fn make_home(&self, session: SessionId) -> Result<(), StoreError> {
        let is_durable = || self.homes.lock().get(&session) == Some(&Home::Durable);
        if is_durable() {
            return Ok(());
        }
        // One lock per session: no session waits for another's sync.
        let _turn = self.making.take(session);
        if is_durable() {
            return Ok(());
        }
        // Recorded before it exists, or `clear` would take it for a remnant of an earlier run.
        self.homes.lock().insert(session, Home::Making);
        let made = self.poisoning(create_dir(&self.home(session)));
        let mut homes = self.homes.lock();
        match &made {
            Ok(()) => homes.insert(session, Home::Durable),
            Err(_) => homes.remove(&session),
        };
        made
    }

    fn sync_home(&self, session: SessionId) -> Result<(), StoreError> {
        self.poisoning(sync_dir(&self.home(session)))
    }

    /// Poisons the store on a failed sync: a second one may succeed without having written anything.
    fn poisoning(&self, synced: Result<(), StoreError>) -> Result<(), StoreError> {
        synced.inspect_err(|error| {
            if matches!(error, StoreError::Unsynced { .. }) {
                self.condition.poison(error);
            }
        })
    }

    fn home(&self, session: SessionId) -> PathBuf {
        self.root.join(session.to_string())
    }

    fn path(&self, session: SessionId, digest: Digest) -> PathBuf {
        self.home(session).join(digest.to_string())
    }
}

/// Maps a read error of a blob to a missing blob or a fault.
fn unread(path: &Path, session: SessionId, digest: Digest, error: io::Error) -> StoreError {
    if error.kind() == io::ErrorKind::NotFound {
        StoreError::BlobMissing { session, digest }
    } else {
        StoreError::io(path)(error)
    }
}

pub(super) fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file =
        OpenOptions::new().create(true).truncate(true).write(true).mode(FILE_MODE).open(path)?;
    file.write_all(bytes)?;
    let begun = Instant::now();
    File::sync_data(&file)?;
    metrics::BLOB_SYNC_TIMES.observe(begun.elapsed());
    Ok(())
}

/// Returns the paths in a directory; none if it does not exist.
pub(super) fn list(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    match fs::read_dir(dir).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(StoreError::io(dir)),
    }
}

pub(super) fn remove_home(home: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(home) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io(home)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

pub(super) fn session_of(home: &Path) -> Option<SessionId> {
    let name = home.file_name()?.to_str()?;
    let session = SessionId(Uuid::try_parse(name).ok()?);
    // Directories with other spellings of an id are not ours.
    (session.to_string() == name).then_some(session)
}

pub(super) fn digest_of(path: &Path) -> Option<Digest> {
    Digest::from_hex(path.file_name()?.to_str()?)
}
