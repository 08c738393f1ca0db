//! One running session: its published board, behind a lock that is held only to clone or swap it, and
//! what its watchers are likely to ask for next.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use uuid::Uuid;

use super::recent::Recent;
use crate::board::{Board, Commit, Revision, SessionId};

/// What readers of a session see: durable, and never changed once published.
#[derive(Clone, Debug)]
pub struct Published {
    /// The board; one without life where the session was deleted.
    pub board: Arc<Board>,
    /// The bytes of the commits that its history keeps, as stored.
    pub history_bytes: u64,
}

impl Published {
    /// What is published of a name that never had a session.
    pub(super) fn nothing() -> Self {
        let board = Board::absent(SessionId(Uuid::nil()), Revision::default());
        Self { board: Arc::new(board), history_bytes: 0 }
    }
}

/// A commit with the bytes of its frame.
pub(super) type Weighed = (Arc<Commit>, usize);

/// A running session. Only the writer publishes.
#[derive(Debug)]
pub(super) struct Session {
    published: RwLock<Published>,
    /// Wakes those who watch; what there is to see they look up.
    ticks: watch::Sender<()>,
    /// Its last commits, as long as somebody watches.
    recent: Mutex<Recent>,
    damaged: bool,
}

impl Session {
    pub(super) fn new(published: Published) -> Self {
        let (published, recent) = (RwLock::new(published), Mutex::default());
        Self { published, ticks: watch::Sender::new(()), recent, damaged: false }
    }

    /// A session whose stored history cannot be read; it serves nothing and takes nothing.
    pub(super) fn damaged(published: Published) -> Self {
        Self { damaged: true, ..Self::new(published) }
    }

    pub(super) fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// What is published now.
    pub(super) fn published(&self) -> Published {
        self.published.read().clone()
    }

    /// Shows a newer board to all later readers. Those who watch are woken by [`wake`](Self::wake).
    pub(super) fn publish(&self, published: Published, commits: Vec<Weighed>, held: &AtomicUsize) {
        let mut recent = self.recent.lock();
        if self.is_watched() {
            recent.add(commits, held);
        } else {
            recent.clear(held);
        }
        // Under the lock, so that the last commit in there is the head whenever somebody looks.
        *self.published.write() = published;
    }

    /// Shows that the history begins later. What is at hand of what was forgotten goes too.
    pub(super) fn rebase(&self, oldest: Revision, dropped_bytes: u64, held: &AtomicUsize) {
        let mut recent = self.recent.lock();
        recent.clear(held);
        let mut published = self.published.write();
        let history_bytes = published.history_bytes.saturating_sub(dropped_bytes);
        let board = Arc::new(published.board.beginning_at(oldest));
        *published = Published { board, history_bytes };
    }

    /// Whether somebody watches it.
    pub(super) fn is_watched(&self) -> bool {
        self.ticks.receiver_count() > 0
    }

    /// Begins to watch.
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.ticks.subscribe()
    }

    /// Wakes those who watch; a wake-up carries no data, so none can be lost.
    pub(super) fn wake(&self) {
        self.ticks.send_replace(());
    }

    /// The commits after a revision with the board that they lead to, if they are at hand.
    pub(super) fn recent(&self, after: Revision, bytes_max: usize) -> Option<Vec<Arc<Commit>>> {
        self.recent.lock().after(after, bytes_max)
    }

    /// Nobody watches any more.
    pub(super) fn forget_recent(&self, held: &AtomicUsize) {
        let mut recent = self.recent.lock();
        if !self.is_watched() {
            recent.clear(held);
        }
    }

    /// Whether it stands for a name that never had a session, and nobody watches it.
    pub(super) fn is_idle_placeholder(&self) -> bool {
        let never = self.published.read().board.revision() == Revision::default();
        never && !self.damaged && !self.is_watched()
    }
}

/// An identity for a session that is about to be made.
pub(super) fn new_session_id() -> SessionId {
    SessionId(Uuid::now_v7())
}

/// What a count of bytes is changed by; relaxed, since it bounds memory and orders nothing.
pub(super) fn count(held: &AtomicUsize, added: usize, dropped: usize) {
    held.fetch_add(added, Ordering::Relaxed);
    held.fetch_sub(dropped, Ordering::Relaxed);
}
