//! Schedule of the retention thread: the next time for each session.
//!
//! A session is scheduled after a commit, or as its commits age; an idle session costs nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::board::{History, SessionName};
use crate::service::deadlines::Deadlines;
use crate::service::threads::signal::Signal;

/// How long after a commit a session is looked at, with all that came meanwhile.
pub(crate) const LOOK_AFTER: Duration = Duration::from_millis(500);

/// How long a session is left alone after its history was cut.
pub(crate) const REST: Duration = Duration::from_secs(10);

/// The sessions that are to be looked at.
#[derive(Debug, Default)]
pub(crate) struct RetentionSchedule {
    times: Mutex<Times>,
    /// Wakes the keeper.
    pub(crate) signal: Arc<Signal>,
}

#[derive(Debug, Default)]
struct Times {
    looks: Deadlines<Instant>,
    /// By which setting the next look was chosen.
    chosen_by: HashMap<SessionName, History>,
}

impl RetentionSchedule {
    /// Notes that a session with this setting has another commit.
    pub(crate) fn note_commit(&self, name: &SessionName, history: History) {
        let now = Instant::now();
        let mut times = self.times.lock();
        let is_chosen = times.chosen_by.get(name) == Some(&history);
        let is_soon = times.looks.of(name).is_some_and(|at| at <= now + REST);
        // A commit makes no other one older: of an age the look that is chosen stands.
        let stands = match history {
            History::Age(_) => is_chosen && times.looks.of(name).is_some(),
            History::Revisions(_) | History::Bytes(_) => is_soon,
        };
        if stands {
            return;
        }
        if !is_chosen {
            times.chosen_by.insert(name.clone(), history);
        }
        self.set(&mut times, name, now + LOOK_AFTER);
    }

    /// Lets a session be looked at again after so long.
    pub(crate) fn look_again(&self, name: &SessionName, after: Duration) {
        let at = Instant::now() + after;
        self.set(&mut self.times.lock(), name, at);
    }

    fn set(&self, times: &mut Times, name: &SessionName, at: Instant) {
        let first = times.looks.next();
        times.looks.set(name, Some(at));
        if first.is_none_or(|first| at < first) {
            self.signal.wake();
        }
    }

    /// Forgets a session that keeps all of its history, or is deleted.
    pub(crate) fn forget(&self, name: &SessionName) {
        self.times.lock().chosen_by.remove(name);
    }

    /// Takes out a session that is to be looked at now.
    pub(crate) fn take_due(&self) -> Option<SessionName> {
        self.times.lock().looks.take_due(Instant::now())
    }

    /// How long until the next look; [`Duration::MAX`] where there is none.
    pub(crate) fn until_next(&self) -> Duration {
        let next = self.times.lock().looks.next();
        next.map_or(Duration::MAX, |next| next.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revisions() -> (RetentionSchedule, SessionName) {
        (RetentionSchedule::default(), "s".parse().unwrap())
    }

    #[test]
    fn a_session_without_commits_is_not_looked_at() {
        let (retentions, name) = revisions();
        assert_eq!(retentions.until_next(), Duration::MAX);
        retentions.note_commit(&name, History::Revisions(1));
        assert!(retentions.until_next() <= LOOK_AFTER);
        retentions.look_again(&name, Duration::ZERO);
        assert_eq!(retentions.take_due(), Some(name));
        assert_eq!((retentions.take_due(), retentions.until_next()), (None, Duration::MAX));
    }

    #[test]
    fn a_commit_ends_no_rest_and_moves_no_age() {
        let (retentions, name) = revisions();
        retentions.note_commit(&name, History::Revisions(1));
        retentions.look_again(&name, REST);
        retentions.note_commit(&name, History::Revisions(1));
        assert!(retentions.until_next() > LOOK_AFTER);

        let age = |text: &str| History::Age(text.parse().unwrap());
        retentions.note_commit(&name, age("30d"));
        assert!(retentions.until_next() <= LOOK_AFTER, "another setting");
        retentions.look_again(&name, 6 * REST);
        retentions.note_commit(&name, age("30d"));
        assert!(retentions.until_next() > REST);
        retentions.note_commit(&name, age("1s"));
        assert!(retentions.until_next() <= LOOK_AFTER);
    }
}
