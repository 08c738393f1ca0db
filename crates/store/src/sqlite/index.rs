//! Index of histories: base, head, compacted part and journal rows of each session.
//!
//! The index is only in memory, since one in the database would cost more than the rows. It is built on opening,
//! updated by the writer and read by all. A commit in the journal costs eight bytes here, a compacted one nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::pins::{Cut, PinId, Pins};
use super::rows::parts;
use super::rows::parts::Table;
use super::rows::positions::Rows;
use crate::{JournalId, StoreError, StoredSession};
use blackboard_board::{Revision, SessionId, size};

/// A completely stored base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) revision: Revision,
    /// The number of parts, numbered from 0.
    pub(crate) parts: u64,
    /// True if the session was deleted right after it: no other base replaces it.
    pub(crate) ends: bool,
}

impl Base {
    /// Returns the table of its parts. An end has its own table, since a base may have been put at its revision.
    pub(crate) fn table(self) -> Table {
        if self.ends { parts::END } else { parts::BASE }
    }
}

/// The owner of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The session.
    #[default]
    Session,
    /// None yet: a run may adopt it.
    Staged,
    /// None any more: its rows are being deleted.
    Discarded,
    /// Unknown: the row with the owner and the beginning is damaged. The history stays unchanged until it is
    /// forgotten.
    Damaged,
}

/// The state that a run is checked against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) owner: Owner,
    /// `None` if the history is empty.
    pub(crate) head: Option<Revision>,
}

/// A base and the rows that it makes obsolete, as stored when it comes in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beginning {
    pub(crate) base: Option<Base>,
    /// The session's last forgotten row, 0 if none.
    pub(crate) forgotten: JournalId,
}

/// A history, kept small: there may be a hundred thousand.
#[derive(Debug, Default)]
struct History {
    standing: Standing,
    beginning: Beginning,
    /// A base that was put but is not in force.
    put: Option<Box<Base>>,
    /// The last compacted commit, 0 if none.
    compacted: Revision,
    /// The rows in the journal, after all compacted commits.
    rows: Option<Box<Rows>>,
    /// The name that a run claimed for it.
    name: Option<Arc<[u8]>>,
}

/// The memory of a history with a name of usual length, without rows in the journal.
pub const HISTORY_BYTES: usize = size::hashed(size_of::<(SessionId, History)>())
    + size::hashed(size_of::<(Arc<[u8]>, SessionId)>())
    + size::shared(16);

/// A comparison of a history's first rows with rows read earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// The rows are the same.
    Same,
    /// The history now begins later.
    Advanced,
    /// The rows differ or have no owner: something is damaged or being deleted.
    Other,
}

/// All histories.
#[derive(Debug, Default)]
pub(crate) struct Histories {
    of: HashMap<SessionId, History>,
    /// The last session of each name, as far as runs claimed them.
    named: HashMap<Arc<[u8]>, SessionId>,
    /// The ids under which the rows of damaged histories are stored.
    damaged_rows: HashMap<SessionId, SessionId>,
    /// Journal rows without a place in their history, since they are damaged.
    strays: Vec<(SessionId, JournalId)>,
    /// Bytes of frames in the journal.
    journal_bytes: u64,
    pub(crate) pins: Pins,
}

impl Histories {
    pub(crate) fn standing(&self, session: SessionId) -> Standing {
        self.of.get(&session).map_or_else(Standing::default, |history| history.standing)
    }

    /// Returns the owner of a history, if known.
    pub(crate) fn standing_of_known(&self, session: SessionId) -> Option<Owner> {
        self.of.get(&session).map(|history| history.standing.owner)
    }

    /// Returns the session that a name belongs to, if it is known.
    pub(crate) fn named(&self, name: &[u8]) -> Option<SessionId> {
        self.named.get(name).copied()
    }

    /// Gives a name to a session.
    pub(crate) fn name(&mut self, session: SessionId, name: &[u8]) {
        let name: Arc<[u8]> = name.into();
        self.of.entry(session).or_default().name = Some(Arc::clone(&name));
        self.named.insert(name, session);
    }

    /// Gives a name found in the database to its session, unless a later session has it: its head is higher.
    pub(crate) fn find_name(&mut self, session: SessionId, name: &[u8]) {
        let is_own = |found| matches!(found, Some(Owner::Session | Owner::Damaged));
        let head = |of: &Self, session| of.standing(session).head;
        let is_last = self.named(name).is_none_or(|other| head(self, other) < head(self, session));
        if is_own(self.standing_of_known(session)) && is_last {
            self.name(session, name);
        }
    }

    /// Takes the name of a session that is forgotten.
    fn take_name(&mut self, session: SessionId) {
        let name = self.of.get_mut(&session).and_then(|history| history.name.take());
        if let Some(name) = name.filter(|name| self.named(name) == Some(session)) {
            self.named.remove(&name);
        }
    }

