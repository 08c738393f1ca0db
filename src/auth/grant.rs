//! A token in use: its rights, rate limits and expiry.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::Token;

/// How much one token may ask of the server.
#[derive(Clone, Copy, Debug)]
pub struct TokenLimits {
    /// So many requests a second on average, and as many at once; any number where there is none.
    pub rate: Option<NonZeroU32>,
    /// So many event streams at a time.
    pub streams_max: u32,
}

/// A token that is in use.
pub struct Grant {
    token: Token,
    limiter: Option<DefaultDirectRateLimiter>,
    streams: Arc<Semaphore>,
    ended: CancellationToken,
}

impl Grant {
    pub(super) fn new(token: Token, limits: TokenLimits) -> Self {
        let limiter = limits.rate.map(|rate| RateLimiter::direct(Quota::per_second(rate)));
        let streams = usize::try_from(limits.streams_max).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            token,
            limiter,
            streams: Arc::new(Semaphore::new(streams.min(Semaphore::MAX_PERMITS))),
            ended: CancellationToken::new(),
        }
    }

    /// What it is.
    #[must_use]
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// Cancelled when it is revoked; that it expired has to be looked at besides.
    #[must_use]
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Counts one request.
    ///
    /// # Errors
    ///
    /// How long to wait, where there were too many.
    pub fn count_request(&self) -> Result<(), Duration> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        limiter.check().map_err(|early| early.wait_time_from(DefaultClock::default().now()))
    }

    /// One of its event streams, for as long as what is given is kept; none where it has as many as it may.
    #[must_use]
    pub fn stream(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.streams).try_acquire_owned().ok()
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Grant").field(&self.token.id).finish()
    }
}
