//! How much memory the sessions take, and how much they may: a budget, kept by a thread that takes out of it
//! what was used longest ago.
//!
//! All counts are estimates of resident bytes. What readers hold of a board that left is theirs.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::directory::Directory;
use super::session::{Published, Session, Shown, count};
use super::signal::Signal;
use super::snapshots::put_snapshot_if_due;
use super::supervisor::{Supervised, Supervisor};
use crate::board::Board;
use crate::store::Store;

/// How often it is looked whether the budget is kept, and by how much the ticks of use differ.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// After so many looks all is weighed again: what readers made is counted then.
const WEIGHED_EVERY: u32 = 8;

/// What was not used for so many ticks is idle.
const IDLE_TICKS: u32 = 8;

/// By how many bytes of text a board has changed when it is weighed again, at the latest when all are.
const WEIGHED_STEP: u64 = 8 << 10;

/// To which part of the budget it is cleared, in hundredths: a little room, so that not each write clears.
const CLEARED_TO: usize = 90;

/// What a session takes besides its summary: itself, its place by name and by identity, and what the store
/// knows of it.
const SESSION_ITSELF: usize = 512;

/// What the sessions take of the memory.
#[derive(Debug)]
pub(super) struct Memory {
    budget: usize,
    held: AtomicUsize,
    /// It grows by time; what is used notes it.
    tick: AtomicU32,
    /// Wakes the thread that keeps the budget.
    signal: Arc<Signal>,
}

impl Memory {
    /// A budget of so many bytes.
    pub(super) fn new(budget: u64) -> Self {
        Self {
            budget: usize::try_from(budget).unwrap_or(usize::MAX),
            held: AtomicUsize::new(0),
            tick: AtomicU32::new(0),
            signal: Arc::default(),
        }
    }

    /// How much may be held.
    pub(super) fn budget(&self) -> usize {
        self.budget
    }

    /// How much is held.
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Notes that a session is used.
    pub(super) fn touch(&self, session: &Session) {
        session.touch(self.tick.load(Ordering::Relaxed));
    }

    /// Counts a session as it is now.
    pub(super) fn weigh(&self, session: &Session) {
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

    /// Counts a board once it has changed by much: weighing one takes a number for each agent.
    pub(super) fn weigh_published(&self, session: &Session, board: &Board) {
        if session.has_changed_by(board.bytes(), WEIGHED_STEP) {
            self.weigh_hot(session, board);
        }
    }

    /// Counts a board with the texts that were there when all was weighed: to look for them takes a step for each
    /// chunk of the board.
    fn weigh_hot(&self, session: &Session, board: &Board) {
        self.count(session, board.resident_bytes().saturating_add(session.rendered()));
    }

    fn count(&self, session: &Session, bytes: usize) {
        let weight = SESSION_ITSELF.saturating_add(bytes);
        count(&self.held, weight, session.weigh(weight));
        if self.is_over() {
            self.signal.wake();
        }
    }

    /// Whether more is held than may be.
    pub(super) fn is_over(&self) -> bool {
        self.held() > self.budget
    }

    /// Whether as much was let go as is let go at once.
    fn is_cleared(&self) -> bool {
        self.held() <= self.budget / 100 * CLEARED_TO
    }

    /// Takes a session's board out of the memory, unless it is needed there; what it was.
    pub(super) fn evict(&self, session: &Session) -> Option<Published> {
        let published = session.evict()?;
        self.weigh(session);
        Some(published)
    }
}

/// What keeps the budget.
pub(super) struct Evictor {
    pub(super) memory: Arc<Memory>,
    pub(super) directory: Arc<Directory>,
    pub(super) store: Arc<dyn Store>,
}

impl Evictor {
    pub(super) fn start(self, supervisor: &Supervisor) -> io::Result<Supervised> {
        let signal = Arc::clone(&self.memory.signal);
        supervisor.start("evictor", signal, move |signal| self.run(signal))
    }

    fn run(&self, signal: &Signal) {
        let (mut ticked, mut ticks) = (Instant::now(), self.memory.tick.load(Ordering::Relaxed));
        // Woken or not comes to the same: one more look.
        while signal.rest(LOOK_EVERY) {
            if ticked.elapsed() >= LOOK_EVERY {
                ticked = Instant::now();
                ticks += 1;
                self.memory.tick.store(ticks, Ordering::Relaxed);
                if ticks % WEIGHED_EVERY == 0 {
                    self.weigh_all();
                }
            }
            if self.memory.is_over() && !self.clear() {
                // What is left is needed, or is no board: to look again at once would find the same.
                signal.pause(LOOK_EVERY);
            }
        }
    }

    /// Counts what was made of the boards since they were published, by whoever read them.
    fn weigh_all(&self) {
        self.directory.visit(|session| self.memory.weigh(session));
    }

    /// Takes out what was used longest ago, until there is room again; whether there is.
    fn clear(&self) -> bool {
        let mut hot = Vec::new();
        self.directory.visit(|session| {
            if session.is_hot() {
                hot.push((session.used(), Arc::clone(session)));
            }
        });
        hot.sort_by_key(|(used, _)| *used);
        // Who works on one board alone, and it larger than the budget, would wait for it again and again.
        hot.pop();
        let now = self.memory.tick.load(Ordering::Relaxed);
        let idle = hot.partition_point(|(used, _)| used.saturating_add(IDLE_TICKS) <= now);
        let (idle, busy) = hot.split_at(idle);
        // A text is made faster than a board is read, but not faster than an idle board is missed.
        self.clear_of(idle) || self.clear_of(busy)
    }

    /// First the texts that readers made, then the boards.
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
            if let Some(published) = self.memory.evict(session) {
                put_snapshot_if_due(&*self.store, session, &published);
            }
        }
        self.memory.is_cleared()
    }
}
