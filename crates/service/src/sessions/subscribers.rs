//! Subscribers of one session and its recent commits; empty while nobody watches.

use std::sync::atomic::AtomicUsize;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::recent_commits::{RecentCommits, RecentPage, RecentText, SharedText, Weighed};
use blackboard_board::Revision;

/// Subscribers of a session.
#[derive(Debug, Default)]
pub(crate) struct Subscribers(Mutex<Option<Box<Watched>>>);

#[derive(Debug, Default)]
struct Watched {
    /// Wakes the watchers, which then read the commits themselves.
    ticks: watch::Sender<()>,
    /// The last commits, kept while the session is watched.
    recent: RecentCommits,
}

impl Subscribers {
    /// Adds commits and publishes them in one step. Without commits the recent ones do not lead to what is published.
    pub(crate) fn add<T>(
        &self,
        commits: Vec<Weighed>,
        held: &AtomicUsize,
        publish: impl FnOnce() -> T,
    ) -> T {
        let mut watched = self.0.lock();
        if let Some(watched) = &mut *watched {
            if watched.ticks.receiver_count() > 0 && !commits.is_empty() {
                watched.recent.add(commits, held);
            } else {
                watched.recent.clear(held);
            }
        }
        publish()
    }

    /// Forgets the last commits, and publishes before anybody can look.
    pub(crate) fn clear(&self, held: &AtomicUsize, publish: impl FnOnce()) {
        let mut watched = self.0.lock();
        if let Some(watched) = &mut *watched {
            watched.recent.clear(held);
        }
        publish();
    }

    /// Returns true if the session is watched.
    pub(crate) fn is_watched(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|watched| watched.ticks.receiver_count() > 0)
    }

    /// Begins to watch.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.0.lock().get_or_insert_default().ticks.subscribe()
    }

    /// Wakes those who watch.
    pub(crate) fn wake(&self) {
        // Waking many takes its time, and the writer takes this lock.
        let ticks = self.0.lock().as_ref().map(|watched| watched.ticks.clone());
        if let Some(ticks) = ticks {
            ticks.send_replace(());
        }
    }

    /// The commits after a revision up to the head, if they are at hand.
    pub(crate) fn recent(&self, after: Revision, bytes_max: usize) -> Option<RecentPage> {
        self.0.lock().as_ref()?.recent.after(after, bytes_max)
    }

    /// The text of the commits after a revision, if a watcher shared it.
    pub(crate) fn shared(&self, after: Revision, sees_all: bool) -> Option<RecentText> {
        self.0.lock().as_ref()?.recent.shared(after, sees_all)
    }

    /// Shares a text with the other watchers, if there are any.
    pub(crate) fn share(&self, shared: SharedText, held: &AtomicUsize) {
        if let Some(watched) = &mut *self.0.lock()
            && watched.ticks.receiver_count() > 1
        {
            watched.recent.share(shared, held);
        }
    }

    /// Drops the subscribers' state if nobody watches.
    pub(crate) fn forget(&self, held: &AtomicUsize) {
        let mut watched = self.0.lock();
        if watched.as_ref().is_some_and(|watched| watched.ticks.receiver_count() == 0)
            && let Some(mut gone) = watched.take()
        {
            gone.recent.clear(held);
        }
    }
}
