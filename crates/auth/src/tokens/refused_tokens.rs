//! The rate of refused tokens, by client address.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use blackboard_fairness::Client;

/// The part of the burst that an address gets back each second.
const RECOVERY: u32 = 10;

/// The maximum number of remembered addresses. Further addresses share one rate until some recover.
const ADDRESSES_MAX: usize = 10_000;

/// Counts requests with refused tokens, by the address of their client.
pub(super) struct RefusedTokens(Option<DefaultKeyedRateLimiter<Client>>);

impl RefusedTokens {
    /// Creates the counts, with the burst of one address; unlimited if absent. A tenth of the burst recovers each second.
    #[must_use]
    pub(super) fn new(burst: Option<NonZeroU32>) -> Self {
        Self(burst.map(|burst| {
            let rate = NonZeroU32::new(burst.get() / RECOVERY).unwrap_or(NonZeroU32::MIN);
            RateLimiter::keyed(Quota::per_second(rate).allow_burst(burst))
        }))
    }

    /// Counts a refused token.
    ///
    /// # Errors
    ///
    /// The time until the next refusal is answered as one, if the address exceeds the rate.
    pub(super) fn count(&self, client: Client) -> Result<(), Duration> {
        let Some(limiter) = &self.0 else { return Ok(()) };
        let mut counted = client;
        if limiter.len() >= ADDRESSES_MAX {
            limiter.retain_recent();
            if limiter.len() >= ADDRESSES_MAX {
                counted = Client::Server;
            }
        }
        let early = limiter.check_key(&counted);
        early.map_err(|early| early.wait_time_from(DefaultClock::default().now()))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn client(number: u32) -> Client {
        Client::at(IpAddr::V4(Ipv4Addr::from_bits(number)))
    }

    #[test]
    fn each_address_has_its_own_rate() {
        let refused = RefusedTokens::new(NonZeroU32::new(2));
        for _ in 0..2 {
            assert_eq!(refused.count(client(1)), Ok(()));
        }
        assert!(refused.count(client(1)).is_err());
        assert_eq!(refused.count(client(2)), Ok(()));
        let unlimited = RefusedTokens::new(None);
        assert!((0..1_000).all(|_| unlimited.count(client(1)).is_ok()));
    }

    #[test]
    fn a_bounded_number_of_addresses_is_remembered() {
        let refused = RefusedTokens::new(NonZeroU32::new(1));
        let addresses = u32::try_from(ADDRESSES_MAX).unwrap() * 2;
        for number in 0..addresses {
            let _early = refused.count(client(number));
        }
        let limiter = refused.0.as_ref().unwrap();
        assert!(limiter.len() <= ADDRESSES_MAX + 1, "{}", limiter.len());
    }
}
