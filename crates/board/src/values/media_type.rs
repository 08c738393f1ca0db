//! Media types of blobs (RFC 9110, section 8.3.1).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The maximum length of a media type with its parameters, in bytes.
pub const MEDIA_TYPE_BYTES_MAX: usize = 255;

/// The type of bytes of an unknown kind.
const UNKNOWN: &str = "application/octet-stream";

/// A media type with its parameters, in the spelling in which it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct MediaType(Arc<str>);

/// The text is not a media type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be a media type such as text/plain;charset=utf-8, in at most {MEDIA_TYPE_BYTES_MAX} visible ASCII characters"
)]
pub struct InvalidMediaType;

impl MediaType {
    /// Returns the type as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for MediaType {
    fn default() -> Self {
        Self(UNKNOWN.into())
    }
}

impl FromStr for MediaType {
    type Err = InvalidMediaType;

    fn from_str(text: &str) -> Result<Self, InvalidMediaType> {
        let text = text.trim_matches([' ', '\t']);
        let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
        let (main, sub) = essence.trim_end().split_once('/').ok_or(InvalidMediaType)?;
        let is_visible = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        let fits = text.len() <= MEDIA_TYPE_BYTES_MAX
            && is_token(main)
            && is_token(sub)
            && parameters.bytes().all(is_visible);
        if fits { Ok(Self(text.into())) } else { Err(InvalidMediaType) }
    }
}

impl TryFrom<String> for MediaType {
    type Error = InvalidMediaType;

    fn try_from(text: String) -> Result<Self, InvalidMediaType> {
        text.parse()
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns true for a token (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_char)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_keeps_its_spelling() {
        for text in ["text/plain", "Text/HTML; Charset=\"utf-8\"", "application/vnd.a+json;v=1"] {
            assert_eq!(format!(" {text}\t").parse::<MediaType>().unwrap().as_str(), text);
        }
        let long = format!("a/{}", "b".repeat(MEDIA_TYPE_BYTES_MAX));
        for text in ["", "text", "/", "a/", "/b", "a b/c", "a/b\r\nX: y", "a/b;c=é", &long] {
            assert_eq!(text.parse::<MediaType>(), Err(InvalidMediaType), "{text:?}");
        }
    }
}
