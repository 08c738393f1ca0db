//! The rate of a token's requests.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

/// Counts the requests of one token.
pub(super) struct Rate(Option<DefaultDirectRateLimiter>);

impl Rate {
    /// Creates the count, with the requests per second on average, which are also the burst; unlimited if absent.
    pub(super) fn new(per_second: Option<NonZeroU32>) -> Self {
        Self(per_second.map(|rate| RateLimiter::direct(Quota::per_second(rate))))
    }

    /// Counts one request.
    ///
    /// # Errors
    ///
    /// The time until the next request is allowed.
    pub(super) fn count(&self) -> Result<(), Duration> {
        let Some(limiter) = &self.0 else { return Ok(()) };
        limiter.check().map_err(|early| early.wait_time_from(DefaultClock::default().now()))
    }
}
