//! Blobs as files, `blobs/<session>/<sha256>`: immutable, verified at every read, gone with their session.
//!
//! A put returns once file and names are synced. What stands under its final name is whole, but only a put
//! that returned vouches for its durability; puts of one blob therefore take turns.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use uuid::Uuid;

use super::aside::Aside;
use super::condition::Condition;
use super::disk::{FILE_MODE, Room, create_dir, sync_dir};
use super::turns::Turns;
use super::{StoreError, StoredBlob};
use crate::board::{Digest, SessionId};
use crate::metrics;

const TEMPORARY: &str = "tmp";

/// The blobs of all sessions in one data directory.
#[derive(Debug)]
pub(super) struct Blobs {
    pub(super) root: PathBuf,
    pub(super) aside: Aside,
    room: Arc<Room>,
    condition: Arc<Condition>,
    /// The sessions whose directory is durable under its name.
    homes: Mutex<HashSet<SessionId>>,
    turns: Turns<(SessionId, Digest)>,
}

impl Blobs {
    /// Whether a data directory has blobs of any session in it.
    pub(super) fn are_in(dir: &Path) -> bool {
        dir.join("blobs").read_dir().is_ok_and(|mut homes| homes.next().is_some())
    }

    pub(super) fn open(
        dir: &Path,
        room: Arc<Room>,
        condition: Arc<Condition>,
    ) -> Result<Self, StoreError> {
        let blobs = Self::at(dir, room, condition);
        create_dir(&blobs.root)?;
        Ok(blobs)
    }

    /// Where they are, or would be.
    pub(super) fn at(dir: &Path, room: Arc<Room>, condition: Arc<Condition>) -> Self {
        let root = dir.join("blobs");
        let (aside, homes) = (Aside::in_root(&root), Mutex::default());
        Self { root, aside, room, condition, homes, turns: Turns::default() }
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
        digest: Digest,
    ) -> Result<(), StoreError> {
        self.once(to, digest, |path| {
            // A file system without links, a file with too many, a damaged file in the way: copy.
            fs::hard_link(self.path(from, digest), path)
                .or_else(|_| self.write(path, &self.read(from, digest)?))
        })
    }

    pub(super) fn read(&self, session: SessionId, digest: Digest) -> Result<Vec<u8>, StoreError> {
        let path = self.path(session, digest);
        match fs::read(&path) {
            Ok(bytes) if Digest::of(&bytes) == digest => Ok(bytes),
            Ok(_) => Err(StoreError::BlobDamaged { session, digest }),
            Err(error) => Err(unread(&path, session, digest, error)),
        }
    }

    /// Opens a blob to be read piece by piece; nothing is verified.
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
        // Only then: what is poisoned while it answers may have stored a commit that it does not know.
        if self.condition.is_poisoned() {
            return Err(StoreError::Poisoned);
        }
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

    pub(super) fn remove(&self, session: SessionId) -> Result<(), StoreError> {
        let home = self.home(session);
        if !self.aside.takes_home(session, &home) {
            remove_home(&home)?;
        }
        self.homes.lock().remove(&session);
        Ok(())
    }

    pub(super) fn keep(&self, live: &HashSet<SessionId>) -> Result<(), StoreError> {
        self.aside.clear()?;
        for home in list(&self.root)? {
            match session_of(&home) {
                Some(session) if live.contains(&session) => remove_temporaries(&home)?,
                Some(_) => remove_home(&home)?,
                None => {}
            }
        }
        Ok(())
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

    /// Visits the blobs of a session; whether it was broken off.
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

    /// Makes a blob with `make` unless it is whole already, and makes its name durable.
    fn once(
        &self,
        session: SessionId,
        digest: Digest,
        make: impl FnOnce(&Path) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let _turn = self.turns.take((session, digest));
        if self.condition.is_poisoned() {
            return Err(StoreError::Poisoned);
        }
        self.make_home(session)?;
        let path = self.path(session, digest);
        match self.read(session, digest) {
            Ok(_) => {}
            Err(StoreError::BlobMissing { .. } | StoreError::BlobDamaged { .. }) => make(&path)?,
            Err(error) => return Err(error),
        }
        // Also of a blob that was there: its maker may have died before this.
        self.poisoning(sync_dir(&self.home(session)))
    }

    /// Writes a new file and moves it into place. A failed sync may be tried again: with another file.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        if !self.room.is_for(u64::try_from(bytes.len()).unwrap_or(u64::MAX)) {
            return Err(StoreError::Full);
        }
        let temporary = path.with_extension(TEMPORARY);
        let written = write_synced(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            // It may take room that is short; if this does not remove it, the next start does.
            drop(fs::remove_file(&temporary));
        }
        written.map_err(StoreError::io(path))
    }

    fn make_home(&self, session: SessionId) -> Result<(), StoreError> {
        let mut homes = self.homes.lock();
        if !homes.contains(&session) {
            self.poisoning(create_dir(&self.home(session)))?;
            homes.insert(session);
        }
        Ok(())
    }

    /// Another sync after a failed one may succeed without having written anything: there is none.
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

/// Why a blob's file cannot be read: it is not there, or a fault.
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

/// What is in a directory; nothing, if its session has just gone.
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

fn remove_temporaries(home: &Path) -> Result<(), StoreError> {
    for path in list(home)? {
        if path.extension().is_some_and(|end| end == TEMPORARY) {
            fs::remove_file(&path).map_err(StoreError::io(&path))?;
        }
    }
    Ok(())
}

pub(super) fn session_of(home: &Path) -> Option<SessionId> {
    let name = home.file_name()?.to_str()?;
    let session = SessionId(Uuid::try_parse(name).ok()?);
    // Other spellings of the same id are not our directories.
    (session.to_string() == name).then_some(session)
}

pub(super) fn digest_of(path: &Path) -> Option<Digest> {
    Digest::from_hex(path.file_name()?.to_str()?)
}
