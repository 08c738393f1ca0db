//! When which session's images are to be looked at, since some of them may be needed no more.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::options::Collection;
use crate::board::SessionName;

/// How many rests come between two looks at a session whose history is cut again and again.
const RESTS_BETWEEN_CUTS: u32 = 4;

/// The sessions that are to be looked at.
#[derive(Debug)]
pub(super) struct Looks {
    collection: Collection,
    times: Mutex<Times>,
}

#[derive(Debug, Default)]
struct Times {
    due: HashMap<SessionName, Instant>,
    /// When those were looked at that were so not long ago.
    looked: HashMap<SessionName, Instant>,
}

impl Times {
    fn due_in(&self, name: &SessionName, rest: Duration, every: Duration) -> Instant {
        let due = Instant::now() + rest;
        self.looked.get(name).map_or(due, |last| due.max(*last + every))
    }
}

impl Looks {
    pub(super) fn new(collection: Collection) -> Self {
        Self { collection, times: Mutex::default() }
    }

    pub(super) fn collection(&self) -> Collection {
        self.collection
    }

    /// A session's history begins later now. Who still reads a board from before has a moment to end.
    pub(super) fn after_cut(&self, name: &SessionName) {
        let mut times = self.times.lock();
        let rest = self.collection.rest;
        let due = times.due_in(name, rest, rest * RESTS_BETWEEN_CUTS);
        times.due.insert(name.clone(), due);
    }

    /// A session may have got images that it did not keep.
    pub(super) fn after_refusal(&self, name: &SessionName) {
        self.ask(name, self.collection.age);
    }

    /// A session is to be looked at in so long, and not too soon after the last time.
    pub(super) fn ask(&self, name: &SessionName, rest: Duration) {
        let mut times = self.times.lock();
        let due = times.due_in(name, rest, self.collection.every);
        let asked = times.due.entry(name.clone()).or_insert(due);
        *asked = due.min(*asked);
    }

    /// One whose time has come. It is not due any more.
    pub(super) fn next(&self) -> Option<SessionName> {
        let now = Instant::now();
        let mut times = self.times.lock();
        times.looked.retain(|_, looked| *looked + self.collection.every > now);
        let due = times.due.iter().filter(|(_, due)| **due <= now).min_by_key(|(_, due)| **due);
        let name = due?.0.clone();
        times.due.remove(&name);
        times.looked.insert(name.clone(), now);
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_cut_again_does_not_wait_for_its_next_turn() {
        let (rest, every) = (Duration::ZERO, Duration::from_secs(600));
        let looks = Looks::new(Collection { age: Duration::ZERO, rest, every });
        let name: SessionName = "s".parse().unwrap();
        for _ in 0..2 {
            looks.after_cut(&name);
            assert_eq!(looks.next(), Some(name.clone()));
        }
        looks.after_refusal(&name);
        assert_eq!(looks.next(), None);
    }
}
