//! Lock of a data directory: one process at a time, released when it exits.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::disk::FILE_MODE;
use crate::owner_files;
use crate::store::StoreError;

const NAME: &str = "lock";

/// A held lock; dropping it releases the directory.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the directory's lock, or fails immediately.
    pub(crate) fn take(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join(NAME);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(FILE_MODE)
            .open(&path)
            .map_err(StoreError::io(&path))?;
        owner_files::narrow(&path);
        Self::of(file, dir)
    }

    /// Takes an existing lock file's lock; creates nothing.
    pub(crate) fn take_if_there(dir: &Path) -> Result<Option<Self>, StoreError> {
        let path = dir.join(NAME);
        match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => Self::of(opened.map_err(StoreError::io(&path))?, dir).map(Some),
        }
    }

    fn of(file: File, dir: &Path) -> Result<Self, StoreError> {
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse { dir: dir.to_owned() }),
            Err(TryLockError::Error(source)) => Err(StoreError::io(&dir.join(NAME))(source)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a forked child before its exec also has it open.
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "the data directory stays locked until this process ends");
        }
    }
}
