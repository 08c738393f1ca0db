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
mod tests {
    use tracing_subscriber::fmt;

    use super::*;
    use crate::telemetry::json_line::JsonLine;
    use crate::telemetry::lines::Lines;

    /// Right-to-left override, line and paragraph separator, a next line of C1, zero width, a byte order mark, a tag
    /// beyond the first plane.
    const HOSTILE: &str = "a\u{202e}b\u{2028}c\u{2029}d\u{85}e\u{200b}f\u{feff}g\u{e0041}h";

    #[test]
    fn what_is_seen_for_itself_stays() {
        for line in ["plain\n", "\u{1b}[32mINFO\u{1b}[0m geh\u{f6}rt \u{5317}\u{4eac} \u{1f600}\n"]
        {
            assert!(matches!(plain(line), Cow::Borrowed(_)), "{line:?}");
        }
    }

    #[test]
    fn json_is_on_one_line_and_says_the_same() {
        let lines = Lines::default();
        let left = lines.clone();
        let log = fmt().event_format(JsonLine).with_writer(move || Plain(lines.clone())).finish();
        tracing::subscriber::with_default(log, || {
            tracing::warn!(session = %HOSTILE, "something of {HOSTILE}");
        });
        let said = left.text();
        assert!(said.is_ascii() && said.lines().count() == 1, "{said}");
        let line: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(line["session"], HOSTILE);
        assert_eq!(line["message"], format!("something of {HOSTILE}"));
    }

    #[test]
    fn a_terminal_sees_numbers() {
        let lines = Lines::default();
        let left = lines.clone();
        let log =
            fmt().compact().with_ansi(false).with_writer(move || Plain(lines.clone())).finish();
        tracing::subscriber::with_default(log, || tracing::warn!(session = %HOSTILE, "something"));
        let said = left.text();
        assert!(said.is_ascii() && said.contains("a\\u202eb\\u2028c\\u2029d"), "{said}");
        assert!(said.contains("g\\udb40\\udc41h"), "{said}");
    }
}
