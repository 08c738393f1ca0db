//! Log lines without control characters. Escaping happens once, for the whole line.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::printable::plain;

/// Forwards lines with their control characters escaped, one write per line.
#[derive(Clone, Debug)]
pub(super) struct Plain<W>(pub(super) W);

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if line.is_ascii() {
            self.0.write_all(line)?;
            return Ok(line.len());
        }
        match plain(&String::from_utf8_lossy(line)) {
            Cow::Borrowed(_) => self.0.write_all(line)?,
            Cow::Owned(plain) => self.0.write_all(plain.as_bytes())?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests;
