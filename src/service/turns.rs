//! Turns at work of which only so much is done at once. Who would have to wait behind too many others, or too
//! long, is told so.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::error::ServiceError;

/// How long a turn is waited for at most.
pub(super) const TURN_WAIT_MAX: Duration = Duration::from_secs(30);

/// Turns at one kind of work.
#[derive(Debug)]
pub(super) struct Turns {
    turns: Arc<Semaphore>,
    /// Those who have a turn, and those who wait for one.
    places: Arc<Semaphore>,
}

/// A turn; the next one has it when it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _turn: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
}

impl Turns {
    /// So many at once, and so many who wait.
    pub(super) fn new(at_once_max: usize, waiting_max: usize) -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Self { turns: semaphore(at_once_max), places: semaphore(at_once_max + waiting_max) }
    }

    /// A turn, once it comes.
    pub(super) async fn wait(&self) -> Result<Turn, ServiceError> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let _place = place.map_err(|_| ServiceError::Overloaded)?;
        let turn = timeout(TURN_WAIT_MAX, Arc::clone(&self.turns).acquire_owned()).await;
        let turn = turn.map_err(|_| ServiceError::Overloaded)?;
        Ok(Turn { _turn: turn.map_err(|_| ServiceError::Stopping)?, _place })
    }

    /// A turn, if it is there now.
    pub(super) fn now(&self) -> Option<Turn> {
        let _place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(Turn { _turn: Arc::clone(&self.turns).try_acquire_owned().ok()?, _place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_finds_too_many_waiting_is_told_at_once() {
        let turns = Arc::new(Turns::new(1, 1));
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
