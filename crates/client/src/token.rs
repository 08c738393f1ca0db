//! The token of requests: from a file or a variable, never from an argument and never in a text.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hyper::header::HeaderValue;

/// The maximum length of a token, in bytes.
pub const TOKEN_BYTES_MAX: usize = 4 << 10;

/// A token that fits a header.
#[derive(Clone)]
pub struct Token(String);

/// A text that is not a token; the text is not in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidToken {
    /// There is nothing but white space.
    #[error("the token is empty")]
    Empty,
    /// The token has characters that no token has.
    #[error("the token has invalid characters, such as spaces")]
    Characters,
    /// The token is too long.
    #[error("the token has more than {TOKEN_BYTES_MAX} bytes")]
    TooLong,
}

/// A failure to read a token from a file.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the token from {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file holds no token.
    #[error("{} holds no token", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: InvalidToken,
    },
}

impl Token {
    /// Reads a token from a file, white space around it aside.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or holds no token.
    pub fn from_file(path: &Path) -> Result<Self, TokenError> {
        let mut text = String::new();
        // One byte more than a token with its line end may have.
        let most = u64::try_from(TOKEN_BYTES_MAX + 3).unwrap_or(u64::MAX);
        File::open(path)
            .and_then(|file| file.take(most).read_to_string(&mut text))
            .map_err(|source| TokenError::Unreadable { path: path.to_owned(), source })?;
        text.parse().map_err(|source| TokenError::Invalid { path: path.to_owned(), source })
    }

    /// Returns the value of the header `Authorization`.
    #[must_use]
    pub fn authorization(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Removes the token from a text that others wrote.
    #[must_use]
    pub fn removed_from(&self, text: &str) -> String {
        text.replace(&self.0, "***")
    }
}

impl FromStr for Token {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let text = text.trim();
        if text.is_empty() {
            Err(InvalidToken::Empty)
        } else if text.len() > TOKEN_BYTES_MAX {
            Err(InvalidToken::TooLong)
        } else if text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidToken::Characters)
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_holds_a_token_and_a_line_end() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("token");
        fs::write(&path, "bb_secret\r\n").unwrap();
        let token = Token::from_file(&path).unwrap();
        assert_eq!(token.authorization().unwrap().as_bytes(), b"Bearer bb_secret");
        assert_eq!(token.removed_from("a bb_secret b"), "a *** b");
        assert!(!format!("{token:?} {:?}", token.authorization()).contains("secret"));
    }

    #[test]
    fn what_is_no_token_is_refused_without_being_shown() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("token");
        let long = "a".repeat(TOKEN_BYTES_MAX + 1);
        for (text, expected) in [
            (" \n", InvalidToken::Empty),
            ("two words", InvalidToken::Characters),
            ("two\nlines", InvalidToken::Characters),
            ("sécret", InvalidToken::Characters),
            (&long, InvalidToken::TooLong),
        ] {
            fs::write(&path, text).unwrap();
            let refused = Token::from_file(&path).unwrap_err();
            assert!(matches!(refused, TokenError::Invalid { source, .. } if source == expected));
        }
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(matches!(Token::from_file(&path), Err(TokenError::Unreadable { .. })));
        assert!(Token::from_file(&home.path().join("absent")).is_err());
    }
}
