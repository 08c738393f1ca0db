//! Session patterns of a token: names in which `*` matches any characters.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use blackboard_board::{NAME_BYTES_MAX, SessionName};

/// A pattern of session names: `*` matches any characters, or none; any other character matches itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionPattern(String);

/// An invalid pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a session pattern must be 1 to {NAME_BYTES_MAX} bytes without control characters or '/'; \
        * matches any sequence of characters"
)]
pub struct InvalidPattern;

impl SessionPattern {
    /// Returns the pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if every name matches.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0.bytes().all(|byte| byte == b'*')
    }

    /// Returns the only name that matches, if the pattern has no star.
    #[must_use]
    pub fn name(&self) -> Option<SessionName> {
        if self.0.contains('*') { None } else { self.0.parse().ok() }
    }

    /// Returns the common prefix of all matching names.
    #[must_use]
    pub fn stem(&self) -> &str {
        self.0.split('*').next().unwrap_or_default()
    }

    /// Returns true if the name matches.
    #[must_use]
    pub fn matches(&self, session: &SessionName) -> bool {
        matches(self.0.as_bytes(), session.as_str().as_bytes())
    }
}

/// Matches by extending only the last star, which suffices: the time is at most the product of the lengths. Bytes
/// suffice too, since a star may end only where the pattern goes on with a whole character.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, from));
                at += 1;
            }
            Some(byte) if name.get(from) == Some(byte) => (at, from) = (at + 1, from + 1),
            Some(_) | None => match star {
                Some((after, taken)) => {
                    star = Some((after, taken + 1));
                    (at, from) = (after, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|byte| *byte == b'*')
}

impl fmt::Display for SessionPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SessionPattern {
    type Error = InvalidPattern;

    fn try_from(text: String) -> Result<Self, InvalidPattern> {
        text.parse()
    }
}

impl From<SessionPattern> for String {
    fn from(pattern: SessionPattern) -> Self {
        pattern.0
    }
}

impl FromStr for SessionPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        let fits = (1..=NAME_BYTES_MAX).contains(&text.len());
        let plain = !text.chars().any(|c| c.is_control() || c == '/');
        (fits && plain).then(|| Self(text.to_owned())).ok_or(InvalidPattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, name: &str, expected: bool) {
        let pattern: SessionPattern = pattern.parse().unwrap();
        assert_eq!(pattern.matches(&name.parse().unwrap()), expected, "{pattern} {name}");
    }

    #[test]
    fn a_star_stands_for_any_characters_and_all_else_for_itself() {
        for (pattern, name, expected) in [
            ("*", "a", true),
            ("demo", "demo", true),
            ("demo", "demo-1", false),
            ("demo", "Demo", false),
            ("demo-*", "demo-1", true),
            ("demo-*", "demo-", true),
            ("demo-*", "demo", false),
            ("*-1", "a-1-1", true),
            ("*-1", "a-1-2", false),
            ("a*b*c", "abbbc", true),
            ("a*b*c", "acb", false),
            ("a.c", "abc", false),
            ("[a]?", "a", false),
            ("日*語", "日本語", true),
            ("**", "x", true),
        ] {
            check(pattern, name, expected);
        }
    }

    #[test]
    fn a_pattern_begins_with_what_stands_before_its_first_star() {
        for (pattern, stem) in [("demo", "demo"), ("demo-*-1*", "demo-"), ("*", ""), ("*-1", "")] {
            let pattern: SessionPattern = pattern.parse().unwrap();
            assert_eq!(pattern.stem(), stem, "{pattern}");
        }
    }

    #[test]
    fn many_stars_take_no_long_time() {
        let pattern = "*a".repeat(128);
        check(&pattern, &"a".repeat(255), true);
        check(&pattern, &"b".repeat(256), false);
    }

    #[test]
    fn what_no_name_can_match_is_no_pattern() {
        for text in ["", "a/b", "a\nb", &"*".repeat(257)] {
            assert_eq!(text.parse::<SessionPattern>(), Err(InvalidPattern), "{text:?}");
        }
    }
}
