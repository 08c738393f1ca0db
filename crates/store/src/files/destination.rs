//! Destinations of copies and archives: nothing is overwritten.

use std::fs;
use std::io;
use std::path::Path;

use crate::StoreError;

/// Refuses a file to write if its path exists.
///
/// # Errors
///
/// [`StoreError::Occupied`], or [`StoreError::Io`] if the path cannot be read.
pub fn vacant_file(path: &Path) -> Result<(), StoreError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StoreError::io(path)(error)),
        Ok(_) => Err(StoreError::Occupied { path: path.to_owned() }),
    }
}

/// Refuses a directory to create if its path exists and is not an empty directory.
///
/// # Errors
///
/// As [`vacant_file`].
pub fn vacant_dir(path: &Path) -> Result<(), StoreError> {
    let is_dir = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    if is_dir && is_empty() { Ok(()) } else { vacant_file(path) }
}
