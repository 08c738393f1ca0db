//! Turns at work of which only so much is done at once. Whoever would have to wait behind too many others, or too
//! long, is told so.

use std::time::Duration;

use super::error::ServiceError;
use crate::fairness::{Limiter, Place, Share};

/// How long a turn is waited for at most.
pub(super) const TURN_WAIT_MAX: Duration = Duration::from_secs(30);

/// Turns at one kind of work.
#[derive(Debug)]
pub(super) struct Turns(Limiter);

/// A turn; the next one has it when it is dropped.
pub(super) type Turn = Place;

impl Turns {
    /// Turns that are short: so many at once, and so many who wait.
    pub(super) fn new(at_once_max: u64, waiting_max: usize) -> Self {
        Self(Limiter::new(at_once_max, waiting_max, Share::All))
    }

    /// Turns that last for as long as a client pleases: each has so many at once, and leaves a rest.
    pub(super) fn held(at_once_max: u64, waiting_max: usize) -> Self {
        Self(Limiter::new(at_once_max, waiting_max, Share::LeavesRest))
    }

    /// A turn, once it comes.
    pub(super) async fn wait(&self) -> Result<Turn, ServiceError> {
        self.0.wait(1, TURN_WAIT_MAX).await.map_err(|_| ServiceError::Overloaded)
    }

    /// A turn, if it is there now.
    pub(super) fn now(&self) -> Option<Turn> {
        self.0.now(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_finds_too_many_waiting_is_told_at_once() {
        let turns = Turns::new(1, 1);
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
