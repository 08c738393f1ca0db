//! Memory budget of the sessions, kept by a thread that evicts the least recently used boards.
//!
//! All counts are estimates of resident bytes. Copies held by readers of an evicted board are not counted.

use std::any::Any;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::directory;
use super::directory::Directory;
use super::past_boards::PastBoards;
use super::recent_commits::count;
use super::session::{Published, Session, Shown};
use super::snapshots::put_snapshot_if_due;
use crate::deps::Deps;
use crate::threads::signal::Signal;
use blackboard_board::{Board, Prepared, size};
use blackboard_search as search;
use blackboard_store as store;
use blackboard_store::Store;

/// The unit of the times of use, and the pause between checks of an exceeded budget.
const TICK: Duration = Duration::from_millis(250);

/// The time from a session's use to its next weighing, which counts the texts that readers made.
const WEIGHED_AFTER: Duration = Duration::from_secs(2);

/// The number of sessions used anew that are weighed at once: many sessions that are read at a time have texts of 4 MiB
/// in the meantime, if each has 16 KiB.
const NEWLY_USED_MAX: usize = 256;

/// A session unused for so many ticks is idle.
const IDLE_TICKS: u32 = 8;

/// A session unused for so many ticks may leave the directory of a store that other servers write to: 30 s, longer than
/// any request takes from the check of its session to the look for it.
const RELEASED_TICKS: u32 = 120;

/// The change of a board in bytes of text after which it is weighed again.
const WEIGHED_STEP: u64 = 8 << 10;

/// The bytes of text that the writer frees itself: about 0.1 ms.
const FREED_AT_ONCE_MAX: u64 = 256 << 10;

/// The percentage of the budget that eviction aims at, so that not every write evicts.
const CLEARED_TO: usize = 90;

/// The bytes of a session besides its board or summary: itself, and its places in the directory, in the store and in the
/// search index.
const SESSION_ITSELF: usize = size::shared(size_of::<Session>())
    + directory::SESSION_BYTES
    + search::SESSION_BYTES
    + store::HISTORY_BYTES;

/// The allocator's tables, and what is empty in its slabs, are a sixteenth of what it gives out: with 100,000 sessions,
/// of which 8,400 in memory, 20 MB of 272 MB.
const ALLOCATOR_PART: usize = 16;

/// The memory besides the sessions: page caches of the store's connections, and buffers of threads. A small budget leaves
/// a sixteenth for it.
const BESIDES_BYTES: usize = 16 << 20;
const BESIDES_PART: usize = 16;

/// Memory taken by the sessions, and its budget.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    budget: usize,
    held: AtomicUsize,
    begun: Instant,
    /// The sessions used since they were weighed.
    used: Mutex<Vec<Arc<Session>>>,
    /// Those that were idle before, and were not weighed since.
    newly_used: Mutex<Vec<Arc<Session>>>,
    /// Unpublished boards and parts of boards, with their bytes, until they are freed.
    leaving: Mutex<Vec<(Box<dyn Any + Send>, usize)>>,
    /// Wakes the evictor.
    signal: Arc<Signal>,
}

impl MemoryBudget {
    /// A budget of so many bytes.
    pub(crate) fn new(budget: u64) -> Self {
        Self {
            budget: usize::try_from(budget).unwrap_or(usize::MAX),
            held: AtomicUsize::new(0),
            begun: Instant::now(),
            used: Mutex::default(),
            newly_used: Mutex::default(),
            leaving: Mutex::default(),
            signal: Arc::default(),
        }
    }

    /// The budget in bytes.
    pub(crate) fn budget(&self) -> usize {
        self.budget
    }

    /// The bytes counted now.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The time in ticks since the start.
    fn tick(&self) -> u32 {
        u32::try_from(self.begun.elapsed().as_millis() / TICK.as_millis()).unwrap_or(u32::MAX)
    }

    /// Notes that a session is used.
    pub(crate) fn note_use(&self, session: &Session) {
        session.touch(self.tick());
    }

    /// Notes that a session is used, so that it is weighed some time later.
    pub(crate) fn touch(&self, session: &Arc<Session>) {
        self.note_use(session);
        if session.is_to_be_weighed() {
            let mut newly_used = self.newly_used.lock();
            newly_used.push(Arc::clone(session));
            if matches!(newly_used.len(), 1 | NEWLY_USED_MAX) {
                self.signal.wake();
            }
        }
    }

