//! The command of one request: its input, its output within a bound, its standard error as it comes.

use std::ffi::OsString;
use std::future::pending;
use std::io::{self, Write as _};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{self, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep_until, timeout};

use super::keeper::KILL_AFTER;
use crate::system::own_program;

/// The largest output of a command, in bytes: the largest blob.
pub(super) const OUTPUT_BYTES_MAX: usize = 32 << 20;

/// The end of standard error that is kept, in bytes.
const TAIL_BYTES_MAX: usize = 2 << 10;

/// The longest line of standard error that is printed in one piece, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;

/// What is read at once, in bytes.
const PIECE_BYTES: usize = 8 << 10;

/// The time that processes outside the command's group may keep its output open.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// The time beyond that of the keeper, after which it is killed itself.
const SLACK: Duration = Duration::from_secs(5);

/// A running command, behind its keeper.
pub(super) struct Child {
    process: process::Child,
    /// Closed, it ends the command.
    lifeline: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    output: Vec<u8>,
    errors: Errors,
    exit: Option<Exit>,
    drained_by: Option<Instant>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// With this exit code; none after a signal to its keeper.
    Code(Option<i32>),
    /// It wrote too much, and may run still.
    TooMuch,
}

impl Child {
    /// Starts a command with this item as its input.
    pub(super) async fn start(
        command: &[OsString],
        variables: impl IntoIterator<Item = (&'static str, Option<OsString>)>,
        item: &str,
        prefix: String,
    ) -> io::Result<Self> {
        let mut keeper = Command::from(own_program()?);
        keeper.arg("__work-child").arg("--").args(command);
        for (name, value) in variables {
            match value {
                Some(value) => keeper.env(name, value),
                None => keeper.env_remove(name),
            };
        }
        keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        crate::system::Group::lead(&mut keeper);
        let mut process = keeper.spawn()?;
        let (stdout, stderr) = (process.stdout.take(), process.stderr.take());
        let mut lifeline = process.stdin.take();
        if let Some(pipe) = &mut lifeline {
            pipe.write_all(format!("{}\n{item}", item.len()).as_bytes()).await?;
            pipe.flush().await?;
        }
        Ok(Self {
            process,
            lifeline,
            stdout,
            stderr,
            output: Vec::new(),
            errors: Errors { prefix, line: Vec::new(), tail: Vec::new() },
            exit: None,
            drained_by: None,
        })
    }

    /// Waits until the command has ended and its output is read. Nothing is lost if the wait is cancelled.
    pub(super) async fn ended(&mut self) -> io::Result<Exit> {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        loop {
            if let (Some(exit), None, None) = (self.exit, &self.stdout, &self.stderr) {
                self.errors.flush();
                return Ok(exit);
            }
            self.output.reserve(PIECE_BYTES);
            tokio::select! {
                status = self.process.wait(), if self.exit.is_none() => {
                    self.exit = Some(Exit::Code(status?.code()));
                    self.drained_by = Some(Instant::now() + DRAIN_MAX);
                }
                read = read(&mut self.stdout, &mut self.output) => {
                    if !read {
                        self.stdout = None;
                    } else if self.output.len() > OUTPUT_BYTES_MAX {
                        return Ok(Exit::TooMuch);
                    }
                }
                read = read(&mut self.stderr, &mut piece) => {
                    self.errors.take(&piece);
                    piece.clear();
                    if !read {
                        self.stderr = None;
                    }
                }
                () = until(self.drained_by) => (self.stdout, self.stderr) = (None, None),
            }
        }
    }

    /// Ends the command's processes: SIGTERM, and SIGKILL if that does not help.
    pub(super) async fn stop(&mut self) {
        (self.lifeline, self.stdout) = (None, None);
        if timeout(KILL_AFTER + SLACK, self.ended()).await.is_err() {
            self.process.start_kill().ok();
            self.process.wait().await.ok();
        }
    }

    /// Returns the output so far.
    pub(super) fn output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Returns the end of standard error, or of the output if the command has ended and its standard error is empty.
    pub(super) fn tail(&self) -> &[u8] {
        let is_silent = self.errors.tail.trim_ascii().is_empty();
        let has_ended = matches!(self.exit, Some(Exit::Code(_)));
        let tail = if is_silent && has_ended { &self.output } else { &self.errors.tail };
        tail.get(tail.len().saturating_sub(TAIL_BYTES_MAX)..).unwrap_or_default()
    }
}

/// The standard error of a command, on its way to ours.
struct Errors {
    /// The request, if commands of several run at once.
    prefix: String,
    line: Vec<u8>,
    tail: Vec<u8>,
}

impl Errors {
    fn take(&mut self, piece: &[u8]) {
        self.tail.extend_from_slice(piece);
        if self.tail.len() > 2 * TAIL_BYTES_MAX {
            self.tail.drain(..self.tail.len() - TAIL_BYTES_MAX);
        }
        if self.prefix.is_empty() {
            return print(piece);
        }
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") || self.line.len() > LINE_BYTES_MAX {
                self.flush();
            }
        }
    }

    /// Prints a line that is whole, or the last one.
    fn flush(&mut self) {
        if self.line.is_empty() {
            return;
        }
        let mut line = self.prefix.clone().into_bytes();
        line.append(&mut self.line);
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        print(&line);
    }
}

/// Prints to standard error, which may be closed.
fn print(bytes: &[u8]) {
    io::stderr().write_all(bytes).ok();
}

/// Reads a piece, and returns false at the end.
async fn read(pipe: &mut Option<impl AsyncRead + Unpin>, bytes: &mut Vec<u8>) -> bool {
    match pipe {
        Some(pipe) => matches!(pipe.read_buf(bytes).await, Ok(1..)),
        None => pending().await,
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}
