//! Matched requests, shared by all that wait for the same ones.
//!
//! Requests are matched once for each commit and each set of wanted members, however many wait. What nobody holds is
//! forgotten, and what exceeds the limit of matched requests is found anew at each look.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::Service;
use blackboard_board::{Board, Matching, Revision, SessionId, SessionName, Timestamp, Wanted};

/// The maximum number of matched requests that are kept for those who wait, in all sessions together.
pub const MATCHED_MAX: usize = 1_000_000;

/// The matched requests that somebody waits for.
#[derive(Default)]
pub(crate) struct Attentions {
    shared: Mutex<HashMap<Key, Weak<Shared>>>,
    /// The number of requests that are kept.
    kept: Arc<AtomicUsize>,
}

/// A session, and the members that its requests must have, as text.
type Key = (SessionName, String);

/// The board that requests were last matched on. After a failover a store may give a revision again, at another time.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen(SessionId, Revision, Timestamp);

/// The requests that were last matched.
struct Shared {
    wanted: Wanted,
    last: Mutex<Option<Kept>>,
    kept: Arc<AtomicUsize>,
}

/// Matched requests that are kept, and counted until they are dropped.
struct Kept {
    seen: Seen,
    matching: Arc<Matching>,
    count: usize,
    all: Arc<AtomicUsize>,
}

/// The requests of a session with wanted members.
#[derive(Clone)]
pub struct Matches(Arc<Shared>);

impl Service {
    /// Returns the requests of a session with these members.
    #[must_use]
    pub fn matches(&self, session: &SessionName, wanted: &Wanted) -> Matches {
        let Attentions { shared, kept } = &self.inner.attentions;
        let mut shared = shared.lock();
        let key = (session.clone(), text(wanted));
        if let Some(found) = shared.get(&key).and_then(Weak::upgrade) {
            return Matches(found);
        }
        // Those that nobody holds are dropped before the table grows.
        if shared.len() == shared.capacity() {
            shared.retain(|_, found| found.strong_count() > 0);
        }
        let (wanted, last, kept) = (wanted.clone(), Mutex::new(None), Arc::clone(kept));
        let new = Arc::new(Shared { wanted, last, kept });
        shared.insert(key, Arc::downgrade(&new));
        Matches(new)
    }
}

impl Matches {
    /// Returns the requests of this board if they are matched already.
    #[must_use]
    pub fn known(&self, board: &Board) -> Option<Arc<Matching>> {
        let last = self.0.last.lock();
        let kept = last.as_ref().filter(|kept| kept.seen == Seen::of(board))?;
        Some(Arc::clone(&kept.matching))
    }

    /// Returns about the number of requests that must be examined to match those of this board.
    #[must_use]
    pub fn unexamined(&self, board: &Board) -> usize {
        let last = self.0.last.lock();
        let follows = last.as_ref().is_some_and(|kept| kept.seen.0 == board.id());
        let tasks = board.tasks();
        if follows { 0 } else { tasks.claimable().len() + tasks.in_review().len() }
    }

    /// Matches the requests of a board. Others that ask meanwhile wait for it.
    #[must_use]
    pub fn on(&self, board: &Board) -> Arc<Matching> {
        let mut last = self.0.last.lock();
        let seen = Seen::of(board);
        let matching = match &*last {
            Some(kept) if kept.seen == seen => return Arc::clone(&kept.matching),
            Some(kept) if kept.seen.0 == seen.0 => kept.matching.on(board),
            Some(_) | None => Matching::of(board, &self.0.wanted),
        };
        let matching = Arc::new(matching);
        // The old ones are counted no more before the new ones are.
        *last = None;
        *last = Kept::of(seen, &matching, &self.0.kept);
        matching
    }
}

impl Kept {
    /// Keeps matched requests, unless there would be too many.
    fn of(seen: Seen, matching: &Arc<Matching>, all: &Arc<AtomicUsize>) -> Option<Self> {
        let count = matching.len();
        let before = all.fetch_add(count, Ordering::Relaxed);
        let kept = Self { seen, matching: Arc::clone(matching), count, all: Arc::clone(all) };
        (before.saturating_add(count) <= MATCHED_MAX).then_some(kept)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.all.fetch_sub(self.count, Ordering::Relaxed);
    }
}

impl Seen {
    fn of(board: &Board) -> Self {
        Self(board.id(), board.revision(), board.updated_at())
    }
}

/// Returns wanted members as text. Equal members in another order are another text, and are matched by themselves.
fn text(wanted: &Wanted) -> String {
    let mut text = String::new();
    for (name, value) in wanted.0.iter() {
        // The name's length tells where it ends, and no value has a line break. Writing to a String does not fail.
        writeln!(text, "{}:{name}{}", name.len(), value.text()).ok();
    }
    text
}
