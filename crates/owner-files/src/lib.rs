//! Files and directories for their owner alone, whatever the directory above them and the umask allow.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
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

/// Adds to a lack of permission who lacks it, to whom `path` belongs, and what to type. Other errors stay as they are.
pub fn explained(path: &Path, error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return error;
    }
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let known = path.ancestors().find_map(|above| Some((above, fs::metadata(above).ok()?)));
    let Some((found, metadata)) = known else { return error };
    let user = rustix::process::geteuid().as_raw();
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    let remedy = remedy(&path, found, &metadata, user);
    let why = format!(
        "{error}: the process runs as user {user}, and {} belongs to user {owner} with mode {mode:04o}{remedy}",
        found.display()
    );
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// The command that gives `path` to a user. Directories above it may be the system's, and are never given away.
fn remedy(path: &Path, found: &Path, metadata: &Metadata, user: u32) -> String {
    let shown = path.display();
    let command = if found != path && metadata.mode() & 0o001 == 0 {
        return String::new();
    } else if found != path {
        format!("sudo install -d -m 700 -o {user} {shown}")
    } else if metadata.uid() == user {
        format!("chmod u+rwX {shown}")
    } else if metadata.is_dir() {
        format!("sudo chown -R {user} {shown}")
    } else {
        format!("sudo chown {user} {shown}")
    };
    format!("; type '{command}' (for a container on its host, with the path that is mounted there)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied() -> io::Error {
        io::Error::from(io::ErrorKind::PermissionDenied)
    }

    #[test]
    fn a_lack_of_permission_names_owner_mode_and_command() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("token");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o040)).unwrap();
        let user = rustix::process::geteuid().as_raw();
        let said = explained(&file, denied()).to_string();
        assert!(said.contains(&format!("belongs to user {user} with mode 0040")), "{said}");
        let metadata = fs::metadata(&file).unwrap();
        let other = user + 1;
        let said = remedy(&file, &file, &metadata, other);
        assert!(said.contains(&format!("'sudo chown {other} {}'", file.display())), "{said}");
    }

    #[test]
    fn no_directory_above_a_missing_one_is_given_away() {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
        let data = home.path().join("board").join("data");
        let said = explained(&data, denied()).to_string();
        let user = rustix::process::geteuid().as_raw();
        let command = format!("'sudo install -d -m 700 -o {user} {}'", data.display());
        assert!(said.contains(&command) && !said.contains("chown"), "{said}");
    }

    #[test]
    fn other_errors_are_not_explained() {
        let said = explained(Path::new("/"), io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(said.kind(), io::ErrorKind::NotFound);
        assert!(!said.to_string().contains("user"));
    }
}
