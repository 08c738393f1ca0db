//! Cache of replayed past boards, so that repeated reads of one revision replay it once.
//!
//! The cache counts in the memory budget, is evicted first, and its boards expire when they are not read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::memory_budget::MemoryBudget;
use blackboard_board::{Board, Revision, SessionId};

/// The number of cached past boards.
const BOARDS_MAX: usize = 16;

/// The bytes of memory that past boards may take together.
const BYTES_MAX: usize = 64 << 20;

/// The time without a reader after which a past board expires.
const IDLE_MAX: Duration = Duration::from_secs(5 * 60);

/// The cached past boards, the last used at the end.
#[derive(Debug)]
pub(crate) struct PastBoards {
    memory: Arc<MemoryBudget>,
    kept: Mutex<VecDeque<Kept>>,
}

#[derive(Debug)]
struct Kept {
    board: Arc<Board>,
    used: Instant,
    /// The bytes that the memory budget counts for it.
    bytes: usize,
    memory: Arc<MemoryBudget>,
}

impl PastBoards {
    /// An empty cache that counts in this budget.
    pub(crate) fn new(memory: Arc<MemoryBudget>) -> Self {
        Self { memory, kept: Mutex::default() }
    }

    /// Returns the nearest board up to a revision, and not before `oldest`.
    pub(crate) fn nearest(
        &self,
        session: SessionId,
        oldest: Revision,
        revision: Revision,
    ) -> Option<Arc<Board>> {
        let fits = |board: &Board| {
            board.id() == session && (oldest..=revision).contains(&board.revision())
        };
        let mut kept = self.kept.lock();
        let found = kept.iter().enumerate().filter(|(_, kept)| fits(&kept.board));
        let (index, _) = found.max_by_key(|(_, kept)| kept.board.revision())?;
        let mut found = kept.remove(index)?;
        found.used = Instant::now();
        let board = Arc::clone(&found.board);
        kept.push_back(found);
        Some(board)
    }

    /// Caches a board in place of the least recently used ones.
    pub(crate) fn keep(&self, board: &Arc<Board>) {
        let mut kept = self.kept.lock();
        let is_same =
            |other: &Board| other.id() == board.id() && other.revision() == board.revision();
        kept.retain(|kept| !is_same(&kept.board));
        kept.push_back(Kept::new(board, &self.memory));
        while kept.len() > BOARDS_MAX || bytes(&kept) > BYTES_MAX {
            kept.pop_front();
        }
    }

    /// Drops the boards of a session.
    pub(crate) fn forget(&self, session: SessionId) {
        self.kept.lock().retain(|kept| kept.board.id() != session);
    }

    /// Drops expired boards, and weighs the texts of the others.
    pub(crate) fn drop_idle(&self, now: Instant) {
        let mut kept = self.kept.lock();
        while kept.front().is_some_and(|oldest| now.duration_since(oldest.used) >= IDLE_MAX) {
            kept.pop_front();
        }
        kept.iter_mut().for_each(Kept::weigh);
    }

    /// Drops the least recently used boards until the budget has room.
    pub(crate) fn clear(&self, is_cleared: impl Fn() -> bool) {
        let mut kept = self.kept.lock();
        while !kept.is_empty() && !is_cleared() {
            kept.pop_front();
        }
    }

    /// Returns true if the cache is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.lock().is_empty()
    }

    /// Returns the bytes of memory that the cache takes.
    pub(crate) fn bytes(&self) -> usize {
        bytes(&self.kept.lock())
    }
}

impl Kept {
    fn new(board: &Arc<Board>, memory: &Arc<MemoryBudget>) -> Self {
        let (board, memory) = (Arc::clone(board), Arc::clone(memory));
        let mut kept = Self { board, used: Instant::now(), bytes: 0, memory };
        kept.weigh();
        kept
    }

    fn weigh(&mut self) {
        let bytes = self.board.resident_bytes().saturating_add(self.board.rendered_bytes());
        self.memory.count_besides(bytes, self.bytes);
        self.bytes = bytes;
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.memory.count_besides(0, self.bytes);
    }
}

fn bytes(kept: &VecDeque<Kept>) -> usize {
    kept.iter().map(|kept| kept.bytes).sum()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn board(session: u128, revision: u64) -> Arc<Board> {
        Arc::new(Board::absent(SessionId(Uuid::from_u128(session)), Revision(revision)))
    }

    fn past() -> (Arc<MemoryBudget>, PastBoards) {
        let memory = Arc::new(MemoryBudget::new(1 << 30));
        (Arc::clone(&memory), PastBoards::new(memory))
    }

    fn nearest(past: &PastBoards, session: u128, revision: u64) -> Option<u64> {
        let session = SessionId(Uuid::from_u128(session));
        let found = past.nearest(session, Revision(1), Revision(revision))?;
        Some(found.revision().0)
    }

    #[test]
    fn the_nearest_board_before_a_revision_is_found() {
        let (_, past) = past();
        for (session, revision) in [(1, 3), (1, 7), (2, 5)] {
            past.keep(&board(session, revision));
        }
        assert_eq!(nearest(&past, 1, 2), None);
        assert_eq!(nearest(&past, 1, 6), Some(3));
        assert_eq!(nearest(&past, 1, 9), Some(7));
        assert_eq!(nearest(&past, 3, 9), None);
    }

    #[test]
    fn past_boards_count_in_the_budget_until_they_are_dropped() {
        let (memory, past) = past();
        for revision in 1..=20 {
            past.keep(&board(1, revision));
            past.keep(&board(1, revision));
        }
        assert_eq!(nearest(&past, 1, 4), None, "the first four made room");
        assert_eq!(past.bytes(), 16 * board(1, 1).resident_bytes());
        assert_eq!(memory.held(), past.bytes());
        past.keep(&board(2, 1));
        past.forget(SessionId(Uuid::from_u128(1)));
        assert_eq!(memory.held(), board(2, 1).resident_bytes());
        past.clear(|| false);
        assert_eq!((memory.held(), past.is_empty()), (0, true));
    }

    #[test]
    fn a_past_board_expires_when_it_is_not_read() {
        let (memory, past) = past();
        past.keep(&board(1, 1));
        let kept = Instant::now();
        past.drop_idle(kept + IDLE_MAX / 2);
        assert!(!past.is_empty());
        past.drop_idle(kept + IDLE_MAX);
        assert_eq!((memory.held(), past.is_empty()), (0, true));
    }

    #[test]
    fn no_more_is_dropped_than_makes_room() {
        let (memory, past) = past();
        (1..=4).for_each(|revision| past.keep(&board(1, revision)));
        let half = memory.held() / 2;
        past.clear(|| memory.held() <= half);
        assert_eq!((nearest(&past, 1, 2), nearest(&past, 1, 3)), (None, Some(3)));
    }
}
