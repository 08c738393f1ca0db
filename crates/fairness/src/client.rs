//! The client on whose behalf a task works, carried by the task like its log span.
//!
//! Passing it from a door to every pool would put it into a hundred signatures. Work handed to another thread or task
//! takes it along by [`Client::current`] and [`Client::during`].

use std::net::{IpAddr, Ipv6Addr};

use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    static CLIENT: Client;
}

/// The bits of an IPv6 address that identify a client: one network belongs to one customer.
const NETWORK_BITS: u32 = 64;

/// A client, with one share of everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Client {
    /// The server itself, and the owner of its data directory.
    #[default]
    Server,
    /// The holder of the token with this id.
    Token([u8; 16]),
    /// The sender at this address, without a token.
    Address(IpAddr),
}

impl Client {
    /// Returns the client at an address that sent no token.
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = address.to_bits() >> NETWORK_BITS << NETWORK_BITS;
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
            address @ IpAddr::V4(_) => address,
        })
    }

    /// Returns the client of the current task, or the server if the task has none.
    #[must_use]
    pub fn current() -> Self {
        CLIENT.try_with(|client| *client).unwrap_or_default()
    }

    /// Runs a future on behalf of this client.
    pub fn scope<F: Future>(self, work: F) -> TaskLocalFuture<Self, F> {
        CLIENT.scope(self, work)
    }

    /// Runs work that does not wait on behalf of this client.
    pub fn during<T>(self, work: impl FnOnce() -> T) -> T {
        CLIENT.sync_scope(self, work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let at = |address: &str| Client::at(address.parse().unwrap());
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:1"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
    }

    #[tokio::test]
    async fn a_task_without_a_client_works_for_the_server() {
        let token = Client::Token([1; 16]);
        assert_eq!(Client::current(), Client::Server);
        assert_eq!(token.scope(async { Client::current() }).await, token);
        assert_eq!(token.during(Client::current), token);
    }
}
