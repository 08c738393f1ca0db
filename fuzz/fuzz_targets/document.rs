//! Arbitrary bytes as a document: one pass finds what single passes find, each of them the simple way.
#![no_main]

use exact_json::tokens::{Token, Tokens};
use exact_json::{DEPTH_MAX, Document, INTEGER_DIGITS_MAX, Kind, decode, raw};
use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;

/// Bytes by the grammar of `serde_json`, without the white space around them.
fn parsed(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get)
}

/// The levels of containers.
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

/// Whether clients can read a token again.
fn is_readable(token: Token<'_>) -> bool {
    match token {
        Token::Name(literal) | Token::String(literal) => {
            serde_json::from_str::<String>(literal).is_ok()
        }
        Token::Number(text) if text.contains(['.', 'e', 'E']) => {
            text.parse::<f64>().unwrap().is_finite()
        }
        Token::Number(text) => text.trim_start_matches('-').len() <= INTEGER_DIGITS_MAX,
        Token::ObjectOpen
        | Token::ObjectClose
        | Token::ArrayOpen
        | Token::ArrayClose
        | Token::Word(_) => true,
    }
}

fn one_line(text: &str) -> String {
    let mut parts = text.split(['\n', '\r']);
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |line, part| line + part.trim_start_matches([' ', '\t']))
}

fn compare(document: &Document<'_>) {
    let text = document.text();
    let (deepest, is_readable) =
        (levels(text), Tokens::new(text).all(|(_, token)| is_readable(token)));
    for depth_max in [0, 1, deepest.saturating_sub(1), deepest, DEPTH_MAX] {
        let is_supported = is_readable && deepest <= depth_max;
        assert_eq!(document.check(depth_max).is_ok(), is_supported);
        assert!(is_supported || !document.is_supported(depth_max));
    }
    let line = one_line(text);
    assert_eq!(document.one_line(), line);
    assert_eq!(document.to_line().get(), line);
    assert_eq!(document.raw().get(), text);
    assert_eq!(raw(text).get(), text);
    for (_, token) in Tokens::new(text) {
        if let Token::Name(name) = token {
            assert!(document.may_have_name(&decode(name)));
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let document = Document::parse(bytes);
    assert_eq!(document.as_ref().ok().map(Document::text), parsed(bytes));
    let Ok(document) = document else { return };
    compare(&document);
    let elements: Vec<_> = document.elements().collect();
    if document.kind() == Kind::Array {
        let expected: Vec<&RawValue> = serde_json::from_str(document.text()).unwrap();
        let expected: Vec<_> = expected.into_iter().map(RawValue::get).collect();
        assert_eq!(elements.iter().map(Document::text).collect::<Vec<_>>(), expected);
    } else {
        assert!(elements.is_empty());
    }
    elements.iter().for_each(compare);
});
