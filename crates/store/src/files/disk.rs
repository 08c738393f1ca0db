//! Durable changes of directories, and disk space reserved for deletions.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::FsWord;

use super::reserve::Reserve;
use crate::{FREE_BYTES_MIN, FreeSpace, SqliteOptions, StoreError};
pub(crate) use blackboard_owner_files::{DIR_MODE, FILE_MODE};

/// Bytes left free besides the reserve, for unavoidable writes: the log's index, a few pages.
pub(crate) const SPARE_BYTES: u64 = 1 << 20;

/// Multiple of the reserve below which its file is allocated. With more free space, no other program fills the disk
/// soon.
const NEAR_TIMES: u64 = 16;

/// The numbers of btrfs, bcachefs and ZFS (statfs(2)).
const COPYING: [FsWord; 3] = [0x9123_683e, 0xca45_1a4e, 0x2fc1_2fc1];

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    let names = File::open(dir).map_err(StoreError::io(dir))?;
    names.sync_all().map_err(|source| StoreError::Unsynced { path: dir.to_owned(), source })
}

/// Creates a directory and its parents, durable under their names; an existing one is accepted.
pub(crate) fn create_dir(dir: &Path) -> Result<(), StoreError> {
    let parent = match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    match DirBuilder::new().mode(DIR_MODE).create(dir) {
        Ok(()) => sync_dir(parent),
        // An earlier start may have crashed between creating it and the sync.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {
            sync_dir(parent).or_else(unless_unreadable)
        }
        // With an existing parent, a place above refuses new directories.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !parent.exists() => {
            create_dir(parent)?;
            create_dir(dir)
        }
        Err(error) => Err(StoreError::io(dir)(error)),
    }
}

/// Accepts a directory whose parent may be traversed but not opened.
fn unless_unreadable(error: StoreError) -> Result<(), StoreError> {
    if let StoreError::Io { source, .. } = &error
        && source.kind() == io::ErrorKind::PermissionDenied
    {
        return Ok(());
    }
    Err(error)
}

/// Returns true if a file system writes no block in place, so that a change of a file takes room, as cutting it off does.
fn copies_on_write(dir: &Path) -> bool {
    rustix::fs::statfs(dir).is_ok_and(|disk| COPYING.contains(&disk.f_type))
}

/// The free space on a directory's disk, minus the reserve.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) dir: PathBuf,
    free_bytes_min: u64,
    free_part: u64,
    reserve: Option<Reserve>,
    /// Bytes by which the database may still grow from the write-ahead log.
    owed: AtomicU64,
}

/// Free space and size of a disk, in bytes.
#[derive(Clone, Copy, Debug)]
struct Disk {
    free: u64,
    size: u64,
}

impl Room {
    /// Creates the room of a store, with the reserve in its directory. Where a file gives back no room before the next
    /// write needs some, the reserve is free space.
    pub(crate) fn of_store(dir: &Path, options: SqliteOptions) -> Self {
        let reserve = Reserve::in_dir(dir);
        let reserve = if copies_on_write(dir) {
            reserve.remove();
            None
        } else {
            Some(reserve)
        };
        let SqliteOptions { free_bytes_min, free_part, .. } = options;
        Self { dir: dir.to_owned(), free_bytes_min, free_part, reserve, owed: AtomicU64::new(0) }
    }

    /// Creates the room of a read-only store.
    pub(crate) fn read_only(dir: &Path) -> Self {
        let (dir, owed) = (dir.to_owned(), AtomicU64::new(0));
        Self { dir, free_bytes_min: 0, free_part: 1, reserve: None, owed }
    }

    /// Creates the room of a copy in another directory, with the same limits and no reserve.
    pub(crate) fn for_copy_in(&self, dir: &Path) -> Self {
        let Self { free_bytes_min, free_part, .. } = *self;
        let owed = AtomicU64::new(0);
        Self { dir: dir.to_owned(), free_bytes_min, free_part, reserve: None, owed }
    }

    /// Returns true if the reserve stays whole after this many more bytes.
    pub(crate) fn is_for(&self, bytes: u64) -> bool {
        // A disk that does not report its free space may still be written to; the write itself will tell.
        self.disk().is_none_or(|disk| self.left(disk) >= self.kept(disk).saturating_add(bytes))
    }

    /// Returns the free space and the reserve.
    pub(crate) fn free_space(&self) -> Option<FreeSpace> {
        let disk = self.disk()?;
        let (directory, reserve_bytes) = (self.dir.clone(), self.kept(disk));
        Some(FreeSpace { directory, free_bytes: self.left(disk), reserve_bytes })
    }

    /// Returns true if more than twice the reserve is left, so no write will be refused soon.
    pub(crate) fn is_ample(&self) -> bool {
        let ample = |disk| self.kept(disk).saturating_mul(2).saturating_add(SPARE_BYTES);
        self.disk().is_none_or(|disk| self.left(disk) >= ample(disk))
    }

    /// Returns the bytes that a write may use if it ends up smaller.
    pub(crate) fn in_all(&self) -> u64 {
        self.disk().map_or(u64::MAX, |disk| self.left(disk))
    }

    /// Releases the part of the reserve that is missing for this many free bytes. Returns true if that released
    /// anything.
    ///
    /// A file system that keeps blocks for root, as ext4 does, fills these up first once root has used them: what is
    /// released is not free for another user then, so more is released until enough is free or nothing is held.
    pub(crate) fn give_up_reserve_for(&self, bytes: u64) -> bool {
        let Some(reserve) = &self.reserve else { return false };
        let mut has_released = false;
        while let Some(disk) = self.disk() {
            let missing = bytes.saturating_sub(disk.free);
            let least = if has_released { SPARE_BYTES } else { 0 };
            if missing == 0 || !reserve.give_up(missing.max(least)) {
                break;
            }
            has_released = true;
        }
        has_released
    }

    /// Allocates as much of the reserve as fits, once the disk is nearly full.
    pub(crate) fn hold_reserve(&self) {
        let (Some(reserve), Some(disk)) = (&self.reserve, self.disk()) else { return };
        // The file is capped, however much the options leave free.
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

    /// Records the bytes of the write-ahead log by which the database may still grow.
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
