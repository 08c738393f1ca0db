//! Texts that are indexed: the strings and numbers of JSON, read in one pass.

use std::borrow::Cow;

use exact_json::decode;
use memchr::memchr2;

/// The maximum length of a text that is indexed, in bytes. Further text is not found.
pub const TEXT_BYTES_MAX: usize = 256 << 10;

/// Adds the strings and numbers of a JSON value to `out`, one per line, as far as [`TEXT_BYTES_MAX`] allows. Names of
/// members are left out: every item of a log has the same ones.
pub fn text_of(value: &str, out: &mut String) {
    let mut length = out.len();
    each_text(value, &mut length, &mut |text| {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(text);
        Ok::<_, std::convert::Infallible>(())
    })
    .unwrap_or_else(|never| match never {});
}

/// Gives each string and number of a JSON value, as far as [`TEXT_BYTES_MAX`] allows. `length` is that of the text of all, one
/// per line.
pub(super) fn each_text<E>(
    value: &str,
    length: &mut usize,
    each: &mut impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let bytes = value.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let begin = at;
        let text = match byte {
            b'"' => {
                let has_escapes;
                (at, has_escapes) = string_end(bytes, begin + 1);
                if is_name(bytes, at) {
                    continue;
                }
                let literal = value.get(begin..at).unwrap_or_default();
                if has_escapes { decode(literal) } else { Cow::Borrowed(inside(literal)) }
            }
            b'-' | b'0'..=b'9' => {
                let is_end = |byte: &u8| matches!(byte, b',' | b']' | b'}') || *byte <= b' ';
                at += bytes.iter().skip(begin).position(is_end).unwrap_or(bytes.len() - begin);
                Cow::Borrowed(value.get(begin..at).unwrap_or_default())
            }
            _ => {
                at += 1;
                continue;
            }
        };
        let room = TEXT_BYTES_MAX.saturating_sub(*length + 1);
        if text.is_empty() || room == 0 {
            continue;
        }
        let text = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        *length += text.len() + usize::from(*length > 0);
        each(text)?;
    }
    Ok(())
}

/// Returns the place behind a string's closing quote, and whether it has escapes.
fn string_end(bytes: &[u8], begin: usize) -> (usize, bool) {
    let (mut at, mut has_escapes) = (begin, false);
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match memchr2(b'"', b'\\', rest) {
            Some(next) if rest.get(next) == Some(&b'"') => return (at + next + 1, has_escapes),
            Some(next) => (at, has_escapes) = (at + next + 2, true),
            None => return (bytes.len(), has_escapes),
        }
    }
}

/// Returns the literal without its quotes.
fn inside(literal: &str) -> &str {
    literal.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default()
}

/// Returns true if what ends there is the name of a member.
fn is_name(bytes: &[u8], end: usize) -> bool {
    bytes.iter().skip(end).find(|byte| **byte > b' ') == Some(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> String {
        let mut out = String::new();
        text_of(value, &mut out);
        out
    }

    #[test]
    fn a_text_is_its_strings_and_numbers() {
        let value = r#" {"a": "x \"y\"\n", "b": [1.50, true, null, {"c":"\u65e5"}], "a": ""} "#;
        assert_eq!(text(value), "x \"y\"\n\n1.50\n日");
        assert_eq!(text("null"), "");
        assert_eq!(text(r#"{"a:":"b:","c\"":"d\\","e" : -1.5e3 }"#), "b:\nd\\\n-1.5e3");
        assert_eq!(text(" \"x\" "), "x");
        assert_eq!(text("[7\n,[8],9]"), "7\n8\n9");
        // Damaged text, which no board has, must only do no harm.
        for damaged in ["\"", "\"\\", "{\"a", "-", "[\"\\\"", "\"é"] {
            assert!(text(damaged).len() < 4);
        }
    }

    #[test]
    fn a_text_ends_at_its_bound() {
        let value = format!("[\"a\",\"{}\",\"z\"]", "é".repeat(TEXT_BYTES_MAX));
        let text = text(&value);
        assert!((TEXT_BYTES_MAX - 2..=TEXT_BYTES_MAX).contains(&text.len()), "{}", text.len());
    }
}
