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
mod tests;
