//! Limits on concurrent work, with a bounded wait for a permit.
//!
//! A caller behind too many others, or waiting too long, gets an error.

use std::time::Duration;

use super::error::ServiceError;
use blackboard_fairness::{Limiter, Place, Share};

/// The longest wait for a turn.
pub(super) const TURN_WAIT_MAX: Duration = Duration::from_secs(30);

/// Limiter of one kind of work.
#[derive(Debug)]
pub(super) struct WaitLimiter(Limiter);

/// A turn, passed to the next caller when dropped.
pub(super) type Permit = Place;

impl WaitLimiter {
    /// A limiter for short work, with the maximum at once and the maximum waiting.
    pub(super) fn new(at_once_max: u64, waiting_max: usize) -> Self {
        Self::sharing(at_once_max, waiting_max, Share::All)
    }

    /// A limiter for work that takes long: one at once per client.
    pub(super) fn one_each(at_once_max: u64, waiting_max: usize) -> Self {
        Self::sharing(at_once_max, waiting_max, Share::One)
    }

    /// A limiter for work as long as the client likes: the maximum at once is per client and leaves a rest.
    pub(super) fn held(at_once_max: u64, waiting_max: usize) -> Self {
        Self::sharing(at_once_max, waiting_max, Share::LeavesRest)
    }

    fn sharing(at_once_max: u64, waiting_max: usize, share: Share) -> Self {
        Self(Limiter::new(at_once_max, waiting_max, share))
    }

    /// Waits for a turn.
    pub(super) async fn wait(&self) -> Result<Permit, ServiceError> {
        self.0.wait(1, TURN_WAIT_MAX).await.map_err(|_| ServiceError::Overloaded)
    }

    /// Returns a turn if one is free.
    pub(super) fn now(&self) -> Option<Permit> {
        self.0.now(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_finds_too_many_waiting_is_told_at_once() {
        let turns = WaitLimiter::new(1, 1);
        let first = turns.wait().await.unwrap();
        let mut second = Box::pin(turns.wait());
        assert!(futures_util::poll!(&mut second).is_pending());
        assert!(matches!(turns.wait().await, Err(ServiceError::Overloaded)));
        assert!(turns.now().is_none());
        drop(first);
        let second = second.await.unwrap();
        drop(second);
        assert!(turns.now().is_some());
    }
}
