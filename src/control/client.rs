//! The client of the control socket: sends a request, reads the answer by lines.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use super::answer::Last;
use super::request::Request;

/// A longer line is none of ours: those of archives have at most that.
const LINE_BYTES_MAX: u64 = crate::board::stored::archive::LINE_BYTES_MAX as u64 + 1;

/// Why there is no whole answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It was refused, or failed.
    #[error("{detail}")]
    Failed {
        /// The stable word for it.
        code: String,
        /// What happened, for a person to read.
        detail: String,
    },
    /// It broke off.
    #[error("the server ended before it was done")]
    BrokenOff,
    /// The last line is none that this version knows.
    #[error("the answer cannot be read: is the server of another version?")]
    Unreadable(#[source] serde_json::Error),
    /// The connection broke.
    #[error("the server cannot be spoken to")]
    Io(#[from] io::Error),
}

/// A line of an answer.
#[derive(Debug)]
pub enum Line {
    /// Something that was asked for, with its end.
    Part(Vec<u8>),
    /// The last one: what it tells, as JSON.
    Done(String),
}

/// A request that was asked.
#[derive(Debug)]
pub struct Asking {
    stream: BufReader<UnixStream>,
}

impl Asking {
    /// Asks by a connection on which nothing was asked before.
    ///
    /// # Errors
    ///
    /// If nobody reads it.
    pub fn ask(mut stream: UnixStream, request: &Request) -> Result<Self, AskError> {
        let mut line = serde_json::to_string(request).map_err(AskError::Unreadable)?;
        line.push('\n');
        stream.write_all(line.as_bytes())?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends what follows the request; `false` where no more is taken: then the answer says why.
    ///
    /// # Errors
    ///
    /// If the connection broke.
    pub fn send(&mut self, bytes: &[u8]) -> Result<bool, AskError> {
        match self.stream.get_mut().write_all(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            sent => Ok(sent.map(|()| true)?),
        }
    }

    /// Says that nothing follows any more.
    ///
    /// # Errors
    ///
    /// If the connection broke.
    pub fn end(&mut self) -> Result<(), AskError> {
        match self.stream.get_mut().shutdown(Shutdown::Write) {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The next line of the answer.
    ///
    /// # Errors
    ///
    /// [`AskError`]; then there is none any more.
    pub fn line(&mut self) -> Result<Line, AskError> {
        let mut line = Vec::new();
        self.stream.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") {
            return Err(AskError::BrokenOff);
        }
        if !line.starts_with(b"{\"done\":") && !line.starts_with(b"{\"failed\":") {
            return Ok(Line::Part(line));
        }
        match serde_json::from_slice(&line).map_err(AskError::Unreadable)? {
            Last::Done(told) => Ok(Line::Done(told.get().to_owned())),
            Last::Failed { code, detail } => Err(AskError::Failed { code, detail }),
        }
    }
}
