//! The leader's work: one of the servers over a store does for all sessions what an embedded store's threads do for theirs.
//!
//! The leader knows only what it has read, so it has the sessions checked that it works on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Checks, NAMES_AT_ONCE_MAX};
use crate::history::deletion::AT_ONCE_MAX;
use crate::images::gc_schedule::GcSchedule;
use crate::images::reaper::Orphans;
use crate::sessions::directory::Directory;
use crate::sessions::tombstones::TOMBSTONE_MS;
use blackboard_board::{SessionName, Timestamp};
use blackboard_clock::Clock;
use blackboard_store::{SharedStore, StoreError};

/// The time between two looks at the sessions whose history a setting limits.
const LIMITED_EVERY: Duration = Duration::from_secs(60);

/// The time between two looks for blobs to collect, and the rest until one is collected.
const COLLECTED_EVERY: Duration = Duration::from_secs(60 * 60);
const COLLECTED_AFTER: Duration = Duration::from_secs(5);

/// The time between two deletions of what nobody needs, and between two counts of the sessions.
const SWEPT_EVERY: Duration = Duration::from_secs(5);

/// The regular tasks, and when each was done last.
pub(super) struct Leader {
    pub(super) directory: Arc<Directory>,
    pub(super) orphans: Arc<Orphans>,
    pub(super) schedule: Arc<GcSchedule>,
    pub(super) clock: Clock,
    pub(super) swept: Option<Instant>,
    pub(super) limited: Round,
    pub(super) collected: Round,
    /// True if this server led at the last look.
    pub(super) led: bool,
}

/// A look at all sessions, a page at a time.
#[derive(Default)]
pub(super) struct Round {
    /// The end of the last one.
    ended: Option<Instant>,
    /// The last name of the page before, while it goes on.
    after: Vec<u8>,
}

impl Round {
    fn is_due(&self, every: Duration) -> bool {
        is_due(self.ended, every)
    }

    /// Notes the names of a page; without any, the round has ended.
    fn note(&mut self, names: &[Vec<u8>]) {
        self.after = names.last().cloned().unwrap_or_default();
        if names.is_empty() {
            self.ended = Some(Instant::now());
        }
    }
}

fn is_due(last: Option<Instant>, every: Duration) -> bool {
    last.is_none_or(|last| last.elapsed() >= every)
}

impl Leader {
    /// Does the regular tasks that are due, if this server leads, and adds the sessions that need a check.
    pub(super) fn work(
        &mut self,
        store: &dyn SharedStore,
        checks: &mut Checks,
    ) -> Result<(), StoreError> {
        if is_due(self.swept, SWEPT_EVERY) {
            self.directory.set_count(store.count()?);
            if store.lead() {
                self.delete_over(store)?;
            }
            self.swept = Some(Instant::now());
        }
        let leads = store.lead();
        if leads && !self.led {
            // The leader before may have left something.
            (self.limited.ended, self.collected.ended) = (None, None);
        }
        self.led = leads;
        if !leads {
            return Ok(());
        }
        add(checks, &store.due(self.clock.read().due(), NAMES_AT_ONCE_MAX)?);
        if self.limited.is_due(LIMITED_EVERY) {
            let names = store.limited(&self.limited.after, NAMES_AT_ONCE_MAX)?;
            self.limited.note(&names);
            add(checks, &names);
        }
        if self.collected.is_due(COLLECTED_EVERY) {
            self.collect(store, checks)?;
        }
        Ok(())
    }

    /// Has the unneeded blobs of the next sessions collected.
    fn collect(&mut self, store: &dyn SharedStore, checks: &mut Checks) -> Result<(), StoreError> {
        let age = i64::try_from(self.schedule.collection().age.as_millis()).unwrap_or(i64::MAX);
        let before = Timestamp(self.clock.read().due().0.saturating_sub(age));
        let names = store.collectable(before, &self.collected.after, NAMES_AT_ONCE_MAX)?;
        if names.is_empty() {
            // A sweep that fails is tried again at the next look.
            store.sweep()?;
        }
        self.collected.note(&names);
        let parsed = names.iter().filter_map(|name| SessionName::from_bytes(name));
        parsed.for_each(|name| self.schedule.ask(&name, COLLECTED_AFTER));
        add(checks, &names);
        Ok(())
    }

    /// Deletes histories that nobody needs, with their blobs.
    fn delete_over(&self, store: &dyn SharedStore) -> Result<(), StoreError> {
        let now = self.clock.read().due();
        let before = Timestamp(now.0.saturating_sub(TOMBSTONE_MS));
        let over = store.over(before, AT_ONCE_MAX)?;
        if !over.is_empty() {
            store.forget(&over)?;
            over.into_iter().for_each(|session| self.orphans.add(session));
        }
        Ok(())
    }
}

/// Adds checks that nobody waits for.
fn add(checks: &mut Checks, names: &[Vec<u8>]) {
    for name in names.iter().filter_map(|name| SessionName::from_bytes(name)) {
        checks.entry(name).or_default();
    }
}
