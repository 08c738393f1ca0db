//! Deadlines for slow clients, counted as a debt of waiting time.
//!
//! Waiting increases the debt, and transferred bytes reduce it at the minimum rate. So both silence and a trickle
//! reach the deadline, while a client that paused once recovers. Time in which nothing waits for the client, as
//! between two events of a stream, does not count.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// The minimum transfer rate, in bytes a second: a phone at the edge of its network has ten times as much.
const RATE_MIN: u32 = 1024;

/// The deadline for one direction of one connection.
pub(crate) struct StallDeadline {
    /// The debt at which the deadline is reached.
    max: Duration,
    debt: Duration,
    waiting_since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl StallDeadline {
    /// Creates a deadline without debt.
    pub(crate) fn new(max: Duration) -> Self {
        Self { max, debt: Duration::ZERO, waiting_since: None, timer: None }
    }

    /// Records transferred bytes.
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

    /// Waits for the client; ready at the deadline.
    pub(crate) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let end = self.end(Instant::now());
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
        if timer.deadline() != end {
            timer.as_mut().reset(end);
        }
        timer.as_mut().poll(cx)
    }

    /// Returns the deadline of the current wait, which begins now if none is under way.
    fn end(&mut self, now: Instant) -> Instant {
        *self.waiting_since.get_or_insert(now) + self.max.saturating_sub(self.debt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_secs(10);
    const S: Duration = Duration::from_secs(1);

    /// Returns the time from now until the deadline of a silent client.
    fn left(deadline: &mut StallDeadline, now: Instant) -> Duration {
        deadline.end(now) - now
    }

    #[test]
    fn silence_reaches_the_deadline() {
        let (mut deadline, begun) = (StallDeadline::new(MAX), Instant::now());
        assert_eq!(left(&mut deadline, begun), MAX);
        assert_eq!(left(&mut deadline, begun + 4 * S), MAX - 4 * S);
    }

    #[test]
    fn a_drip_reaches_the_deadline_as_silence_does() {
        let (mut deadline, mut now) = (StallDeadline::new(MAX), Instant::now());
        for _ in 0..9 {
            assert!(left(&mut deadline, now) > S);
            now += S;
            deadline.moved_at(1, now);
        }
        assert!(left(&mut deadline, now) < 2 * S);
    }

    #[test]
    fn the_slowest_rate_is_borne_for_ever() {
        let (mut deadline, mut now) = (StallDeadline::new(MAX), Instant::now());
        for _ in 0..1000 {
            assert_eq!(left(&mut deadline, now), MAX);
            now += 5 * S;
            deadline.moved_at(5 * 1024, now);
        }
    }

    #[test]
    fn what_moved_before_is_no_credit() {
        let (mut deadline, now) = (StallDeadline::new(MAX), Instant::now());
        deadline.moved_at(usize::MAX, now);
        assert_eq!(left(&mut deadline, now), MAX);
    }

    #[test]
    fn time_in_which_nobody_waits_is_no_debt() {
        let (mut deadline, mut now) = (StallDeadline::new(MAX), Instant::now());
        for _ in 0..100 {
            assert_eq!(left(&mut deadline, now), MAX);
            deadline.moved_at(8, now);
            now += 100 * MAX;
        }
    }
}
