//! Lines as they may be shown: what turns the writing around, hides, or ends a line for some readers stands in them
//! as its number.
//!
//! A session may be named with any character that is no control character. It is done to whole lines, so that
//! nobody who writes one has to think of it.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Gives on lines, each written at once, in plain characters.
#[derive(Clone, Debug)]
pub(super) struct Plain<W>(pub(super) W);

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
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

/// The line with such characters escaped as JSON has it, in which they stand only within strings.
fn plain(line: &str) -> Cow<'_, str> {
    if line.chars().all(is_plain) {
        return Cow::Borrowed(line);
    }
    let mut plain = String::with_capacity(line.len() + 16);
    for c in line.chars() {
        if is_plain(c) {
            plain.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // A string takes all that is written to it.
            write!(plain, "\\u{unit:04x}").ok();
        }
    }
    Cow::Owned(plain)
}

/// Whether a character is seen for itself. Of ASCII all is let through: a line's end, and a terminal's colours.
fn is_plain(c: char) -> bool {
    // What Rust would escape to show it: marks that join the one before, formats, separators, what is no character.
    c.is_ascii() || c.escape_debug().nth(1).is_none()
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;
