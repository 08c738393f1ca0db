//! Lock of a data directory: one process at a time, released when it exits.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use crate::StoreError;
use blackboard_owner_files as owner_files;

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
        Self::of(owner_files::open_file(&path).map_err(StoreError::io(&path))?, dir)
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
