//! One running session: its published board or its summary, and its watchers.
//!
//! The lock is held only to clone or swap the board. An evicted board is reloaded at exactly the revision of its summary.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use parking_lot::RwLock;
use tokio::sync::watch;
use uuid::Uuid;

use super::recent_commits::Weighed;
use super::subscribers::Watching;
use crate::board::{
    Board, Commit, Extent, Life, Revision, SessionId, SessionName, Summary, Timestamp,
};

/// Published state of a session: durable and immutable.
#[derive(Clone, Debug)]
pub struct Published {
    /// The board; one without life where the session was deleted.
    pub board: Arc<Board>,
    /// The bytes of the commits that its history keeps, as stored.
    pub history_bytes: u64,
}

impl Published {
    /// State of a name that never had a session.
    pub(crate) fn nothing() -> Self {
        let board = Board::absent(SessionId(Uuid::nil()), Revision::default());
        Self { board: Arc::new(board), history_bytes: 0 }
    }
}

/// Visible state of a session.
#[derive(Clone, Debug)]
pub(crate) enum Shown {
    /// Its board is in memory.
    Hot(Published),
    /// Its board is evicted; its summary remains.
    Cold(Arc<Summary>),
}

impl Shown {
    /// Extent of its history.
    pub(crate) fn extent(&self) -> Extent {
        match self {
            Self::Hot(published) => published.board.extent(),
            Self::Cold(summary) => summary.extent,
        }
    }

    /// Time of its last commit.
    pub(crate) fn updated_at(&self) -> Timestamp {
        match self {
            Self::Hot(published) => published.board.updated_at(),
            Self::Cold(summary) => summary.updated_at,
        }
    }

    /// Its next expiry.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        match self {
            Self::Hot(published) => published.board.next_due(),
            Self::Cold(summary) => summary.next_due,
        }
    }

    /// Returns true if the session has open questions.
    pub(crate) fn asks(&self) -> bool {
        match self {
            Self::Hot(published) => !published.board.asked().open().is_empty(),
            Self::Cold(summary) => !summary.questions.are_none(),
        }
    }

    /// Its settings and labels; `None` if it does not exist.
    pub(crate) fn life(&self) -> Option<&Life> {
        match self {
            Self::Hot(published) => published.board.life(),
            Self::Cold(summary) => summary.life.as_ref(),
        }
    }
}

/// The weight of a session that left the directory: who used it before may weigh it still.
const GONE: usize = usize::MAX;

/// No time at which anything was written.
const NOT_BARE: i64 = i64::MIN;

/// A running session. Only the writer publishes.
#[derive(Debug)]
pub(crate) struct Session {
    name: SessionName,
    shown: RwLock<Shown>,
    watching: Watching,
    /// When it was used last, by the ticks of [`Memory`](super::memory_budget::Memory).
    used: AtomicU32,
    /// True if the session was used since it was weighed.
    is_used: AtomicBool,
    /// Number of pins that keep its board in memory.
    pins: AtomicU32,
    /// Bytes counted for it in the memory budget.
    weight: AtomicUsize,
    /// The part of the weight that rendered texts take.
    rendered: AtomicUsize,
    /// The bytes of its board when it was noted that it changed by much.
    weighed_bytes: AtomicU64,
    /// The bytes of its history when its board was stored as a snapshot last.
    snapshot_bytes: AtomicU64,
    damaged: AtomicBool,
    /// When a deleted board without keys was written last: its summary tells the rest. Else [`NOT_BARE`].
    bare: AtomicI64,
}

impl Session {
    pub(crate) fn new(name: SessionName, shown: Shown) -> Self {
        Self {
            name,
            shown: RwLock::new(shown),
            watching: Watching::default(),
            used: AtomicU32::new(0),
            is_used: AtomicBool::new(false),
            pins: AtomicU32::new(0),
            weight: AtomicUsize::new(0),
            rendered: AtomicUsize::new(0),
            weighed_bytes: AtomicU64::new(0),
            snapshot_bytes: AtomicU64::new(0),
            damaged: AtomicBool::new(false),
            bare: AtomicI64::new(NOT_BARE),
        }
    }

    pub(crate) fn name(&self) -> &SessionName {
        &self.name
    }

