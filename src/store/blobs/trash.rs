//! Trash: directories of removed blobs, renamed in one step and deleted in pieces.
//!
//! Nothing in it is read again, so neither renames nor deletions are synced. After a power cut a directory may be back in
//! its old place, where the next start finds it without a session.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::store::StoreError;
use crate::store::files::disk::DIR_MODE;

/// Where it is, among the directories of the sessions.
const TRASH: &str = "trash";

/// How many files one piece deletes: about 20 ms of work.
const SWEEP_FILES_MAX: usize = 1_000;

/// The place for removed directories. It exists only while something is in it.
#[derive(Debug)]
pub(crate) struct Trash {
    dir: PathBuf,
}

impl Trash {
    pub(crate) fn in_root(root: &Path) -> Self {
        Self { dir: root.join(TRASH) }
    }

    /// Moves a directory here, whatever is in it; one that is not there is none.
    pub(crate) fn take(&self, dir: &Path) -> Result<(), StoreError> {
        loop {
            match fs::rename(dir, self.dir.join(Uuid::new_v4().to_string())) {
                Ok(()) => return Ok(()),
                // Which of the two is missing, the error does not say.
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

    /// Deletes a piece of what is here; whether more is left.
    pub(crate) fn sweep(&self) -> Result<bool, StoreError> {
        let mut left = SWEEP_FILES_MAX;
        match delete_some(&self.dir, &mut left) {
            Ok(is_empty) => Ok(!is_empty),
            // Nothing is here, or somebody else deletes too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::exists(&self.dir).map_err(StoreError::io(&self.dir))
            }
            // Something came meanwhile.
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

/// Deletes files of a directory and those in it, and the directory once it is empty; whether it came to that.
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
