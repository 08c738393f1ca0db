//! Processor time of the runtime's threads, divided among clients poll by poll.
//!
//! A request that needs little never waits. A client above a tenth of a thread's time asks before each further poll,
//! and as many such polls run at once as there are processors. So a hundred long answers take no more from other
//! clients than a few. Nothing is held while a task waits, so there is no deadlock.

use std::pin::{Pin, pin};
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use tokio::task::yield_now;

use super::{Busy, Client, Limiter, Place, Share};

/// The processor time that a request may use before it asks.
const UNASKED: Duration = Duration::from_millis(1);

/// A request earns this fraction of elapsed time back (one in ten).
const UNASKED_PART: u32 = 10;

/// Processors, shared by all requests. The limit of connections bounds its queue.
static SLICES: LazyLock<Limiter> =
    LazyLock::new(|| Limiter::new(processors(), usize::MAX, Share::All));

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
}

impl Meter {
    /// Creates a meter at zero.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, used: Duration::ZERO, last: None, turn: Turn::None }
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
        let place = if self.used > UNASKED {
            ready!(self.poll_turn(cx))
        } else {
            // The time spent waiting earned enough. A place kept here would stay unused until the next request for
            // one.
            self.turn = Turn::None;
            None
        };
        let polled = self.client.during(|| poll(cx));
        drop(place);
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
    use std::thread::sleep;

    use futures_util::poll;

    use super::*;

    /// Takes all that may run at once.
    async fn all_taken() -> Place {
        SLICES.wait(processors(), Duration::from_secs(60)).await.unwrap()
    }

    #[tokio::test]
    async fn short_work_never_waits_and_long_work_does() {
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

    #[tokio::test]
    async fn a_place_that_is_needed_no_more_is_given_back() {
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
