//! Output of a command: notes on standard error, its text on standard output.

use std::fmt::Display;
use std::io::{self, Write as _};

use blackboard_printable::line;

/// Writes a line for people to standard error. Names in it may have been chosen by clients.
pub fn note(what: impl Display) {
    eprintln!("{}", line(&what.to_string()));
}

/// Writes the whole text to standard output.
pub fn put(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        // The reader closed the pipe: it has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
