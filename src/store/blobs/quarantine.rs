//! Quarantine: blobs removed during a backup, moved aside instead of deleted.
//!
//! The backup looks in a blob's place first and in the quarantine afterwards, so it misses no blob that existed when it
//! began. It may copy blobs that no commit of the copy names; garbage collection removes those.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Blobs, digest_of, list, remove_home, session_of, write_synced};
use crate::board::{Digest, SessionId};
use crate::store::files::disk::{DIR_MODE, Room, create_dir, sync_dir};
use crate::store::{Copied, IsOver, StoreError};

/// Where they are put, among the directories of the sessions.
const ASIDE: &str = "removed";

/// What stands between a session and a digest in the name of a blob that was put aside alone.
const BETWEEN: char = '.';

/// The place for what is removed.
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

    /// Removes what is there.
    pub(crate) fn clear(&self) -> Result<(), StoreError> {
        remove_home(&self.dir)
    }

    /// Takes the directory of a session that is no more; `false` where it is to be removed.
    pub(crate) fn takes_home(&self, session: SessionId, home: &Path) -> bool {
        self.takes(home, &session.to_string())
    }

    /// Takes one blob; `false` where it is to be removed.
    pub(crate) fn takes_one(&self, session: SessionId, digest: Digest, path: &Path) -> bool {
        self.takes(path, &format!("{session}{BETWEEN}{digest}"))
    }

    fn takes(&self, path: &Path, name: &str) -> bool {
        // Read after its commit is durable, and set before the database is: so what the copy names is here.
        self.is_used.load(Ordering::SeqCst) && fs::rename(path, self.dir.join(name)).is_ok()
    }
}

/// While it is there, what is removed is put aside; afterwards that is gone.
pub(crate) struct PutAside<'a> {
    blobs: &'a Blobs,
}

impl Blobs {
    /// Lets be put aside what is removed; by one at a time.
    pub(crate) fn put_removed_aside(&self) -> Result<PutAside<'_>, StoreError> {
        self.aside.clear()?;
        create_dir(&self.aside.dir)?;
        self.aside.is_used.store(true, Ordering::SeqCst);
        Ok(PutAside { blobs: self })
    }

    /// The same where nobody removes any.
    pub(crate) fn as_they_are(&self) -> PutAside<'_> {
        PutAside { blobs: self }
    }
}

impl PutAside<'_> {
    /// Copies the blobs into a directory, which is made, and makes them durable there.
    pub(crate) fn copy_to(
        &self,
        to: &Path,
        room: &Room,
        is_over: &IsOver,
        copied: &mut Copied,
    ) -> Result<(), StoreError> {
        make_dir(to)?;
        let mut copy = Copy { to, room, is_over, copied };
        for home in list(&self.blobs.root)? {
            if let Some(session) = session_of(&home) {
                copy.home(session, &home)?;
            }
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
            tracing::warn!(%error, "removed images were left behind; the next start removes them");
        }
    }
}

/// A blob's session and digest, as its name tells where it was put aside alone.
fn alone(path: &Path) -> Option<(SessionId, Digest)> {
    let (session, digest) = path.file_name()?.to_str()?.split_once(BETWEEN)?;
    Some((session_of(Path::new(session))?, digest_of(Path::new(digest))?))
}

/// Makes a directory whose name is made durable later; it may be there.
fn make_dir(dir: &Path) -> Result<(), StoreError> {
    match DirBuilder::new().mode(DIR_MODE).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(StoreError::io(dir)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A copy on its way.
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
            // It was put aside just now, and is found there.
            Err(error) if is(&error, io::ErrorKind::NotFound) => {}
            // Another file system, one without links, a file with too many, or another's file.
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
