//! Addresses of clients, also behind trusted proxies.

use std::net::IpAddr;
use std::str::FromStr;

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;

/// The header by which a proxy names its client, the farthest address first.
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The maximum number of trusted networks.
const NETWORKS_MAX: usize = 64;

/// The maximum number of forwarded addresses that are read, from the nearest on.
const HOPS_MAX: usize = 16;

/// The client of a request: the peer, or the address that a trusted proxy forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

/// Networks of the proxies whose `X-Forwarded-For` is believed. Empty by default.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<IpNet>);

/// A text that is not a list of networks.
#[derive(Debug, thiserror::Error)]
pub enum InvalidProxies {
    /// A part is no network.
    #[error("{0:?} is not a network such as 10.0.0.0/8 or an address such as 192.0.2.1")]
    Network(String),
    /// There are too many networks.
    #[error("there are {0} networks; the limit is {NETWORKS_MAX}")]
    TooMany(usize),
}

impl FromStr for TrustedProxies {
    type Err = InvalidProxies;

    fn from_str(text: &str) -> Result<Self, InvalidProxies> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let networks: Vec<IpNet> = parts.map(network).collect::<Result<_, _>>()?;
        if networks.len() > NETWORKS_MAX {
            return Err(InvalidProxies::TooMany(networks.len()));
        }
        Ok(Self(networks))
    }
}

fn network(text: &str) -> Result<IpNet, InvalidProxies> {
    let parsed = text.parse::<IpAddr>().map(IpNet::from).or_else(|_| text.parse());
    parsed.map_err(|_| InvalidProxies::Network(text.to_owned()))
}

impl TrustedProxies {
    /// Returns the client of a request from this peer. Each address was added by the next one, so the client is the
    /// nearest address that is no trusted proxy. A malformed address ends the search at the proxy that added it.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> ClientAddress {
        let mut client = peer.to_canonical();
        if !self.contains(client) {
            return ClientAddress(client);
        }
        let values = headers.get_all(X_FORWARDED_FOR).iter().rev();
        let hops = values.flat_map(|value| value.to_str().unwrap_or("?").rsplit(','));
        for hop in hops.take(HOPS_MAX) {
            let Some(forwarded) = address(hop) else { break };
            client = forwarded;
            if !self.contains(client) {
                break;
            }
        }
        ClientAddress(client)
    }

    fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// Reads a forwarded address. Some proxies add the port.
fn address(hop: &str) -> Option<IpAddr> {
    let hop = hop.trim();
    let bare = hop.strip_prefix('[').and_then(|hop| hop.strip_suffix(']')).unwrap_or(hop);
    let with_port = || hop.parse().map(|address: std::net::SocketAddr| address.ip());
    bare.parse::<IpAddr>().or_else(|_| with_port()).map(|address| address.to_canonical()).ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn client(trusted: &str, peer: &str, forwarded: &[&'static str]) -> String {
        let trusted: TrustedProxies = trusted.parse().unwrap();
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_static(value));
        }
        trusted.client(peer.parse().unwrap(), &headers).0.to_string()
    }

    #[test]
    fn a_header_from_anyone_else_is_ignored() {
        assert_eq!(client("", "192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
        assert_eq!(client("10.0.0.0/8", "192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
        assert_eq!(client("10.0.0.0/8", "10.1.2.3", &[]), "10.1.2.3");
    }

    #[test]
    fn the_client_is_the_nearest_address_not_trusted() {
        let trusted = "10.0.0.0/8, ::1,2001:db8::/32";
        for (forwarded, expected) in [
            (&["198.51.100.7"][..], "198.51.100.7"),
            (&["203.0.113.9, 198.51.100.7"], "198.51.100.7"),
            (&["203.0.113.9, 198.51.100.7", "10.9.9.9"], "198.51.100.7"),
            (&["203.0.113.9", "198.51.100.7 , 10.9.9.9"], "198.51.100.7"),
            (&["10.0.0.1, 10.0.0.2"], "10.0.0.1"),
            (&["198.51.100.7:4711"], "198.51.100.7"),
            (&["[2001:db9::1]:4711"], "2001:db9::1"),
            (&["[2001:db9::1]"], "2001:db9::1"),
            (&["::ffff:198.51.100.7"], "198.51.100.7"),
            (&["198.51.100.7, unknown"], "10.1.2.3"),
            (&["198.51.100.7, unknown, 10.0.0.2"], "10.0.0.2"),
        ] {
            assert_eq!(client(trusted, "10.1.2.3", forwarded), expected, "{forwarded:?}");
        }
        assert_eq!(client(trusted, "::ffff:10.1.2.3", &["198.51.100.7"]), "198.51.100.7");
    }

    #[test]
    fn only_lists_of_networks_are_accepted() {
        for text in ["", "127.0.0.1", "10.0.0.0/8,::1", " fd00::/8 ,"] {
            assert!(text.parse::<TrustedProxies>().is_ok(), "{text}");
        }
        for text in ["10.0.0.0/33", "proxy", "10.0.0.0/8;::1", "*"] {
            assert!(
                matches!(text.parse::<TrustedProxies>(), Err(InvalidProxies::Network(_))),
                "{text}"
            );
        }
        let many = vec!["10.0.0.1"; NETWORKS_MAX + 1].join(",");
        assert!(matches!(many.parse::<TrustedProxies>(), Err(InvalidProxies::TooMany(_))));
    }
}
