//! Directories that survive a power cut, and free space for deletions.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::reserve::Reserve;
use crate::store::{FREE_BYTES_MIN, SqliteOptions, StoreError};

/// What is left free beside the reserve, for what is always written: an index of the log, a page here and there.
pub(crate) const SPARE_BYTES: u64 = 1 << 20;

/// The reserve is held from where so many times as much is free: before that no other program can take it soon.
const NEAR_TIMES: u64 = 16;

pub(crate) const FILE_MODE: u32 = 0o600;
pub(crate) const DIR_MODE: u32 = 0o700;

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    let names = File::open(dir).map_err(StoreError::io(dir))?;
    names.sync_all().map_err(|source| StoreError::Unsynced { path: dir.to_owned(), source })
}

/// Makes a directory that is durable under its name, with its parents; it may be there already.
pub(crate) fn create_dir(dir: &Path) -> Result<(), StoreError> {
    let parent = match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    match DirBuilder::new().mode(DIR_MODE).create(dir) {
        Ok(()) => sync_dir(parent),
        // A crash may have come between an earlier start's making it and its sync.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {
            sync_dir(parent).or_else(unless_unreadable)
        }
        // Where the parent is there, some place above it makes no directories.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !parent.exists() => {
            create_dir(parent)?;
            create_dir(dir)
        }
        Err(error) => Err(StoreError::io(dir)(error)),
    }
}

/// A directory made by others may stand in one that we may pass but not open.
fn unless_unreadable(error: StoreError) -> Result<(), StoreError> {
    if let StoreError::Io { source, .. } = &error
        && source.kind() == io::ErrorKind::PermissionDenied
    {
        return Ok(());
    }
    Err(error)
}

/// The room on the disk that a directory is on, less the reserve.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) dir: PathBuf,
    free_bytes_min: u64,
    free_part: u64,
    reserve: Option<Reserve>,
    /// What the write-ahead log has that the database may still grow by.
    owed: AtomicU64,
}

/// What of a disk is free, and how large it is.
#[derive(Clone, Copy, Debug)]
struct Disk {
    free: u64,
    size: u64,
}

impl Room {
    /// That of a store, with the reserve that its directory has.
    pub(crate) fn of_store(dir: &Path, options: SqliteOptions) -> Self {
        let reserve = Some(Reserve::in_dir(dir));
        let SqliteOptions { free_bytes_min, free_part, .. } = options;
        Self { dir: dir.to_owned(), free_bytes_min, free_part, reserve, owed: AtomicU64::new(0) }
    }

    /// That of a store which takes no writes.
    pub(crate) fn of_nobody(dir: &Path) -> Self {
        let (dir, owed) = (dir.to_owned(), AtomicU64::new(0));
        Self { dir, free_bytes_min: 0, free_part: 1, reserve: None, owed }
    }

    /// That of another directory, in which as much is to be left.
    pub(crate) fn elsewhere(&self, dir: &Path) -> Self {
        let Self { free_bytes_min, free_part, .. } = *self;
        let owed = AtomicU64::new(0);
        Self { dir: dir.to_owned(), free_bytes_min, free_part, reserve: None, owed }
    }

    /// Whether so many bytes more leave the reserve whole.
    pub(crate) fn is_for(&self, bytes: u64) -> bool {
        // A disk that does not say how much is free may still be written to; the write itself will tell.
        self.disk().is_none_or(|disk| self.left(disk) >= self.kept(disk).saturating_add(bytes))
    }

    /// Whether more than twice the reserve is left: nobody will soon be refused.
    pub(crate) fn is_ample(&self) -> bool {
        self.disk().is_none_or(|disk| self.left(disk) >= self.kept(disk).saturating_mul(2))
    }

    /// How much may be used by what ends smaller than it began.
    pub(crate) fn in_all(&self) -> u64 {
        self.disk().map_or(u64::MAX, |disk| self.left(disk))
    }

    /// Gives up as much of the reserve as is missing where less than this is free; whether that gave any room.
    pub(crate) fn give_up_reserve_for(&self, bytes: u64) -> bool {
        let (Some(reserve), Some(disk)) = (&self.reserve, self.disk()) else { return false };
        let missing = bytes.saturating_sub(disk.free);
        missing > 0 && reserve.give_up(missing)
    }

    /// Holds as much of the reserve as there is, where the disk is not far from full.
    pub(crate) fn hold_reserve(&self) {
        let (Some(reserve), Some(disk)) = (&self.reserve, self.disk()) else { return };
        // However much is to be left, the file takes no more of the disk than that.
        let kept = self.kept(disk).min(FREE_BYTES_MIN);
        if disk.free > kept.saturating_mul(NEAR_TIMES) {
            return;
        }
        let missing = kept.saturating_sub(reserve.held());
        let more = missing.min(disk.free.saturating_sub(SPARE_BYTES));
        if more >= SPARE_BYTES || (more > 0 && more == missing) {
            reserve.hold(more);
        }
    }

    /// The database may still grow by what so many bytes of the write-ahead log have.
    pub(crate) fn note_owed(&self, bytes: u64) {
        self.owed.store(bytes, Ordering::Relaxed);
    }

    fn left(&self, disk: Disk) -> u64 {
        let held = self.reserve.as_ref().map_or(0, Reserve::held);
        disk.free.saturating_add(held).saturating_sub(self.owed.load(Ordering::Relaxed))
    }

    fn kept(&self, disk: Disk) -> u64 {
        self.free_bytes_min.min(disk.size / self.free_part.max(1))
    }

    fn disk(&self) -> Option<Disk> {
        let disk = rustix::fs::statvfs(&self.dir).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Some(Disk { free: bytes(disk.f_bavail), size: bytes(disk.f_blocks) })
    }
}
