//! Schedule of the retention thread: the next time for each session.
//!
//! A session is scheduled after a commit, or as its commits age; an idle session costs nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::deadlines::Deadlines;
use crate::threads::signal::Signal;
use blackboard_board::{History, SessionName};

/// The time from a commit to the session's next check, which covers all commits until then.
pub(crate) const LOOK_AFTER: Duration = Duration::from_millis(500);

/// The time from a truncation to the session's next check.
pub(crate) const REST: Duration = Duration::from_secs(10);

/// The sessions that have a check ahead.
#[derive(Debug, Default)]
pub(crate) struct RetentionSchedule {
    times: Mutex<Times>,
    /// Wakes the retention thread.
    pub(crate) signal: Arc<Signal>,
}

#[derive(Debug, Default)]
struct Times {
    looks: Deadlines<Instant>,
    /// The setting by which the next check was scheduled.
    chosen_by: HashMap<SessionName, History>,
}

impl RetentionSchedule {
    /// Notes that a session with this setting has another commit.
    pub(crate) fn note_commit(&self, name: &SessionName, history: History) {
        let now = Instant::now();
        let mut times = self.times.lock();
        let is_chosen = times.chosen_by.get(name) == Some(&history);
        let is_soon = times.looks.of(name).is_some_and(|at| at <= now + REST);
        // A commit does not age the others: a check scheduled for an age stays.
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

    /// Schedules the next check of a session after this time.
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

    /// Removes a session that retains all of its history, or is deleted.
    pub(crate) fn forget(&self, name: &SessionName) {
        self.times.lock().chosen_by.remove(name);
    }

    /// Takes out a session whose check is due.
    pub(crate) fn take_due(&self) -> Option<SessionName> {
        self.times.lock().looks.take_due(Instant::now())
    }

    /// Returns the time until the next check; [`Duration::MAX`] if none is scheduled.
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
    #[test]
    fn a_name_that_is_forgotten_begins_anew() {
        let (retentions, name) = revisions();
        let month = History::Age("30d".parse().unwrap());
        retentions.note_commit(&name, month);
        retentions.look_again(&name, 6 * REST);
        retentions.forget(&name);
        retentions.note_commit(&name, month);
        assert!(retentions.until_next() <= LOOK_AFTER);
    }
}
