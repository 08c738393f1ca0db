//! Reasons why forwarding ends before it is told to, each with its exit code.

use std::io;
use std::path::PathBuf;

use hyper::StatusCode;

use super::cursor::CURSOR_BYTES_MAX;

/// Nothing after this was delivered, and the cursor stays before it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stopped {
    /// The receiver did not take a message in time.
    #[error(
        "{to} did not acknowledge {what}: {why} (attempts: {attempts}); once the receiver works, run the command again"
    )]
    Unacknowledged { to: String, what: String, attempts: u32, why: String },
    /// The receiver does not take a message.
    #[error(
        "{to} rejected {what} with {status}; correct the receiver, or skip what it rejects with --skip-refused"
    )]
    Refused { to: String, what: String, status: StatusCode },
    /// The receiver takes no more messages.
    #[error(
        "{to} answered {what} with 410: it accepts no more messages; give another receiver with --to"
    )]
    Gone { to: String, what: String },
    /// The receiver is elsewhere.
    #[error(
        "{to} answered {what} with {status}; redirects are not followed, so give the final URL with --to"
    )]
    Redirected { to: String, what: String, status: StatusCode },
    /// A message is too large.
    #[error(
        "{what} has more than {max} bytes as a message; start after it, with --after and without the cursor file"
    )]
    TooLarge { what: String, max: usize },
    /// The server retains no history from the cursor on.
    #[error(
        "revisions after {after} are no longer retained: the history begins at {oldest}, so events would be missing; \
         read the board again, then {remedy} --after {oldest}"
    )]
    Compacted { after: u64, oldest: u64, remedy: String },
    /// The cursor is beyond the session's revision, as after a backup was restored.
    #[error(
        "the session is at revision {head}, before {after}, as after a backup was restored; read the board again, \
         then {remedy} --after {head}"
    )]
    Beyond { after: u64, head: u64, remedy: String },
    /// More questions are open than are kept apart.
    #[error("more than {max} questions are open; select sessions with --prefix or --label")]
    TooManyOpen { max: usize },
    /// The cursor cannot be read.
    #[error("cannot read the cursor {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The cursor cannot be written.
    #[error("cannot write the cursor {}", path.display())]
    Unwritten { path: PathBuf, source: io::Error },
    /// The file is something else, or too large.
    #[error(
        "{} is not a cursor that forward wrote, of at most {CURSOR_BYTES_MAX} bytes; give another file with --cursor",
        path.display()
    )]
    NoCursor { path: PathBuf },
    /// The file is the cursor of another forward.
    #[error("{} is the cursor of {other}; give another file with --cursor", path.display())]
    OtherCursor { path: PathBuf, other: String },
}

impl Stopped {
    /// Returns the exit code of the process.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::TooLarge { .. } | Self::Unreadable { .. } | Self::Unwritten { .. } => 1,
            Self::NoCursor { .. } | Self::OtherCursor { .. } => 2,
            Self::Compacted { .. } | Self::Beyond { .. } => 5,
            Self::TooManyOpen { .. } => 10,
            Self::Unacknowledged { .. }
            | Self::Refused { .. }
            | Self::Gone { .. }
            | Self::Redirected { .. } => 12,
        }
    }
}
