//! Quarantine: blobs removed during a backup, moved aside instead of deleted.
//!
//! The backup looks in a blob's place first and in the quarantine afterwards, so it misses no blob that existed when
//! it began. It may copy blobs that no commit of the copy names; garbage collection removes those.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Blobs, digest_of, list, remove_home, session_of, write_synced};
use crate::files::disk::{DIR_MODE, Room, create_dir, sync_dir};
use crate::{Copied, IsOver, Progress, Stage, StoreError};
use blackboard_board::{Digest, SessionId};

/// The quarantine's directory, beside those of the sessions.
const ASIDE: &str = "removed";

/// Separates session and digest in the name of a single quarantined blob.
const BETWEEN: char = '.';

/// The directory of blobs removed during a backup.
#[derive(Debug)]
pub(crate) struct Quarantine {
    dir: PathBuf,
    is_used: AtomicBool,
}

impl Quarantine {
    pub(crate) fn in_root(root: &Path) -> Self {
        Self { dir: root.join(ASIDE), is_used: AtomicBool::new(false) }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Deletes the quarantined blobs.
    pub(crate) fn clear(&self) -> Result<(), StoreError> {
        remove_home(&self.dir)
    }

    /// Takes a deleted session's directory. Returns false if the caller must remove it.
    pub(crate) fn takes_home(&self, session: SessionId, home: &Path) -> bool {
        self.takes(home, &session.to_string())
    }

    /// Takes one blob. Returns false if the caller must remove it.
    pub(crate) fn takes_one(&self, session: SessionId, digest: Digest, path: &Path) -> bool {
        self.takes(path, &format!("{session}{BETWEEN}{digest}"))
    }

    fn takes(&self, path: &Path, name: &str) -> bool {
        // Read after the removing commit is durable; set before the backup copies the database. So no blob named by
        // the copy is lost.
        self.is_used.load(Ordering::SeqCst) && fs::rename(path, self.dir.join(name)).is_ok()
    }
}

/// A guard that keeps the quarantine in use; its drop deletes the quarantined blobs.
pub(crate) struct PutAside<'a> {
    blobs: &'a Blobs,
}

impl Blobs {
    /// Starts the quarantine; the caller admits one backup at a time.
    pub(crate) fn put_removed_aside(&self) -> Result<PutAside<'_>, StoreError> {
        self.aside.clear()?;
        create_dir(&self.aside.dir)?;
        self.aside.is_used.store(true, Ordering::SeqCst);
        Ok(PutAside { blobs: self })
    }

    /// Returns the guard for a store from which no blob is removed.
    pub(crate) fn as_they_are(&self) -> PutAside<'_> {
        PutAside { blobs: self }
    }
}

impl PutAside<'_> {
    /// Copies the blobs into a directory, which it creates, and makes them durable.
    pub(crate) fn copy_to(
        &self,
        to: &Path,
        room: &Room,
        (is_over, progress): (&IsOver, &Progress),
        copied: &mut Copied,
    ) -> Result<(), StoreError> {
        make_dir(to)?;
        let mut copy = Copy { to, room, is_over, copied };
        let homes = list(&self.blobs.root)?.into_iter();
        let homes: Vec<_> = homes.filter_map(|home| Some((session_of(&home)?, home))).collect();
        progress.begin(Stage::SessionImages, u64::try_from(homes.len()).unwrap_or(u64::MAX));
        for (session, home) in homes {
            copy.home(session, &home)?;
            progress.advance(1);
        }
        for removed in list(&self.blobs.aside.dir)? {
            if let Some(session) = session_of(&removed) {
                copy.home(session, &removed)?;
            } else if let Some((session, digest)) = alone(&removed) {
                copy.some(session, &[(digest, removed)])?;
            }
        }
        sync_dir(to)
    }
}

impl Drop for PutAside<'_> {
    fn drop(&mut self) {
        if !self.blobs.aside.is_used.swap(false, Ordering::SeqCst) {
            return;
        }
        if let Err(error) = self.blobs.aside.clear() {
            tracing::warn!(%error, "removed images could not be deleted from the disk; retrying at the next start");
        }
    }
}

/// Returns session and digest from the name of a single quarantined blob.
fn alone(path: &Path) -> Option<(SessionId, Digest)> {
    let (session, digest) = path.file_name()?.to_str()?.split_once(BETWEEN)?;
    Some((session_of(Path::new(session))?, digest_of(Path::new(digest))?))
}

/// Creates a directory that is synced later; an existing one is accepted.
fn make_dir(dir: &Path) -> Result<(), StoreError> {
    match DirBuilder::new().mode(DIR_MODE).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(StoreError::io(dir)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A copy in progress.
struct Copy<'a> {
    to: &'a Path,
    room: &'a Room,
    is_over: &'a IsOver,
    copied: &'a mut Copied,
}

impl Copy<'_> {
    fn home(&mut self, session: SessionId, home: &Path) -> Result<(), StoreError> {
        let blobs = list(home)?.into_iter();
        let blobs: Vec<_> = blobs.filter_map(|path| Some((digest_of(&path)?, path))).collect();
        if blobs.is_empty() { Ok(()) } else { self.some(session, &blobs) }
    }

    fn some(&mut self, session: SessionId, blobs: &[(Digest, PathBuf)]) -> Result<(), StoreError> {
        let home = self.to.join(session.to_string());
        make_dir(&home)?;
        for (digest, path) in blobs {
            if (self.is_over)() {
                return Err(StoreError::Closed);
            }
            self.one(path, &home.join(digest.to_string()))?;
        }
        sync_dir(&home)
    }

    fn one(&mut self, from: &Path, to: &Path) -> Result<(), StoreError> {
        let is = |error: &io::Error, kind| error.kind() == kind;
        match fs::hard_link(from, to) {
            Ok(()) => self.copied.blobs += 1,
            Err(error) if is(&error, io::ErrorKind::AlreadyExists) => {}
            // Just quarantined, and copied from there.
            Err(error) if is(&error, io::ErrorKind::NotFound) => {}
            // Another file system, a file system without links, a file with too many, or another user's file.
            Err(_) => self.bytes(from, to)?,
        }
        Ok(())
    }

    fn bytes(&mut self, from: &Path, to: &Path) -> Result<(), StoreError> {
        let bytes = match fs::read(from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            read => read.map_err(StoreError::io(from))?,
        };
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if !self.room.is_for(length) {
            return Err(StoreError::Full);
        }
        write_synced(to, &bytes).map_err(StoreError::io(to))?;
        self.copied.blobs += 1;
        self.copied.bytes += length;
        Ok(())
    }
}
