//! Names that clients choose, validated once, by their parser.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The maximum length of a name, in bytes of UTF-8.
pub const NAME_BYTES_MAX: usize = 256;

/// The reason why a text is not a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// The name is empty.
    #[error("a name must not be empty")]
    Empty,
    /// The name is longer than [`NAME_BYTES_MAX`].
    #[error("the name has {bytes} bytes of UTF-8; the limit is {NAME_BYTES_MAX}")]
    TooLong {
        /// The length.
        bytes: usize,
    },
    /// The name contains a control character or a slash.
    #[error("a name must not contain control characters or slashes, found U+{:04X} at byte {offset}", u32::from(*found))]
    Forbidden {
        /// The first forbidden character.
        found: char,
        /// The position of the character, in bytes.
        offset: usize,
    },
    /// The name is `.` or `..`.
    #[error("a name must not be '.' or '..'")]
    Dots,
    /// The name has only digits, like a revision.
    #[error("a checkpoint's name must not consist of digits only: a number is a revision")]
    OnlyDigits,
}

fn check(text: &str) -> Result<(), InvalidName> {
    if text.is_empty() {
        return Err(InvalidName::Empty);
    }
    if text.len() > NAME_BYTES_MAX {
        return Err(InvalidName::TooLong { bytes: text.len() });
    }
    if matches!(text, "." | "..") {
        return Err(InvalidName::Dots);
    }
    match text.char_indices().find(|(_, c)| c.is_control() || *c == '/') {
        Some((offset, found)) => Err(InvalidName::Forbidden { found, offset }),
        None => Ok(()),
    }
}

/// Rejects names of digits only, which would look like revisions.
fn check_checkpoint(text: &str) -> Result<(), InvalidName> {
    check(text)?;
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { Err(InvalidName::OnlyDigits) } else { Ok(()) }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns the name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                $check(text).map(|()| Self(text.into()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                (*name.0).to_owned()
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

name! {
    /// The name of a session: 1 to 256 bytes of UTF-8 without control characters and `/`, not `.` or `..`.
    SessionName, check
}

impl SessionName {
    /// Reads a name that is kept as bytes. `None` if these are not a name.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok()?.parse().ok()
    }
}

name! {
    /// The name of a prompt profile, with the rules of [`SessionName`].
    ProfileName, check
}

name! {
    /// The name of an agent, with the rules of [`SessionName`].
    AgentName, check
}

name! {
    /// The name of a checkpoint: the rules of [`SessionName`], and at least one character that is not a digit.
    CheckpointName, check_checkpoint
}

name! {
    /// The name of a token, with the rules of [`SessionName`].
    TokenName, check
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_without_slashes_and_controls_is_a_name() {
        for text in ["sess_12345", "a b", "会话", "…", ".a", "100%", "a,b", &"x".repeat(256)] {
            assert_eq!(text.parse::<SessionName>().map(String::from), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_is_no_name_says_why() {
        let why = |text: &str| text.parse::<AgentName>().unwrap_err();
        assert_eq!(why(""), InvalidName::Empty);
        assert_eq!(why("."), InvalidName::Dots);
        assert_eq!(why(".."), InvalidName::Dots);
        assert_eq!(why("a/b"), InvalidName::Forbidden { found: '/', offset: 1 });
        assert_eq!(why("a\u{7f}"), InvalidName::Forbidden { found: '\u{7f}', offset: 1 });
        assert_eq!(why("\u{85}"), InvalidName::Forbidden { found: '\u{85}', offset: 0 });
        assert_eq!(why(&"é".repeat(129)), InvalidName::TooLong { bytes: 258 });
    }
}
