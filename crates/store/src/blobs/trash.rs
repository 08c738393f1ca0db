//! Trash: directories of removed blobs, renamed in one step and deleted in pieces.
//!
//! Nothing in it is read again, so neither renames nor deletions are synced. After a power cut a directory may be
//! back in its old place, where the next start finds it without a session.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::StoreError;
use crate::files::disk::DIR_MODE;

/// The trash directory, beside those of the sessions.
const TRASH: &str = "trash";

/// The maximum number of files that one sweep deletes: about 20 ms of work.
const SWEEP_FILES_MAX: usize = 1_000;

/// The trash directory. It exists only while it has content.
#[derive(Debug)]
pub(crate) struct Trash {
    dir: PathBuf,
}

impl Trash {
    pub(crate) fn in_root(root: &Path) -> Self {
        Self { dir: root.join(TRASH) }
    }

    /// Moves a directory to the trash with its content; a missing one is ignored.
    pub(crate) fn take(&self, dir: &Path) -> Result<(), StoreError> {
        loop {
            match fs::rename(dir, self.dir.join(Uuid::new_v4().to_string())) {
                Ok(()) => return Ok(()),
                // The error does not say which of the two is missing.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if !fs::exists(dir).map_err(StoreError::io(dir))? {
                        return Ok(());
                    }
                    self.make()?;
                }
                Err(error) => return Err(StoreError::io(dir)(error)),
            }
        }
    }

    /// Deletes some of the trash. Returns true if more is left.
    pub(crate) fn sweep(&self) -> Result<bool, StoreError> {
        let mut left = SWEEP_FILES_MAX;
        match delete_some(&self.dir, &mut left) {
            Ok(is_empty) => Ok(!is_empty),
            // The trash is empty, or another thread deletes too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::exists(&self.dir).map_err(StoreError::io(&self.dir))
            }
            // A directory was added meanwhile.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(true),
            Err(error) => Err(StoreError::io(&self.dir)(error)),
        }
    }

    fn make(&self) -> Result<(), StoreError> {
        match DirBuilder::new().mode(DIR_MODE).create(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(StoreError::io(&self.dir)(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Deletes a directory's files recursively, and the directory once empty. Returns true if the directory was deleted.
fn delete_some(dir: &Path, left: &mut usize) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        if *left == 0 {
            return Ok(false);
        }
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            fs::remove_file(entry.path())?;
            *left -= 1;
        } else if !delete_some(&entry.path(), left)? {
            return Ok(false);
        }
    }
    fs::remove_dir(dir)?;
    *left = left.saturating_sub(1);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn the_trash_is_there_only_while_it_has_content() {
        let root = TempDir::new().unwrap();
        let trash = Trash::in_root(root.path());
        assert!(!trash.sweep().unwrap());
        let session = root.path().join("session");
        fs::create_dir(&session).unwrap();
        fs::write(session.join("image"), "bytes").unwrap();
        trash.take(&session).unwrap();
        assert!(trash.dir.exists() && !session.exists());
        assert!(!trash.sweep().unwrap());
        assert!(!trash.dir.exists());
    }
}
