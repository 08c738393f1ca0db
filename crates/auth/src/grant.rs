//! A token in use: its rights, its rate, its event streams and its end.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::Token;
use super::rate::Rate;

/// The rate and stream limits of a token.
#[derive(Clone, Copy, Debug)]
pub struct TokenLimits {
    /// Requests per second on average, and the size of a burst; unlimited if absent.
    pub rate: Option<NonZeroU32>,
    /// The maximum number of concurrent event streams.
    pub streams_max: u32,
}

/// A token in use.
pub struct Grant {
    token: Token,
    rate: Rate,
    streams: Arc<Semaphore>,
    ended: CancellationToken,
}

impl Grant {
    pub(super) fn new(token: Token, limits: TokenLimits) -> Self {
        let streams = usize::try_from(limits.streams_max).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            token,
            rate: Rate::new(limits.rate),
            streams: Arc::new(Semaphore::new(streams.min(Semaphore::MAX_PERMITS))),
            ended: CancellationToken::new(),
        }
    }

    /// Returns the token.
    #[must_use]
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// Returns the signal of the token's revocation. Expiry is not signalled; compare the time.
    #[must_use]
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Counts one request.
    ///
    /// # Errors
    ///
    /// The time until the next request is allowed.
    pub fn count_request(&self) -> Result<(), Duration> {
        self.rate.count()
    }

    /// Takes one of the token's event streams until the permit is dropped; `None` if all are taken.
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
