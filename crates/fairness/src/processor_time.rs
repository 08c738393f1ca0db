//! Processor time of the runtime's threads, divided among clients poll by poll.
//!
//! A request that needs little never waits. A client above a tenth of a thread's time asks before each further poll,
//! and as many such polls run at once as there are processors. So a hundred long answers take no more from other
//! clients than a few. Nothing is held while a task waits, so there is no deadlock.

use std::pin::{Pin, pin};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker, ready};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use tokio::task::yield_now;

use super::{Busy, Client, Place, Share, SharedPlaces};
use crate::cancellation::Wakes;

/// The processor time that a request may use before it asks.
const UNASKED: Duration = Duration::from_millis(1);

/// A request earns this fraction of elapsed time back (one in ten).
const UNASKED_PART: u32 = 10;

/// Processors, shared by all requests. The limit of connections bounds its queue.
static SLICES: LazyLock<SharedPlaces> =
    LazyLock::new(|| SharedPlaces::new(processors(), usize::MAX, Share::All));

/// Returns the number of processors.
#[must_use]
pub fn processors() -> u64 {
    available_parallelism().map_or(1, |count| count.get() as u64)
}

/// The state of a task on its way to a turn. A place is held only during a poll.
#[derive(Default)]
enum Turn {
    /// Not asked yet.
    #[default]
    None,
    /// Yielded to other tasks once.
    Yielded,
    /// Waiting for a place.
    Waits(Pin<Box<dyn Future<Output = Result<Place, Busy>> + Send>>),
}

/// Counts the processor time of one task's polls, and makes expensive tasks wait for their turn.
pub struct Meter {
    client: Client,
    /// Recently used processor time.
    used: Duration,
    last: Option<Instant>,
    turn: Turn,
    /// Those of the last poll, if it was an expensive task's and is pending. Some callers poll once more before they
    /// wait, as hyper does with a body: a task that took a turn for that, which wakes it, would never wait.
    wakes: Option<Arc<Wakes>>,
}

impl Meter {
    /// Creates a meter at zero.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, used: Duration::ZERO, last: None, turn: Turn::None, wakes: None }
    }

    /// Polls once, if it is this task's turn.
    pub fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let begun = Instant::now();
        if let Some(last) = self.last {
            let earned = begun.saturating_duration_since(last) / UNASKED_PART;
            self.used = self.used.saturating_sub(earned);
        }
        self.last = Some(begun);
        if self.used <= UNASKED {
            // The time spent waiting earned enough. A place kept here would stay unused until the next request for
            // one.
            (self.turn, self.wakes) = (Turn::None, None);
            return self.timed(begun, || poll(cx));
        }
        if self.wakes.as_ref().is_some_and(|wakes| !wakes.is_woken(cx)) {
            return Poll::Pending;
        }
        self.wakes = None;
        let place = ready!(self.poll_turn(cx));
        let wakes = Wakes::of(cx);
        let waker = Waker::from(Arc::clone(&wakes));
        let polled = self.timed(begun, || poll(&mut Context::from_waker(&waker)));
        drop(place);
        self.wakes = polled.is_pending().then_some(wakes);
        polled
    }

    fn timed<T>(&mut self, begun: Instant, poll: impl FnOnce() -> T) -> T {
        let polled = self.client.during(poll);
        let end = Instant::now();
        self.used += end.saturating_duration_since(begun);
        self.last = Some(end);
        polled
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Option<Place>> {
        let client = self.client;
        let turn = match &mut self.turn {
            Turn::None => {
                self.turn = Turn::Yielded;
                // Expensive tasks come after all cheap ones and all that wait for a socket.
                return end_turn(cx);
            }
            Turn::Yielded => match client.during(|| SLICES.turn(1)) {
                Ok(turn) => turn,
                // The place in the queue went to another client; the task continues without one.
                Err(Busy) => {
                    self.turn = Turn::None;
                    return Poll::Ready(None);
                }
            },
            Turn::Waits(turn) => {
                let place = ready!(turn.as_mut().poll(cx));
                self.turn = Turn::None;
                return Poll::Ready(place.ok());
            }
        };
        let mut turn = Box::pin(turn);
        let place = turn.as_mut().poll(cx);
        self.turn = if place.is_pending() { Turn::Waits(turn) } else { Turn::None };
        place.map(Result::ok)
    }
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").field("client", &self.client).finish_non_exhaustive()
    }
}

