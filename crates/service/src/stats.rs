//! Status and statistics of the running service.

use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use super::deps::Deps;
use super::sessions::session::Shown;
use super::{Damage, Service};
use blackboard_store::{Among, EmbeddedStore, FileBytes, FreeSpace, Health};

/// Health at one moment. Unlike [`Stats`] it visits no session.
#[derive(Clone, Debug)]
pub struct Status {
    /// Number of sessions.
    pub sessions: usize,
    /// Number of sessions not served, since their stored history is damaged.
    pub damaged: usize,
    /// The store's state, and poisoned after a vital thread panicked.
    pub health: Health,
    /// Each thread's name, and false while a thread of that name pauses after a panic.
    pub threads: Vec<(&'static str, bool)>,
    /// True while the search index is made anew because of damage. Searches are refused meanwhile.
    pub is_search_rebuilding: bool,
}

/// Statistics at one moment.
#[derive(Clone, Debug)]
pub struct Stats {
    /// The health.
    pub status: Status,
    /// Number of sessions with their board in memory.
    pub hot: usize,
    /// Number of sessions without.
    pub cold: usize,
    /// Number of sessions whose costs have passed their budget.
    pub over_budget: usize,
    /// About how many bytes of memory the sessions and their past boards take.
    pub resident_bytes: usize,
    /// The part of these that past boards take.
    pub past_bytes: usize,
    /// The bytes of the last commits that are kept for watchers.
    pub recent_bytes: usize,
    /// The memory budget.
    pub budget_bytes: usize,
    /// The bytes of the images that the sessions' histories name, each counted in every session that has it.
    pub image_bytes: u64,
    /// The bytes of the writes that wait for the writer.
    pub waiting_bytes: usize,
    /// The bytes of commits that are not compacted.
    pub uncompacted_bytes: u64,
    /// Length of the store's files.
    pub files: FileBytes,
    /// The bytes that may be written before the store is full, where the disk reports them.
    pub room_bytes: Option<u64>,
    /// True if nothing expires, because the wall clock jumped.
    pub is_clock_held: bool,
}

impl Service {
    /// Returns the free space of the store's disk; `None` if the disk does not report it.
    #[must_use]
    pub fn free_space(&self) -> Option<FreeSpace> {
        self.inner.deps.store.embedded()?.free_space()
    }

    /// Cancelled once a thread panicked without which nothing is written. The process is to end then.
    #[must_use]
    pub fn failed(&self) -> &CancellationToken {
        self.inner.deps.threads.failed()
    }

    /// The damage that the start found.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.inner.damage
    }

    /// Returns the health, at little cost.
    #[must_use]
    pub fn status(&self) -> Status {
        let Deps { store, threads, .. } = &self.inner.deps;
        let directory = &self.inner.sessions.directory;
        Status {
            sessions: directory.len(),
            damaged: directory.damaged(),
            health: if threads.failed().is_cancelled() { Health::Poisoned } else { store.health() },
            threads: threads.states(),
            is_search_rebuilding: self.inner.searches.are_rebuilding(),
        }
    }

    /// Collects the statistics. It visits each session and asks for the files' length, so it belongs on a
    /// blocking thread.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let embedded = self.inner.deps.store.embedded();
        let (mut hot, mut cold, mut image_bytes) = (0, 0, 0);
        self.inner.sessions.directory.visit(|session| {
            if session.exists() && !session.is_damaged() {
                match session.shown() {
                    Shown::Hot(published) => {
                        hot += 1;
                        image_bytes += published.board.image_bytes();
                    }
                    Shown::Cold(summary) => {
                        cold += 1;
                        image_bytes += summary.image_bytes;
                    }
                }
            }
        });
        Stats {
            status: self.status(),
            hot,
            cold,
            over_budget: self.inner.sessions.directory.count(Among::OverBudget),
            resident_bytes: self.inner.sessions.memory.held(),
            past_bytes: self.past_bytes(),
            recent_bytes: self.inner.sessions.recent_bytes.load(Ordering::Relaxed),
            budget_bytes: self.inner.sessions.memory.budget(),
            image_bytes,
            waiting_bytes: usize::try_from(self.inner.writer.queue.waiting_bytes())
                .unwrap_or(usize::MAX),
            uncompacted_bytes: embedded.map_or(0, EmbeddedStore::uncompacted_bytes),
            files: embedded.map(EmbeddedStore::file_bytes).unwrap_or_default(),
            room_bytes: self.free_space().map(|space| space.room_bytes()),
            is_clock_held: self.inner.deps.clock.read().is_held,
        }
    }
}
