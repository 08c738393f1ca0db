//! Tombstones: the names and last revisions of deleted sessions, kept for a time.
//!
//! The writer adds them in constant time; the retention thread removes expired ones, a few at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::deadlines::Deadlines;
use crate::threads::signal::Signal;
use blackboard_board::{SessionId, SessionName, Timestamp};

/// The time for which the last revision of a deleted session's name is retained.
pub(crate) const TOMBSTONE_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// The number of tombstones, 64 MiB of memory. The oldest expire early beyond it.
pub(crate) const TOMBSTONES_MAX: usize = 1 << 16;

/// The longest rest while tombstones exist. The wall clock may be set meanwhile.
const REST_MAX: Duration = Duration::from_secs(60 * 60);
const REST_MS: i64 = 60 * 60 * 1000;

/// The number of replaced sessions that may wait, 16 MiB of them. The next start deletes any more.
const REPLACED_MAX: usize = 1 << 20;

/// The names of deleted sessions, and the ids of replaced ones.
#[derive(Debug)]
pub(crate) struct Tombstones {
    kept: Mutex<Kept>,
    /// Wakes the retention thread.
    signal: Arc<Signal>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Expiry of each.
    names: Deadlines<Timestamp>,
    /// Time of each check, the earliest first.
    replaced: VecDeque<(Timestamp, SessionId)>,
}

impl Kept {
    fn add(&mut self, name: &SessionName, deleted_at: Timestamp) {
        self.names.set(name, Some(Timestamp(deleted_at.0.saturating_add(TOMBSTONE_MS))));
    }

    fn are_too_many(&self) -> bool {
        self.names.len() > TOMBSTONES_MAX
    }
}

impl Tombstones {
    pub(crate) fn new(signal: Arc<Signal>) -> Self {
        Self { kept: Mutex::default(), signal }
    }

    /// Adds a name whose session was deleted.
    pub(crate) fn add(&self, name: &SessionName, deleted_at: Timestamp) {
        let mut kept = self.kept.lock();
        let is_first = kept.names.next().is_none();
        kept.add(name, deleted_at);
        let is_due = is_first || kept.are_too_many();
        drop(kept);
        if is_due {
            self.signal.wake();
        }
    }

    /// Notes that a name has a new session, which continues from the revision of the deleted one.
    pub(crate) fn replace(&self, name: &SessionName, deleted: SessionId, since: Timestamp) {
        let mut kept = self.kept.lock();
        kept.names.set(name, None);
        let is_first = kept.replaced.is_empty();
        if kept.replaced.len() < REPLACED_MAX {
            kept.replaced.push_back((Timestamp(since.0.saturating_add(REST_MS)), deleted));
        }
        drop(kept);
        if is_first {
            self.signal.wake();
        }
    }

    /// Takes out a deleted session whose name has had another one for a while.
    pub(crate) fn take_replaced(&self, now: Timestamp) -> Option<SessionId> {
        let mut kept = self.kept.lock();
        let replaced = kept.replaced.pop_front_if(|(at, _)| *at <= now);
        replaced.map(|(_, session)| session)
    }

    /// Takes out an expired name, or the oldest of too many.
    pub(crate) fn take_over(&self, now: Timestamp) -> Option<SessionName> {
        let mut kept = self.kept.lock();
        let before = if kept.are_too_many() { Timestamp(i64::MAX) } else { now };
        kept.names.take_due(before)
    }

    /// Keeps an expired name as if it were deleted now, since it is watched.
    pub(crate) fn keep(&self, name: &SessionName, now: Timestamp) {
        self.kept.lock().add(name, now);
    }

    /// Returns the time until the next expiry; [`Duration::MAX`] if there is none.
    pub(crate) fn until_next(&self, now: Timestamp) -> Duration {
        let kept = self.kept.lock();
        if kept.are_too_many() {
            return Duration::ZERO;
        }
        let replaced = kept.replaced.front().map(|(at, _)| *at);
        let Some(over) = kept.names.next().into_iter().chain(replaced).min() else {
            return Duration::MAX;
        };
        let left = u64::try_from(over.0.saturating_sub(now.0)).unwrap_or(0);
        Duration::from_millis(left).min(REST_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_too_many_expire_early() {
        let signal = Arc::<Signal>::default();
        let tombstones = Tombstones::new(Arc::clone(&signal));
        let name = |number: i64| format!("s{number}").parse::<SessionName>().unwrap();
        let (max, now) = (i64::try_from(TOMBSTONES_MAX).unwrap(), Timestamp(1 << 20));
        for number in 0..max {
            tombstones.add(&name(number), Timestamp(number));
            // The first has a time, and the others a later one.
            assert_eq!(signal.take_wake(), number == 0, "{number}");
        }
        assert_eq!(tombstones.take_over(now), None);
        assert!(tombstones.until_next(now) > Duration::ZERO);
        for number in [max, max + 1] {
            tombstones.add(&name(number), Timestamp(number));
            assert!(signal.take_wake(), "too many: {number}");
        }
        assert_eq!(tombstones.until_next(now), Duration::ZERO);
        // A watched one makes room for no other, and the next is taken.
        assert_eq!(tombstones.take_over(now), Some(name(0)));
        tombstones.keep(&name(0), now);
        assert_eq!(tombstones.take_over(now), Some(name(1)));
        assert_eq!(tombstones.take_over(now), Some(name(2)));
        assert_eq!(tombstones.take_over(now), None);
    }
}
