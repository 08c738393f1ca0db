//! Limits on valid JSON, so that Python and JavaScript clients can read it again.

use super::number::{is_integer, to_f64};
use super::tokens::{Token, Tokens};
use super::{pointer, string};

/// The maximum nesting of a document. All recursion in this crate relies on it.
pub const DEPTH_MAX: usize = 128;

/// The longest integer, in digits: `CPython`'s limit for turning text into `int` (`sys.int_info`).
pub const INTEGER_DIGITS_MAX: usize = 4_300;

/// An unsupported part of a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, {}: {reason}", place(pointer))]
pub struct Unsupported {
    /// The part as a JSON pointer; empty for the whole document.
    pub pointer: String,
    /// The line where the part begins, from 1.
    pub line: usize,
    /// The reason.
    pub reason: Reason,
}

impl Unsupported {
    /// Returns the fault with its pointer below this one.
    #[must_use]
    pub fn below(self, pointer: &str) -> Self {
        Self { pointer: format!("{pointer}{}", self.pointer), ..self }
    }
}

fn place(pointer: &str) -> &str {
    if pointer.is_empty() { "the whole value" } else { pointer }
}

/// The reason why a value is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// An object or array is inside too many others.
    #[error("the value is nested more than {depth_max} levels deep")]
    TooDeep {
        /// The maximum level. The outermost container has level 1.
        depth_max: usize,
    },
    /// A number with a fraction or an exponent is infinite as a double.
    #[error("the number does not fit a double")]
    NumberBeyondDouble,
    /// An integer has more than [`INTEGER_DIGITS_MAX`] digits.
    #[error("the integer has {digits} digits; the limit is {INTEGER_DIGITS_MAX}")]
    IntegerTooLong {
        /// The number of its digits.
        digits: usize,
    },
    /// A string or a member's name has half of a surrogate pair.
    #[error("the string contains an unpaired surrogate, which is not a character")]
    LoneSurrogate,
}

/// Finds the first unsupported part of a text, token by token. Its outermost container has level 1.
pub(super) fn find(text: &str, depth_max: usize) -> Result<(), Unsupported> {
    let mut path = Path::default();
    for (at, token) in Tokens::new(text) {
        path.step(token);
        if let Some(reason) = fault(token, path.0.len(), depth_max) {
            return Err(Unsupported {
                pointer: path.pointer(token),
                line: 1 + text.bytes().take(at).filter(|&b| b == b'\n').count(),
                reason,
            });
        }
    }
    Ok(())
}

fn fault(token: Token<'_>, depth: usize, depth_max: usize) -> Option<Reason> {
    match token {
        Token::ObjectOpen | Token::ArrayOpen => {
            (depth > depth_max).then_some(Reason::TooDeep { depth_max })
        }
        Token::Name(literal) | Token::String(literal) => {
            string::has_lone_surrogate(literal).then_some(Reason::LoneSurrogate)
        }
        Token::Number(text) if is_integer(text) => {
            let digits = text.trim_start_matches('-').len();
            (digits > INTEGER_DIGITS_MAX).then_some(Reason::IntegerTooLong { digits })
        }
        Token::Number(text) => to_f64(text).is_infinite().then_some(Reason::NumberBeyondDouble),
        Token::ObjectClose | Token::ArrayClose | Token::Word(_) => None,
    }
}

/// The open containers, outermost first, each with its current child.
#[derive(Default)]
struct Path<'a>(Vec<Level<'a>>);

enum Level<'a> {
    Object { name: &'a str },
    Array { begun: usize },
}

impl<'a> Path<'a> {
    fn step(&mut self, token: Token<'a>) {
        match token {
            Token::Name(name) => {
                if let Some(Level::Object { name: current }) = self.0.last_mut() {
                    *current = name;
                }
            }
            Token::ObjectClose | Token::ArrayClose => {
                self.0.pop();
            }
            Token::ObjectOpen => {
                self.begin();
                self.0.push(Level::Object { name: "" });
            }
            Token::ArrayOpen => {
                self.begin();
                self.0.push(Level::Array { begun: 0 });
            }
            Token::String(_) | Token::Number(_) | Token::Word(_) => self.begin(),
        }
    }

