//! Idle connections: when places run out, one is closed for a newcomer.
//!
//! It is one of the client with the most of them, and of those the one that has kept its place the longest so. Each
//! connection notes its own state, without a lock. The queues are put right only while a newcomer waits: each look
//! at one either finds a place, or a request that came since the last look.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::http::{HeaderValue, header};
use axum::response::Response;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use super::idle_queues::Queues;
use crate::fairness::Client;

/// So long a head may be on its way before its connection yields to a client that has as many.
const HEAD_GRACE: Duration = Duration::from_millis(500);

/// The connections of one listener.
#[derive(Debug)]
pub(crate) struct IdleConnections {
    begun: Instant,
    is_crowded: AtomicBool,
    /// A connection became idle while a newcomer waits, or one that was to close is busy again.
    again: Notify,
    pub(crate) queues: Mutex<Queues>,
    last: AtomicU64,
}

/// What a connection keeps its place for, and since when in nanoseconds of the listener's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Keeps {
    /// Nothing: no byte came since its last answer.
    Idle(u64),
    /// A head that has not all come.
    Head(u64),
}

/// The idleness of one connection.
#[derive(Debug)]
pub(crate) struct Idleness {
    pub(crate) id: u64,
    pub(crate) client: Client,
    /// What it keeps its place for, as a word; 0 while it is busy.
    state: AtomicU64,
    /// What a queue has it for, as a word; 0 where none has it. Changed only under the lock of the queues.
    queued: AtomicU64,
    /// It is to close.
    yields: Notify,
    connections: Arc<IdleConnections>,
}

/// A connection's membership, from its opening to its end.
#[derive(Debug)]
pub(crate) struct Membership(Arc<Idleness>);

impl Keeps {
    const HEAD: u64 = 1;

    /// Never 0.
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

    /// Adds a connection that was just opened: its first head is on the way.
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

    /// Waits for a place for this client, and lets a connection that asks for nothing give up its own. `None` where
    /// there are to be no more.
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
        loop {
            if let Some(longest) = self.take(client) {
                longest.yields.notify_one();
            }
            tokio::select! {
                biased;
                place = place.as_mut() => return place.ok(),
                () = self.again.notified() => {}
                // Heads that were on their way may be late by now.
                () = sleep(HEAD_GRACE) => {}
            }
        }
    }

    /// Takes the connection that yields to this newcomer out of its queue.
    pub(crate) fn take(&self, newcomer: Client) -> Option<Arc<Idleness>> {
        let late = self.now().checked_sub(nanoseconds(HEAD_GRACE));
        self.queues.lock().take(newcomer, late)
    }

    fn now(&self) -> u64 {
        nanoseconds(self.begun.elapsed())
    }

    /// Lets a connection end with this answer while a newcomer waits. Its client is told, so that no request meets
    /// a connection that has just closed.
    pub(crate) fn see_off(&self, mut response: Response) -> Response {
        if self.is_crowded.load(Ordering::Relaxed) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Half of what a word has room for is 292 years.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX >> 2)
}

/// The time in which a newcomer waits.
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
    /// What it keeps its place for; `None` while it is busy.
    pub(crate) fn keeps(&self) -> Option<Keeps> {
        Keeps::of(self.state.load(Ordering::SeqCst))
    }

    /// What a queue has it for.
    pub(crate) fn queued(&self) -> Option<Keeps> {
        Keeps::of(self.queued.load(Ordering::SeqCst))
    }

    /// Whether it has an entry, perhaps an old one, that a choice comes to.
    pub(crate) fn is_queued_as_idle(&self) -> bool {
        matches!(self.queued(), Some(Keeps::Idle(_)))
    }

    /// Notes what a queue has it for.
    pub(crate) fn is_queued_for(&self, keeps: Option<Keeps>) {
        self.queued.store(keeps.map_or(0, Keeps::word), Ordering::SeqCst);
    }

    /// Notes that it waits for the first byte of its next request.
    pub(crate) fn begin(self: &Arc<Self>) {
        let idle = Keeps::Idle(self.connections.now());
        // In this order: a choice that takes it out of its queue sees that it is idle, or this sees that it was.
        self.state.store(idle.word(), Ordering::SeqCst);
        if !self.is_queued_as_idle() {
            self.connections.queues.lock().put_back(self);
        }
        // And a newcomer that begins to wait sees that it is idle, or is told.
        if self.connections.is_crowded.load(Ordering::SeqCst) {
            self.connections.again.notify_one();
        }
    }

    /// Notes that something was read of it.
    pub(crate) fn read(&self) {
        let was = self.state.load(Ordering::Relaxed);
        if let Some(Keeps::Idle(_)) = Keeps::of(was) {
            let head = Keeps::Head(self.connections.now()).word();
            // Only this connection's own task changes it.
            self.state.store(head, Ordering::SeqCst);
        }
    }

    /// Notes that a head is there.
    pub(crate) fn end(&self) {
        self.state.store(0, Ordering::SeqCst);
    }

    /// Whether nothing was read since its last answer.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.keeps(), Some(Keeps::Idle(_)))
    }

    /// Waits until it is to close.
    pub(crate) async fn yields(&self) {
        self.yields.notified().await;
    }

    /// Notes that it was to close and has another request to answer first.
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
