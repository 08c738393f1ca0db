//! Idle connections: the one idle the longest is closed where a newcomer waits for a place.
//!
//! Each connection notes its own idleness, without a lock. Only the accept loop looks at all of them, and only while
//! a newcomer waits.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use axum::http::{HeaderValue, header};
use axum::response::Response;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The connections of one listener.
#[derive(Debug)]
pub(super) struct IdleConnections {
    begun: Instant,
    is_crowded: AtomicBool,
    /// A connection became idle while a newcomer waits, or one that was to close is busy again.
    again: Notify,
    all: Mutex<HashMap<u64, Arc<Idleness>>>,
    last: AtomicU64,
}

/// The idleness of one connection.
#[derive(Debug)]
pub(super) struct Idleness {
    id: u64,
    /// Since when it is idle, in nanoseconds of the listener's time; 0 while it is not.
    since: AtomicU64,
    /// It is to close.
    yields: Notify,
    connections: Arc<IdleConnections>,
}

/// A connection's membership, from its opening to its end.
#[derive(Debug)]
pub(super) struct Membership(Arc<Idleness>);

impl IdleConnections {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            begun: Instant::now(),
            is_crowded: AtomicBool::new(false),
            again: Notify::new(),
            all: Mutex::default(),
            last: AtomicU64::new(0),
        })
    }

    /// Adds a connection that was just opened. It is not idle: its first request is on the way.
    pub(super) fn join(self: &Arc<Self>) -> Membership {
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        let (since, yields) = (AtomicU64::new(0), Notify::new());
        let idleness = Arc::new(Idleness { id, since, yields, connections: Arc::clone(self) });
        self.all.lock().insert(id, Arc::clone(&idleness));
        Membership(idleness)
    }

    /// Waits for a place, and lets the connection that is idle the longest give up its own. `None` where there are
    /// to be no more.
    pub(super) async fn place(&self, places: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(places).try_acquire_owned() {
            return Some(place);
        }
        let _crowded = Crowded::begin(&self.is_crowded);
        let mut place = std::pin::pin!(Arc::clone(places).acquire_owned());
        loop {
            self.close_longest_idle();
            tokio::select! {
                biased;
                place = place.as_mut() => return place.ok(),
                () = self.again.notified() => {}
            }
        }
    }

    fn close_longest_idle(&self) {
        let all = self.all.lock();
        let since = |one: &Arc<Idleness>| one.since.load(Ordering::SeqCst);
        let idle = || all.values().map(|one| (since(one), one)).filter(|(since, _)| *since > 0);
        while let Some((since, longest)) = idle().min_by_key(|(since, _)| *since) {
            let taken =
                longest.since.compare_exchange(since, 0, Ordering::SeqCst, Ordering::Relaxed);
            // Else it has become busy since it was looked at.
            if taken.is_ok() {
                longest.yields.notify_one();
                return;
            }
        }
    }

    /// Lets a connection end with this answer while a newcomer waits. Its client is told, so that no request meets
    /// a connection that has just closed.
    pub(super) fn see_off(&self, mut response: Response) -> Response {
        if self.is_crowded.load(Ordering::Relaxed) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
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
    /// Notes that it waits for the first byte of its next request.
    pub(super) fn begin(&self) {
        let since = u64::try_from(self.connections.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // In this order: who waits sees either that it is idle or that it told so.
        self.since.store(since.max(1), Ordering::SeqCst);
        if self.connections.is_crowded.load(Ordering::SeqCst) {
            self.connections.again.notify_one();
        }
    }

    /// Notes that something was read of it.
    pub(super) fn end(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// Whether nothing was read since its last answer.
    pub(super) fn is_idle(&self) -> bool {
        self.since.load(Ordering::Relaxed) > 0
    }

    /// Waits until it is to close.
    pub(super) async fn yields(&self) {
        self.yields.notified().await;
    }

    /// Notes that it was to close and has another request to answer first.
    pub(super) fn is_busy_after_all(&self) {
        self.connections.again.notify_one();
    }
}

impl Membership {
    pub(super) fn idleness(&self) -> &Arc<Idleness> {
        &self.0
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.0.connections.all.lock().remove(&self.0.id);
    }
}
