//! Plain text: what turns the writing around, hides, or ends a line for some readers stands in it as its number.
//!
//! A name may have any character that is no control character, and is shown to people by the log and by commands.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with such characters escaped as JSON has it, in which they stand only within strings.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
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

/// Whether a character is seen for itself. Of ASCII all is let through: a line's end, and a terminal's colours.
fn is_plain(c: char) -> bool {
    // What Rust would escape to show it: marks that join the one before, formats, separators, what is no character.
    c.is_ascii() || c.escape_debug().nth(1).is_none()
}
