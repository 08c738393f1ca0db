//! Allowed hosts, against DNS rebinding and cross-site posts.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
    sync::Arc,
};

use axum::http::{HeaderMap, Uri, header};

use super::cors::CorsOrigins;
use crate::Problem;
use blackboard_board::Code;

/// A host name in lower case, without a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct HostName(String);

/// An invalid host name.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a host name such as blackboard.example.com")]
pub struct InvalidHost(String);

impl FromStr for HostName {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match Host::parse(text) {
            Some(Host::Name(name)) => Ok(name),
            // IP addresses are always allowed, so listing one is harmless.
            Some(Host::Ip(ip)) => Ok(Self(ip.to_string())),
            None => Err(InvalidHost(text.to_owned())),
        }
    }
}

/// The host names that a request may be addressed to. IP addresses and `localhost` are always allowed.
#[derive(Clone, Debug, Default)]
pub struct AllowedHosts(Arc<BTreeSet<HostName>>);

impl FromStr for AllowedHosts {
    type Err = InvalidHost;

    /// Parses names separated by commas; the list may be empty.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let names: Result<_, _> = names.map(str::parse).collect();
        names.map(|names| Self(Arc::new(names)))
    }
}

impl AllowedHosts {
    /// Refuses requests to other hosts, and requests from pages of other origins.
    pub(super) fn check(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        listed: &CorsOrigins,
    ) -> Result<(), Problem> {
        let host = self.addressed(uri, headers)?;
        for origin in headers.get_all(header::ORIGIN) {
            let from = origin.to_str().ok().and_then(host_of_origin);
            let is_own = from.is_some_and(|from| self.is_origin_allowed(&from, &host));
            if !is_own && !listed.has(origin) {
                return Err(Problem::new(
                    Code::Forbidden,
                    "the request's Origin is neither a host of this server (--allowed-hosts) nor an allowed site \
                     (--cors-origins)",
                ));
            }
        }
        Ok(())
    }

    /// Returns the host that the request names. Each mention of a host must be allowed.
    fn addressed(&self, uri: &Uri, headers: &HeaderMap) -> Result<Host, Problem> {
        if headers.get_all(header::HOST).iter().nth(1).is_some() {
            return Err(Problem::new(Code::InvalidParameter, "send one Host header, not several"));
        }
        let in_uri = uri.authority().map(|authority| Ok(authority.as_str()));
        let in_headers = headers.get_all(header::HOST).iter().map(|v| v.to_str());
        let mut addressed = None;
        for mention in in_uri.into_iter().chain(in_headers) {
            let host = mention.ok().and_then(Host::parse);
            match host.filter(|host| self.is_allowed(host)) {
                Some(host) => _ = addressed.get_or_insert(host),
                None => {
                    return Err(unknown(
                        "the request's host is not allowed; add it to --allowed-hosts or use an IP address",
                    ));
                }
            }
        }
        addressed.ok_or_else(|| unknown("the request has no Host header"))
    }

    fn is_allowed(&self, host: &Host) -> bool {
        match host {
            Host::Ip(_) => true,
            Host::Name(name) => name.0 == "localhost" || self.0.contains(name),
        }
    }

    /// Returns true if the origin is this server. A foreign IP address may serve pages too, so an IP address must be
    /// loopback or the host that the request names.
    fn is_origin_allowed(&self, origin: &Host, host: &Host) -> bool {
        match origin {
            Host::Ip(ip) => ip.to_canonical().is_loopback() || origin == host,
            Host::Name(_) => self.is_allowed(origin),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Host {
    Ip(IpAddr),
    Name(HostName),
}

impl Host {
    /// Parses `host`, `host:port`, `[v6]` or `[v6]:port`.
    fn parse(authority: &str) -> Option<Self> {
        if let Some(rest) = authority.strip_prefix('[') {
            let (ip, after) = rest.split_once(']')?;
            let port = after.strip_prefix(':').or(after.is_empty().then_some(""))?;
            let ip: Ipv6Addr = ip.parse().ok()?;
            return is_port(port).then_some(Self::Ip(ip.into()));
        }
        let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
        if !is_port(port) {
            return None;
        }
        if let Ok(ip) = host.parse::<Ipv4Addr>() {
            return Some(Self::Ip(ip.into()));
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        let is_name = !name.is_empty() && name.bytes().all(is_name_byte);
        is_name.then(|| Self::Name(HostName(name.to_ascii_lowercase())))
    }
}

/// Returns true if the text is a host with an optional port.
pub(super) fn is_authority(text: &str) -> bool {
    Host::parse(text).is_some()
}

fn is_port(text: &str) -> bool {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.is_empty() || digits && text.parse::<u16>().is_ok()
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_')
}

fn host_of_origin(origin: &str) -> Option<Host> {
    let (scheme, authority) = origin.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    is_web.then(|| Host::parse(authority)).flatten()
}

fn unknown(detail: &str) -> Problem {
    Problem::new(Code::UnknownHost, detail)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn check(uri: &str, host: Option<&str>, origin: Option<&str>) -> Option<Code> {
        let hosts: AllowedHosts = "Board.Example:8733, other".parse().expect("names");
        let mut headers = HeaderMap::new();
        for (name, value) in [(header::HOST, host), (header::ORIGIN, origin)] {
            if let Some(value) = value {
                headers.insert(name, HeaderValue::from_str(value).expect("a header"));
            }
        }
        let uri: Uri = uri.parse().expect("a URI");
        hosts.check(&uri, &headers, &CorsOrigins::default()).err().map(|p| p.code())
    }

    #[test]
    fn own_names_and_addresses_are_allowed() {
        for host in [
            "localhost",
            "LOCALHOST:8733",
            "board.example",
            "BOARD.example.:1",
            "127.0.0.1:8733",
            "192.168.1.7",
            "[::1]",
            "[fe80::1]:8733",
        ] {
            assert_eq!(check("/", Some(host), None), None, "{host}");
        }
    }

    #[test]
    fn foreign_and_malformed_hosts_are_refused() {
        for host in [
            "evil.example",
            "localhost.evil.example",
            "user@localhost",
            "localhost:port",
            "localhost:65536",
            "localhost:+80",
            "localhost:80@evil.example",
            "localhost,evil.example",
            "localhost..",
            "localhost\\evil.example",
            "[::1",
            "[localhost]",
            "127.1",
            "",
        ] {
            let refused = check("/", Some(host), None);
            assert_eq!(refused, Some(Code::UnknownHost), "{host}");
        }
        assert_eq!(check("/", None, None), Some(Code::UnknownHost));
    }

    #[test]
    fn an_absolute_uri_counts_as_much_as_the_host() {
        let evil = "http://evil.example/v1";
        assert_eq!(check(evil, Some("localhost"), None), Some(Code::UnknownHost));
        assert_eq!(check("http://localhost/v1", None, None), None);
    }

    #[test]
    fn a_page_of_another_site_may_not_write() {
        for (origin, allowed) in [
            ("http://localhost:5173", true),
            ("https://board.example", true),
            ("http://127.0.0.1:8733", true),
            ("http://[::1]:8733", true),
            ("http://10.0.0.5:8733", true),
            ("http://6.6.6.6", false),
            ("https://evil.example", false),
            ("null", false),
            ("file://", false),
        ] {
            let refused = check("/", Some("10.0.0.5:8733"), Some(origin));
            assert_eq!(refused.is_none(), allowed, "{origin}");
        }
    }

    #[test]
    fn a_url_is_no_host_name() {
        assert!("a,http://board.example".parse::<AllowedHosts>().is_err());
        assert!("".parse::<AllowedHosts>().is_ok());
    }
}