    /// Weighs what is used anew once that is much.
    fn weigh_newly_used(&self) {
        let newly_used = {
            let mut newly_used = self.newly_used.lock();
            if newly_used.len() < NEWLY_USED_MAX {
                return;
            }
            std::mem::take(&mut *newly_used)
        };
        newly_used.iter().for_each(|session| self.weigh(session));
        self.used.lock().extend(newly_used);
    }

    /// Weighs what was used. A session that is still used is weighed once more later.
    fn weigh_used(&self) {
        let now = self.tick();
        let used = std::mem::take(&mut *self.used.lock());
        let newly_used = std::mem::take(&mut *self.newly_used.lock());
        for session in used.into_iter().chain(newly_used) {
            let is_idle = session.used().saturating_add(IDLE_TICKS) <= now;
            if is_idle {
                session.was_weighed();
            }
            self.weigh(&session);
            if !is_idle {
                self.used.lock().push(session);
            }
        }
    }

    /// Returns the time that the evictor may rest.
    fn rest(&self) -> Duration {
        let are_none_used = self.used.lock().is_empty() && self.newly_used.lock().is_empty();
        match (self.is_over(), are_none_used) {
            (true, _) => TICK,
            (false, false) => WEIGHED_AFTER,
            (false, true) => Duration::MAX,
        }
    }

    /// Counts a session as it is now.
    pub(crate) fn weigh(&self, session: &Session) {
        match session.shown() {
            Shown::Hot(published) => {
                session.note_rendered(published.board.rendered_bytes());
                self.weigh_hot(session, &published.board);
            }
            Shown::Cold(summary) => {
                session.note_rendered(0);
                self.count(session, summary.resident_bytes());
            }
        }
    }

    /// Counts a board once it has changed by much, since weighing visits each agent.
    pub(crate) fn weigh_published(&self, session: &Session, board: &Board) {
        if board.life().is_none() {
            // A deleted session's board need not stay.
            self.weigh(session);
        } else if session.has_changed_by(board.bytes(), WEIGHED_STEP) {
            self.weigh_hot(session, board);
        }
    }

    /// Counts a board with the texts of the last weighing, since finding them visits each chunk of the board.
    fn weigh_hot(&self, session: &Session, board: &Board) {
        self.count(session, board.resident_bytes().saturating_add(session.rendered()));
    }

    fn count(&self, session: &Session, bytes: usize) {
        let name = size::shared(session.name().as_str().len());
        let given = (SESSION_ITSELF + name).saturating_add(bytes);
        let weight = given.saturating_add(given / ALLOCATOR_PART);
        count(&self.held, weight, session.weigh(weight));
        if self.is_over() {
            self.signal.wake();
        }
    }

    /// Frees a replaced board; `brought` are the bytes of the commits in between. A large one is left to the evictor,
    /// or every write would wait.
    pub(crate) fn free_former(&self, former: Arc<Board>, board: &Board, brought: u64) {
        let gone = former.bytes().saturating_add(brought).saturating_sub(board.bytes());
        if gone > FREED_AT_ONCE_MAX {
            // The new board shares the rest.
            let (gone, text) = (usize::try_from(gone), usize::try_from(former.bytes()));
            let resident = former.resident_bytes();
            let each = resident.div_ceil(text.unwrap_or(usize::MAX).max(1));
            let bytes = gone.unwrap_or(usize::MAX).saturating_mul(each).min(resident);
            self.leave(Box::new(former), bytes);
        }
    }

    /// Frees the values prepared for a write, which may hold the last reference to a part of a former board.
    pub(crate) fn free_prepared(&self, prepared: &mut Prepared) {
        if !prepared.is_empty() {
            self.leave(Box::new(std::mem::take(prepared)), 0);
        }
    }

    fn leave(&self, leaving: Box<dyn Any + Send>, bytes: usize) {
        self.leaving.lock().push((leaving, bytes));
        count(&self.held, bytes, 0);
        self.signal.wake();
    }

    /// Counts memory that belongs to no session.
    pub(crate) fn count_besides(&self, added: usize, dropped: usize) {
        count(&self.held, added, dropped);
        if added > dropped {
            self.signal.wake();
        }
    }

    /// Frees the boards left to the evictor.
    fn free_leaving(&self) {
        for (leaving, bytes) in std::mem::take(&mut *self.leaving.lock()) {
            drop(leaving);
            count(&self.held, 0, bytes);
        }
    }

