//! Windows: events of the console, the profile's folder, access lists that are inherited.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use tokio::process::Command;
use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, ctrl_break, ctrl_c, ctrl_close};

/// The help of the flag `--config`.
pub(crate) const CONFIG_HELP: &str =
    "Configuration file [default: blackboard\\config.json in %APPDATA%]";

/// The events that end a command: Ctrl-C, Ctrl-Break and the close of its console. There is none for a process that
/// another one ends.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: CtrlC,
    stop: CtrlBreak,
    close: CtrlClose,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { interrupt: ctrl_c()?, stop: ctrl_break()?, close: ctrl_close()? })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.stop.recv() => {}
            _ = self.close.recv() => {}
        }
    }
}

/// No processes: the direct child is ended alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group;

impl Group {
    /// Does nothing.
    pub(crate) const fn lead(command: &mut Command) -> &mut Command {
        command
    }

    /// Returns the group of nobody.
    pub(crate) const fn of(_: Option<u32>) -> Self {
        Self
    }

    /// Does nothing: a process of another group cannot be asked to end.
    pub(crate) const fn terminate(self) {}

    /// Does nothing.
    pub(crate) const fn kill(self) {}

    /// Returns false.
    pub(crate) const fn lives(self) -> bool {
        false
    }
}

/// Nobody: a process without its parent stays on its own.
#[derive(Debug)]
pub(crate) struct Orphans;

impl Orphans {
    /// Adopts none.
    pub(crate) const fn adopted() -> Self {
        Self
    }

    /// Does nothing.
    pub(crate) const fn reap(&self) {}

    /// Returns false.
    pub(crate) const fn terminate(&mut self) -> bool {
        false
    }

    /// Does nothing.
    pub(crate) const fn kill(&self) {}
}

/// Returns the exit code of a process, as far as it fits.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Returns this program.
pub(crate) fn own_program() -> io::Result<std::process::Command> {
    env::current_exe().map(std::process::Command::new)
}

/// Returns true: the system looks in several places, and for several suffixes.
pub(crate) const fn is_program(_: &OsStr) -> bool {
    true
}

/// Creates or empties a file. Its access list is the folder's: in a user's profile, the user and administrators.
pub(crate) fn draft(path: &Path) -> io::Result<File> {
    File::create(path)
}

/// Opens a file for reading and writing, and creates it if there is none.
pub(crate) fn open_state(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)
}

/// Creates a folder with those above it. Its access list is that of the folder above.
pub(crate) fn make_dir(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Returns the same for ever: the standard library does not know which process started this one.
pub(crate) const fn parent_id() -> u32 {
    0
}

/// Does nothing: a folder cannot be synced here. After a power cut the name may be that of the file before.
pub(crate) const fn sync_parent(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns none: files have access lists, which the standard library does not read.
pub(crate) const fn foreign_mode(_: &Metadata) -> Option<u32> {
    None
}

/// Returns the folder of configurations, which a user's machines may share.
pub(crate) fn config_home() -> Option<PathBuf> {
    env::var_os("APPDATA").map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Returns the folder of what programs remember between two runs, which stays on this machine.
pub(crate) fn state_home() -> Option<PathBuf> {
    env::var_os("LOCALAPPDATA").map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Asks the console to obey escape sequences, and returns true if it does.
pub(crate) fn paints() -> bool {
    anstyle_query::windows::enable_ansi_colors() == Some(true)
}
