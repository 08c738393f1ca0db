//! The server's public URL, for addresses opened by third parties.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use axum::http::Uri;

/// The maximum length of a public URL, in bytes.
pub const PUBLIC_URL_BYTES_MAX: usize = 2 << 10;

/// A URL such as `https://board.example.org/team`, without a trailing slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(Arc<str>);

/// An invalid public URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPublicUrl {
    /// The URL is too long.
    #[error("the URL has {bytes} bytes, more than {PUBLIC_URL_BYTES_MAX}")]
    TooLong {
        /// The length of the URL.
        bytes: usize,
    },
    /// The text is not a URL, or needs percent-encoding.
    #[error("the text is not a URL such as https://board.example.org/team")]
    Malformed,
    /// The scheme is neither `http` nor `https`.
    #[error("the URL must begin with http:// or https://")]
    Scheme,
    /// The host is missing, or the port is invalid.
    #[error("the URL must have a host; a port must be from 1 to 65535")]
    Host,
    /// The URL contains a user name or a password.
    #[error("the URL must not contain a user name or a password")]
    UserInfo,
    /// The URL has a query or a fragment.
    #[error("the URL must not have a query or a fragment")]
    BeyondPath,
    /// The path has a segment that clients would remove.
    #[error("the URL's path must not have an empty, '.' or '..' segment")]
    Path,
}

impl FromStr for PublicUrl {
    type Err = InvalidPublicUrl;

    fn from_str(text: &str) -> Result<Self, InvalidPublicUrl> {
        if text.len() > PUBLIC_URL_BYTES_MAX {
            return Err(InvalidPublicUrl::TooLong { bytes: text.len() });
        }
        if text.contains(['?', '#']) {
            return Err(InvalidPublicUrl::BeyondPath);
        }
        let uri: Uri = text.parse().map_err(|_| InvalidPublicUrl::Malformed)?;
        let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https"));
        let scheme = scheme.ok_or(InvalidPublicUrl::Scheme)?;
        let authority = uri.authority().ok_or(InvalidPublicUrl::Host)?;
        if authority.as_str().contains('@') {
            return Err(InvalidPublicUrl::UserInfo);
        }
        let (host, rest) = (authority.host(), authority.as_str().strip_prefix(authority.host()));
        let port = rest.and_then(|rest| rest.strip_prefix(':'));
        let is_port = |port: &str| {
            port.bytes().all(|b| b.is_ascii_digit()) && port.parse().is_ok_and(|port: u16| port > 0)
        };
        if host.is_empty() || !port.map_or(rest == Some(""), is_port) {
            return Err(InvalidPublicUrl::Host);
        }
        let path = uri.path().strip_suffix('/').unwrap_or(uri.path());
        if !path.bytes().all(is_of_path) || !is_encoded(path) {
            return Err(InvalidPublicUrl::Malformed);
        }
        let mut segments = path.split('/').skip(1);
        if segments.any(|segment| matches!(segment, "" | "." | "..")) {
            return Err(InvalidPublicUrl::Path);
        }
        Ok(Self(format!("{scheme}://{authority}{path}").into()))
    }
}

impl PublicUrl {
    /// Returns the text that complete addresses begin with.
    pub(crate) fn base(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

/// Returns true if a path may contain the byte (RFC 3986).
fn is_of_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@%".contains(&byte)
}

/// Returns true if two hexadecimal digits follow each percent sign.
fn is_encoded(path: &str) -> bool {
    path.split('%').skip(1).all(|after| {
        let digits = after.as_bytes().first_chunk::<2>();
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_address_is_kept_without_the_slash_at_its_end() {
        for (text, kept) in [
            ("https://board.example.org/team", "https://board.example.org/team"),
            ("https://board.example.org/", "https://board.example.org"),
            ("http://127.0.0.1:8733", "http://127.0.0.1:8733"),
            ("HTTPS://[::1]:1/a%20b/", "https://[::1]:1/a%20b"),
        ] {
            assert_eq!(text.parse::<PublicUrl>().map(|url| url.to_string()), Ok(kept.to_owned()));
        }
    }

    #[test]
    fn an_unusable_public_url_is_refused_with_the_reason() {
        let long = format!("https://a/{}", "x".repeat(PUBLIC_URL_BYTES_MAX));
        for (text, why) in [
            ("", InvalidPublicUrl::Malformed),
            ("https://", InvalidPublicUrl::Malformed),
            ("https://a b", InvalidPublicUrl::Malformed),
            ("https://a/b c", InvalidPublicUrl::Malformed),
            ("https://a/%2", InvalidPublicUrl::Malformed),
            ("https://a/\"", InvalidPublicUrl::Malformed),
            ("ftp://a", InvalidPublicUrl::Scheme),
            ("/a", InvalidPublicUrl::Scheme),
            ("board.example.org", InvalidPublicUrl::Scheme),
            ("https://:80", InvalidPublicUrl::Host),
            ("https://a:", InvalidPublicUrl::Host),
            ("https://a:0", InvalidPublicUrl::Host),
            ("https://me@a", InvalidPublicUrl::UserInfo),
            ("https://a/?b", InvalidPublicUrl::BeyondPath),
            ("https://a/#b", InvalidPublicUrl::BeyondPath),
            ("https://a//b", InvalidPublicUrl::Path),
            ("https://a/../b", InvalidPublicUrl::Path),
            (&long, InvalidPublicUrl::TooLong { bytes: long.len() }),
        ] {
            assert_eq!(text.parse::<PublicUrl>(), Err(why), "{text}");
        }
        // The URL parser refuses some of these first.
        for text in ["https://a:65536", "https://a:b", "https://[::1", "https://a\\b"] {
            assert!(text.parse::<PublicUrl>().is_err(), "{text}");
        }
    }
}
