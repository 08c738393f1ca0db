//! One running session: its published board or its summary, and its watchers.
//!
//! The lock is held only to clone or swap the board. An evicted board is reloaded at exactly the revision of its summary.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use uuid::Uuid;

use super::known::Known;
use super::recent_commits::{RecentPage, RecentText, SharedText, Weighed};
use super::subscribers::Subscribers;
use blackboard_board::{
    Board, Epoch, Extent, Life, Revision, SessionId, SessionName, Summary, Timestamp,
};

/// Published state of a session: durable and immutable.
#[derive(Clone, Debug)]
pub struct Published {
    /// The board; a deleted session's has no life.
    pub board: Arc<Board>,
    /// The bytes of the retained commits, as stored.
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

    /// Returns true if the costs have passed the session's budget.
    pub(crate) fn is_over_budget(&self) -> bool {
        match self {
            Self::Hot(published) => published.board.budget_passed().is_some(),
            Self::Cold(summary) => summary.is_over_budget(),
        }
    }

    /// Returns true if the session has claimable requests.
    pub(crate) fn requests(&self) -> bool {
        match self {
            Self::Hot(published) => published.board.tasks().can_be_claimed(),
            Self::Cold(summary) => summary.claimable > 0,
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

/// The weight of a session that left the directory, which its last users may still weigh.
const GONE: usize = usize::MAX;

/// A time at which nothing was written.
const NOT_BARE: i64 = i64::MIN;

/// A running session. Only the writer publishes.
#[derive(Debug)]
pub(crate) struct Session {
    name: SessionName,
    shown: RwLock<Shown>,
    watching: Subscribers,
    /// The tick of [`MemoryBudget`](super::memory_budget::MemoryBudget) at the last use.
    used: AtomicU32,
    /// True if the session was used since it was weighed.
    is_used: AtomicBool,
    /// Number of pins that keep its board in memory.
    pins: AtomicU32,
    /// Bytes counted for it in the memory budget.
    weight: AtomicUsize,
    /// The part of the weight that rendered texts take.
    rendered: AtomicUsize,
    /// The bytes of the board at its last large change.
    weighed_bytes: AtomicU64,
    /// The history's bytes when the last snapshot was stored.
    snapshot_bytes: AtomicU64,
    damaged: AtomicBool,
    /// The last write to a deleted board without keys, whose summary has the rest. Else [`NOT_BARE`].
    bare: AtomicI64,
    /// The head by which the session is found again in a store that other servers write to.
    known: Mutex<Known>,
    /// Counts how often such a store lost commits that were published here. Changed with `shown`.
    losses: AtomicU64,
}

impl Session {
    pub(crate) fn new(name: SessionName, shown: Shown) -> Self {
        Self {
            name,
            shown: RwLock::new(shown),
            watching: Subscribers::default(),
            used: AtomicU32::new(0),
            is_used: AtomicBool::new(false),
            pins: AtomicU32::new(0),
            weight: AtomicUsize::new(0),
            rendered: AtomicUsize::new(0),
            weighed_bytes: AtomicU64::new(0),
            snapshot_bytes: AtomicU64::new(0),
            damaged: AtomicBool::new(false),
            bare: AtomicI64::new(NOT_BARE),
            known: Mutex::new(Known::NOTHING),
            losses: AtomicU64::new(0),
        }
    }

    pub(crate) fn name(&self) -> &SessionName {
        &self.name
    }

    /// Marks the session as damaged: until it is deleted or replaced it serves nothing and takes nothing.
    pub(crate) fn mark_damaged(&self) {
        self.damaged.store(true, Ordering::Release);
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Acquire)
    }

    /// Returns the visible state.
    pub(crate) fn shown(&self) -> Shown {
        self.shown.read().clone()
    }

    /// Returns true if the board is in memory.
    pub(crate) fn is_hot(&self) -> bool {
        matches!(&*self.shown.read(), Shown::Hot(_))
    }

    /// Returns true if its board is in memory or pinned, or somebody watches it.
    pub(crate) fn is_in_use(&self) -> bool {
        self.is_hot() || self.pins.load(Ordering::Acquire) > 0 || self.is_watched()
    }

    /// Returns true if the session exists, and is no placeholder or deleted.
    pub(crate) fn exists(&self) -> bool {
        self.shown.read().life().is_some()
    }

    /// Returns the current extent of the history.
    pub(crate) fn extent(&self) -> Extent {
        self.shown.read().extent()
    }

    /// Returns the current extent, and the number of losses before it.
    pub(crate) fn extent_after_losses(&self) -> (Extent, u64) {
        let shown = self.shown.read();
        (shown.extent(), self.losses.load(Ordering::Relaxed))
    }

    /// Returns the head that is compared with the store's.
    pub(crate) fn known(&self) -> Known {
        *self.known.lock()
    }

    pub(crate) fn set_known(&self, known: Known) {
        *self.known.lock() = known;
    }

    /// Notes the epoch in which the store was found to have this head.
    pub(crate) fn confirm(&self, found: &Known, epoch: Epoch) {
        let mut known = self.known.lock();
        if known.is_same(found) {
            known.epoch = epoch;
        }
    }

    /// Returns the current summary.
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

    /// Publishes a newer board; watchers are woken by [`wake`](Self::wake). Returns the former session's summary if
    /// the name has a new session.
    pub(crate) fn publish(
        &self,
        published: Published,
        commits: Vec<Weighed>,
        (known, is_after_loss): (Known, bool),
        held: &AtomicUsize,
    ) -> Option<Arc<Summary>> {
        // Within that lock, so that the last recent commit is always the head.
        self.watching.add(commits, held, || {
            let former = (self.extent().session != published.board.id()).then(|| self.summary());
            if former.is_some() {
                self.note_snapshot(0);
            }
            let board = &published.board;
            let is_bare = board.life().is_none() && board.keys().is_empty();
            let mut shown = self.shown.write();
            self.set_known(known);
            self.losses.fetch_add(u64::from(is_after_loss), Ordering::Relaxed);
            let bare = if is_bare { board.written_at().0 } else { NOT_BARE };
            self.bare.store(bare, Ordering::Release);
            *shown = if is_bare {
                Shown::Cold(Arc::new(self.summary_of(&published)))
            } else {
                Shown::Hot(published)
            };
            // A damaged session publishes only its deletion or its replacement.
            self.damaged.store(false, Ordering::Release);
            former
        })
    }

    /// Returns the bytes of the retained commits.
    pub(crate) fn history_bytes(&self) -> u64 {
        match self.shown() {
            Shown::Hot(published) => published.history_bytes,
            Shown::Cold(summary) => summary.history_bytes,
        }
    }

    /// Publishes that the history begins later, with the bytes of commits that are left, and drops recent commits
    /// before that.
    pub(crate) fn rebase(&self, oldest: Revision, history_bytes: u64, held: &AtomicUsize) {
        self.watching.clear(held, || {
            let dropped_bytes = self.history_bytes().saturating_sub(history_bytes);
            let mut shown = self.shown.write();
            *shown = match &*shown {
                Shown::Hot(published) => Shown::Hot(Published {
                    board: Arc::new(published.board.beginning_at(oldest)),
                    history_bytes,
                }),
                Shown::Cold(summary) => {
                    Shown::Cold(Arc::new(summary.beginning_at(oldest, history_bytes)))
                }
            };
            self.note_snapshot(self.snapshot_bytes().saturating_sub(dropped_bytes));
        });
    }

    /// Evicts the board unless it is pinned, and returns it.
    pub(crate) fn evict(&self) -> Option<Published> {
        let mut shown = self.shown.write();
        let Shown::Hot(published) = &*shown else { return None };
        // A pin is taken before its owner checks for the board.
        if self.pins.load(Ordering::Acquire) > 0 || self.is_placeholder(published) {
            return None;
        }
        let summary = Arc::new(self.summary_of(published).detached());
        match std::mem::replace(&mut *shown, Shown::Cold(summary)) {
            Shown::Hot(published) => Some(published),
            Shown::Cold(_) => None,
        }
    }

    /// Installs a loaded board if it matches the summary. Returns the published board, also if another one is there
    /// already.
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

    /// Returns the board if the summary alone determines it.
    pub(crate) fn bare_board(&self, summary: &Summary) -> Option<Board> {
        let written_at = self.bare.load(Ordering::Acquire);
        if written_at == NOT_BARE { None } else { summary.deleted_board(Timestamp(written_at)) }
    }

    /// Returns the history's bytes when the last snapshot was stored.
    pub(crate) fn snapshot_bytes(&self) -> u64 {
        self.snapshot_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn note_snapshot(&self, history_bytes: u64) {
        self.snapshot_bytes.store(history_bytes, Ordering::Relaxed);
    }

    /// Notes a use. A use within the same tick writes nothing, so that readers share the cache line.
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

    /// Sets the weight, and returns the former one.
    pub(crate) fn weigh(&self, weight: usize) -> usize {
        let noted = |before| (before != GONE).then_some(weight);
        self.weight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, noted).unwrap_or(weight)
    }

    /// Ends the weighing of a session that left the directory, and returns the last weight.
    pub(crate) fn leave(&self) -> usize {
        self.weight.swap(GONE, Ordering::Relaxed)
    }

    /// Notes the bytes of rendered texts.
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

    /// Subscribes to wake-ups.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.watching.subscribe()
    }

    /// Wakes the watchers; a wake-up carries no data, so none can be lost.
    pub(crate) fn wake(&self) {
        self.watching.wake();
    }

    /// Returns the commits after a revision up to the head, if they are in memory.
    pub(crate) fn recent(&self, after: Revision, bytes_max: usize) -> Option<RecentPage> {
        self.watching.recent(after, bytes_max)
    }

    /// Returns the text of the commits after a revision, if a watcher shared it.
    pub(crate) fn shared(&self, after: Revision, sees_all: bool) -> Option<RecentText> {
        self.watching.shared(after, sees_all)
    }

    /// Shares a text with the other watchers.
    pub(crate) fn share(&self, shared: SharedText, held: &AtomicUsize) {
        self.watching.share(shared, held);
    }

    /// Drops the recent commits if the session is not watched.
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

/// A pin: a loaded board is not evicted while it exists.
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

/// Returns an id for a new session.
pub(crate) fn new_session_id() -> SessionId {
    SessionId(Uuid::now_v7())
}
