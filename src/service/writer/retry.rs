//! Retries of expiries that could not be stored, each session after a pause of its own.
//!
//! A session that fails repeatedly does not delay the others.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::board::{SessionName, Timestamp};
use crate::service::deadlines::Deadlines;

/// The pause after the first failure. It doubles with each that follows.
const PAUSE_MIN: Duration = Duration::from_millis(500);

/// How often it doubles at most, which makes it 32 s.
const DOUBLINGS_MAX: u32 = 6;

/// The sessions that wait to be tried again.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    retries: Deadlines<Instant>,
    failed: HashMap<SessionName, Failed>,
}

#[derive(Debug)]
struct Failed {
    /// The deadline that has come.
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

    /// Takes out a session that is to be tried again, with its deadline. Its failures stay counted.
    pub(crate) fn take_due(&mut self) -> Option<(SessionName, Timestamp)> {
        let name = self.retries.take_due(Instant::now())?;
        let deadline = self.failed.get(&name)?.deadline;
        Some((name, deadline))
    }

    /// How long until one is to be tried again, if any is.
    pub(crate) fn until_next(&self) -> Option<Duration> {
        Some(self.retries.next()?.saturating_duration_since(Instant::now()))
    }

    /// Forgets a session: what was due is stored, or nothing is due any more.
    pub(crate) fn forget(&mut self, name: &SessionName) {
        if self.failed.remove(name).is_some() {
            self.retries.set(name, None);
        }
    }
}