/// Ends a poll of a task that continues at once. A task that wakes itself goes behind other runnable tasks only:
/// tasks that wait for a socket or a timer would wait for dozens of its polls.
pub fn end_turn<T>(cx: &mut Context<'_>) -> Poll<T> {
    match pin!(yield_now()).poll(cx) {
        Poll::Pending => {}
        // The runtime did not defer it.
        Poll::Ready(()) => cx.waker().wake_by_ref(),
    }
    Poll::Pending
}

/// Runs a future on behalf of a client, in turns with other clients.
pub async fn in_slices<F: Future>(client: Client, work: F) -> F::Output {
    let (mut meter, mut work) = (Meter::new(client), pin!(work));
    std::future::poll_fn(|cx| meter.poll(cx, |cx| work.as_mut().poll(cx))).await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;
    use std::thread::sleep;

    use futures_util::poll;
    use tokio::sync::{Mutex, watch};

    use super::*;

    /// Held by a test that takes all places or looks at who gets one.
    static PLACES: Mutex<()> = Mutex::const_new(());

    /// Takes all that may run at once.
    async fn all_taken() -> Place {
        SLICES.wait(processors(), Duration::from_secs(60)).await.unwrap()
    }

    #[tokio::test]
    async fn short_work_never_waits_and_long_work_does() {
        let _places = PLACES.lock().await;
        let client = Client::Token([7; 16]);
        let mut short = pin!(in_slices(client, yield_now()));
        let mut long = pin!(in_slices(client, async {
            sleep(3 * UNASKED);
            yield_now().await;
            Client::current()
        }));
        assert!(poll!(&mut short).is_pending());
        assert!(poll!(&mut long).is_pending());
        let taken = all_taken().await;
        assert!(poll!(&mut short).is_ready());
        assert!(poll!(&mut long).is_pending());
        drop(taken);
        assert_eq!(long.await, client);
    }

    async fn polled(meter: &mut Meter, used: Duration) -> Poll<()> {
        meter.used = used;
        std::future::poll_fn(|cx| Poll::Ready(meter.poll(cx, |_| Poll::Ready(())))).await
    }

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn pending_work_is_polled_once_for_each_of_its_wakes() {
        let _places = PLACES.lock().await;
        let wakes = Arc::new(Counted::default());
        let task = Waker::from(Arc::clone(&wakes));
        let mut meter = Meter::new(Client::Token([9; 16]));
        let (sender, mut receiver) = watch::channel(0);
        let changed = receiver.changed();
        let mut changed = pin!(changed);
        let mut polls = 0;
        // As hyper does: it polls a pending body once more before it waits.
        let mut poll_twice = |meter: &mut Meter, used| {
            meter.used = used;
            (0..2).any(|_| {
                let mut cx = Context::from_waker(&task);
                let polled = meter.poll(&mut cx, |cx| {
                    polls += 1;
                    changed.as_mut().poll(cx)
                });
                polled.is_ready()
            })
        };
        let long = Duration::from_secs(1);
        assert!(!poll_twice(&mut meter, Duration::ZERO));
        // The first expensive poll gives its turn away; the next ones find that nothing woke the work.
        for _ in 0..10 {
            assert!(!poll_twice(&mut meter, long));
        }
        let before = wakes.0.load(Ordering::Relaxed);
        assert!(!poll_twice(&mut meter, long));
        assert_eq!(wakes.0.load(Ordering::Relaxed), before);
        sender.send(1).unwrap();
        assert!(wakes.0.load(Ordering::Relaxed) > before);
        // Other tests may have the places.
        while !poll_twice(&mut meter, long) {
            yield_now().await;
        }
        assert!(polls <= 4, "{polls}");
    }

    #[tokio::test]
    async fn a_place_that_is_needed_no_more_is_given_back() {
        let _places = PLACES.lock().await;
        let mut meter = Meter::new(Client::Token([8; 16]));
        let taken = all_taken().await;
        let long = Duration::from_secs(1);
        // The task yields first, then waits, and is given a place.
        assert!(polled(&mut meter, long).await.is_pending());
        assert!(polled(&mut meter, long).await.is_pending());
        drop(taken);
        assert!(polled(&mut meter, Duration::ZERO).await.is_ready());
        drop(all_taken().await);
    }
}
