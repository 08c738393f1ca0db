//! Lines of the host, within a bound.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// The maximum length of a line, in bytes, as of the largest bodies with an image that the server takes.
pub(super) const LINE_BYTES_MAX: usize = 32 << 20;

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(Bytes),
    /// A line of more than the maximum, which was passed over.
    TooLong,
}

/// Reads lines. Cancelled, a read goes on where it was.
pub(super) struct Lines<R> {
    input: R,
    max: usize,
    line: Vec<u8>,
    is_too_long: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(super) const fn new(input: R, max: usize) -> Self {
        Self { input, max, line: Vec::new(), is_too_long: false }
    }

    /// Returns the next line that is not empty, or nothing at the end of the input. The last line needs no end.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let piece = self.input.fill_buf().await?;
            let is_end = piece.is_empty();
            let line_end = memchr::memchr(b'\n', piece);
            let part = piece.get(..line_end.unwrap_or(piece.len())).unwrap_or_default();
            if part.len() > self.max - self.line.len() {
                self.is_too_long = true;
                self.line = Vec::new();
            } else if !self.is_too_long {
                self.line.extend_from_slice(part);
            }
            let used = line_end.map_or(piece.len(), |end| end + 1);
            self.input.consume(used);
            if is_end || line_end.is_some() {
                let line = self.take();
                if line.is_some() || is_end {
                    return Ok(line);
                }
            }
        }
    }

    fn take(&mut self) -> Option<Line> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            return Some(Line::TooLong);
        }
        line.pop_if(|last| *last == b'\r');
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        (!is_blank).then(|| Line::Text(line.into()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    async fn read(text: &[u8], buffer: usize) -> Vec<Line> {
        let mut lines = Lines::new(BufReader::with_capacity(buffer, text), 8);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push(line);
        }
        found
    }

    fn text(line: &'static str) -> Line {
        Line::Text(Bytes::from_static(line.as_bytes()))
    }

    #[tokio::test]
    async fn lines_have_a_bound_and_the_last_needs_no_end() {
        let input = b"a\n\n  \r\nb c\r\n12345678\n123456789\n1234567890123\nd\n123456789";
        for buffer in 1..20 {
            let expected = [
                text("a"),
                text("b c"),
                text("12345678"),
                Line::TooLong,
                Line::TooLong,
                text("d"),
                Line::TooLong,
            ];
            assert_eq!(read(input, buffer).await, expected, "{buffer}");
        }
        assert_eq!(read(b"a\nb", 9).await, [text("a"), text("b")]);
        assert!(read(b"", 9).await.is_empty() && read(b"\n\n", 9).await.is_empty());
    }
}
