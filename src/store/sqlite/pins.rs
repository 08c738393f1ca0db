//! Pins: a reader's hold on a session's history from one base on.
//!
//! A base set while its session is pinned makes a cut; the cut is no garbage until no pin needs it. A pin expires, so a
//! stuck reader holds nothing for ever.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::index::Base;
use super::rows::positions::Rows;
use super::rows::read::Readers;
use crate::board::{Revision, SessionId};
use crate::store::{JournalId, PageMax, StoreError};

/// How long a pin holds what a later base forgets.
pub(crate) const PIN_TIME_MAX: Duration = Duration::from_secs(60 * 60);

/// A session's history as it was when this was taken: its base stays readable, and every commit after it.
///
/// It holds for an hour at most. What is forgotten by then is [`StoreError::Forgotten`] from then on.
#[derive(Debug)]
pub struct Pin {
    readers: Arc<Readers>,
    session: SessionId,
    base: Option<Base>,
    id: PinId,
}

/// Which pin of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PinId(u64);

impl Pin {
    /// Pins what is in force: the base is looked up and held under one lock.
    pub(crate) fn of(readers: &Arc<Readers>, session: SessionId) -> Result<Self, StoreError> {
        let readers = Arc::clone(readers);
        let mut histories = readers.histories.write();
        let base = histories.own_base(session)?;
        let from = base.map(|base| base.revision).unwrap_or_default();
        let id = histories.pins.pin(session, from, Instant::now());
        drop(histories);
        Ok(Self { readers, session, base, id })
    }

    /// The session whose history it holds.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The revision of the base with which that history begins, if it has one.
    #[must_use]
    pub fn base(&self) -> Option<Revision> {
        self.base.map(|base| base.revision)
    }

    /// The commits after a revision, as [`Store::commits`](crate::store::Store::commits) gives them.
    ///
    /// # Errors
    ///
    /// As for [`Store::commits`](crate::store::Store::commits).
    pub fn commits(
        &self,
        after: Revision,
        max: PageMax,
    ) -> Result<Vec<(Revision, Vec<u8>)>, StoreError> {
        self.readers.page(self.session, after, max, Some(self.id))
    }

    /// Visits the frames of the base, as [`Store::read_base`](crate::store::Store::read_base) does.
    ///
    /// # Errors
    ///
    /// As for [`Store::read_base`](crate::store::Store::read_base).
    pub fn read_base(
        &self,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let Some(base) = self.base else { return Ok(()) };
        self.readers.visit_base(self.session, base, Some(self.id), visit)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.readers.histories.write().pins.unpin(self.session, self.id);
    }
}

/// History that a base has forgotten: what is to be deleted.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) session: SessionId,
    /// The base from now on.
    pub(crate) base: Revision,
    /// The base until now.
    pub(crate) before: Option<Base>,
    /// The rows of the journal up to the base.
    pub(crate) rows: Rows,
}

/// All pins, and the cuts that they keep from being deleted.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    last: u64,
    sessions: HashMap<SessionId, Pinned>,
    /// Cuts that no pin needs any more.
    released: Vec<Cut>,
}

/// A session that somebody has pinned.
#[derive(Debug, Default)]
struct Pinned {
    /// From which base on each pin holds the history, and since when.
    pins: BTreeMap<PinId, (Revision, Instant)>,
    /// In the order in which they were made.
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

    /// The revision from which on a pin still holds the history.
    pub(crate) fn base(&self, session: SessionId, id: PinId, now: Instant) -> Option<Revision> {
        let (base, since) = self.sessions.get(&session)?.pins.get(&id)?;
        is_held(*since, now).then_some(*base)
    }

    /// Keeps a cut while its session is pinned; otherwise gives it back.
    pub(crate) fn keep(&mut self, cut: Cut) -> Option<Cut> {
        let Some(pinned) = self.sessions.get_mut(&cut.session) else { return Some(cut) };
        pinned.cuts.push_back(cut);
        None
    }

    /// Whether cuts are kept of a session.
    pub(crate) fn keep_cuts_of(&self, session: SessionId) -> bool {
        self.sessions.get(&session).is_some_and(|pinned| !pinned.cuts.is_empty())
    }

    /// Whether a row of the journal is in a cut that is kept.
    pub(crate) fn keep_row(&self, session: SessionId, id: JournalId) -> bool {
        let pinned = self.sessions.get(&session);
        pinned.is_some_and(|pinned| pinned.cuts.iter().any(|cut| cut.rows.has(id)))
    }

    /// The rows after a revision of the first cut that has any. Between two cuts all is compacted.
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

    /// Whether cuts may be deleted by now that were kept.
    pub(crate) fn are_due(&self, now: Instant) -> bool {
        let is_due = |pinned: &Pinned| !pinned.cuts.is_empty() && pinned.is_over(now);
        !self.released.is_empty() || self.sessions.values().any(is_due)
    }

    /// The cuts that no pin holds any more.
    pub(crate) fn take_released(&mut self, now: Instant) -> Vec<Cut> {
        self.sessions.retain(|_, pinned| {
            pinned.pins.retain(|_, (_, since)| is_held(*since, now));
            pinned.release(&mut self.released);
            !pinned.pins.is_empty()
        });
        std::mem::take(&mut self.released)
    }
}

impl Pinned {
    /// Whether a pin has held for too long.
    fn is_over(&self, now: Instant) -> bool {
        self.pins.values().any(|(_, since)| !is_held(*since, now))
    }

    /// Lets those cuts go that end where the oldest pin begins, or before.
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
