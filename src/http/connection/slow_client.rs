//! Deadlines for slow clients, by a debt of waiting time.
//!
//! Waiting runs up a debt, and bytes that move pay it off at the slowest rate that is borne. So silence has an
//! end, dawdling has one too, and who paused once and went on is not held to it for ever. Time in which nobody
//! waits for the client, as between two events of a stream, is no debt.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// The slowest rate that is borne, in bytes a second: a phone at the edge of its network has ten times as much.
const RATE_MIN: u32 = 1024;

/// The patience with one direction of one client.
pub(crate) struct Patience {
    /// So much debt is its end.
    max: Duration,
    debt: Duration,
    waiting_since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    /// With nothing owed.
    pub(crate) fn new(max: Duration) -> Self {
        Self { max, debt: Duration::ZERO, waiting_since: None, timer: None }
    }

    /// So many bytes moved.
    pub(crate) fn moved(&mut self, bytes: usize) {
        if self.waiting_since.is_some() || !self.debt.is_zero() {
            self.moved_at(bytes, Instant::now());
        }
    }

    fn moved_at(&mut self, bytes: usize, now: Instant) {
        if let Some(since) = self.waiting_since.take() {
            self.debt += now - since;
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.debt = self.debt.saturating_sub(Duration::from_secs(1) * bytes / RATE_MIN);
    }

    /// Waits for the client; ready when that was for too long.
    pub(crate) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let end = self.end(Instant::now());
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
        if timer.deadline() != end {
            timer.as_mut().reset(end);
        }
        timer.as_mut().poll(cx)
    }

    /// When the wait that goes on, or begins now, is for too long.
    fn end(&mut self, now: Instant) -> Instant {
        *self.waiting_since.get_or_insert(now) + self.max.saturating_sub(self.debt)
    }
}

#[cfg(test)]
mod tests;
