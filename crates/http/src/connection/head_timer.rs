//! The timer for request heads, one per connection.
//!
//! hyper creates a timer for each head and drops it when the head is complete. Each insertion into the runtime's
//! timer wheel, and each removal, takes a lock that all connections share. This timer stays in the wheel across
//! heads, set to a time before the deadline, and is reset only when it fires.
//!
//! The first head, and any head that has begun, has a shorter timeout than an idle connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;
use tokio::time;

use super::idle::Idleness;

/// The timer of one connection.
#[derive(Clone)]
pub(crate) struct HeadTimer {
    head_timeout: Duration,
    kept: Arc<Kept>,
    idleness: Arc<Idleness>,
}

/// The timer, kept while no head is awaited.
type Kept = Mutex<Option<Pin<Box<time::Sleep>>>>;

impl HeadTimer {
    /// Creates the timer of a new connection, which awaits its first head.
    pub(crate) fn new(head_timeout: Duration, idleness: Arc<Idleness>) -> Self {
        Self { head_timeout, kept: Arc::default(), idleness }
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let deadline = time::Instant::from_std(deadline);
        let kept = self.kept.lock().take();
        if kept.is_some() {
            // All bytes read until now belong to the previous request.
            self.idleness.begin();
        }
        let mut timer = kept.unwrap_or_else(|| Box::pin(time::sleep_until(deadline)));
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        let head = self.clone();
        Box::pin(Until { timer: Some(timer), deadline, has_begun: false, head })
    }

    fn now(&self) -> Instant {
        time::Instant::now().into_std()
    }
}

/// The wait for one head.
struct Until {
    timer: Option<Pin<Box<time::Sleep>>>,
    deadline: time::Instant,
    has_begun: bool,
    head: HeadTimer,
}

impl Until {
    /// Shortens the deadline once a head has begun. Called on each poll, so after each read.
    fn begin(&mut self) {
        if self.has_begun || self.head.idleness.is_idle() {
            return;
        }
        self.has_begun = true;
        self.deadline = self.deadline.min(time::Instant::now() + self.head.head_timeout);
        if let Some(timer) = &mut self.timer
            && timer.deadline() > self.deadline
        {
            timer.as_mut().reset(self.deadline);
        }
    }
}

impl Sleep for Until {}

impl Future for Until {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.begin();
        let deadline = self.deadline;
        let Some(timer) = &mut self.timer else { return Poll::Ready(()) };
        while timer.as_mut().poll(context).is_ready() {
            if timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

impl Drop for Until {
    fn drop(&mut self) {
        // The head is complete, perhaps read together with the previous request.
        self.head.idleness.end();
        *self.head.kept.lock() = self.timer.take();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;
    use crate::connection::idle::IdleConnections;
    use blackboard_fairness::Client;

    const MS: Duration = Duration::from_millis(1);
    const HOUR: Duration = Duration::from_secs(3600);

    /// Returns the timer of a new connection.
    fn timer(head_timeout: Duration) -> HeadTimer {
        let member = IdleConnections::new().join(Client::default());
        HeadTimer::new(head_timeout, Arc::clone(member.idleness()))
    }

    /// Returns the wait for a second head.
    fn second(timer: &HeadTimer) -> Pin<Box<dyn Sleep>> {
        drop(timer.sleep(HOUR));
        timer.sleep(HOUR)
    }

    #[tokio::test]
    async fn a_first_head_has_its_time_from_the_beginning() {
        let timer = timer(MS);
        timer.sleep(HOUR).await;
    }

    #[tokio::test]
    async fn a_later_one_has_its_time_from_its_first_byte() {
        let timer = timer(MS);
        let mut wait = second(&timer);
        assert!(timeout(50 * MS, wait.as_mut()).await.is_err());
        timer.idleness.read();
        wait.await;
    }

    #[tokio::test]
    async fn what_was_read_of_a_request_is_not_taken_for_the_next_head() {
        let timer = timer(MS);
        drop(timer.sleep(HOUR));
        timer.idleness.read();
        assert!(timeout(50 * MS, timer.sleep(HOUR)).await.is_err());
    }

    #[tokio::test]
    async fn a_rest_is_for_as_long_as_it_may_be() {
        let timer = timer(HOUR);
        drop(second(&timer));
        let deadline = timer.now() + 5 * MS;
        timer.sleep_until(deadline).await;
        assert!(timer.now() >= deadline);
    }
}
