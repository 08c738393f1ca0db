//! Escaping of invisible and misleading characters as their code points.
//!
//! A name may contain any character but control characters, and logs and commands show it to people. Characters that
//! are invisible, that change the text direction, or that some programs treat as a line break are escaped.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

/// The mark of a truncated text.
const CUT: char = '…';

/// Returns JSON text with such characters escaped. ASCII passes unchanged, including line ends and terminal colours.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c.is_ascii() || is_seen(c))
}

/// Returns a text as one line for a terminal, without line ends and control characters.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |c| if c.is_ascii() { !c.is_ascii_control() } else { is_seen(c) })
}

/// Returns the beginning of a text of at most `max` bytes, with a mark if it was cut.
#[must_use]
pub fn cut(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(max);
    let mut beginning = text.get(..end).unwrap_or_default().to_owned();
    beginning.push(CUT);
    Cow::Owned(beginning)
}

/// Returns the number of columns that a text takes on a terminal: two for a wide character, none for a combining one.
#[must_use]
pub fn width(text: &str) -> usize {
    text.width()
}

/// Returns a text with spaces after it, up to this number of columns.
#[must_use]
pub fn padded(text: &str, columns: usize) -> String {
    let spaces = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(spaces))
}

fn escaped(text: &str, is_plain: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&is_plain) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_plain(c) {
            plain.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String does not fail.
            write!(plain, "\\u{unit:04x}").ok();
        }
    }
    Cow::Owned(plain)
}

/// Returns true if a character is visible on its own.
fn is_seen(c: char) -> bool {
    // Rust escapes combining marks, format characters, separators and unassigned characters.
    c.escape_debug().nth(1).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_line_is_one_line_of_what_is_seen() {
        let hostile = "a\n\u{1b}[31m\u{202e}\u{200b}\u{2066}é";
        assert_eq!(line(hostile), "a\\u000a\\u001b[31m\\u202e\\u200b\\u2066é");
        assert!(matches!(line("it's \"C:\\é\" 北"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("éé", 4), "éé");
        assert_eq!(cut("ééé", 4), "éé…");
        assert_eq!(cut("ééé", 3), "é…");
        assert_eq!(cut("é", 1), "…");
    }

    #[test]
    fn a_column_is_as_wide_as_a_terminal_shows_it() {
        for (text, columns) in
            [("a", 1), ("é", 1), ("北京", 4), ("🚀", 2), ("שלום", 4), ("e\u{301}", 1)]
        {
            assert_eq!(width(text), columns, "{text}");
            let filled = padded(text, 6);
            assert!(filled.starts_with(text) && width(&filled) == 6, "{filled:?}");
        }
        assert_eq!(padded("北京", 3), "北京");
    }
}
