//! Unix: modes of files, SIGINT and SIGTERM, groups of processes, the XDG Base Directory Specification.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::process::{ExitStatusExt as _, parent_id as parent};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use rustix::process::{
    Pid, Signal as Kind, WaitOptions, kill_process, kill_process_group, test_kill_process_group,
    wait,
};
use tokio::process::Command;
use tokio::signal::unix::{Signal, SignalKind, signal};

use blackboard_owner_files::FILE_MODE;
pub(crate) use blackboard_owner_files::{make_dir, sync_parent};

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

/// The processes that a command starts, which end together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group(Option<Pid>);

impl Group {
    /// Makes the command the leader of a group, which a terminal's Ctrl-C does not reach.
    pub(crate) fn lead(command: &mut Command) -> &mut Command {
        command.process_group(0)
    }

    /// Returns the group of a leader that was not waited for yet.
    pub(crate) fn of(leader: Option<u32>) -> Self {
        Self(leader.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Asks all of them to end.
    pub(crate) fn terminate(self) {
        self.send(Kind::TERM);
    }

    /// Ends all of them.
    pub(crate) fn kill(self) {
        self.send(Kind::KILL);
    }

    /// Returns true while there are any.
    pub(crate) fn lives(self) -> bool {
        self.0.is_some_and(|group| test_kill_process_group(group).is_ok())
    }

    fn send(self, signal: Kind) {
        // It fails if none is left.
        self.0.and_then(|group| kill_process_group(group, signal).ok());
    }
}

/// The processes of a command that have outlived their parents. On Linux they become children of this process, and not of
/// the first one, which in a container may wait for none.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    asked: Vec<Pid>,
}

impl Orphans {
    /// Adopts them from now on.
    pub(crate) fn adopted() -> Self {
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).ok();
        Self::default()
    }

    /// Waits for those that have ended. The command itself must have been waited for.
    pub(crate) fn reap(&self) {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    }

    /// Asks each to end, once. Returns true while there are any.
    pub(crate) fn terminate(&mut self) -> bool {
        let orphans = children();
        for orphan in &orphans {
            if !self.asked.contains(orphan) {
                self.asked.push(*orphan);
                kill_process(*orphan, Kind::TERM).ok();
            }
        }
        !orphans.is_empty()
    }

    /// Ends all of them.
    pub(crate) fn kill(&self) {
        for orphan in children() {
            kill_process(orphan, Kind::KILL).ok();
        }
    }
}

/// The children of this process; none where the system does not list them.
fn children() -> Vec<Pid> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let ids = |list: String| list.split_whitespace().filter_map(|id| id.parse().ok()).collect();
    lists.flat_map::<Vec<i32>, _>(ids).filter_map(Pid::from_raw).collect()
}

/// Returns the exit code of a process as shells do: 128 and the number of a signal that ended it.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Returns the path of this program, also after an upgrade has replaced the file.
pub(crate) fn own_program() -> io::Result<std::process::Command> {
    let link = Path::new("/proc/self/exe");
    let path = if link.exists() { link.to_owned() } else { env::current_exe()? };
    Ok(std::process::Command::new(path))
}

/// Returns true if there is such a program: a path, or a name in `PATH`.
pub(crate) fn is_program(name: &OsStr) -> bool {
    let is_executable = |path: &Path| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if name.as_bytes().contains(&b'/') {
        return is_executable(Path::new(name));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    !name.is_empty() && env::split_paths(&path).any(|folder| is_executable(&folder.join(name)))
}

/// Creates or empties a file for the owner alone.
pub(crate) fn draft(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(true).write(true).mode(FILE_MODE).open(path)
}

/// Opens a file for reading and writing, for the owner alone, and creates it if there is none.
pub(crate) fn open_state(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true).mode(FILE_MODE).open(path)
}

/// Returns the id of the process that started this one, or of the one that took its place.
pub(crate) fn parent_id() -> u32 {
    parent()
}

/// Returns the mode of a file that others than its owner may read or write.
pub(crate) fn foreign_mode(metadata: &Metadata) -> Option<u32> {
    let mode = metadata.permissions().mode() & 0o777;
    (mode & OTHERS != 0).then_some(mode)
}

/// Returns the folder of configurations.
pub(crate) fn config_home() -> Option<PathBuf> {
    home_of(env::var_os("XDG_CONFIG_HOME"), env::var_os("HOME"), ".config")
}

/// Returns the folder of what programs remember between two runs.
pub(crate) fn state_home() -> Option<PathBuf> {
    home_of(env::var_os("XDG_STATE_HOME"), env::var_os("HOME"), ".local/state")
}

/// Applies the XDG Base Directory Specification, by which a relative path is ignored.
fn home_of(given: Option<OsString>, home: Option<OsString>, default: &str) -> Option<PathBuf> {
    let given = given.map(PathBuf::from).filter(|path| path.is_absolute());
    let of_home = || home.map(PathBuf::from).filter(|path| path.is_absolute());
    given.or_else(|| of_home().map(|home| home.join(default)))
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
            home_of(config_home.map(Into::into), home.map(Into::into), ".config")
        };
        let expected = |text: &str| Some(PathBuf::from(text));
        assert_eq!(home(Some("/c"), Some("/h")), expected("/c"));
        assert_eq!(home(None, Some("/h")), expected("/h/.config"));
        assert_eq!(home(Some("c"), Some("/h")), expected("/h/.config"));
        assert_eq!(home(Some(""), None), None);
    }
}
