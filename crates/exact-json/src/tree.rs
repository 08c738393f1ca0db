//! A parsed document that can be changed, and equality of values.
//!
//! No tree is deeper than [`DEPTH_MAX`], so the recursion here and in `Drop` is safe.

use std::borrow::Cow;

use super::DEPTH_MAX;
use super::elements::Elements;
use super::members::Members;
use super::number::Exact;
use super::scan::{Kind, kind};
use super::string;
use super::tokens::{Token, Tokens};

/// A parsed document. Every number, string and name keeps its text.
#[derive(Clone, Debug)]
pub enum Tree<'a> {
    /// The text of a string, number or word.
    Scalar(&'a str),
    // In boxes, so that the many scalars of a document stay small.
    /// An array.
    Array(Box<Elements<'a>>),
    /// An object.
    Object(Box<Members<'a>>),
}

/// The error of a text nested more than [`DEPTH_MAX`] levels deep.
#[derive(Debug)]
pub struct TooDeep;

/// The size of a value.
#[derive(Clone, Copy)]
pub struct Measure {
    /// The approximate length of its text without white space, in bytes.
    pub bytes: usize,
    /// The number of nested levels, 0 for a scalar.
    pub levels: usize,
}

impl<'a> Tree<'a> {
    pub(super) const NULL: Self = Self::Scalar("null");

    /// Parses a document. A repeated name keeps its last value, at the place of the first.
    ///
    /// # Errors
    ///
    /// [`TooDeep`] beyond [`DEPTH_MAX`] levels.
    pub fn parse(text: &'a str) -> Result<Self, TooDeep> {
        let mut tokens = Tokens::new(text);
        match tokens.next() {
            Some((_, first)) => Self::read(first, &mut tokens, DEPTH_MAX),
            None => Ok(Self::NULL),
        }
    }

    fn read(first: Token<'a>, tokens: &mut Tokens<'a>, levels: usize) -> Result<Self, TooDeep> {
        match first {
            Token::ObjectOpen => {
                let levels = levels.checked_sub(1).ok_or(TooDeep)?;
                let mut members = Members::default();
                while let Some((_, Token::Name(name))) = tokens.next() {
                    let (_, first) = tokens.next().unwrap_or((0, Token::Word("null")));
                    members.set(name.into(), Self::read(first, tokens, levels)?);
                }
                Ok(Self::Object(Box::new(members)))
            }
            Token::ArrayOpen => {
                let levels = levels.checked_sub(1).ok_or(TooDeep)?;
                let mut elements = Vec::new();
                while let Some((_, first)) = tokens.next().filter(|(_, t)| *t != Token::ArrayClose)
                {
                    elements.push(Self::read(first, tokens, levels)?);
                }
                Ok(Self::Array(Box::new(Elements::Flat(elements))))
            }
            Token::String(text) | Token::Number(text) | Token::Word(text) => Ok(Self::Scalar(text)),
            // Cannot occur in valid JSON.
            Token::Name(_) | Token::ObjectClose | Token::ArrayClose => Ok(Self::NULL),
        }
    }

    /// Appends the document without any white space.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Scalar(text) => out.push_str(text),
            Self::Array(elements) => {
                out.push('[');
                for (position, element) in elements.iter().enumerate() {
                    separate(position, out);
                    element.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (position, (literal, value)) in members.iter().enumerate() {
                    separate(position, out);
                    out.push_str(literal);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// Appends the form that all equal values share.
    fn write_canonical(&self, out: &mut String) {
        match self {
            Self::Scalar(text) => match (kind(text), Exact::parse(text)) {
                (Kind::Number, Some(number)) => out.push_str(&number.to_string()),
                (Kind::String, _) => string::quote(&string::decode(text), out),
                _ => out.push_str(text),
            },
            Self::Array(elements) => {
                out.push('[');
                for (position, element) in elements.iter().enumerate() {
                    separate(position, out);
                    element.write_canonical(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                let named = members.iter().map(|(literal, value)| (string::decode(literal), value));
                let mut named: Vec<_> = named.collect();
                named.sort_by(|(a, _), (b, _)| a.cmp(b));
                out.push('{');
                for (position, (name, value)) in named.into_iter().enumerate() {
                    separate(position, out);
                    string::quote(&name, out);
                    out.push(':');
                    value.write_canonical(out);
                }
                out.push('}');
            }
        }
    }

    /// Returns true if both are the same value: numbers compared by value, members in any order.
    pub fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Scalar(a), Self::Scalar(b)) => equal_scalars(a, b),
            (Self::Array(a), Self::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.equals(b))
            }
            (Self::Object(a), Self::Object(b)) => {
                let same = |(literal, value): (&str, &Self)| {
                    b.get(&string::decode(literal)).is_some_and(|other| value.equals(other))
                };
                a.len() == b.len() && a.iter().all(same)
            }
            (Self::Scalar(_) | Self::Array(_) | Self::Object(_), _) => false,
        }
    }

    /// Measures the whole value.
    pub fn measure(&self) -> Measure {
        match self {
            Self::Scalar(text) => Measure { bytes: text.len(), levels: 0 },
            Self::Array(elements) => container(elements.iter().map(Self::measure)),
            Self::Object(members) => container(members.iter().map(|(literal, value)| {
                let Measure { bytes, levels } = value.measure();
                Measure { bytes: bytes + literal.len() + 1, levels }
            })),
        }
    }
}

fn separate(position: usize, out: &mut String) {
    if position > 0 {
        out.push(',');
    }
}

fn container(inside: impl Iterator<Item = Measure>) -> Measure {
    let empty = Measure { bytes: 2, levels: 1 };
    inside.fold(empty, |sum, part| Measure {
        bytes: sum.bytes + part.bytes + 1,
        levels: sum.levels.max(part.levels + 1),
    })
}

fn equal_scalars(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    match (kind(a), kind(b)) {
        (Kind::Number, Kind::Number) => Exact::parse(a) == Exact::parse(b),
        (Kind::String, Kind::String) => string::decode(a) == string::decode(b),
        _ => false,
    }
}

/// Returns one text for all texts of a value that are [`equal`]: without white space, members by name, the fewest escapes,
/// and one form of each number. A text deeper than [`DEPTH_MAX`] is returned as it is.
#[must_use]
pub fn canonical(text: &str) -> Cow<'_, str> {
    match kind(text) {
        Kind::Object | Kind::Array => match Tree::parse(text) {
            Ok(tree) => {
                let mut out = String::with_capacity(text.len());
                tree.write_canonical(&mut out);
                Cow::Owned(out)
            }
            Err(TooDeep) => Cow::Borrowed(text),
        },
        Kind::String if !text.contains('\\') => Cow::Borrowed(text),
        Kind::Number | Kind::String | Kind::Bool | Kind::Null => {
            let mut out = String::new();
            Tree::Scalar(text).write_canonical(&mut out);
            Cow::Owned(out)
        }
    }
}

/// Returns true if two texts are the same JSON value: numbers compared by value, members in any order.
#[must_use]
pub fn equal(a: &str, b: &str) -> bool {
    match (Tree::parse(a), Tree::parse(b)) {
        (Ok(a), Ok(b)) => a.equals(&b),
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compact(text: &str) -> String {
        let mut out = String::new();
        Tree::parse(text).unwrap().write(&mut out);
        out
    }

    #[test]
    fn a_tree_keeps_every_text_and_drops_the_white_space() {
        let text = " {\r\n\"z\" : [ 1E5 , -0, 1.50 ,\"\\u0041 \\/\" ], \"\\u0061\":{ } , \"b\":[ ] , \"c\":null}\n";
        assert_eq!(compact(text), r#"{"z":[1E5,-0,1.50,"\u0041 \/"],"\u0061":{},"b":[],"c":null}"#);
        assert_eq!(compact("12"), "12");
    }

    #[test]
    fn of_a_repeated_name_the_last_value_stands_at_the_first_place() {
        assert_eq!(
            compact(r#"{"a":1,"b":2,"\u0061":{"x":0,"x":9},"c":3,"b":4}"#),
            r#"{"a":{"x":9},"b":4,"c":3}"#
        );
        let many: String = (0..1_000).map(|i| format!("\"k{}\":{i},", i % 100)).collect();
        let one_each: String = (0..100).map(|i| format!("\"k{i}\":{},", 900 + i)).collect();
        assert_eq!(compact(&format!("{{{many}\"z\":0}}")), format!("{{{one_each}\"z\":0}}"));
    }

    #[test]
    fn a_tree_is_no_deeper_than_the_bound() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(compact(&nested(DEPTH_MAX)), nested(DEPTH_MAX));
        assert!(Tree::parse(&nested(DEPTH_MAX + 1)).is_err());
        assert!(Tree::parse(&"{\"a\":".repeat(1_000_000)).is_err());
    }

    #[test]
    fn equality_is_by_value() {
        for (a, b) in [
            ("{\"a\":1,\"b\":[2]}", " {\"b\":[2.0], \"a\":1e0}"),
            (r#"{"\u0061":"\u00e9"}"#, "{\"a\":\"é\"}"),
            ("{\"a\":1,\"a\":2}", "{\"a\":2}"),
            ("-0", "0.0"),
        ] {
            assert!(equal(a, b), "{a} {b}");
            assert_eq!(canonical(a), canonical(b));
        }
        for (a, b) in [
            ("[1,2]", "[2,1]"),
            ("{\"a\":1}", "{\"a\":1,\"b\":1}"),
            ("{\"a\":1}", "{\"b\":1}"),
            ("1", "true"),
            ("1", "\"1\""),
            ("null", "false"),
            ("[]", "{}"),
            ("9007199254740993", "9007199254740992.0"),
        ] {
            assert!(!equal(a, b) && !equal(b, a), "{a} {b}");
            assert_ne!(canonical(a), canonical(b));
        }
    }

    #[test]
    fn large_objects_are_compared_in_good_time() {
        let object = |range: &mut dyn Iterator<Item = u32>| {
            let members: Vec<_> = range.map(|i| format!("\"k{i}\":{i}")).collect();
            format!("{{{}}}", members.join(","))
        };
        let forward = object(&mut (0..100_000));
        let backward = object(&mut (0..100_000).rev());
        assert!(equal(&forward, &backward));
        assert_eq!(compact(&forward), forward);
    }
}
