//! The reserve: a file that keeps room on the disk for deletions.
//!
//! It is released when a deletion needs room, and made again when there is room.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, fallocate};

use super::disk::FILE_MODE;

const FILE: &str = "reserve";

/// The file, with how long it is.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
    held: Mutex<u64>,
}

impl Reserve {
    /// The one in a data directory, which may have none yet.
    pub(crate) fn in_dir(dir: &Path) -> Self {
        let path = dir.join(FILE);
        let held = fs::metadata(&path).map_or(0, |file| file.len());
        Self { path, held: Mutex::new(held) }
    }

    /// How many bytes it holds.
    pub(crate) fn held(&self) -> u64 {
        *self.held.lock()
    }

    /// Gives up so many bytes, or all that it holds; whether that was something.
    pub(crate) fn give_up(&self, bytes: u64) -> bool {
        let mut held = self.held.lock();
        if *held == 0 {
            return false;
        }
        let left = held.saturating_sub(bytes);
        let shortened = self.open().and_then(|file| file.set_len(left));
        if let Err(error) = shortened {
            tracing::warn!(%error, "the reserve cannot be released");
            return false;
        }
        *held = left;
        true
    }

    /// Holds so many bytes more. Where the file system cannot promise room, it holds none.
    pub(crate) fn hold(&self, more: u64) {
        let mut held = self.held.lock();
        match self.lengthen(*held, more) {
            Ok(()) => *held += more,
            Err(error) => tracing::debug!(%error, "the reserve cannot be made"),
        }
    }

    fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(FILE_MODE).open(&self.path)
    }

    fn lengthen(&self, from: u64, more: u64) -> io::Result<()> {
        let file = self.open()?;
        let held = fallocate(&file, FallocateFlags::empty(), from, more);
        held.map_err(|error| shorten(&file, from, error.into()))
    }
}

/// A part of what was asked for may have been allotted.
fn shorten(file: &File, to: u64, error: io::Error) -> io::Error {
    file.set_len(to).err().unwrap_or(error)
}
