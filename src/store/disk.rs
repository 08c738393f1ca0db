//! Directories that survive a power cut, and the free space that is kept for deletions.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::StoreError;

/// What is left free on the disk, so that deletions, expiries and checkpoints still go through.
pub const FREE_BYTES_MIN: u64 = 64 << 20;

pub(super) const FILE_MODE: u32 = 0o600;
pub(super) const DIR_MODE: u32 = 0o700;

/// Makes the names in a directory durable.
pub(super) fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    let names = File::open(dir).map_err(StoreError::io(dir))?;
    names.sync_all().map_err(|source| StoreError::Unsynced { path: dir.to_owned(), source })
}

/// Makes a directory that is durable under its name, with its parents; it may be there already.
pub(super) fn create_dir(dir: &Path) -> Result<(), StoreError> {
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
pub(super) struct Room {
    pub(super) dir: PathBuf,
    pub(super) free_bytes_min: u64,
}

impl Room {
    /// Whether so many bytes more leave the reserve whole.
    pub(super) fn is_for(&self, bytes: u64) -> bool {
        match rustix::fs::statvfs(&self.dir) {
            Ok(disk) => {
                let free = disk.f_bavail.saturating_mul(disk.f_frsize);
                free >= self.free_bytes_min.saturating_add(bytes)
            }
            // Whoever cannot say how much is free may still be written to; the write itself will tell.
            Err(_) => true,
        }
    }
}
