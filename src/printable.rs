//! Plain text: invisible and misleading characters are shown by their numbers.
//!
//! A name may contain any character but control characters, and logs and commands show it to people. Characters that
//! hide, turn the writing around or end a line for some readers are replaced.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The mark of a truncated text.
const CUT: char = '…';

/// Returns JSON text with such characters escaped. ASCII passes unchanged, including line ends and terminal colours.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c.is_ascii() || is_seen(c))
}

/// The text as one line that a command prints: nothing in it ends the line, or is for the terminal.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |c| if c.is_ascii() { !c.is_ascii_control() } else { is_seen(c) })
}

/// The text's beginning of at most `max` bytes, with a mark where it was longer.
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
            // A string takes all that is written to it.
            write!(plain, "\\u{unit:04x}").ok();
        }
    }
    Cow::Owned(plain)
}

/// Whether a character is seen for itself.
fn is_seen(c: char) -> bool {
    // What Rust would escape to show it: marks that join the one before, formats, separators, what is no character.
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
}
