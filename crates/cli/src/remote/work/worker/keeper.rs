//! `blackboard __work-child`: the process between `work` and a command, which ends the command's processes.
//!
//! Its standard input is a pipe from `work`: the item, then nothing. The pipe's end means that `work` wants the command
//! to end, or has died, of SIGKILL too. The command leads a process group of its own, so all of its processes end. Those
//! that left the group end only with a command that is cut short: after one that ended by itself they are meant to stay.

use std::ffi::OsString;
use std::io;
use std::process::{self, ExitStatus, Stdio};
use std::time::Duration;

use clap::Args;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Stdin};
use tokio::process::{Child, ChildStdin, Command};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout_at};

use crate::system::{Group, Orphans, Signals, exit_code};
use crate::{Failure, note};

/// The time between SIGTERM and SIGKILL.
pub(super) const KILL_AFTER: Duration = Duration::from_secs(10);

/// The time that processes may take to be gone after SIGKILL.
const GONE_AFTER: Duration = Duration::from_secs(2);

/// The time between two looks at a group whose processes were asked to end.
const LOOK: Duration = Duration::from_millis(20);

/// The exit code of a command that could not be run, as of a shell.
const NOT_RUN: u8 = 127;

/// Run the command of 'work' for one request
#[derive(Args, Debug)]
pub struct Keeper {
    /// Command to run, and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true, num_args = 1..)]
    command: Vec<OsString>,
}

impl Keeper {
    /// Runs the command, and exits as it does.
    ///
    /// # Errors
    ///
    /// The item was not received.
    pub fn run(self) -> Result<(), Failure> {
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
        let code = runtime.block_on(Box::pin(kept(self.command))).map_err(Failure::failed)?;
        // A runtime would wait for the thread that reads standard input.
        process::exit(code.into());
    }
}

async fn kept(command: Vec<OsString>) -> io::Result<u8> {
    // These are for the command's group and `work`; whoever sends them to this process wants the same.
    let mut signals = Signals::new()?;
    let orphans = Orphans::adopted();
    let mut pipe = BufReader::new(tokio::io::stdin());
    let item = item(&mut pipe).await?;
    let mut words = command.into_iter();
    let program = words.next().unwrap_or_default();
    let mut command = Command::new(&program);
    command.args(words).stdin(Stdio::piped());
    let mut child = match Group::lead(&mut command).spawn() {
        Ok(child) => child,
        Err(error) => {
            note(format_args!("cannot run {}: {error}", program.to_string_lossy()));
            return Ok(NOT_RUN);
        }
    };
    let group = Group::of(child.id());
    let input = child.stdin.take();
    let ended = tokio::select! {
        status = ran(&mut child, input, &item) => Some(status?),
        () = closed(&mut pipe) => None,
        () = signals.next() => None,
    };
    end(child, &group, orphans, ended).await
}

/// Reads the item: its length, a line end, its bytes.
async fn item(pipe: &mut BufReader<Stdin>) -> io::Result<Vec<u8>> {
    let mut length = String::new();
    pipe.read_line(&mut length).await?;
    let length: usize = length.trim_end().parse().map_err(|_| io::ErrorKind::UnexpectedEof)?;
    let mut item = vec![0; length];
    pipe.read_exact(&mut item).await?;
    Ok(item)
}

/// Waits until the command has ended, whether it reads the item or not.
async fn ran(child: &mut Child, input: Option<ChildStdin>, item: &[u8]) -> io::Result<ExitStatus> {
    let feed = async {
        if let Some(mut input) = input {
            // A command that reads nothing has closed its input.
            input.write_all(item).await.ok();
        }
    };
    let mut feed = std::pin::pin!(feed);
    tokio::select! {
        status = child.wait() => return status,
        () = &mut feed => {}
    }
    child.wait().await
}

/// Waits for the end of the pipe.
async fn closed(pipe: &mut BufReader<Stdin>) {
    let mut byte = [0];
    while matches!(pipe.read(&mut byte).await, Ok(1)) {}
}

/// Ends what still runs of the command's group. If the command has not ended by itself, it ends all that it started.
async fn end(
    mut child: Child,
    group: &Group,
    mut orphans: Orphans,
    ended: Option<ExitStatus>,
) -> io::Result<u8> {
    let deadline = Instant::now() + KILL_AFTER;
    group.terminate();
    let status = match ended {
        Some(status) => status,
        None => match timeout_at(deadline, child.wait()).await {
            Ok(status) => status?,
            Err(_) => {
                group.kill();
                child.start_kill().ok();
                child.wait().await?
            }
        },
    };
    loop {
        orphans.reap();
        let has_orphans = ended.is_none() && orphans.terminate();
        let late = Instant::now().checked_duration_since(deadline);
        if !(has_orphans || group.lives()) || late > Some(GONE_AFTER) {
            return Ok(exit_code(status));
        }
        if late.is_some() {
            group.kill();
            if has_orphans {
                orphans.kill();
            }
        }
        sleep(LOOK).await;
    }
}
