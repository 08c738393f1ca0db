//! References to blobs: `{"$blob":"<64 hexadecimal digits>"}`, with other members or without, at any place of a value.
//!
//! Anything else under that name is plain data. Text without the name is not parsed.

use std::sync::LazyLock;

use exact_json::tokens::{Token, Tokens};
use memchr::{memchr, memmem::Finder};

use super::ids::Digest;
use crate::json;

/// The largest blob, in bytes.
pub const BLOB_BYTES_MAX: usize = 32 << 20;

/// The member that names a blob.
pub const BLOB_MEMBER: &str = "$blob";

/// The text that each reference contains, unless a character of the name is escaped.
static NAME: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(r#"$blob""#));

/// The beginnings of the escapes of `$`, and of `b`, `l` and `o`.
static ESCAPES: LazyLock<[Finder<'_>; 2]> =
    LazyLock::new(|| [Finder::new(r"\u002"), Finder::new(r"\u006")]);

/// A reference to a blob in JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobRef {
    /// The blob's digest.
    pub sha256: Digest,
    /// The offset of the member's name in the text, or `None` if the text is the member's value.
    at: Option<usize>,
}

impl BlobRef {
    /// Returns the references in JSON text, in order.
    pub fn all_in(text: &str) -> impl Iterator<Item = Self> {
        let bytes = text.as_bytes();
        let has_escape = || ESCAPES.iter().any(|escape| escape.find(bytes).is_some());
        let may_be_named =
            NAME.find(bytes).is_some() || memchr(b'\\', bytes).is_some() && has_escape();
        let mut tokens = Tokens::new(if may_be_named { text } else { "" }).peekable();
        std::iter::from_fn(move || {
            loop {
                let (at, token) = tokens.next()?;
                if let Token::Name(name) = token
                    && json::decode(name) == BLOB_MEMBER
                    && let Some((_, Token::String(value))) = tokens.peek()
                    && let Some(sha256) = Self::digest(value)
                {
                    return Some(Self { sha256, at: Some(at) });
                }
            }
        })
    }

    /// Returns the references in the value of a member of this name, in order.
    pub fn all_under(name: Option<&str>, text: &str) -> impl Iterator<Item = Self> {
        let is_named = name == Some(BLOB_MEMBER) && text.starts_with('"');
        let own = Some(text).filter(|_| is_named).and_then(Self::digest);
        let own = own.map(|sha256| Self { sha256, at: None });
        own.into_iter().chain(Self::all_in(text))
    }

    /// Returns the digest that a string names, given its literal. Upper-case digits name the same blob.
    fn digest(literal: &str) -> Option<Digest> {
        // Of a longer literal each character may be escaped.
        const LITERAL_MAX: usize = 2 + 64 * r"\u0000".len();
        if literal.len() > LITERAL_MAX {
            return None;
        }
        Digest::from_hex(&json::decode(literal).to_ascii_lowercase())
    }

    /// Returns the JSON pointer (RFC 6901) of the reference in its text.
    #[must_use]
    pub fn pointer(&self, text: &str) -> String {
        let Some(end) = self.at else { return String::new() };
        let mut levels = Vec::new();
        for (at, token) in Tokens::new(text) {
            let is_value =
                !matches!(token, Token::Name(_) | Token::ObjectClose | Token::ArrayClose);
            if is_value && let Some(Level::Array(begun)) = levels.last_mut() {
                *begun += 1;
            }
            match token {
                Token::ObjectOpen => levels.push(Level::Object("")),
                Token::ArrayOpen => levels.push(Level::Array(0)),
                Token::ObjectClose | Token::ArrayClose => drop(levels.pop()),
                Token::Name(name) => {
                    if let Some(Level::Object(current)) = levels.last_mut() {
                        *current = name;
                    }
                }
                Token::String(_) | Token::Number(_) | Token::Word(_) => {}
            }
            if at == end {
                break;
            }
        }
        levels.iter().map(Level::step).collect()
    }
}

/// A level of nesting.
enum Level<'a> {
    /// An object, with the literal of its last name.
    Object(&'a str),
    /// An array, with the number of elements that have begun.
    Array(usize),
}

impl Level<'_> {
    /// Returns the step of a pointer into this level.
    fn step(&self) -> String {
        match self {
            Self::Object(name) => {
                format!("/{}", json::decode(name).replace('~', "~0").replace('/', "~1"))
            }
            Self::Array(begun) => format!("/{}", begun.saturating_sub(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn pointers(text: &str) -> Vec<String> {
        BlobRef::all_in(text).map(|found| found.pointer(text)).collect()
    }

    #[test]
    fn references_at_any_place_have_pointers() {
        let text = format!(
            r#"{{"a":[1,{{"$blob":"{HEX}","name":"x"}}],"b~/":{{"$blob":"{HEX}"}},"$blob":"{HEX}","c":[[],[{{"$blob" : "{HEX}"}}]]}}"#
        );
        let expected = ["/a/1/$blob", "/b~0~1/$blob", "/$blob", "/c/1/0/$blob"];
        assert_eq!(pointers(&text), expected);
        let digest = Digest::from_hex(HEX).unwrap();
        assert!(BlobRef::all_in(&text).all(|found| found.sha256 == digest));
    }

    #[test]
    fn escapes_and_upper_case_digits_name_the_same_blob() {
        let upper = HEX.to_uppercase();
        let escape = |hex: &str| -> String {
            hex.chars().map(|digit| format!(r"\u{:04x}", u32::from(digit))).collect()
        };
        let (escaped, all) = (escape("0") + &HEX[1..], escape(HEX));
        for (name, hex) in [
            (r"\u0024blob", HEX),
            (r"$\u0062lob", HEX),
            ("$blob", &upper),
            ("$blob", &escaped),
            ("$blob", &all),
        ] {
            let text = format!(r#"{{"{name}":"{hex}"}}"#);
            assert_eq!(pointers(&text), ["/$blob"], "{text}");
        }
    }

    #[test]
    fn anything_else_under_the_name_is_plain_data() {
        for value in ["null", "1", r#""""#, r#"{"a":1}"#, r#"["x"]"#, r#""0123""#] {
            assert_eq!(pointers(&format!(r#"{{"$blob":{value}}}"#)), [""; 0]);
        }
        let long =
            format!(r#"{{"$blob":"{HEX}0","blob":"{HEX}","a":"$blob","b":["$blob","{HEX}"]}}"#);
        assert_eq!(pointers(&long), [""; 0]);
        assert_eq!(pointers(&format!(r#"{{"$blob":{{"$blob":"{HEX}"}}}}"#)), ["/$blob/$blob"]);
    }

    /// The references of a parsed value, the simple way.
    fn expected(value: &serde_json::Value, pointer: &str, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(members) => {
                for (name, member) in members {
                    let step = name.replace('~', "~0").replace('/', "~1");
                    let at = format!("{pointer}/{step}");
                    let text = member.as_str().unwrap_or_default();
                    if name == BLOB_MEMBER && Digest::from_hex(text).is_some() {
                        found.push(at);
                    } else {
                        expected(member, &at, found);
                    }
                }
            }
            serde_json::Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    expected(element, &format!("{pointer}/{index}"), found);
                }
            }
            serde_json::Value::Null
            | serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::String(_) => {}
        }
    }

    fn values() -> impl Strategy<Value = serde_json::Value> {
        let scalar = prop_oneof![Just(HEX.into()), Just("$blob".into()), Just(1.into())];
        scalar.prop_recursive(4, 32, 4, |inner| {
            let name = prop_oneof![Just("$blob"), Just("a"), Just("~/")];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map(name.prop_map(String::from), inner, 0..3)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn references_are_those_of_the_parsed_value(value in values()) {
            let mut found = Vec::new();
            expected(&value, "", &mut found);
            prop_assert_eq!(pointers(&value.to_string()), found);
        }
    }
}
