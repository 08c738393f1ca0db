//! Pins: a reader's hold on a session's history from one base on.
//!
//! A base set while its session is pinned makes a cut, which becomes garbage once no pin needs it. A pin expires, so
//! a stuck reader holds nothing for ever.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::index::Base;
use super::rows::positions::Rows;
use super::rows::read::Readers;
use crate::{JournalId, PageMax, Pinned, StoreError};
use blackboard_board::{Revision, SessionId};

/// The maximum lifetime of a pin.
pub(crate) const PIN_TIME_MAX: Duration = Duration::from_secs(60 * 60);

/// A session's pinned history, for at most an hour.
#[derive(Debug)]
pub(crate) struct Pin {
    readers: Arc<Readers>,
    session: SessionId,
    base: Option<Base>,
    id: PinId,
}

/// The id of a pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PinId(u64);

impl Pin {
    /// Pins the history in force: the base is found and pinned under one lock.
    pub(crate) fn of(readers: &Arc<Readers>, session: SessionId) -> Result<Self, StoreError> {
        let readers = Arc::clone(readers);
        let mut histories = readers.histories.write();
        let base = histories.own_base(session)?;
        let from = base.map(|base| base.revision).unwrap_or_default();
        let id = histories.pins.pin(session, from, Instant::now());
        drop(histories);
        Ok(Self { readers, session, base, id })
    }
}

impl Pinned for Pin {
    fn session(&self) -> SessionId {
        self.session
    }

    fn base(&self) -> Option<Revision> {
        self.base.map(|base| base.revision)
    }

    fn commits(
        &self,
        after: Revision,
        max: PageMax,
    ) -> Result<Vec<(Revision, Vec<u8>)>, StoreError> {
        self.readers.page(self.session, after, max, Some(self.id))
    }

    fn read_base(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), StoreError> {
        let Some(base) = self.base else { return Ok(()) };
        self.readers.visit_base(self.session, base, Some(self.id), visit)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.readers.histories.write().pins.unpin(self.session, self.id);
    }
}

/// History before a new base, to be deleted.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) session: SessionId,
    /// The new base.
    pub(crate) base: Revision,
    /// The previous base.
    pub(crate) before: Option<Base>,
    /// The journal rows up to the new base.
    pub(crate) rows: Rows,
}

/// All pins, and the cuts that they keep from deletion.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    last: u64,
    sessions: HashMap<SessionId, PinsOfOne>,
    /// Cuts that no pin keeps any more.
    released: Vec<Cut>,
}

/// The pins and cuts of one session.
#[derive(Debug, Default)]
struct PinsOfOne {
    /// The base revision and start of each pin.
    pins: BTreeMap<PinId, (Revision, Instant)>,
    /// Oldest first.
    cuts: VecDeque<Cut>,
}

impl Pins {
    fn pin(&mut self, session: SessionId, base: Revision, now: Instant) -> PinId {
        self.last += 1;
        let id = PinId(self.last);
        self.sessions.entry(session).or_default().pins.insert(id, (base, now));
        id
    }

    fn unpin(&mut self, session: SessionId, id: PinId) {
        let Some(pinned) = self.sessions.get_mut(&session) else { return };
        pinned.pins.remove(&id);
        pinned.release(&mut self.released);
        if pinned.pins.is_empty() {
            self.sessions.remove(&session);
        }
    }

    /// Returns the base revision of a pin, unless it has expired.
    pub(crate) fn base(&self, session: SessionId, id: PinId, now: Instant) -> Option<Revision> {
        let (base, since) = self.sessions.get(&session)?.pins.get(&id)?;
        is_held(*since, now).then_some(*base)
    }

    /// Keeps a cut while its session is pinned; otherwise returns it.
    pub(crate) fn keep(&mut self, cut: Cut) -> Option<Cut> {
        let Some(pinned) = self.sessions.get_mut(&cut.session) else { return Some(cut) };
        pinned.cuts.push_back(cut);
        None
    }

    /// Returns true if cuts of a session are kept.
    pub(crate) fn keep_cuts_of(&self, session: SessionId) -> bool {
        self.sessions.get(&session).is_some_and(|pinned| !pinned.cuts.is_empty())
    }

    /// Returns true if a row of the journal is in a kept cut.
    pub(crate) fn keep_row(&self, session: SessionId, id: JournalId) -> bool {
        let pinned = self.sessions.get(&session);
        pinned.is_some_and(|pinned| pinned.cuts.iter().any(|cut| cut.rows.has(id)))
    }

    /// Returns the rows after a revision of the first cut that has any. Between two cuts everything is compacted.
    pub(crate) fn rows_after(
        &self,
        session: SessionId,
        after: Revision,
        max: usize,
    ) -> Vec<(Revision, JournalId)> {
        let cuts = self.sessions.get(&session).into_iter().flat_map(|pinned| &pinned.cuts);
        cuts.map(|cut| cut.rows.after(after).take(max).collect::<Vec<_>>())
            .find(|rows| !rows.is_empty())
            .unwrap_or_default()
    }

    /// Returns true if kept cuts can now be deleted.
    pub(crate) fn are_due(&self, now: Instant) -> bool {
        let is_due = |pinned: &PinsOfOne| !pinned.cuts.is_empty() && pinned.is_over(now);
        !self.released.is_empty() || self.sessions.values().any(is_due)
    }

    /// Removes expired pins. Returns the cuts that no pin keeps any more.
    pub(crate) fn take_released(&mut self, now: Instant) -> Vec<Cut> {
        self.sessions.retain(|_, pinned| {
            pinned.pins.retain(|_, (_, since)| is_held(*since, now));
            pinned.release(&mut self.released);
            !pinned.pins.is_empty()
        });
        std::mem::take(&mut self.released)
    }
}

impl PinsOfOne {
    /// Returns true if a pin has expired.
    fn is_over(&self, now: Instant) -> bool {
        self.pins.values().any(|(_, since)| !is_held(*since, now))
    }

    /// Releases the cuts that end at or before the oldest pin's base.
    fn release(&mut self, released: &mut Vec<Cut>) {
        let oldest = self.pins.values().map(|(base, _)| *base).min();
        while let Some(cut) = self.cuts.pop_front_if(|cut| oldest.is_none_or(|at| cut.base <= at)) {
            released.push(cut);
        }
    }
}

fn is_held(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) < PIN_TIME_MAX
}

#[cfg(test)]
mod tests;
