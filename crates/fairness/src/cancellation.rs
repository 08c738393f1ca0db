//! Waits for rare things, such as a cancellation, by tasks that are woken often for other reasons.
//!
//! Polling a token's own future takes a lock that all waiters share, and a timer or a notification has memory of its
//! own to look at. Here these are polled only when they were woken.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;
use tokio_util::sync::CancellationToken;

/// A future that is polled only if it was woken since the last poll.
pub struct Dormant<T> {
    wait: Pin<Box<dyn Future<Output = T> + Send + Sync>>,
    /// Made at the first poll.
    wakes: Option<Arc<Wakes>>,
}

/// The wakes of a future, passed on to its task.
#[derive(Debug)]
pub struct Wakes {
    is_woken: AtomicBool,
    task: AtomicWaker,
}

impl Wakes {
    /// Returns the wakes of a future that is polled with their waker for this task.
    #[must_use]
    pub fn of(cx: &Context<'_>) -> Arc<Self> {
        let wakes = Self { is_woken: AtomicBool::new(false), task: AtomicWaker::new() };
        wakes.task.register(cx.waker());
        Arc::new(wakes)
    }

    /// Returns true if the future was woken since these were made or taken. Otherwise the task is woken with it.
    pub fn is_woken(&self, cx: &Context<'_>) -> bool {
        // In this order: a wake after the look wakes the task.
        self.task.register(cx.waker());
        self.is_woken.load(Ordering::Acquire)
    }

    fn take(&self) {
        self.is_woken.store(false, Ordering::Release);
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<T> Dormant<T> {
    /// Wraps a future.
    #[must_use]
    pub fn new(wait: impl Future<Output = T> + Send + Sync + 'static) -> Self {
        Self { wait: Box::pin(wait), wakes: None }
    }
}

impl<T> Future for Dormant<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Self { wait, wakes } = &mut *self;
        if wakes.as_ref().is_some_and(|wakes| !wakes.is_woken(cx)) {
            return Poll::Pending;
        }
        let wakes = wakes.get_or_insert_with(|| Wakes::of(cx));
        wakes.take();
        wait.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(wakes))))
    }
}

impl<T> std::fmt::Debug for Dormant<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dormant").finish_non_exhaustive()
    }
}

/// A wait for a token's cancellation, which may be polled on after it.
#[derive(Debug)]
pub struct Cancellation(Option<Dormant<()>>);

impl Cancellation {
    /// Begins to wait.
    #[must_use]
    pub fn of(token: &CancellationToken) -> Self {
        Self(Some(Dormant::new(token.clone().cancelled_owned())))
    }

    /// Waits until the token is cancelled.
    pub async fn reached(&mut self) {
        std::future::poll_fn(|cx| self.poll_reached(cx)).await;
    }

    /// Is ready once the token is cancelled.
    pub fn poll_reached(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(wait) = &mut self.0 else { return Poll::Ready(()) };
        let polled = Pin::new(wait).poll(cx);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures_util::future::{poll_fn, poll_immediate};
    use tokio::sync::Notify;

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

    #[tokio::test]
    async fn a_dormant_future_is_polled_only_when_it_was_woken() {
        let (notify, polls) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let (notified, counted) = (Arc::clone(&notify), Arc::clone(&polls));
        let mut dormant = Dormant::new(async move {
            for _ in 0..2 {
                let mut wait = std::pin::pin!(notified.notified());
                poll_fn(|cx| {
                    counted.fetch_add(1, Ordering::Relaxed);
                    wait.as_mut().poll(cx)
                })
                .await;
            }
        });
        for _ in 0..3 {
            assert_eq!(poll_immediate(&mut dormant).await, None);
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        notify.notify_one();
        assert_eq!(poll_immediate(&mut dormant).await, None);
        assert_eq!(polls.load(Ordering::Relaxed), 3);
        // A wake by another task reaches the one that waits.
        let waiting = tokio::spawn(dormant);
        notify.notify_one();
        waiting.await.unwrap();
        assert_eq!(polls.load(Ordering::Relaxed), 4);
    }
}
