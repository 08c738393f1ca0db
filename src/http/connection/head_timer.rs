//! One timer for all heads of a connection.
//!
//! For each head the connection asks for a timer, and drops it when the head is there. To put each into
//! the runtime's wheel and to take it out again costs a lock that all connections share. This one stays in
//! the wheel from head to head, at a time that is mostly over before its deadline, and is put to the
//! deadline only when it goes off.
//!
//! The first head, and any that has begun, has less time than a client that rests between two requests.

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

/// The timer while no head is waited for.
type Kept = Mutex<Option<Pin<Box<time::Sleep>>>>;

impl HeadTimer {
    /// For a connection that was just opened: its first head is waited for already.
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
            // What was read until now is of the request before.
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

/// One wait for a head.
struct Until {
    timer: Option<Pin<Box<time::Sleep>>>,
    deadline: time::Instant,
    has_begun: bool,
    head: HeadTimer,
}

impl Until {
    /// A head that has begun has its own time. This is polled after each piece of it.
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
        // The head is there, perhaps one that was read with the request before.
        self.head.idleness.end();
        *self.head.kept.lock() = self.timer.take();
    }
}

#[cfg(test)]
mod tests;
