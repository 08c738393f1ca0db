//! Schedule of image garbage collection: the next time for each session.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::options::Collection;
use blackboard_board::SessionName;

/// The number of rests between two collections of a session whose history is truncated repeatedly.
const RESTS_BETWEEN_CUTS: u32 = 4;

/// Sessions due for garbage collection.
#[derive(Debug)]
pub(crate) struct GcSchedule {
    collection: Collection,
    times: Mutex<Times>,
}

#[derive(Debug, Default)]
struct Times {
    due: ByTime,
    /// Times of recent collections.
    looked: ByTime,
}

impl Times {
    fn due_in(&self, name: &SessionName, rest: Duration, every: Duration) -> Instant {
        let due = Instant::now() + rest;
        self.looked.get(name).map_or(due, |last| due.max(last + every))
    }
}

/// Sessions by time. There may be very many after a start, so a search is logarithmic.
#[derive(Debug, Default)]
struct ByTime {
    moments: HashMap<SessionName, Instant>,
    in_order: BTreeSet<(Instant, SessionName)>,
}

impl ByTime {
    fn get(&self, name: &SessionName) -> Option<Instant> {
        self.moments.get(name).copied()
    }

    fn set(&mut self, name: &SessionName, moment: Instant) {
        if let Some(before) = self.moments.insert(name.clone(), moment) {
            self.in_order.remove(&(before, name.clone()));
        }
        self.in_order.insert((moment, name.clone()));
    }

    /// Takes out the first session, if its time is not after `until`.
    fn take_first(&mut self, until: Instant) -> Option<SessionName> {
        self.in_order.first().filter(|(moment, _)| *moment <= until)?;
        let (_, name) = self.in_order.pop_first()?;
        self.moments.remove(&name);
        Some(name)
    }
}

impl GcSchedule {
    pub(crate) fn new(collection: Collection) -> Self {
        Self { collection, times: Mutex::default() }
    }

    pub(crate) fn collection(&self) -> Collection {
        self.collection
    }

    /// Schedules a session whose history was truncated. Readers of older boards have a moment to end.
    pub(crate) fn after_cut(&self, name: &SessionName) {
        let mut times = self.times.lock();
        let rest = self.collection.rest;
        let due = times.due_in(name, rest, rest * RESTS_BETWEEN_CUTS);
        times.due.set(name, due);
    }

    /// Schedules a session for which images of a rejected write may be stored.
    pub(crate) fn after_refusal(&self, name: &SessionName) {
        self.ask(name, self.collection.age);
    }

    /// Schedules a session after a rest, and not too soon after the last collection.
    pub(crate) fn ask(&self, name: &SessionName, rest: Duration) {
        let mut times = self.times.lock();
        let due = times.due_in(name, rest, self.collection.every);
        let due = times.due.get(name).map_or(due, |asked| due.min(asked));
        times.due.set(name, due);
    }

    /// Takes out a session that is due.
    pub(crate) fn next(&self) -> Option<SessionName> {
        let now = Instant::now();
        let mut times = self.times.lock();
        if let Some(long_ago) = now.checked_sub(self.collection.every) {
            while times.looked.take_first(long_ago).is_some() {}
        }
        let name = times.due.take_first(now)?;
        times.looked.set(&name, now);
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_cut_again_does_not_wait_for_its_next_turn() {
        let (rest, every) = (Duration::ZERO, Duration::from_secs(600));
        let looks = GcSchedule::new(Collection { age: Duration::ZERO, rest, every });
        let name: SessionName = "s".parse().unwrap();
        for _ in 0..2 {
            looks.after_cut(&name);
            assert_eq!(looks.next(), Some(name.clone()));
        }
        looks.after_refusal(&name);
        assert_eq!(looks.next(), None);
    }

    /// As many as a start may ask for: a search among all of them for each would take minutes.
    #[test]
    fn each_of_many_sessions_comes_once_and_in_order() {
        const SESSIONS: usize = 100_000;
        let (rest, every) = (Duration::ZERO, Duration::from_secs(600));
        let looks = GcSchedule::new(Collection { age: Duration::ZERO, rest, every });
        let names: Vec<SessionName> =
            (0..SESSIONS).map(|n| format!("s{n}").parse().unwrap()).collect();
        for _ in 0..2 {
            names.iter().for_each(|name| looks.ask(name, Duration::ZERO));
        }
        let looked: Vec<SessionName> = std::iter::from_fn(|| looks.next()).collect();
        assert_eq!(looked.len(), SESSIONS);
        assert_eq!(looked, names);
    }
}
