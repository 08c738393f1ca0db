//! The syntax check: exactly one JSON document in UTF-8, per RFC 8259.
//!
//! What one pass does not accept is parsed by the grammar of `serde_json`, which skips raw values of any depth without
//! recursion, and finds the fault.

use serde_json::value::RawValue;

/// The place where bytes stop being JSON, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid JSON at line {line}, column {column}: {reason}")]
pub struct Malformed {
    /// The line of the first wrong byte, from 1.
    pub line: usize,
    /// The position of that byte in its line, in bytes, from 1.
    pub column: usize,
    /// The fault.
    pub reason: MalformedReason,
}

/// The reason why bytes are not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedReason {
    /// The byte does not belong to a UTF-8 character.
    #[error("the bytes are not UTF-8")]
    NotUtf8,
    /// The byte begins a byte order mark.
    #[error("JSON must not begin with a byte order mark")]
    ByteOrderMark,
    /// The text is empty or white space.
    #[error("a value is missing")]
    Empty,
    /// The document is not complete.
    #[error("the text ends too early")]
    Unfinished,
    /// The grammar expects something else.
    #[error("{rule}, but {found:?} was found")]
    Unexpected {
        /// The character found.
        found: char,
        /// The parser's expectation.
        rule: Box<str>,
    },
}

/// The beginning of the parser's sentence about an unescaped control character in a string.
const CONTROL: &str = "control character";

/// Parses bytes, and finds the fault if there is one.
pub(super) fn parse(bytes: &[u8]) -> Result<&str, Malformed> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| malformed(bytes, error.valid_up_to(), MalformedReason::NotUtf8))?;
    let parsed = serde_json::from_str::<&RawValue>(text);
    parsed.map(RawValue::get).map_err(|error| explain(text, &error))
}

fn explain(text: &str, error: &serde_json::Error) -> Malformed {
    let at = offset(text, error);
    let found = text.get(at..).and_then(|rest| rest.chars().next());
    let reason = match found {
        _ if text.trim_ascii().is_empty() => MalformedReason::Empty,
        Some('\u{feff}') if at == 0 => MalformedReason::ByteOrderMark,
        Some(found) if !error.is_eof() => MalformedReason::Unexpected { found, rule: rule(error) },
        _ => MalformedReason::Unfinished,
    };
    let at = match reason {
        MalformedReason::Unfinished | MalformedReason::Empty => text.len(),
        MalformedReason::NotUtf8
        | MalformedReason::ByteOrderMark
        | MalformedReason::Unexpected { .. } => at,
    };
    malformed(text.as_bytes(), at, reason)
}

/// Returns what the grammar expects, as the first half of "… but 'x' was found".
fn rule(error: &serde_json::Error) -> Box<str> {
    match &*sentence(error) {
        "expected value" => "expected a value".into(),
        "expected ident" => "expected true, false or null".into(),
        "invalid escape" => "expected a valid escape".into(),
        "invalid number" => "expected a valid number".into(),
        "key must be a string" => "expected a key in quotes".into(),
        "trailing characters" => "expected the end of the text".into(),
        control if control.starts_with(CONTROL) => "expected an escaped control character".into(),
        rule => rule.into(),
    }
}

/// Returns the parser's sentence without the position at its end.
fn sentence(error: &serde_json::Error) -> Box<str> {
    let sentence = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    sentence.strip_suffix(&place).unwrap_or(&sentence).into()
}

/// Returns the offset of the character at which the parser stopped. The parser counts a line break as part of the
/// line that it begins. It stops before a control character in a string, but after any other wrong character.
fn offset(text: &str, error: &serde_json::Error) -> usize {
    let line_start = match error.line() {
        0 | 1 => 0,
        line => text.match_indices('\n').nth(line - 2).map_or(text.len(), |(at, _)| at + 1),
    };
    let stop = line_start + error.column();
    if sentence(error).starts_with(CONTROL) {
        return text.floor_char_boundary(stop);
    }
    text.floor_char_boundary(stop.saturating_sub(1))
}