    /// Stops counting a session that has left the directory.
    pub(crate) fn forget(&self, session: &Session) {
        count(&self.held, 0, session.leave());
    }

    /// Returns true if the budget is exceeded.
    pub(crate) fn is_over(&self) -> bool {
        self.held() > self.for_sessions()
    }

    /// The part of the budget that sessions may take.
    fn for_sessions(&self) -> usize {
        self.budget - BESIDES_BYTES.min(self.budget / BESIDES_PART)
    }

    /// Returns true if eviction has reached its aim.
    fn is_cleared(&self) -> bool {
        self.held() <= self.for_sessions() / 100 * CLEARED_TO
    }

    /// Evicts a session's board unless it is pinned, and returns it.
    pub(crate) fn evict(&self, session: &Session) -> Option<Published> {
        let published = session.evict()?;
        self.weigh(session);
        Some(published)
    }
}

/// The evictor's thread.
pub(crate) struct Evictor {
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) past_boards: Arc<PastBoards>,
    pub(crate) directory: Arc<Directory>,
    pub(crate) store: Arc<dyn Store>,
}

impl Evictor {
    pub(crate) fn start(self, deps: &Deps) -> io::Result<()> {
        let signal = Arc::clone(&self.memory.signal);
        deps.threads.start("evictor", signal, move |signal| self.run(signal))
    }

    fn run(&self, signal: &Signal) {
        let mut weighed = Instant::now();
        while signal.rest(self.rest()) {
            self.memory.free_leaving();
            self.memory.weigh_newly_used();
            if weighed.elapsed() >= WEIGHED_AFTER {
                self.memory.weigh_used();
                self.past_boards.drop_idle(Instant::now());
                weighed = Instant::now();
            }
            if self.memory.is_over() && !self.clear() {
                // The rest is pinned or no board, so another look now would find the same.
                signal.pause(TICK);
            }
        }
    }

    /// Past boards are checked as often as used sessions.
    fn rest(&self) -> Duration {
        let rest = self.memory.rest();
        if self.past_boards.is_empty() { rest } else { rest.min(WEIGHED_AFTER) }
    }

    /// Evicts the least recently used boards until there is room; returns true if there is.
    fn clear(&self) -> bool {
        // Past boards go first, since no write waits for them.
        self.past_boards.clear(|| self.memory.is_cleared());
        let now = self.memory.tick();
        if self.store.shared().is_some() {
            self.release(now.saturating_sub(RELEASED_TICKS));
        }
        let mut hot = Vec::new();
        self.directory.visit(|session| {
            if session.is_hot() {
                hot.push((session.used(), Arc::clone(session)));
            }
        });
        hot.sort_by_key(|(used, _)| *used);
        // The last used board stays, or a session larger than the budget would be loaded again and again.
        hot.pop();
        let idle = hot.partition_point(|(used, _)| used.saturating_add(IDLE_TICKS) <= now);
        let (idle, busy) = hot.split_at(idle);
        // Rendering a text is cheaper than loading a board, but an idle board is not missed.
        self.clear_of(idle) || self.clear_of(busy)
    }

    /// Releases the least recently used of the sessions that were not used since a tick, until there is room.
    pub(crate) fn release(&self, since: u32) {
        let mut unused = Vec::new();
        self.directory.visit(|session| {
            if session.used() < since && !session.is_in_use() {
                unused.push((session.used(), Arc::clone(session)));
            }
        });
        unused.sort_by_key(|(used, _)| *used);
        for (_, session) in unused {
            if self.memory.is_cleared() {
                return;
            }
            if self.directory.release(&session) {
                self.memory.forget(&session);
            }
        }
    }

    /// Drops the texts that readers made, then the boards.
    fn clear_of(&self, hot: &[(u32, Arc<Session>)]) -> bool {
        for (_, session) in hot {
            if self.memory.is_cleared() {
                return true;
            }
            if let Shown::Hot(published) = session.shown()
                && published.board.rendered_bytes() > 0
            {
                published.board.forget_rendered();
                self.memory.weigh(session);
            }
        }
        for (_, session) in hot {
            if self.memory.is_cleared() {
                return true;
            }
            if let Some(published) = self.memory.evict(session)
                && let Some(store) = self.store.embedded()
            {
                put_snapshot_if_due(store, session, &published);
            }
        }
        self.memory.is_cleared()
    }
}

#[cfg(test)]
mod tests;