    /// Returns the sessions' own histories.
    pub(crate) fn sessions(&self) -> Vec<StoredSession> {
        let is_own = |owner| matches!(owner, Owner::Session | Owner::Damaged);
        let own = self.of.iter().filter(|(_, history)| is_own(history.standing.owner));
        let stored = |(session, history): (&SessionId, &History)| StoredSession {
            session: *session,
            head: history.standing.head.unwrap_or_default(),
            compacted: history.compacted.max(history.base_revision()),
            is_damaged: history.standing.owner == Owner::Damaged,
        };
        own.map(stored).collect()
    }

    /// Returns true if any history is known, also a staged or discarded one.
    pub(crate) fn is_any_known(&self) -> bool {
        !self.of.is_empty()
    }

    pub(crate) fn is_known(&self, session: SessionId) -> bool {
        self.of.contains_key(&session)
    }

    /// Returns the base in force.
    pub(crate) fn base(&self, session: SessionId) -> Option<Base> {
        self.standing_history(session).and_then(|history| history.beginning.base)
    }

    /// Returns true if nothing can be put for the session at this revision any more.
    pub(crate) fn is_past(&self, session: SessionId, revision: Revision) -> bool {
        self.base(session).is_some_and(|base| base.revision > revision || base.ends)
    }

    /// Returns the base in force of a known session, if it has one.
    pub(crate) fn base_or_none(&self, session: SessionId) -> Result<Option<Base>, StoreError> {
        let history = self.standing_history(session).ok_or(StoreError::NoHistory { session })?;
        Ok(history.beginning.base)
    }

    /// Returns the base in force of a session's own history.
    pub(crate) fn own_base(&self, session: SessionId) -> Result<Option<Base>, StoreError> {
        let history = self.of.get(&session);
        let own = history.filter(|history| history.standing.owner == Owner::Session);
        own.map(|history| history.beginning.base).ok_or(StoreError::NoHistory { session })
    }

    /// Returns the positions of at most `max` commits after a revision in the journal. Compacted commits may come
    /// before the first.
    pub(crate) fn page(
        &self,
        session: SessionId,
        after: Revision,
        max: usize,
        pin: Option<PinId>,
    ) -> Result<Vec<(Revision, JournalId)>, StoreError> {
        let Some(history) = self.standing_history(session) else { return Ok(Vec::new()) };
        let base = history.base_revision();
        let pinned = pin.and_then(|pin| self.pins.base(session, pin, Instant::now()));
        if pinned.unwrap_or(base) > after {
            return Err(StoreError::Forgotten { session, base });
        }
        let kept = self.pins.rows_after(session, after, max);
        if !kept.is_empty() {
            return Ok(kept);
        }
        Ok(history.rows_after(after).take(max).collect())
    }

    /// Returns true if the commit after a revision is compacted.
    pub(crate) fn is_compacted_after(&self, session: SessionId, after: Revision) -> bool {
        self.standing_history(session).is_some_and(|history| history.compacted > after)
    }

    /// Returns the bytes of frames in the journal.
    pub(crate) fn journal_bytes(&self) -> u64 {
        self.journal_bytes
    }

    /// Adds to the bytes of frames in the journal.
    pub(crate) fn add_journal_bytes(&mut self, bytes: u64) {
        self.journal_bytes = self.journal_bytes.saturating_add(bytes);
    }

    /// Subtracts from the bytes of frames in the journal.
    pub(crate) fn take_journal_bytes(&mut self, bytes: u64) {
        self.journal_bytes = self.journal_bytes.saturating_sub(bytes);
    }

    fn standing_history(&self, session: SessionId) -> Option<&History> {
        let is_to_be_read = |owner| matches!(owner, Owner::Session | Owner::Staged);
        self.of.get(&session).filter(|history| is_to_be_read(history.standing.owner))
    }

    /// Adds a history that begins as its stored row says.
    pub(crate) fn begin(&mut self, session: SessionId, owner: Owner, beginning: Beginning) {
        let standing = Standing { owner, head: beginning.base.map(|base| base.revision) };
        self.of.insert(session, History { standing, beginning, ..History::default() });
    }

    /// Marks a history as damaged, with its row stored under this id. It reached at least this revision.
    pub(crate) fn set_damaged(&mut self, session: SessionId, stored: SessionId, head: Revision) {
        let standing = &mut self.of.entry(session).or_default().standing;
        standing.owner = Owner::Damaged;
        standing.head = standing.head.max(Some(head));
        self.damaged_rows.insert(session, stored);
    }