    /// Counts a value that begins in the innermost container, if that is an array.
    fn begin(&mut self) {
        if let Some(Level::Array { begun }) = self.0.last_mut() {
            *begun += 1;
        }
    }

    /// Returns the pointer of the value that begins with `token`, or of the member with that name.
    fn pointer(&self, token: Token<'_>) -> String {
        let opens = matches!(token, Token::ObjectOpen | Token::ArrayOpen);
        let levels = self.0.len() - usize::from(opens && !self.0.is_empty());
        let mut text = String::new();
        for level in self.0.iter().take(levels) {
            match level {
                Level::Object { name } => pointer::push(&string::decode(name), &mut text),
                Level::Array { begun } => {
                    pointer::push(&begun.saturating_sub(1).to_string(), &mut text);
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;

    fn refused(text: &str) -> (String, usize, Reason) {
        let unsupported = check(text, DEPTH_MAX).unwrap_err();
        (unsupported.pointer, unsupported.line, unsupported.reason)
    }

    #[test]
    fn numbers_that_python_reads_are_taken_in() {
        let long = "9".repeat(INTEGER_DIGITS_MAX);
        for text in [
            "1e308",
            "1.7976931348623158e308",
            "1e-400",
            "0e999999999999999999",
            &long,
            &format!("-{long}"),
            &format!("0.{}", "1".repeat(10_000)),
        ] {
            assert_eq!(check(text, DEPTH_MAX), Ok(()), "{text}");
        }
    }

    #[test]
    fn numbers_beyond_python_are_refused_with_their_place() {
        assert_eq!(
            refused("{\"a/b\":\n [0, {\"m~n\": \n-1e400}]}"),
            ("/a~1b/1/m~0n".to_owned(), 3, Reason::NumberBeyondDouble)
        );
        assert_eq!(refused("1.8E+308").2, Reason::NumberBeyondDouble);
        assert_eq!(refused(&format!("{}.0", "9".repeat(400))).2, Reason::NumberBeyondDouble);
        assert_eq!(
            refused(&format!("[-{}]", "7".repeat(4_301))),
            ("/0".to_owned(), 1, Reason::IntegerTooLong { digits: 4_301 })
        );
    }

    #[test]
    fn half_a_pair_is_refused_in_values_and_names() {
        assert_eq!(
            refused(r#"["a", {"b": "\ud800"}]"#),
            ("/1/b".to_owned(), 1, Reason::LoneSurrogate)
        );
        assert_eq!(
            refused(r#"{"a": {"\udc00": 1}}"#),
            ("/a/\u{fffd}".to_owned(), 1, Reason::LoneSurrogate)
        );
        assert_eq!(check(r#"{"\ud83d\ude80": "\ud83d\ude80"}"#, 9), Ok(()));
    }

    #[test]
    fn the_outermost_container_is_the_first_level() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(check(&nested(128), 128), Ok(()));
        assert_eq!(
            refused(&nested(129)),
            ("/0".repeat(128), 1, Reason::TooDeep { depth_max: 128 })
        );
        assert_eq!(check("1", 0), Ok(()));
        let whole = check("{}", 0).unwrap_err();
        assert_eq!(whole.pointer, "");
        assert_eq!(
            whole.to_string(),
            "line 1, the whole value: the value is nested more than 0 levels deep"
        );
        assert!(check(&nested(1_000_000), 128).is_err());
    }

    #[test]
    fn each_reason_is_found_wherever_it_stands() {
        let faults = [
            "1e400".to_owned(),
            "-12E999".to_owned(),
            format!("{}.5", "9".repeat(309)),
            "7".repeat(4_301),
            r#""\udfff""#.to_owned(),
            "[".repeat(9) + &"]".repeat(9),
        ];
        for fault in faults {
            for before in 0..40 {
                let text = format!("{{\"{}\":[{fault}]}}", "n".repeat(before));
                assert!(check(&text, 9).is_err(), "{text}");
            }
        }
    }

    #[test]
    fn siblings_do_not_add_to_the_depth() {
        assert_eq!(check("[[],{\"a\":[]},[{}],{}]", 3), Ok(()));
        assert_eq!(check("[[],{\"a\":[1,[]]}]", 3).unwrap_err().pointer, "/1/a/1");
    }
}
