//! A wait for a cancellation that is polled at every event of its task.
//!
//! Polling a token's own future takes a lock that all waiters share. Here it is polled only when it was woken.

use std::iter;
use std::task::{Context, Poll};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A wait for a token's cancellation, which may be polled on after it.
#[derive(Debug)]
pub struct Cancellation(FuturesUnordered<WaitForCancellationFutureOwned>);

impl Cancellation {
    /// Begins to wait.
    #[must_use]
    pub fn of(token: &CancellationToken) -> Self {
        Self(iter::once(token.clone().cancelled_owned()).collect())
    }

    /// Waits until the token is cancelled.
    pub async fn reached(&mut self) {
        self.0.next().await;
    }

    /// Is ready once the token is cancelled.
    pub fn poll_reached(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_next_unpin(cx).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::poll_immediate;

    use super::*;

    #[tokio::test]
    async fn a_cancellation_is_reached_once_and_for_all() {
        let token = CancellationToken::new();
        let mut reached = Cancellation::of(&token);
        assert_eq!(poll_immediate(reached.reached()).await, None);
        let waiting = tokio::spawn(async move {
            reached.reached().await;
            reached
        });
        token.cancel();
        let mut reached = waiting.await.unwrap();
        assert_eq!(poll_immediate(reached.reached()).await, Some(()));
        assert_eq!(poll_immediate(Cancellation::of(&token).reached()).await, Some(()));
    }
}