    /// Returns true if nothing of the session may be deleted or moved, since its owner is unknown.
    pub(crate) fn is_damaged(&self, session: SessionId) -> bool {
        self.damaged_rows.contains_key(&session)
    }

    /// Returns the id under which the damaged row of a session's history is stored.
    pub(crate) fn damaged_row(&self, session: SessionId) -> Option<SessionId> {
        self.damaged_rows.get(&session).copied()
    }

    /// Records the session's last compacted commit.
    pub(crate) fn find_compacted(&mut self, session: SessionId, last: Revision) {
        let history = self.of.entry(session).or_default();
        history.compacted = last;
        history.standing.head = history.standing.head.max(Some(last));
    }

    /// Returns true if a row of the journal is forgotten.
    pub(crate) fn is_forgotten(&self, session: SessionId, id: JournalId) -> bool {
        self.of.get(&session).is_some_and(|history| history.is_forgotten(id))
    }

    /// Compares the history's base and first rows in the journal with these.
    pub(crate) fn front(
        &self,
        session: SessionId,
        base: Revision,
        rows: &[(Revision, JournalId)],
    ) -> Front {
        let Some(history) = self.standing_history(session) else { return Front::Other };
        if history.base_revision() != base {
            return Front::Advanced;
        }
        if history.rows_after(history.compacted).take(rows.len()).eq(rows.iter().copied()) {
            return Front::Same;
        }
        let first = history.rows_after(history.compacted).next().map(|(_, id)| id);
        let read = rows.first().map(|(_, id)| *id);
        if first > read { Front::Advanced } else { Front::Other }
    }

    /// Records that the history's rows in the journal up to this commit are compacted.
    pub(crate) fn compact(&mut self, session: SessionId, last: Revision) {
        let Some(history) = self.of.get_mut(&session) else { return };
        history.compacted = last;
        drop(history.forget_rows(last));
    }

    /// Adds a row found in the database. Returns false if it is forgotten.
    pub(crate) fn find(&mut self, session: SessionId, revision: Revision, id: JournalId) -> bool {
        let history = self.of.entry(session).or_default();
        if history.is_forgotten(id) {
            return false;
        }
        if !history.append(revision, id) {
            self.strays.push((session, id));
        }
        true
    }

    /// Removes and returns the session's rows without a place in its history.
    pub(crate) fn take_strays(&mut self, session: SessionId) -> Vec<JournalId> {
        self.strays.extract_if(.., |(whose, _)| *whose == session).map(|(_, id)| id).collect()
    }

    /// Returns the beginning in force.
    pub(crate) fn in_force(&self, session: SessionId) -> Beginning {
        self.of.get(&session).map(|history| history.beginning).unwrap_or_default()
    }

    /// Adds a written row.
    pub(crate) fn append(&mut self, session: SessionId, revision: Revision, id: JournalId) {
        self.of.entry(session).or_default().append(revision, id);
    }

    /// Records a completely stored base, in place of one put before. A staged history continues from it.
    pub(crate) fn put(&mut self, session: SessionId, base: Base) {
        let history = self.of.entry(session).or_default();
        history.put = Some(Box::new(base));
        let Standing { owner, head } = &mut history.standing;
        if *owner == Owner::Staged {
            *head = (*head).max(Some(base.revision));
        }
    }

    /// Removes and returns the base that was put.
    pub(crate) fn take_put(&mut self, session: SessionId) -> Option<Base> {
        self.of.get_mut(&session).and_then(|history| history.put.take()).map(|put| *put)
    }

    /// Returns the base that was put but is not in force.
    pub(crate) fn put_base(&self, session: SessionId) -> Option<Base> {
        self.of.get(&session).and_then(|history| history.put.as_deref().copied())
    }

    /// Returns the beginning that the base put before would have in force.
    pub(crate) fn beginning(&self, session: SessionId) -> Beginning {
        match self.put_base(session) {
            Some(base) => self.beginning_with(session, base),
            None => self.in_force(session),
        }
    }

    /// Returns the beginning that this base would have in force.
    pub(crate) fn beginning_with(&self, session: SessionId, base: Base) -> Beginning {
        let rows = self.of.get(&session).and_then(|history| history.rows.as_deref());
        let forgotten = rows.and_then(|rows| rows.last_up_to(base.revision));
        let forgotten = forgotten.unwrap_or_else(|| self.in_force(session).forgotten);
        Beginning { base: Some(base), forgotten }
    }

    /// Puts the stored base in force and makes the history the session's own. Returns the resulting cut, unless a pin
    /// keeps it.
    pub(crate) fn set_beginning(&mut self, session: SessionId) -> Option<Cut> {
        let beginning = self.beginning(session);
        let history = self.of.entry(session).or_default();
        history.standing.owner = Owner::Session;
        let base = history.put.take()?.revision;
        let before = std::mem::replace(&mut history.beginning, beginning).base;
        let cut = Cut { session, base, before, rows: history.forget_rows(base) };
        self.pins.keep(cut)
    }

