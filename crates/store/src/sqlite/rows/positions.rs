//! Positions of a session's rows in the journal, by revision.

use crate::JournalId;
use blackboard_board::Revision;

/// A session's rows in the journal, by revision.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    ids: Vec<JournalId>,
    /// The places where revisions are not consecutive, including the first: rarely more than one.
    jumps: Vec<Jump>,
}

/// A place from which on revisions are consecutive.
#[derive(Clone, Copy, Debug)]
struct Jump {
    at: usize,
    revision: u64,
}

impl Jump {
    fn revision_at(self, place: usize) -> u64 {
        let offset = place.saturating_sub(self.at);
        self.revision.saturating_add(u64::try_from(offset).unwrap_or(u64::MAX))
    }

    /// Returns the place of a revision at or above this jump's.
    fn place_of(self, revision: u64) -> usize {
        let offset = revision.saturating_sub(self.revision);
        self.at.saturating_add(usize::try_from(offset).unwrap_or(usize::MAX))
    }
}

impl Rows {
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Adds a row and returns true, unless its revision is out of order.
    pub(crate) fn push(&mut self, Revision(revision): Revision, id: JournalId) -> bool {
        let at = self.ids.len();
        let next = self.jumps.last().map(|jump| jump.revision_at(at));
        if next.is_some_and(|next| revision < next) {
            return false;
        }
        // Most sessions have few rows here, and one jump.
        if self.ids.is_empty() {
            self.ids.reserve_exact(1);
        }
        if next != Some(revision) {
            self.jumps.reserve_exact(1);
            self.jumps.push(Jump { at, revision });
        }
        self.ids.push(id);
        true
    }

    /// Returns the place of the first row after a revision, and the number of jumps up to the revision.
    fn first_after(&self, Revision(revision): Revision) -> (usize, usize) {
        let come = self.jumps.partition_point(|jump| jump.revision <= revision);
        let end = self.jumps.get(come).map_or(self.ids.len(), |next| next.at);
        let last = come.checked_sub(1).and_then(|last| self.jumps.get(last));
        let place = last.map_or(0, |jump| jump.place_of(revision).saturating_add(1).min(end));
        (place, come)
    }

    pub(crate) fn after(&self, revision: Revision) -> impl Iterator<Item = (Revision, JournalId)> {
        let (first, come) = self.first_after(revision);
        let mut jumps = self.jumps.iter().skip(come.saturating_sub(1)).copied().peekable();
        let mut jump = jumps.next();
        self.ids.iter().enumerate().skip(first).filter_map(move |(place, id)| {
            jump = jumps.next_if(|next| next.at <= place).or(jump);
            jump.map(|jump| (Revision(jump.revision_at(place)), *id))
        })
    }

    pub(crate) fn last_up_to(&self, revision: Revision) -> Option<JournalId> {
        let (end, _) = self.first_after(revision);
        end.checked_sub(1).and_then(|last| self.ids.get(last)).copied()
    }

    pub(crate) fn has(&self, id: JournalId) -> bool {
        self.ids.binary_search(&id).is_ok()
    }

    pub(crate) fn into_ids(self) -> Vec<JournalId> {
        self.ids
    }

    /// Removes and returns the rows up to a revision.
    pub(crate) fn forget(&mut self, revision: Revision) -> Self {
        let (end, come) = self.first_after(revision);
        let ids = self.ids.drain(..end).collect();
        self.ids.shrink_to_fit();
        let first = come.checked_sub(1).and_then(|last| self.jumps.get(last)).copied();
        let jumps = self.jumps.drain(..come).collect();
        for jump in &mut self.jumps {
            jump.at -= end;
        }
        let follows = self.jumps.first().is_none_or(|next| next.at > 0);
        if let Some(jump) = first.filter(|_| follows && !self.ids.is_empty()) {
            self.jumps.insert(0, Jump { at: 0, revision: jump.revision_at(end) });
        }
        Self { ids, jumps }
    }
}
