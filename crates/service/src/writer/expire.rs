//! Expiry: commits that remove expired values of sessions without writes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::batch::{Batch, Part};
use super::staging::Staging;
use super::{SWEEP_EVERY, Writer, expire};
use crate::sessions::session::{Pin, Session};
use blackboard_board::SessionName;

/// The number of sessions swept at once, with one commit each, before waiting writes have their turn.
const SWEPT_AT_ONCE_MAX: usize = 64;

/// The rest while boards with due expiries are being loaded.
const WARMING_REST: Duration = Duration::from_millis(10);

/// The number of sweeps that may fail at a start; the rest is swept later.
const FAILED_AT_START_MAX: usize = 16;

/// Handling of a session whose board is evicted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cold {
    /// The writer loads it: the service has not started yet.
    Read,
    /// The loader loads it.
    Ask,
}

/// State of the board of a session with a due expiry.
enum Warmth {
    Ready,
    /// The loader loads it while the writer continues.
    Awaited,
    /// The session cannot be loaded now.
    Failed,
}

impl Writer {
    /// Returns the time until the next expiry or retry.
    pub(crate) fn until_due(&self) -> Option<Duration> {
        let retry = self.retries.until_next();
        let Some(deadline) = self.deadlines.next() else { return retry };
        let reading = self.clock.read();
        if reading.is_held {
            return Some(SWEEP_EVERY);
        }
        let left = u64::try_from(deadline.0.saturating_sub(reading.now.0)).unwrap_or(0);
        let failed = self.sweep_after.map(|after| after.saturating_duration_since(Instant::now()));
        let warming = if self.warming.is_empty() { Duration::ZERO } else { WARMING_REST };
        let left = Duration::from_millis(left).max(failed.unwrap_or_default()).max(warming);
        Some(retry.map_or(left, |retry| retry.min(left)))
    }

    /// Sweeps until nothing is due, or nothing can be stored.
    pub(crate) fn sweep_all(&mut self) {
        for _ in 0..FAILED_AT_START_MAX {
            while self.sweep(Cold::Read) {}
            // Other sessions may be due besides those that failed.
            if self.sweep_after.take().is_none() {
                return;
            }
        }
    }

    /// Stores due expiries in one batch; returns true if there may be more.
    pub(crate) fn sweep(&mut self, cold: Cold) -> bool {
        if self.sweep_after.is_some_and(|after| after > Instant::now()) {
            return false;
        }
        self.sweep_after = None;
        if self.store.shared().is_some_and(|store| !store.lead()) {
            self.sweep_after = Some(Instant::now() + SWEEP_EVERY);
            return false;
        }
        while let Some((name, deadline)) = self.retries.take_due() {
            self.deadlines.set(&name, Some(deadline));
        }
        if self.deadlines.next().is_none() {
            return false;
        }
        let now = self.clock.read().due();
        let due = self.deadlines.due(now, SWEPT_AT_ONCE_MAX);
        self.warming.retain(|name, _| due.contains(name));
        if due.is_empty() {
            return false;
        }
        let (mut batch, mut failed) = (Batch::default(), Vec::new());
        for name in due {
            let session = self.directory.get(&name);
            match session.as_ref().map_or(Warmth::Ready, |session| self.warm(session, cold)) {
                Warmth::Ready => {}
                Warmth::Awaited => continue,
                Warmth::Failed => {
                    failed.push(name);
                    continue;
                }
            }
            let mut staging = Staging::of(session.as_ref(), &self.loader);
            if staging.is_cold() {
                // The board was evicted just now; the next sweep loads it again.
                continue;
            }
            if !expire(&mut staging, now, 1) {
                failed.push(name);
            } else if staging.is_idle() {
                // Nothing was due after all, so the deadline is corrected.
                self.retries.forget(&name);
                self.deadlines.set(&name, staging.board().next_due());
            } else {
                batch.push(Part::of(name, staging));
            }
        }
        let tried = batch.sessions() + failed.len();
        failed.extend(self.commit(batch));
        failed.iter().for_each(|name| self.postpone(name));
        if tried > 0 && failed.len() == tried {
            // The store may have failed, and not these sessions.
            self.sweep_after = Some(Instant::now() + SWEEP_EVERY);
        }
        self.sweep_after.is_none()
    }

    /// Puts off the expiry of a session that could not be stored.
    fn postpone(&mut self, name: &SessionName) {
        if let Some(deadline) = self.deadlines.of(name) {
            self.deadlines.set(name, None);
            self.retries.add(name, deadline);
        }
    }

    /// Loads and pins the board of a session with a due expiry until it was swept.
    fn warm(&mut self, session: &Arc<Session>, cold: Cold) -> Warmth {
        if cold == Cold::Read {
            let read = self.loader.published_here(session);
            return if read.is_ok() || session.is_damaged() {
                Warmth::Ready
            } else {
                Warmth::Failed
            };
        }
        let asked = self.warming.contains_key(session.name());
        if asked && self.loader.is_under_way(session) {
            return Warmth::Awaited;
        }
        if asked || session.is_hot() || session.is_damaged() {
            self.warming.remove(session.name());
            let is_there = session.is_hot() || session.is_damaged();
            return if is_there { Warmth::Ready } else { Warmth::Failed };
        }
        self.warming.insert(session.name().clone(), Pin::new(session));
        if self.loader.warm(session).is_ok() { Warmth::Awaited } else { Warmth::Failed }
    }
}
