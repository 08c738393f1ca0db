//! Tests of documents: one pass finds what the passes found that it stands for.

use proptest::prelude::*;

use super::*;
use crate::tokens::{Token, Tokens};
use crate::{DEPTH_MAX, Reason, decode};

/// A document without line breaks, the simple way.
fn expected_line(text: &str) -> String {
    let mut parts = text.split(['\n', '\r']);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |line, part| line + part.trim_start_matches([' ', '\t']))
}

fn levels(text: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    for (_, token) in Tokens::new(text) {
        match token {
            Token::ObjectOpen | Token::ArrayOpen => open += 1,
            Token::ObjectClose | Token::ArrayClose => open -= 1,
            Token::Name(_) | Token::String(_) | Token::Number(_) | Token::Word(_) => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

#[track_caller]
fn agrees(document: Document<'_>) {
    let text = document.text();
    let depth = levels(text);
    assert_eq!(document.traits.is_some(), depth <= DEPTH_MAX, "{text}");
    for depth_max in [0, 1, depth.saturating_sub(1), depth, DEPTH_MAX] {
        let expected = find(text, depth_max);
        assert!(expected.is_ok() || !document.is_supported(depth_max), "{text}");
        assert_eq!(document.check(depth_max), expected, "{text}");
    }
    if let Some(traits) = document.traits {
        assert_eq!(traits.levels, depth, "{text}");
        let unpaired = find(text, DEPTH_MAX).is_err_and(|e| e.reason == Reason::LoneSurrogate);
        assert!(!(unpaired && traits.is_readable), "{text}");
    }
    let line = expected_line(text);
    assert_eq!(document.one_line(), line);
    assert_eq!(document.to_line().get(), line);
    assert_eq!(document.raw().get(), text);
    for (_, token) in Tokens::new(text) {
        if let Token::Name(name) = token {
            assert!(document.may_have_name(&decode(name)), "{text}: {name}");
        }
    }
    let elements: Vec<_> = document.elements().collect();
    let texts: Vec<_> = elements.iter().map(Document::text).collect();
    let expected: Vec<_> = scan::elements(text).collect();
    assert_eq!(texts, expected);
    for element in elements {
        assert_eq!(element.traits, Document::of(element.text()).traits, "{text}");
    }
}

/// Compares a document with what the single passes find.
#[track_caller]
fn compare(bytes: &[u8]) {
    let (expected, found) = (parse(bytes), Document::parse(bytes));
    assert_eq!(found.as_ref().map(Document::text).map_err(Clone::clone), expected);
    if let Ok(document) = found {
        agrees(document);
        agrees(Document::of(document.text()));
    }
}

#[test]
fn a_known_text_is_a_raw_value_without_a_parse() {
    let text = String::from("{\"a\": 1}");
    assert!(given(&text).is_ok_and(|raw| std::ptr::eq(raw.get(), text.as_str())));
}

#[test]
fn limits_are_those_of_the_single_passes() {
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let objects = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    for levels in [0, 1, 126, 127, 128, 129, 130, 1_000] {
        compare(nested(levels).as_bytes());
        compare(objects(levels).as_bytes());
        compare(format!("[{},{}]", nested(levels), objects(levels / 2)).as_bytes());
    }
    for digits in [199, 200, 201, 299, 300, 308, 309, 310, 4_300, 4_301] {
        for number in ["9", "-9", "0.9", "9e9", "9e99", "9e-99", "9e+098", "9.5E308"] {
            compare(number.replacen('9', &"9".repeat(digits), 1).as_bytes());
        }
    }
    for at in 0..200 {
        for piece in
            ["\"", "\\", "\u{1}", "\n", "é", "\\n", "\\ud83d\\ude80", "\\ud83d", "\u{7f}", " "]
        {
            let plain = "x".repeat(at);
            compare(format!("[\"{plain}{piece}\", \"{plain}\"]").as_bytes());
            compare(format!("\"{plain}{piece}").as_bytes());
        }
    }
}

/// Pieces of documents, right and wrong.
const PIECES: [&str; 64] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\"a\":",
    "\"\":",
    "\"$blob\":",
    "\"\\u0024blob\":",
    "\"/~é\":",
    "\"x\"",
    "\"\"",
    "\"中文 ü\"",
    "\"a\\\"b\\\\\"",
    "\"\\ud83d\\ude80\"",
    "\"\\ud83d\"",
    "\"\\uDE80\\uD83D\"",
    "\"\\ud83d\\u0041\"",
    "\"\\ud83d\\ud83d\\ude80\"",
    "\"\\u00e9\"",
    "\"\\u12g4\"",
    "\"\\u+123\"",
    "\"\\x\"",
    "\\",
    "\\u",
    "\\ud83d",
    "/",
    "e",
    "0",
    "-",
    "-0",
    "01",
    "1.",
    ".5",
    "-1.5e3",
    "1e400",
    "1E+99",
    "1e-400",
    "1e999999999999999999999",
    "12345678901234567890",
    "+1",
    "true",
    "false",
    "null",
    "nul",
    "True",
    "NaN",
    " ",
    "  ",
    "\t",
    "\n",
    "\r",
    "\r\n    ",
    "\u{b}",
    "\u{a0}",
    "\u{feff}",
    "\u{0}",
    "\u{1f}",
    "\u{7f}",
    "x",
    "a long run of plain characters, with more than a block of them: 0123456789",
    "\u{2028}",
];

fn pieces() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24)
        .prop_map(|pieces| pieces.concat())
}

/// Documents with white space of all kinds, and numbers and strings that are and are not supported.
fn documents() -> impl Strategy<Value = String> {
    let space = "[ \t\n\r]{0,3}";
    let scalar = prop_oneof![
        "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,12})?([eE][+-]?[0-9]{1,3})?",
        "\"([ !#-\\[\\]-~é中]|\\\\[\"\\\\/bfnrt]|\\\\u[0-9a-fA-F]{4}|\\\\u[dD][89abcdefABCDEF][0-9a-f]{2}){0,90}\"",
        Just("true".to_owned()),
        Just("null".to_owned()),
    ];
    scalar.prop_recursive(6, 64, 5, move |inner| {
        let name = prop_oneof!["\"[$a-c]{0,2}\"", Just("\"\\u0024blob\"".to_owned())];
        let member = (space, name, space, space, inner.clone(), space)
            .prop_map(|(a, name, b, c, value, d)| format!("{a}{name}{b}:{c}{value}{d}"));
        let element = (space, inner, space).prop_map(|(a, value, b)| format!("{a}{value}{b}"));
        prop_oneof![
            prop::collection::vec(member, 0..5).prop_map(|all| format!("{{{}}}", all.join(","))),
            prop::collection::vec(element, 0..5).prop_map(|all| format!("[{}]", all.join(","))),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read_as_by_the_single_passes(bytes in any::<Vec<u8>>()) {
        compare(&bytes);
    }

    #[test]
    fn any_pieces_are_read_as_by_the_single_passes(text in pieces()) {
        compare(text.as_bytes());
    }

    #[test]
    fn any_document_is_read_as_by_the_single_passes(text in documents()) {
        compare(text.as_bytes());
    }

    #[test]
    fn a_changed_document_is_read_as_by_the_single_passes(
        text in documents(),
        at in any::<prop::sample::Index>(),
        piece in prop::sample::select(&PIECES[..]),
        removed in 0..3_usize,
        byte in any::<Option<u8>>(),
    ) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        let end = (at + removed).min(bytes.len());
        let piece = byte.map_or(piece.as_bytes().to_vec(), |byte| vec![byte]);
        bytes.splice(at..end, piece);
        compare(&bytes);
    }
}
