//! Sweeping: the writer commits what has come to its end by time in sessions that nobody writes to.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::session::{Pin, Session};
use super::staging::Staging;
use super::writer::{SWEEP_EVERY, Writer, expire};

/// How many sessions are swept at once, with one commit each; then those who wait get their turn.
const SWEPT_AT_ONCE_MAX: usize = 64;

/// How long it rests while the boards are read in which something is due.
const WARMING_REST: Duration = Duration::from_millis(10);

/// What becomes of a session whose board is not in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cold {
    /// It is read at once: nobody is served yet.
    Read,
    /// Others are asked to read it.
    Ask,
}

impl Writer {
    /// How long until something comes to its end by time, or may be tried again.
    pub(super) fn until_due(&self) -> Option<Duration> {
        let (deadline, reading) = (self.deadlines.next()?, self.clock.read());
        if reading.is_held {
            return Some(SWEEP_EVERY);
        }
        let left = u64::try_from(deadline.0.saturating_sub(reading.now.0)).unwrap_or(0);
        let failed = self.sweep_after.map(|after| after.saturating_duration_since(Instant::now()));
        let warming = if self.warming.is_empty() { Duration::ZERO } else { WARMING_REST };
        Some(Duration::from_millis(left).max(failed.unwrap_or_default()).max(warming))
    }

    /// Sweeps until nothing is due any more, or it cannot be stored.
    pub(super) fn sweep_all(&mut self) {
        while self.sweep(Cold::Read) {}
    }

    /// Takes note of what has come to its end by time, in one batch; whether there may be more.
    pub(super) fn sweep(&mut self, cold: Cold) -> bool {
        if self.sweep_after.is_some_and(|after| after > Instant::now()) {
            return false;
        }
        self.sweep_after = None;
        if self.deadlines.next().is_none() {
            return false;
        }
        let now = self.clock.read().due();
        let due = self.deadlines.due(now, SWEPT_AT_ONCE_MAX);
        self.warming.retain(|name, _| due.contains(name));
        if due.is_empty() {
            return false;
        }
        let mut staged = HashMap::new();
        for name in due {
            let session = self.directory.get(&name);
            if cold == Cold::Ask && session.as_ref().is_some_and(|found| self.is_awaited(found)) {
                continue;
            }
            let mut staging = Staging::of(session.as_ref(), &self.loads);
            let is_expired = expire(&mut staging, now, 1);
            if !is_expired || (staging.is_unread() && !staging.is_damaged()) {
                self.sweep_after = Some(Instant::now() + SWEEP_EVERY);
            } else if staging.is_idle() {
                // Nothing was due after all: it is not to be looked at again and again.
                self.deadlines.set(&name, staging.board().next_due());
            } else {
                staged.insert(name, staging);
            }
        }
        if !self.commit(staged, HashMap::new()) {
            self.sweep_after = Some(Instant::now() + SWEEP_EVERY);
        }
        self.sweep_after.is_none()
    }

    /// Whether the board of a session in which something is due is being read; others do that while the writer
    /// goes on. It stays in memory until the session was swept.
    fn is_awaited(&mut self, session: &Arc<Session>) -> bool {
        let asked = self.warming.contains_key(session.name());
        if asked && self.loads.is_under_way(session) {
            return true;
        }
        if asked || session.is_hot() || session.is_damaged() {
            self.warming.remove(session.name());
            return false;
        }
        self.warming.insert(session.name().clone(), Pin::new(session));
        self.loads.warm(session).is_ok()
    }
}
