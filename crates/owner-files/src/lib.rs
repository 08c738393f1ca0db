//! Files and directories for their owner alone, whatever the directory above them and the umask allow.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// The mode of a file.
pub const FILE_MODE: u32 = 0o600;

/// The mode of a directory.
pub const DIR_MODE: u32 = 0o700;

/// The rights of the group and of others.
const FOREIGN: u32 = 0o077;

/// Creates a directory with those above it. An existing one is narrowed.
pub fn make_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir)?;
    narrow(dir);
    Ok(())
}

/// Creates an empty file, for a program that would make it readable for all. An existing one is narrowed.
pub fn make_file(file: &Path) -> io::Result<()> {
    open_file(file).map(drop)
}

/// Opens a file for writing, and creates it if there is none. An existing one is narrowed.
pub fn open_file(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let opened = options.create(true).truncate(false).write(true).mode(FILE_MODE).open(file)?;
    narrow(file);
    Ok(opened)
}

/// Syncs the name of a file.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// Takes the rights of others away, if there is anything there and it has any: a copy that was made by other rules, perhaps.
pub fn narrow(path: &Path) {
    let Ok(found) = fs::metadata(path) else { return };
    let mode = found.permissions().mode();
    if mode & FOREIGN == 0 {
        return;
    }
    if let Err(error) = fs::set_permissions(path, Permissions::from_mode(mode & !FOREIGN)) {
        let path = path.display();
        tracing::warn!(%path, %error, "other users may read this, and its mode cannot be changed; change its owner or its mode");
    }
}

/// Removes a file, or a directory with all in it, if there is one.
pub fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
