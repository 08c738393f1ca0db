//! The client of the control socket: sends a request, reads the answer by lines.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use super::answer::Last;
use super::request::Request;

/// The maximum length of a line; lines of archives are bounded by it.
const LINE_BYTES_MAX: u64 = blackboard_board::stored::archive::LINE_BYTES_MAX as u64 + 1;

/// A request without a complete answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The request was refused, or failed.
    #[error("{detail}")]
    Failed {
        /// The stable code.
        code: String,
        /// The reason, for people.
        detail: String,
    },
    /// The answer broke off.
    #[error("the server stopped before the request was done")]
    BrokenOff,
    /// The last line has a form that this version does not know.
    #[error("the server's response cannot be read; it may be running another version")]
    Unreadable(#[source] serde_json::Error),
    /// The connection failed.
    #[error("the connection to the server failed")]
    Io(#[from] io::Error),
}

/// A line of an answer.
#[derive(Debug)]
pub enum Line {
    /// A line of content, with its line end.
    Part(Vec<u8>),
    /// The last line: its content as JSON.
    Done(String),
}

/// A request that was sent.
#[derive(Debug)]
pub struct Asking {
    stream: BufReader<UnixStream>,
}

impl Asking {
    /// Sends a request on a fresh connection.
    ///
    /// # Errors
    ///
    /// The request could not be sent.
    pub fn ask(mut stream: UnixStream, request: &Request) -> Result<Self, AskError> {
        let mut line = serde_json::to_string(request).map_err(AskError::Unreadable)?;
        line.push('\n');
        stream.write_all(line.as_bytes())?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends content that follows the request. Returns `false` if the server takes no more; the answer then says why.
    ///
    /// # Errors
    ///
    /// The connection failed.
    pub fn send(&mut self, bytes: &[u8]) -> Result<bool, AskError> {
        match self.stream.get_mut().write_all(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            sent => Ok(sent.map(|()| true)?),
        }
    }

    /// Ends the content of the request.
    ///
    /// # Errors
    ///
    /// The connection failed.
    pub fn end(&mut self) -> Result<(), AskError> {
        match self.stream.get_mut().shutdown(Shutdown::Write) {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Returns the next line of the answer.
    ///
    /// # Errors
    ///
    /// [`AskError`]; no further line follows.
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
