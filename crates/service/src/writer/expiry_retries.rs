//! Retries of expiries that could not be stored, with a backoff for each session.
//!
//! A session that fails repeatedly does not delay the others.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::deadlines::Deadlines;
use blackboard_board::{SessionName, Timestamp};

/// The pause after the first failure. It doubles with each that follows.
const PAUSE_MIN: Duration = Duration::from_millis(500);

/// The number of doublings, up to 32 s.
const DOUBLINGS_MAX: u32 = 6;

/// The sessions that wait for a retry.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    retries: Deadlines<Instant>,
    failed: HashMap<SessionName, Failed>,
}

#[derive(Debug)]
struct Failed {
    /// The deadline that is due.
    deadline: Timestamp,
    doublings: u32,
}

impl Retries {
    /// Notes that a session's deadline could not be stored.
    pub(crate) fn add(&mut self, name: &SessionName, deadline: Timestamp) {
        let failed = self.failed.entry(name.clone());
        let failed = failed
            .and_modify(|failed| failed.doublings = (failed.doublings + 1).min(DOUBLINGS_MAX))
            .or_insert(Failed { deadline, doublings: 0 });
        failed.deadline = deadline;
        let pause = PAUSE_MIN * (1 << failed.doublings);
        self.retries.set(name, Some(Instant::now() + pause));
    }

    /// Takes out a session whose retry is due, with its deadline. Its failures stay counted.
    pub(crate) fn take_due(&mut self) -> Option<(SessionName, Timestamp)> {
        let name = self.retries.take_due(Instant::now())?;
        let deadline = self.failed.get(&name)?.deadline;
        Some((name, deadline))
    }

    /// Returns the time until the next retry, if any.
    pub(crate) fn until_next(&self) -> Option<Duration> {
        Some(self.retries.next()?.saturating_duration_since(Instant::now()))
    }

    /// Removes a session whose expiry is stored or no longer due.
    pub(crate) fn forget(&mut self, name: &SessionName) {
        if self.failed.remove(name).is_some() {
            self.retries.set(name, None);
        }
    }
}
