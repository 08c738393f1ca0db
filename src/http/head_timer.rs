//! The timer of a connection's heads: one for all of them.
//!
//! For each head the connection asks for a timer, and drops it when the head is there. To put each into
//! the runtime's wheel and to take it out again costs a lock that all connections share. This one stays in
//! the wheel from head to head, at a time that is mostly over before its deadline, and is put to the
//! deadline only when it goes off.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;
use tokio::time;

/// The timer of one connection.
#[derive(Clone, Default)]
pub(super) struct HeadTimer(Arc<Kept>);

/// The timer while no head is waited for.
type Kept = Mutex<Option<Pin<Box<time::Sleep>>>>;

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let deadline = time::Instant::from_std(deadline);
        let kept = self.0.lock().take();
        let mut timer = kept.unwrap_or_else(|| Box::pin(time::sleep_until(deadline)));
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        Box::pin(Until { timer: Some(timer), deadline, home: Arc::clone(&self.0) })
    }

    fn now(&self) -> Instant {
        time::Instant::now().into_std()
    }
}

/// One wait for a head.
struct Until {
    timer: Option<Pin<Box<time::Sleep>>>,
    deadline: time::Instant,
    home: Arc<Kept>,
}

impl Sleep for Until {}

impl Future for Until {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
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
        *self.home.lock() = self.timer.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn a_head_is_waited_for_until_its_own_deadline() {
        let timer = HeadTimer::default();
        drop(timer.sleep(MS));
        let deadline = timer.now() + 5 * MS;
        timer.sleep_until(deadline).await;
        assert!(timer.now() >= deadline);
        timer.sleep(MS).await;
    }

    #[tokio::test]
    async fn a_timer_that_is_kept_goes_off_for_the_nearer_deadline() {
        let timer = HeadTimer::default();
        drop(timer.sleep(Duration::from_secs(3600)));
        timer.sleep(MS).await;
    }
}
