//! Turns of work of one kind: how much at once, with a bounded wait for one.
//!
//! A caller behind too many others, or waiting too long, gets an error.

use std::time::Duration;

use super::error::ServiceError;
use blackboard_fairness::{Place, Share, SharedPlaces};

/// The longest wait for a turn.
pub(super) const TURN_WAIT_MAX: Duration = Duration::from_secs(30);

/// The turns of one kind of work.
#[derive(Debug)]
pub(super) struct WorkTurns(SharedPlaces);

/// A turn, passed to the next caller when dropped.
pub(super) type WorkTurn = Place;

impl WorkTurns {
    /// Turns of short work, with the maximum at once and the maximum waiting.
    pub(super) fn new(at_once_max: u64, waiting_max: usize) -> Self {
        Self::sharing(at_once_max, waiting_max, Share::All)
    }

    /// Turns of work that takes long: one at once per client.
    pub(super) fn one_each(at_once_max: u64, waiting_max: usize) -> Self {
        Self::sharing(at_once_max, waiting_max, Share::One)
    }

    /// Turns of work as long as the client likes: the maximum at once is per client and leaves a rest.
    pub(super) fn held(at_once_max: u64, waiting_max: usize) -> Self {
        Self::sharing(at_once_max, waiting_max, Share::LeavesRest)
    }

    fn sharing(at_once_max: u64, waiting_max: usize, share: Share) -> Self {
        Self(SharedPlaces::new(at_once_max, waiting_max, share))
    }

    /// Waits for a turn.
    pub(super) async fn wait(&self) -> Result<WorkTurn, ServiceError> {
        self.0.wait(1, TURN_WAIT_MAX).await.map_err(|_| ServiceError::Overloaded)
    }

    /// Returns a turn if one is free.
    pub(super) fn now(&self) -> Option<WorkTurn> {
        self.0.now(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_finds_too_many_waiting_is_told_at_once() {
        let turns = WorkTurns::new(1, 1);
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
