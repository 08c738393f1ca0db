//! The reserve: a file that keeps room on the disk for deletions.
//!
//! A deletion that needs room releases it; it is allocated again once there is room.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, fallocate};

use blackboard_owner_files as owner_files;

const FILE: &str = "reserve";

/// The reserve's file and its length.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
    held: Mutex<u64>,
}

impl Reserve {
    /// Opens the reserve of a data directory, which may have no file yet.
    pub(crate) fn in_dir(dir: &Path) -> Self {
        let path = dir.join(FILE);
        owner_files::narrow(&path);
        let held = fs::metadata(&path).map_or(0, |file| file.len());
        Self { path, held: Mutex::new(held) }
    }

    /// Deletes the file.
    pub(crate) fn remove(self) {
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "failed to release the reserve");
        }
    }

    /// Returns the number of bytes held.
    pub(crate) fn held(&self) -> u64 {
        *self.held.lock()
    }

    /// Releases this many bytes, or all held. Returns true if any were released.
    pub(crate) fn give_up(&self, bytes: u64) -> bool {
        let mut held = self.held.lock();
        if *held == 0 {
            return false;
        }
        let left = held.saturating_sub(bytes);
        let shortened = self.open().and_then(|file| file.set_len(left));
        if let Err(error) = shortened {
            tracing::warn!(%error, "failed to release the reserve");
            return false;
        }
        *held = left;
        true
    }

    /// Allocates this many more bytes. On a file system without preallocation, allocates none.
    pub(crate) fn hold(&self, more: u64) {
        let mut held = self.held.lock();
        match self.lengthen(*held, more) {
            Ok(()) => *held += more,
            Err(error) => tracing::debug!(%error, "failed to allocate the reserve"),
        }
    }

    fn open(&self) -> io::Result<File> {
        owner_files::open_file(&self.path)
    }

    fn lengthen(&self, from: u64, more: u64) -> io::Result<()> {
        let file = self.open()?;
        let held = fallocate(&file, FallocateFlags::empty(), from, more);
        held.map_err(|error| shorten(&file, from, error.into()))
    }
}

/// Undoes a partial allocation.
fn shorten(file: &File, to: u64, error: io::Error) -> io::Error {
    file.set_len(to).err().unwrap_or(error)
}
