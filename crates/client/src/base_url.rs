//! The server's URL, to which paths are appended.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use hyper::Uri;
use hyper::http::uri::Scheme;

/// The maximum length of a server's URL, in bytes.
pub const BASE_URL_BYTES_MAX: usize = 2 << 10;

/// A URL such as `http://127.0.0.1:8733` or `https://board.example.org/team`, without a trailing slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    text: String,
    is_tls: bool,
    is_loopback: bool,
}

/// An invalid server URL. None of the messages quotes the text, which may contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBaseUrl {
    /// The URL is too long.
    #[error("the URL has {bytes} bytes, more than {BASE_URL_BYTES_MAX}")]
    TooLong {
        /// The length of the URL.
        bytes: usize,
    },
    /// The text is not a URL.
    #[error("the text is not a URL such as http://127.0.0.1:8733 or https://board.example.org")]
    Malformed,
    /// The scheme is neither `http` nor `https`.
    #[error("the URL must begin with http:// or https://")]
    Scheme,
    /// The host is missing, or the port is invalid.
    #[error("the URL must have a host; a port must be from 1 to 65535")]
    Host,
    /// The URL contains a user name or a password.
    #[error(
        "the URL must not contain a user name or a password; a token goes into --token-file or BLACKBOARD_TOKEN"
    )]
    UserInfo,
    /// The URL has a query or a fragment.
    #[error("the URL must not have a query or a fragment")]
    BeyondPath,
}

impl BaseUrl {
    /// Returns the URL of a path with its query; the path begins with a slash.
    ///
    /// # Errors
    ///
    /// The path is not one that a URL may have.
    pub fn join(&self, path: &str) -> Result<Uri, InvalidBaseUrl> {
        format!("{}{path}", self.text).parse().map_err(|_| InvalidBaseUrl::Malformed)
    }

    /// Returns true if connections to the server use TLS.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Returns true if the host is this machine by its name or address.
    #[must_use]
    pub const fn is_loopback(&self) -> bool {
        self.is_loopback
    }
}

impl FromStr for BaseUrl {
    type Err = InvalidBaseUrl;

    fn from_str(text: &str) -> Result<Self, InvalidBaseUrl> {
        if text.len() > BASE_URL_BYTES_MAX {
            return Err(InvalidBaseUrl::TooLong { bytes: text.len() });
        }
        if text.contains(['?', '#']) {
            return Err(InvalidBaseUrl::BeyondPath);
        }
        let uri: Uri = text.parse().map_err(|_| InvalidBaseUrl::Malformed)?;
        let scheme = uri.scheme().ok_or(InvalidBaseUrl::Scheme)?;
        if *scheme != Scheme::HTTP && *scheme != Scheme::HTTPS {
            return Err(InvalidBaseUrl::Scheme);
        }
        let authority = uri.authority().ok_or(InvalidBaseUrl::Host)?;
        if authority.as_str().contains('@') {
            return Err(InvalidBaseUrl::UserInfo);
        }
        let host = authority.host();
        let port = authority.as_str().strip_prefix(host).unwrap_or_default();
        let is_port = |port: &str| port.parse().is_ok_and(|port: u16| port > 0);
        if host.is_empty() || !(port.is_empty() || port.strip_prefix(':').is_some_and(is_port)) {
            return Err(InvalidBaseUrl::Host);
        }
        Ok(Self {
            text: text.trim_end_matches('/').to_owned(),
            is_tls: *scheme == Scheme::HTTPS,
            is_loopback: is_loopback(host),
        })
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_address = bare.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    is_address || host.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_appended_to_the_servers_url() {
        for (text, expected) in [
            ("http://127.0.0.1:8733", "http://127.0.0.1:8733/mcp?a=b"),
            ("http://127.0.0.1:8733/", "http://127.0.0.1:8733/mcp?a=b"),
            ("https://board.example.org/team/", "https://board.example.org/team/mcp?a=b"),
            ("http://[::1]:1", "http://[::1]:1/mcp?a=b"),
        ] {
            let base: BaseUrl = text.parse().unwrap();
            assert_eq!(base.join("/mcp?a=b").unwrap().to_string(), expected);
        }
    }

    #[test]
    fn urls_of_no_server_are_refused() {
        let long = format!("http://host/{}", "a".repeat(BASE_URL_BYTES_MAX));
        for (text, expected) in [
            ("", InvalidBaseUrl::Malformed),
            ("http://", InvalidBaseUrl::Malformed),
            ("127.0.0.1:8733", InvalidBaseUrl::Scheme),
            ("localhost", InvalidBaseUrl::Scheme),
            ("ftp://host", InvalidBaseUrl::Scheme),
            ("http://user:secret@host", InvalidBaseUrl::UserInfo),
            ("http://host?a=b", InvalidBaseUrl::BeyondPath),
            ("http://host/#a", InvalidBaseUrl::BeyondPath),
            ("http://host:0", InvalidBaseUrl::Host),
            ("http://host:", InvalidBaseUrl::Host),
            ("http://host:65536", InvalidBaseUrl::Host),
            ("http://a b", InvalidBaseUrl::Malformed),
            (&long, InvalidBaseUrl::TooLong { bytes: long.len() }),
        ] {
            let refused = text.parse::<BaseUrl>().unwrap_err();
            assert_eq!(refused, expected, "{text}");
            assert!(!refused.to_string().contains("secret"));
        }
    }

    #[test]
    fn this_machine_is_known_by_name_and_address() {
        let is_loopback = |text: &str| text.parse::<BaseUrl>().unwrap().is_loopback();
        assert!(is_loopback("http://localhost:1") && is_loopback("http://[::1]/a"));
        assert!(is_loopback("https://127.0.0.2") && !is_loopback("http://localhost.example.org"));
    }
}
