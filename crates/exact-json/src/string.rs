//! String literals: decoding and quoting.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::tokens::run_before;

/// A part of a literal: plain text, or one escape as its UTF-16 code unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Plain(&'a str),
    Unit(u16),
}

/// Iterates over the parts of a literal, which includes its quotes.
pub(crate) fn pieces(literal: &str) -> impl Iterator<Item = Piece<'_>> {
    Pieces(inside(literal))
}

/// Decodes a string literal with its quotes. A lone surrogate becomes U+FFFD.
#[must_use]
pub fn decode(literal: &str) -> Cow<'_, str> {
    let inside = inside(literal);
    if !inside.contains('\\') {
        return Cow::Borrowed(inside);
    }
    let mut text = String::with_capacity(inside.len());
    // Consecutive escapes, since two may form one character.
    let mut units = Vec::new();
    for piece in Pieces(inside) {
        match piece {
            Piece::Unit(unit) => units.push(unit),
            Piece::Plain(plain) => {
                push_units(&mut units, &mut text);
                text.push_str(plain);
            }
        }
    }
    push_units(&mut units, &mut text);
    Cow::Owned(text)
}

fn push_units(units: &mut Vec<u16>, text: &mut String) {
    let decoded = char::decode_utf16(units.drain(..));
    text.extend(decoded.map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)));
}

/// Appends the text as a string literal, with the fewest escapes that JSON allows.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    escape(text, out);
    out.push('"');
}

/// Appends the text as a part of a string literal, without quotes around it.
pub fn escape(text: &str, out: &mut String) {
    let mut rest = text;
    loop {
        let plain = run_of_plain(rest.as_bytes());
        let (head, tail) = rest.split_at_checked(plain).unwrap_or((rest, ""));
        out.push_str(head);
        let mut chars = tail.chars();
        let Some(special) = chars.next() else { break };
        push_escape(special, out);
        rest = chars.as_str();
    }
}

/// Counts the bytes before the first that needs an escape, eight at a time: most texts are short, and the last eight may
/// overlap those before.
fn run_of_plain(bytes: &[u8]) -> usize {
    let needs_escape = |byte: u8| byte < 0x20 || matches!(byte, b'"' | b'\\');
    let (words, _) = bytes.as_chunks::<8>();
    let plain = words.iter().take_while(|word| is_plain(**word)).count();
    if plain == words.len() && bytes.last_chunk::<8>().is_some_and(|word| is_plain(*word)) {
        return bytes.len();
    }
    let rest = bytes.get(8 * plain..).unwrap_or_default();
    8 * plain + rest.iter().take_while(|byte| !needs_escape(**byte)).count()
}

/// Returns true if no byte of a word needs an escape. A subtraction borrows into a byte's highest bit if the byte is less
/// than the subtrahend; a borrow from the byte before it comes only after such a byte.
fn is_plain(word: [u8; 8]) -> bool {
    const HIGHEST: u64 = u64::from_ne_bytes([0x80; 8]);
    let word = u64::from_le_bytes(word);
    let less = |word: u64, than: u8| word.wrapping_sub(u64::from_ne_bytes([than; 8])) & !word;
    let quote = word ^ u64::from_ne_bytes([b'"'; 8]);
    let backslash = word ^ u64::from_ne_bytes([b'\\'; 8]);
    (less(word, 0x20) | less(quote, 1) | less(backslash, 1)) & HIGHEST == 0
}

fn push_escape(special: char, out: &mut String) {
    match short_escape(special) {
        Some(letter) => out.extend(['\\', letter]),
        None => {
            let written = write!(out, "\\u{:04x}", u32::from(special));
            debug_assert!(written.is_ok(), "a String takes all that is written");
        }
    }
}

/// Returns the letter after the backslash of a short escape, if there is one.
pub const fn short_escape(special: char) -> Option<char> {
    match special {
        '"' => Some('"'),
        '\\' => Some('\\'),
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        '\u{8}' => Some('b'),
        '\u{c}' => Some('f'),
        _ => None,
    }
}

/// Returns true if the literal stands for exactly this text. Decodes only if the lengths do not decide.
pub(super) fn is(literal: &str, text: &str) -> bool {
    let inside = inside(literal);
    // An escape is longer than what it stands for.
    match inside.len().cmp(&text.len()) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => inside == text && !inside.contains('\\'),
        std::cmp::Ordering::Greater => inside.contains('\\') && decode(literal) == text,
    }
}

/// Returns true if the literal has an unpaired surrogate.
pub(super) fn has_lone_surrogate(literal: &str) -> bool {
    if run_before(literal.as_bytes(), |byte| byte == b'\\') == literal.len() {
        return false;
    }
    let mut high = false;
    for piece in pieces(literal) {
        let low = matches!(piece, Piece::Unit(0xDC00..=0xDFFF));
        if low != high {
            return true;
        }
        high = matches!(piece, Piece::Unit(0xD800..=0xDBFF));
    }
    high
}

/// Returns the literal without its quotes.
fn inside(literal: &str) -> &str {
    let opened = literal.strip_prefix('"').unwrap_or(literal);
    opened.strip_suffix('"').unwrap_or(opened)
}

struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if self.0.is_empty() {
            return None;
        }
        if let Some(escape) = self.0.strip_prefix('\\') {
            let (unit, rest) = unit(escape);
            self.0 = rest;
            return Some(Piece::Unit(unit));
        }
        let end = self.0.find('\\').unwrap_or(self.0.len());
        let (plain, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        Some(Piece::Plain(plain))
    }
}

/// Returns the code unit of the escape whose backslash has just been read, and the text after the escape.
fn unit(escape: &str) -> (u16, &str) {
    const REPLACEMENT: u16 = 0xFFFD;
    let mut chars = escape.chars();
    let unit = match chars.next() {
        Some('u') => {
            let hex = chars.as_str().split_at_checked(4);
            return match hex.map(|(digits, rest)| (u16::from_str_radix(digits, 16), rest)) {
                Some((Ok(unit), rest)) => (unit, rest),
                _ => (REPLACEMENT, chars.as_str()),
            };
        }
        Some('n') => 0x0A,
        Some('r') => 0x0D,
        Some('t') => 0x09,
        Some('b') => 0x08,
        Some('f') => 0x0C,
        Some(itself) => u16::try_from(u32::from(itself)).unwrap_or(REPLACEMENT),
        None => REPLACEMENT,
    };
    (unit, chars.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quoted(text: &str) -> String {
        let mut out = String::new();
        quote(text, &mut out);
        out
    }

    #[test]
    fn a_literal_without_escapes_is_borrowed() {
        assert!(matches!(decode("\"中文 ü\""), Cow::Borrowed("中文 ü")));
        assert!(matches!(decode("\"\""), Cow::Borrowed("")));
    }

    #[test]
    fn each_byte_that_needs_an_escape_is_found_in_each_place() {
        for length in 0..40 {
            let plain = "é~ \u{7f}x".chars().cycle().take(length).collect::<String>();
            let mut out = String::new();
            escape(&plain, &mut out);
            assert_eq!(out, plain);
            for (at, _) in plain.char_indices() {
                for special in ('\0'..' ').chain(['"', '\\']) {
                    let mut text = plain.clone();
                    text.insert(at, special);
                    let mut expected = plain.get(..at).unwrap_or_default().to_owned();
                    push_escape(special, &mut expected);
                    expected.push_str(plain.get(at..).unwrap_or_default());
                    out.clear();
                    escape(&text, &mut out);
                    assert_eq!(out, expected);
                }
            }
        }
    }

    #[test]
    fn escapes_are_read() {
        assert_eq!(decode(r#""\"\\\/\b\f\n\r\t""#), "\"\\/\u{8}\u{c}\n\r\t");
        assert_eq!(decode(r#""\u0041\u00e9\u4E2D""#), "Aé中");
        assert_eq!(decode(r#""\ud83d\udE80!""#), "🚀!");
        assert_eq!(decode(r#""\\u0041 \\\\u0041""#), r"\u0041 \\u0041");
    }

    #[test]
    fn half_a_pair_becomes_a_replacement_character() {
        assert_eq!(decode(r#""\ud83d""#), "\u{fffd}");
        assert_eq!(decode(r#""\ude80\ud83d""#), "\u{fffd}\u{fffd}");
        assert_eq!(decode(r#""\ud83dx\ude80""#), "\u{fffd}x\u{fffd}");
        assert_eq!(decode(r#""\ud83d\u0041""#), "\u{fffd}A");
    }

    #[test]
    fn half_a_pair_is_noticed() {
        for alone in [
            r#""\ud800""#,
            r#""\udc00\ud800""#,
            r#""\ud800x\udc00""#,
            r#""\ud800\ud800\udc00""#,
            r#""a\ud800\n""#,
        ] {
            assert!(has_lone_surrogate(alone), "{alone}");
        }
        for fine in [r#""\ud800\udc00""#, r#""\\ud800""#, "\"x\"", r#""\u00e9""#] {
            assert!(!has_lone_surrogate(fine), "{fine}");
        }
    }

    #[test]
    fn only_what_must_be_escaped_is_escaped() {
        assert_eq!(quoted("a\"b\\c/é🚀\u{7f}\u{2028}"), "\"a\\\"b\\\\c/é🚀\u{7f}\u{2028}\"");
        assert_eq!(quoted("\n\r\t\u{8}\u{c}\u{0}\u{1f}"), r#""\n\r\t\b\f\u0000\u001f""#);
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_read_again(text in any::<String>()) {
            let literal = quoted(&text);
            prop_assert_eq!(serde_json::from_str::<String>(&literal).unwrap(), text.as_str());
            prop_assert_eq!(decode(&literal), text.as_str());
            prop_assert!(is(&literal, &text));
        }

        #[test]
        fn any_text_is_decoded_somehow(text in "[\"\\\\ud8c0-9a-fé]{0,24}") {
            let decoded = decode(&text);
            prop_assert!(decoded.len() <= text.len() * 3);
            has_lone_surrogate(&text);
            is(&text, &decoded);
        }
    }
}