fn malformed(bytes: &[u8], at: usize, reason: MalformedReason) -> Malformed {
    let before = bytes.get(..at).unwrap_or(bytes);
    let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |last| last + 1);
    Malformed {
        line: 1 + before.iter().filter(|&&b| b == b'\n').count(),
        column: 1 + before.len() - line_start,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::syntax;

    fn place(bytes: &[u8]) -> (usize, usize) {
        let malformed = syntax(bytes).unwrap_err();
        (malformed.line, malformed.column)
    }

    #[test]
    fn a_document_is_given_back_without_the_white_space_around_it() {
        assert_eq!(syntax(b" \r\n\t{\"a\": 1E400}\n "), Ok("{\"a\": 1E400}"));
        for text in ["0", "-0.0e-5", "\"\\ud800\"", "[]", "null", "{\"a\":1,\"a\":2}"] {
            assert_eq!(syntax(text.as_bytes()), Ok(text));
        }
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(syntax(deep.as_bytes()), Ok(deep.as_str()));
    }

    #[test]
    fn what_other_parsers_let_pass_is_refused() {
        for text in [
            "NaN",
            "Infinity",
            "-Infinity",
            "{'a':1}",
            "{a:1}",
            "[1,]",
            "{\"a\":1,}",
            "// x\n1",
            "1 /* x */",
            "\"a\tb\"",
            "\"a\nb\"",
            "\"\u{0}\"",
            "01",
            "1.",
            ".5",
            "+1",
            "0x1",
            "1_000",
            "1 2",
            "{}{}",
            "\u{a0}1",
            "\"\\x41\"",
            "\"\\u12g4\"",
            "True",
            "nul",
            "[",
            "\"",
            "",
        ] {
            assert!(syntax(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn the_place_is_that_of_the_first_wrong_byte() {
        assert_eq!(place(b"{\"a\":\n  NaN}"), (2, 3));
        assert_eq!(place(b"1 2"), (1, 3));
        assert_eq!(place(b"[1,\n2,\n"), (3, 1));
        assert_eq!(place(b"\"a\nb\""), (1, 3));
        assert_eq!(place(b"[\"\x00\"]"), (1, 3));
        assert_eq!(place(b"[\n\"abc\tde\"]"), (2, 5));
        assert_eq!(place(b"[\"a\\\n\"]"), (1, 5));
        assert_eq!(place("{\"é\": 'x'}".as_bytes()), (1, 8));
        assert_eq!(place(b"[1,\n\"\xff\"]"), (2, 2));
        assert_eq!(place(b"\"\xe4\xb8"), (1, 2));
    }

    #[test]
    fn the_sentence_names_the_place_once() {
        let sentence = |text: &str| syntax(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            sentence("{\"a\": NaN}"),
            "invalid JSON at line 1, column 7: expected a value, but 'N' was found"
        );
        assert_eq!(sentence("{\"a\""), "invalid JSON at line 1, column 5: the text ends too early");
        assert_eq!(sentence(" \n"), "invalid JSON at line 2, column 1: a value is missing");
        assert_eq!(
            sentence("\u{feff}{}"),
            "invalid JSON at line 1, column 1: JSON must not begin with a byte order mark"
        );
    }

    #[test]
    fn the_sentence_says_what_was_expected() {
        for (text, expected) in [
            ("{} 2", "expected the end of the text, but '2' was found"),
            ("01", "expected a valid number, but '1' was found"),
            ("\"\t\"", "expected an escaped control character, but '\\t' was found"),
            ("\"\\x\"", "expected a valid escape, but 'x' was found"),
            ("{a: 1}", "expected a key in quotes, but 'a' was found"),
        ] {
            let sentence = syntax(text.as_bytes()).unwrap_err().to_string();
            assert!(sentence.ends_with(expected), "{text}: {sentence}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_json_or_have_a_place_where_they_stop(bytes in any::<Vec<u8>>()) {
            if let Err(malformed) = syntax(&bytes) {
                prop_assert!(malformed.line >= 1 && malformed.column >= 1);
                prop_assert!(malformed.column <= bytes.len() + 1);
            }
        }

        #[test]
        fn the_gate_agrees_with_a_full_parser(text in r#"[\[\]{}",:0-9a-fu\\eE.\-\n tru]{0,12}"#) {
            let parsed = serde_json::from_str::<serde_json::Value>(&text);
            let beyond = parsed.as_ref().is_err_and(|e| {
                let sentence = e.to_string();
                sentence.contains("out of range") || sentence.contains("surrogate") || sentence.contains("hex escape")
            });
            prop_assert!(beyond || parsed.is_ok() == syntax(text.as_bytes()).is_ok());
        }
    }
}
