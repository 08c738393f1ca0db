//! Eviction of idle connections for new ones.
//!
//! The victim belongs to the client with the most connections, and has been without a request for longest. Each
//! connection records its own state without a lock. The queues are corrected only while a new connection waits:
//! each entry examined either is the victim or has had a request since it was queued.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::http::{HeaderValue, header};
use axum::response::Response;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use super::idle_queues::Queues;
use blackboard_fairness::Client;

/// The age from which an incomplete head may be evicted for a client that has as many connections.
const HEAD_GRACE: Duration = Duration::from_millis(500);

/// The connections of one listener.
#[derive(Debug)]
pub(crate) struct IdleConnections {
    begun: Instant,
    is_crowded: AtomicBool,
    /// Notified when a connection becomes idle while a new one waits, or when a victim turns out to be busy.
    again: Notify,
    pub(crate) queues: Mutex<Queues>,
    last: AtomicU64,
}

/// The state of a connection without a request, and its start in nanoseconds since the listener's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Keeps {
    /// No byte was read since the last answer.
    Idle(u64),
    /// A head is incomplete.
    Head(u64),
}

/// The idleness of one connection.
#[derive(Debug)]
pub(crate) struct Idleness {
    pub(crate) id: u64,
    pub(crate) client: Client,
    /// The current [`Keeps`] as a word; 0 while a request is under way.
    state: AtomicU64,
    /// The [`Keeps`] of the queue entry as a word; 0 without an entry. Changed only under the lock of the queues.
    queued: AtomicU64,
    /// Notified when the connection must close.
    yields: Notify,
    connections: Arc<IdleConnections>,
}

/// The registration of a connection, from its opening to its end.
#[derive(Debug)]
pub(crate) struct Membership(Arc<Idleness>);

impl Keeps {
    const HEAD: u64 = 1;

    /// Encodes the state, never as 0.
    const fn word(self) -> u64 {
        match self {
            Self::Idle(since) => (since + 1) << 1,
            Self::Head(since) => (since + 1) << 1 | Self::HEAD,
        }
    }

    fn of(word: u64) -> Option<Self> {
        let since = (word >> 1).checked_sub(1)?;
        Some(if word & Self::HEAD == 0 { Self::Idle(since) } else { Self::Head(since) })
    }
}

impl IdleConnections {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            begun: Instant::now(),
            is_crowded: AtomicBool::new(false),
            again: Notify::new(),
            queues: Mutex::default(),
            last: AtomicU64::new(0),
        })
    }

    /// Registers a new connection, which awaits its first head.
    pub(crate) fn join(self: &Arc<Self>, client: Client) -> Membership {
        let idleness = Arc::new(Idleness {
            id: self.last.fetch_add(1, Ordering::Relaxed),
            client,
            state: AtomicU64::new(Keeps::Head(self.now()).word()),
            queued: AtomicU64::new(0),
            yields: Notify::new(),
            connections: Arc::clone(self),
        });
        self.queues.lock().join(&idleness);
        Membership(idleness)
    }

    /// Waits for a place for this client, and evicts an idle connection if there is none. `None` once `places` is
    /// closed.
    pub(crate) async fn place(
        &self,
        places: &Arc<Semaphore>,
        client: Client,
    ) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(places).try_acquire_owned() {
            return Some(place);
        }
        let _crowded = Crowded::begin(&self.is_crowded);
        let mut place = std::pin::pin!(Arc::clone(places).acquire_owned());
        let mut victim: Option<Arc<Idleness>> = None;
        loop {
            // One victim at a time: a connection that became idle meanwhile is not needed.
            if victim.as_ref().is_none_or(|victim| victim.keeps().is_none()) {
                victim = self.take(client);
                if let Some(victim) = &victim {
                    victim.yields.notify_one();
                }
            }
            tokio::select! {
                biased;
                place = place.as_mut() => return place.ok(),
                () = self.again.notified() => {}
                // Incomplete heads may have passed their grace by now; a victim that is told closes, however late.
                () = sleep(HEAD_GRACE) => {}
            }
        }
    }

    /// Takes the connection to evict for this client out of its queue.
    pub(crate) fn take(&self, newcomer: Client) -> Option<Arc<Idleness>> {
        let late = self.now().checked_sub(nanoseconds(HEAD_GRACE));
        self.queues.lock().take(newcomer, late)
    }

    fn now(&self) -> u64 {
        nanoseconds(self.begun.elapsed())
    }

    /// Closes the connection after this answer if a new one waits. `Connection: close` tells the client, so that no
    /// request meets a closed connection.
    pub(crate) fn see_off(&self, mut response: Response) -> Response {
        if self.is_crowded.load(Ordering::Relaxed) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Converts to nanoseconds, capped at a quarter of a word's range (146 years) to leave room for the tag bit.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX >> 2)
}

/// Marks the listener as crowded while a new connection waits.
struct Crowded<'a>(&'a AtomicBool);

impl<'a> Crowded<'a> {
    fn begin(is_crowded: &'a AtomicBool) -> Self {
        is_crowded.store(true, Ordering::SeqCst);
        Self(is_crowded)
    }
}

impl Drop for Crowded<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Idleness {
    /// Returns the state of the connection; `None` while a request is under way.
    pub(crate) fn keeps(&self) -> Option<Keeps> {
        Keeps::of(self.state.load(Ordering::SeqCst))
    }

    /// Returns the state under which the connection is queued.
    pub(crate) fn queued(&self) -> Option<Keeps> {
        Keeps::of(self.queued.load(Ordering::SeqCst))
    }

    /// Returns true if the connection is in the idle queue, perhaps with an outdated entry.
    pub(crate) fn is_queued_as_idle(&self) -> bool {
        matches!(self.queued(), Some(Keeps::Idle(_)))
    }

    /// Records the state under which the connection is queued.
    pub(crate) fn is_queued_for(&self, keeps: Option<Keeps>) {
        self.queued.store(keeps.map_or(0, Keeps::word), Ordering::SeqCst);
    }

    /// Records that the connection waits for the first byte of its next request.
    pub(crate) fn begin(self: &Arc<Self>) {
        let idle = Keeps::Idle(self.connections.now());
        // In this order: either an eviction that dequeues the connection sees it idle, or this sees it dequeued.
        self.state.store(idle.word(), Ordering::SeqCst);
        if !self.is_queued_as_idle() {
            self.connections.queues.lock().put_back(self);
        }
        // Likewise, a new connection that begins to wait either sees this one idle or is notified.
        if self.connections.is_crowded.load(Ordering::SeqCst) {
            self.connections.again.notify_one();
        }
    }

    /// Records that bytes were read.
    pub(crate) fn read(&self) {
        let was = self.state.load(Ordering::Relaxed);
        if let Some(Keeps::Idle(_)) = Keeps::of(was) {
            let head = Keeps::Head(self.connections.now()).word();
            // Only the connection's own task changes the state.
            self.state.store(head, Ordering::SeqCst);
        }
    }

    /// Records that a head is complete.
    pub(crate) fn end(&self) {
        self.state.store(0, Ordering::SeqCst);
    }

    /// Returns true if no byte was read since the last answer.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.keeps(), Some(Keeps::Idle(_)))
    }

    /// Waits until the connection must close.
    pub(crate) async fn yields(&self) {
        self.yields.notified().await;
    }

    /// Records that the evicted connection has another request to answer first.
    pub(crate) fn is_busy_after_all(&self) {
        self.connections.again.notify_one();
    }
}

impl Membership {
    pub(crate) fn idleness(&self) -> &Arc<Idleness> {
        &self.0
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.0.connections.queues.lock().leave(&self.0);
    }
}
