//! The reaper: removes images and thumbnails of deleted sessions and abandoned writes.
//!
//! A deletion hands over the session's id in constant time. The store removes nothing before the deletion is on disk.
//! Files left by a crash are removed after the next start.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::deps::Deps;
use crate::threads::signal::Signal;
use crate::thumbnails::Thumbnails;
use blackboard_board::SessionId;
use blackboard_store::Store;

/// The number of sessions that may wait, 16 MiB of them. The next start removes the images of any more.
const WAITING_MAX: usize = 1 << 20;

/// The rest after a piece, as a multiple of its time, so that others have most of the disk.
const REST_TIMES: u32 = 2;

/// The time for deleting files at a stop; the next start continues.
const SWEEPING_AT_END_MAX: Duration = Duration::from_millis(500);

/// Sessions whose files are orphaned.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    waiting: Mutex<Vec<SessionId>>,
    signal: Arc<Signal>,
}

impl Orphans {
    /// Adds a session that takes no more writes. Blocks only for another such call.
    pub(crate) fn add(&self, session: SessionId) {
        let mut waiting = self.waiting.lock();
        if waiting.len() < WAITING_MAX {
            waiting.push(session);
        }
        drop(waiting);
        self.signal.wake();
    }
}

/// The reaper's thread.
pub(crate) struct Reaper {
    pub(crate) orphans: Arc<Orphans>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) thumbnails: Arc<Thumbnails>,
    /// The sessions that the startup scan found; files of all others are removed. `None` if the store is only read.
    pub(crate) live: Option<HashSet<SessionId>>,
}

impl Reaper {
    /// Starts the thread. When stopped it removes what waits; nothing is added after that.
    pub(crate) fn start(self, deps: &Deps) -> io::Result<()> {
        let signal = Arc::clone(&self.orphans.signal);
        deps.threads.start("reaper", signal, move |signal| self.run(signal))
    }

    fn run(&self, signal: &Signal) {
        let Some(live) = &self.live else {
            while signal.rest(Duration::MAX) {}
            return;
        };
        self.thumbnails.keep_only(live);
        self.clear(live, signal);
        let mut rest = Duration::ZERO;
        while signal.rest(rest) {
            self.remove_waiting();
            let begun = Instant::now();
            rest = if self.sweep() { begun.elapsed() * REST_TIMES } else { Duration::MAX };
        }
        self.remove_waiting();
        let begun = Instant::now();
        while begun.elapsed() < SWEEPING_AT_END_MAX && self.sweep() {}
    }

    /// Removes the files that an earlier run left, and meanwhile those of new orphans.
    fn clear(&self, live: &HashSet<SessionId>, signal: &Signal) {
        let go_on = || {
            self.remove_waiting();
            !signal.is_stopped()
        };
        if let Err(error) = self.store.clear_blobs(live, &go_on) {
            tracing::warn!(%error, "some images of deleted sessions could not be deleted; retrying at the next start");
        }
    }

    /// Moves the files of waiting sessions out of sight, in one step each, however many there are.
    pub(crate) fn remove_waiting(&self) {
        let sessions = std::mem::take(&mut *self.orphans.waiting.lock());
        if sessions.is_empty() {
            return;
        }
        if let Err(error) = self.store.remove_blobs(&sessions) {
            tracing::warn!(%error, "images of a deleted session could not be deleted; retrying at the next start");
        }
        sessions.iter().for_each(|session| self.thumbnails.forget(*session));
    }

    /// Deletes some of the files out of sight; returns true if more are left.
    fn sweep(&self) -> bool {
        self.store.sweep_blobs().unwrap_or_else(|error| {
            tracing::warn!(%error, "removed images could not be deleted from the disk; retrying at the next start");
            false
        })
    }
}

#[cfg(test)]
mod tests;