    /// Its stored history cannot be read; until it is deleted or replaced it serves nothing and takes nothing.
    pub(crate) fn spoil(&self) {
        self.damaged.store(true, Ordering::Release);
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Acquire)
    }

    /// Its visible state now.
    pub(crate) fn shown(&self) -> Shown {
        self.shown.read().clone()
    }

    /// Returns true if the board is in memory.
    pub(crate) fn is_hot(&self) -> bool {
        matches!(&*self.shown.read(), Shown::Hot(_))
    }

    /// Returns true if the session exists, and is no placeholder or deleted.
    pub(crate) fn exists(&self) -> bool {
        self.shown.read().life().is_some()
    }

    /// Current extent of its history.
    pub(crate) fn extent(&self) -> Extent {
        self.shown.read().extent()
    }

    /// Its summary now.
    pub(crate) fn summary(&self) -> Arc<Summary> {
        match self.shown() {
            Shown::Hot(published) => Arc::new(self.summary_of(&published)),
            Shown::Cold(summary) => summary,
        }
    }

    fn summary_of(&self, published: &Published) -> Summary {
        let Published { board, history_bytes } = published;
        Summary::of(board, &self.name, *history_bytes, self.snapshot_bytes())
    }

    /// Shows a newer board to all later readers. Those who watch are woken by [`wake`](Self::wake). Where
    /// it is another session's of the same name, what is known of the former one.
    pub(crate) fn publish(
        &self,
        published: Published,
        commits: Vec<Weighed>,
        held: &AtomicUsize,
    ) -> Option<Arc<Summary>> {
        // Within that lock, so that the last commit in there is the head whenever somebody looks.
        self.watching.add(commits, held, || {
            let former = (self.extent().session != published.board.id()).then(|| self.summary());
            if former.is_some() {
                self.note_snapshot(0);
            }
            let board = &published.board;
            let is_bare = board.life().is_none() && board.keys().is_empty();
            let mut shown = self.shown.write();
            let bare = if is_bare { board.written_at().0 } else { NOT_BARE };
            self.bare.store(bare, Ordering::Release);
            *shown = if is_bare {
                Shown::Cold(Arc::new(self.summary_of(&published)))
            } else {
                Shown::Hot(published)
            };
            // Of a damaged session nothing is published but its end, or what replaces it.
            self.damaged.store(false, Ordering::Release);
            former
        })
    }

    /// Shows that the history begins later. What is at hand of what was forgotten goes too.
    pub(crate) fn rebase(&self, oldest: Revision, dropped_bytes: u64, held: &AtomicUsize) {
        self.watching.clear(held, || {
            let mut shown = self.shown.write();
            *shown = match &*shown {
                Shown::Hot(published) => Shown::Hot(Published {
                    board: Arc::new(published.board.beginning_at(oldest)),
                    history_bytes: published.history_bytes.saturating_sub(dropped_bytes),
                }),
                Shown::Cold(summary) => {
                    Shown::Cold(Arc::new(summary.beginning_at(oldest, dropped_bytes)))
                }
            };
            self.note_snapshot(self.snapshot_bytes().saturating_sub(dropped_bytes));
        });
    }

    /// Takes its board out of the memory, unless somebody needs it there; what it was.
    pub(crate) fn evict(&self) -> Option<Published> {
        let mut shown = self.shown.write();
        let Shown::Hot(published) = &*shown else { return None };
        // Who pins looks whether it is there after that.
        if self.pins.load(Ordering::Acquire) > 0 || self.is_placeholder(published) {
            return None;
        }
        let summary = Arc::new(self.summary_of(published).detached());
        match std::mem::replace(&mut *shown, Shown::Cold(summary)) {
            Shown::Hot(published) => Some(published),
            Shown::Cold(_) => None,
        }
    }

    /// Lets its board be in memory again, if it is the one that the summary tells of; what is published now
    /// in that case, or where another one is there already.
    pub(crate) fn install(&self, board: &Board) -> Option<Published> {
        let mut shown = self.shown.write();
        let summary = match &*shown {
            Shown::Hot(published) => return Some(published.clone()),
            Shown::Cold(summary) => summary,
        };
        let Extent { session, revision, oldest, .. } = summary.extent;
        if (board.id(), board.revision()) != (session, revision) {
            return None;
        }
        let published = Published {
            board: Arc::new(board.beginning_at(oldest)),
            history_bytes: summary.history_bytes,
        };
        *shown = Shown::Hot(published.clone());
        Some(published)
    }

    /// Its board, where this summary of it tells all: nothing has to be read.
    pub(crate) fn bare_board(&self, summary: &Summary) -> Option<Board> {
        let written_at = self.bare.load(Ordering::Acquire);
        if written_at == NOT_BARE { None } else { summary.deleted_board(Timestamp(written_at)) }
    }

    /// The bytes of its history when its board was stored as a snapshot last.
    pub(crate) fn snapshot_bytes(&self) -> u64 {
        self.snapshot_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn note_snapshot(&self, history_bytes: u64) {
        self.snapshot_bytes.store(history_bytes, Ordering::Relaxed);
    }

    /// Notes that it is used; whoever only reads on meets no other's line of the cache.
    pub(crate) fn touch(&self, tick: u32) {
        if self.used.load(Ordering::Relaxed) != tick {
            self.used.store(tick, Ordering::Relaxed);
        }
    }

    /// Returns true at the first use since the last weighing.
    pub(crate) fn is_to_be_weighed(&self) -> bool {
        !self.is_used.load(Ordering::Relaxed) && !self.is_used.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn was_weighed(&self) {
        self.is_used.store(false, Ordering::Relaxed);
    }

    pub(crate) fn used(&self) -> u32 {
        self.used.load(Ordering::Relaxed)
    }

    /// Notes what it counts for; what it counted for before.
    pub(crate) fn weigh(&self, weight: usize) -> usize {
        let noted = |before| (before != GONE).then_some(weight);
        self.weight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, noted).unwrap_or(weight)
    }

    /// Counts for nothing from now on, since it left the directory; what it counted for before.
    pub(crate) fn leave(&self) -> usize {
        self.weight.swap(GONE, Ordering::Relaxed)
    }

    /// Notes what the texts that readers made take.
    pub(crate) fn note_rendered(&self, bytes: usize) {
        self.rendered.store(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes of rendered texts at the last weighing.
    pub(crate) fn rendered(&self) -> usize {
        self.rendered.load(Ordering::Relaxed)
    }

    /// Returns true if the board has changed by `step` bytes since this was last true.
    pub(crate) fn has_changed_by(&self, bytes: u64, step: u64) -> bool {
        let before = self.weighed_bytes.load(Ordering::Relaxed);
        let has = bytes.abs_diff(before) >= step || self.weight.load(Ordering::Relaxed) == 0;
        if has {
            self.weighed_bytes.store(bytes, Ordering::Relaxed);
        }
        has
    }

    /// Returns true if the session is watched.
    pub(crate) fn is_watched(&self) -> bool {
        self.watching.is_watched()
    }

    /// Begins to watch.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.watching.subscribe()
    }

    /// Wakes those who watch; a wake-up carries no data, so none can be lost.
    pub(crate) fn wake(&self) {
        self.watching.wake();
    }

    /// The commits after a revision up to the head, if they are at hand.
    pub(crate) fn recent(&self, after: Revision, bytes_max: usize) -> Option<Vec<Arc<Commit>>> {
        self.watching.recent(after, bytes_max)
    }

    /// Drops its recent commits if nobody watches.
    pub(crate) fn forget_recent(&self, held: &AtomicUsize) {
        self.watching.forget(held);
    }

    /// Returns true if the name never had a session and is not watched.
    pub(crate) fn is_idle_placeholder(&self) -> bool {
        let never = self.extent().revision == Revision::default();
        never && !self.is_damaged() && !self.is_watched()
    }

    fn is_placeholder(&self, published: &Published) -> bool {
        published.board.revision() == Revision::default()
    }
}

/// While it is there, its session's board stays in memory once it is there.
#[derive(Debug)]
pub(crate) struct Pin(Arc<Session>);

impl Pin {
    pub(crate) fn new(session: &Arc<Session>) -> Self {
        session.pins.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(session))
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.0
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.0.pins.fetch_sub(1, Ordering::AcqRel);
    }
}

/// An identity for a session that is about to be made.
pub(crate) fn new_session_id() -> SessionId {
    SessionId(Uuid::now_v7())
}
