//! Scans of a document without parsing it: its kind, members and elements.

use super::string;
use super::tokens::{is_space, skip, value_end};

/// The kind of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the six kinds of JSON")]
pub enum Kind {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
}

impl Kind {
    /// Returns the kind with its article, for messages.
    #[must_use]
    pub const fn with_article(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::String => "a string",
            Self::Number => "a number",
            Self::Bool => "a boolean",
            Self::Null => "null",
        }
    }
}

/// Returns the kind of the value in this text.
#[must_use]
pub fn kind(text: &str) -> Kind {
    let bytes = text.as_bytes();
    match bytes.get(skip(bytes, 0, is_space)) {
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::Array,
        Some(b'"') => Kind::String,
        Some(b't' | b'f') => Kind::Bool,
        Some(b'-' | b'0'..=b'9') => Kind::Number,
        _ => Kind::Null,
    }
}

/// A member of an object, as written in the object's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The name's literal, with its quotes; [`decode`](super::decode) gives the name.
    pub name: &'a str,
    /// The value's text.
    pub value: &'a str,
    /// The offset of the name in the given text, in bytes.
    pub name_at: usize,
    /// The offset of the value in the given text, in bytes.
    pub value_at: usize,
}

/// Iterates over the members of an object in order, repeated names included. Empty if the text is not an object.
pub fn members(object: &str) -> impl Iterator<Item = Member<'_>> + Clone {
    Members(Inside::new(object, b'{'))
}

/// Returns the object with only the members whose decoded name `keep` accepts, in their order.
#[must_use]
pub fn select(object: &str, keep: impl Fn(&str) -> bool) -> String {
    let mut out = String::from("{");
    for member in members(object).filter(|member| keep(&string::decode(member.name))) {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(member.name);
        out.push(':');
        out.push_str(member.value);
    }
    out.push('}');
    out
}

/// Iterates over the elements of an array in order. Empty if the text is not an array.
pub fn elements(array: &str) -> impl Iterator<Item = &str> + Clone {
    Elements(Inside::new(array, b'['))
}

/// Returns the value of the last member with this name, like a parser that keeps one member of each name.
#[must_use]
pub fn get<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    members(object).filter(|member| string::is(member.name, name)).last().map(|member| member.value)
}

#[derive(Clone)]
struct Members<'a>(Inside<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        let (name_at, name) = self.0.value()?;
        let (value_at, value) = self.0.value()?;
        Some(Member { name, value, name_at, value_at })
    }
}

#[derive(Clone)]
struct Elements<'a>(Inside<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.0.value().map(|(_, value)| value)
    }
}

/// The inside of a container, read value by value.
#[derive(Clone)]
struct Inside<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Inside<'a> {
    fn new(text: &'a str, open: u8) -> Self {
        let start = skip(text.as_bytes(), 0, is_space);
        let at = match text.as_bytes().get(start) {
            Some(first) if *first == open => start + 1,
            _ => text.len(),
        };
        Self { text, at }
    }

    fn value(&mut self) -> Option<(usize, &'a str)> {
        let bytes = self.text.as_bytes();
        let start = skip(bytes, self.at, |b| is_space(b) || matches!(b, b',' | b':'));
        if matches!(bytes.get(start)?, b'}' | b']') {
            self.at = bytes.len();
            return None;
        }
        self.at = value_end(bytes, start);
        Some((start, self.text.get(start..self.at)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_told_by_its_first_character() {
        for (text, expected) in [
            (" {}", Kind::Object),
            ("[1]", Kind::Array),
            ("\"x\"", Kind::String),
            ("-1", Kind::Number),
            ("0.5", Kind::Number),
            ("\n true", Kind::Bool),
            ("false", Kind::Bool),
            ("null", Kind::Null),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn members_come_in_order_with_their_places_and_repeats() {
        let text = " { \"a\" : 1,\"b\":[{\"a\":2}] ,\n\"a\":\"}\" } ";
        let found: Vec<_> = members(text).collect();
        let pairs: Vec<_> = found.iter().map(|m| (m.name, m.value)).collect();
        assert_eq!(pairs, [("\"a\"", "1"), ("\"b\"", "[{\"a\":2}]"), ("\"a\"", "\"}\"")]);
        for member in found {
            assert!(text[member.name_at..].starts_with(member.name));
            assert!(text[member.value_at..].starts_with(member.value));
        }
        assert_eq!(members("{}").count(), 0);
        assert_eq!(members("[1,2]").count(), 0);
    }

    #[test]
    fn elements_come_in_order() {
        let found: Vec<_> = elements(" [ 1 , [2,3],\"]\",{} ] ").collect();
        assert_eq!(found, ["1", "[2,3]", "\"]\"", "{}"]);
        assert_eq!(elements("[ ]").count(), 0);
        assert_eq!(elements("{\"a\":1}").count(), 0);
    }

    #[test]
    fn the_last_member_of_a_name_is_found_in_any_spelling() {
        let text = r#"{"a":1,"\u0061":2,"b":{"a":3},"\\":4,"é":5}"#;
        assert_eq!(get(text, "a"), Some("2"));
        assert_eq!(get(text, "\\"), Some("4"));
        assert_eq!(get(text, "é"), Some("5"));
        assert_eq!(get(text, "\\u0061"), None);
        assert_eq!(get(text, "c"), None);
        assert_eq!(get("[\"a\",1]", "a"), None);
    }
}
