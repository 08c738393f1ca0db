//! Unix: modes of files, SIGINT and SIGTERM, the XDG Base Directory Specification.

use std::env;
use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::signal::unix::{Signal, SignalKind, signal};

use blackboard_owner_files::FILE_MODE;
pub(crate) use blackboard_owner_files::sync_parent;

/// The help of the flag `--config`.
pub(crate) const CONFIG_HELP: &str =
    "Configuration file [default: blackboard/config.json in $XDG_CONFIG_HOME or ~/.config]";

/// The bits of a mode by which others than the owner may read or write a file.
const OTHERS: u32 = 0o077;

/// The signals that end a command: SIGINT and SIGTERM.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Creates or empties a file for the owner alone.
pub(crate) fn draft(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(true).write(true).mode(FILE_MODE).open(path)
}

/// Returns the mode of a file that others than its owner may read or write.
pub(crate) fn foreign_mode(metadata: &Metadata) -> Option<u32> {
    let mode = metadata.permissions().mode() & 0o777;
    (mode & OTHERS != 0).then_some(mode)
}

/// Returns the folder of configurations.
pub(crate) fn config_home() -> Option<PathBuf> {
    home_of(env::var_os("XDG_CONFIG_HOME"), env::var_os("HOME"))
}

/// Applies the XDG Base Directory Specification, by which a relative path is ignored.
fn home_of(config_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let given = config_home.map(PathBuf::from).filter(|path| path.is_absolute());
    let of_home = || home.map(PathBuf::from).filter(|path| path.is_absolute());
    given.or_else(|| of_home().map(|home| home.join(".config")))
}

/// Returns true if a terminal obeys escape sequences.
pub(crate) const fn paints() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configurations_are_where_xdg_says() {
        let home = |config_home: Option<&str>, home: Option<&str>| {
            home_of(config_home.map(Into::into), home.map(Into::into))
        };
        let expected = |text: &str| Some(PathBuf::from(text));
        assert_eq!(home(Some("/c"), Some("/h")), expected("/c"));
        assert_eq!(home(None, Some("/h")), expected("/h/.config"));
        assert_eq!(home(Some("c"), Some("/h")), expected("/h/.config"));
        assert_eq!(home(Some(""), None), None);
    }
}