    /// Marks the history as discarded. Returns its rows and the base that was put.
    pub(crate) fn discard(&mut self, session: SessionId) -> (Vec<JournalId>, Option<Base>) {
        self.take_name(session);
        let history = self.of.entry(session).or_default();
        history.standing.owner = Owner::Discarded;
        self.damaged_rows.remove(&session);
        let put = history.put.take().map(|put| *put);
        (history.forget_rows(Revision(u64::MAX)).into_ids(), put)
    }

    /// Removes a session of which nothing is left.
    pub(crate) fn remove(&mut self, session: SessionId) {
        self.take_name(session);
        self.of.remove(&session);
    }
}

impl History {
    /// Appends a row and returns true. A row out of order is damaged and gets no place; a replay reports it.
    fn append(&mut self, revision: Revision, id: JournalId) -> bool {
        let has_place =
            revision > self.compacted && self.rows.get_or_insert_default().push(revision, id);
        if has_place {
            self.standing.head = Some(revision);
        }
        has_place
    }

    fn is_forgotten(&self, id: JournalId) -> bool {
        id <= self.beginning.forgotten || self.standing.owner == Owner::Discarded
    }

    fn base_revision(&self) -> Revision {
        self.beginning.base.map(|base| base.revision).unwrap_or_default()
    }

    fn rows_after(&self, revision: Revision) -> impl Iterator<Item = (Revision, JournalId)> {
        self.rows.iter().flat_map(move |rows| rows.after(revision))
    }

    /// Removes and returns the rows up to a revision.
    fn forget_rows(&mut self, revision: Revision) -> Rows {
        let forgotten = self.rows.as_mut().map(|rows| rows.forget(revision)).unwrap_or_default();
        self.rows.take_if(|rows| rows.is_empty());
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tests::sqlite::{ANNA, BERT};

    /// All places after a revision, in pages of `max`.
    fn after(histories: &Histories, after: u64, max: usize) -> Vec<(u64, u64)> {
        let (mut found, mut after) = (Vec::new(), Revision(after));
        loop {
            let page = histories.page(ANNA, after, max, None).unwrap();
            let Some((last, _)) = page.last() else { return found };
            after = *last;
            found.extend(page.iter().map(|(revision, id)| (revision.0, id.0)));
        }
    }

    fn naive(rows: &[(u64, u64)], after: u64) -> Vec<(u64, u64)> {
        rows.iter().copied().filter(|(revision, _)| *revision > after).collect()
    }

    proptest! {
        #[test]
        fn any_revisions_are_found_and_forgotten(
            steps in proptest::collection::vec((prop_oneof![9 => Just(1_u64), 1 => 1..9_u64], 1..4_u64), 0..40),
            cut in 0..60_u64,
            from in 0..60_u64,
            max in 1..5_usize,
        ) {
            let (mut histories, mut rows) = (Histories::default(), Vec::new());
            let (mut revision, mut id) = (0, 0);
            for (step, gap) in steps {
                (revision, id) = (revision + step, id + gap);
                rows.push((revision, id));
                histories.append(ANNA, Revision(revision), JournalId(id));
                histories.append(BERT, Revision(revision), JournalId(id + 1));
            }
            prop_assert_eq!(after(&histories, from, max), naive(&rows, from));

            histories.put(ANNA, Base { revision: Revision(cut), parts: 1, ends: false });
            let forgotten = histories.beginning(ANNA).forgotten;
            let ids = histories.set_beginning(ANNA).unwrap().rows.into_ids();
            let gone: Vec<_> =
                rows.iter().filter(|row| row.0 <= cut).map(|row| JournalId(row.1)).collect();
            prop_assert_eq!(forgotten, gone.last().copied().unwrap_or_default());
            prop_assert_eq!(ids, gone);
            let from = from.max(cut);
            prop_assert_eq!(after(&histories, from, max), naive(&rows, from));

            let next = revision.max(cut) + 1;
            histories.append(ANNA, Revision(next), JournalId(id + 5));
            rows.push((next, id + 5));
            prop_assert_eq!(after(&histories, from, max), naive(&rows, from));
        }
    }

    #[test]
    fn a_row_that_does_not_ascend_has_no_place() {
        let mut histories = Histories::default();
        for (revision, id) in [(1, 1), (2, 2), (2, 3), (u64::MAX, 4), (3, 5)] {
            assert!(histories.find(ANNA, Revision(revision), JournalId(id)));
        }
        assert_eq!(after(&histories, 0, 9), [(1, 1), (2, 2), (u64::MAX, 4)]);
    }
}
