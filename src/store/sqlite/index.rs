//! Index of histories: base, head, compacted part and journal rows of each session.
//!
//! It is in memory only, since an index in the database costs more than the rows. Built on opening, kept by the writer,
//! read by all. A commit in the journal costs eight bytes here, a compacted one nothing.

use std::collections::HashMap;
use std::time::Instant;

use super::pins::{Cut, PinId, Pins};
use super::rows::parts;
use super::rows::parts::Table;
use super::rows::positions::Rows;
use crate::board::{Revision, SessionId};
use crate::store::{JournalId, StoreError, StoredSession};

/// A base that is wholly stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) revision: Revision,
    /// How many parts it has, numbered from 0.
    pub(crate) parts: u64,
    /// Whether the session was deleted right after it: no other takes its place.
    pub(crate) ends: bool,
}

impl Base {
    /// Where its parts are. An end has a table of its own, since a base may have been put at its revision.
    pub(crate) fn table(self) -> Table {
        if self.ends { parts::END } else { parts::BASE }
    }
}

/// Whose a history is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The session's.
    #[default]
    Session,
    /// Nobody's yet.
    Staged,
    /// Nobody's any more: its rows are on their way out.
    Discarded,
    /// The session's, or nobody's: the row that would tell is damaged, and where it begins is not known. It is left as
    /// it is until it is forgotten.
    Damaged,
}

/// What a run is judged against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) owner: Owner,
    /// None while nothing is there.
    pub(crate) head: Option<Revision>,
}

/// A base with what it makes forgotten: what the database is told when it comes in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beginning {
    pub(crate) base: Option<Base>,
    /// The last row of the session that is forgotten, 0 if none is.
    pub(crate) forgotten: JournalId,
}

/// Small, since there may be a hundred thousand.
#[derive(Debug, Default)]
struct History {
    standing: Standing,
    beginning: Beginning,
    /// A base that was put and is not in force.
    put: Option<Box<Base>>,
    /// The last commit that is compacted, 0 if none is.
    compacted: Revision,
    /// What is in the journal, after all that is compacted.
    rows: Option<Box<Rows>>,
}

/// How the first rows of a history stand to those that somebody has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// They are these.
    Same,
    /// The history begins later by now.
    Advanced,
    /// They are others, or nobody's: something is damaged, or on its way out.
    Other,
}

/// All histories.
#[derive(Debug, Default)]
pub(crate) struct Histories {
    of: HashMap<SessionId, History>,
    /// Under which identities the rows of damaged histories are stored.
    damaged_rows: HashMap<SessionId, SessionId>,
    /// The rows in the journal that have no place in their history, since they are damaged.
    strays: Vec<(SessionId, JournalId)>,
    /// How many bytes of frames the journal has.
    journal_bytes: u64,
    pub(crate) pins: Pins,
}

impl Histories {
    pub(crate) fn standing(&self, session: SessionId) -> Standing {
        self.of.get(&session).map_or_else(Standing::default, |history| history.standing)
    }

    /// Whose a history is, if it is known.
    pub(crate) fn standing_of_known(&self, session: SessionId) -> Option<Owner> {
        self.of.get(&session).map(|history| history.standing.owner)
    }

    /// The sessions' own histories.
    pub(crate) fn sessions(&self) -> Vec<StoredSession> {
        let is_own = |owner| matches!(owner, Owner::Session | Owner::Damaged);
        let own = self.of.iter().filter(|(_, history)| is_own(history.standing.owner));
        let stored = |(session, history): (&SessionId, &History)| StoredSession {
            session: *session,
            head: history.standing.head.unwrap_or_default(),
            compacted: history.compacted.max(history.base_revision()),
            ended: history.beginning.base.is_some_and(|base| base.ends),
            is_damaged: history.standing.owner == Owner::Damaged,
        };
        own.map(stored).collect()
    }

    /// Whether there is any, staged and discarded ones too.
    pub(crate) fn is_any_known(&self) -> bool {
        !self.of.is_empty()
    }

    pub(crate) fn is_known(&self, session: SessionId) -> bool {
        self.of.contains_key(&session)
    }

    /// The base in force.
    pub(crate) fn base(&self, session: SessionId) -> Option<Base> {
        self.standing_history(session).and_then(|history| history.beginning.base)
    }

    /// Whether nothing of this revision is to be put for the session any more.
    pub(crate) fn is_past(&self, session: SessionId, revision: Revision) -> bool {
        self.base(session).is_some_and(|base| base.revision > revision || base.ends)
    }

    /// The base in force of a session that is known, if it has one.
    pub(crate) fn base_or_none(&self, session: SessionId) -> Result<Option<Base>, StoreError> {
        let history = self.standing_history(session).ok_or(StoreError::NoHistory { session })?;
        Ok(history.beginning.base)
    }

    /// The base in force of a session's own history.
    pub(crate) fn own_base(&self, session: SessionId) -> Result<Option<Base>, StoreError> {
        let history = self.of.get(&session);
        let own = history.filter(|history| history.standing.owner == Owner::Session);
        own.map(|history| history.beginning.base).ok_or(StoreError::NoHistory { session })
    }

    /// The places of at most `max` commits after a revision that are in the journal. Commits that are compacted may
    /// lie before the first of them.
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

    /// Whether the commit that follows a revision is compacted.
    pub(crate) fn is_compacted_after(&self, session: SessionId, after: Revision) -> bool {
        self.standing_history(session).is_some_and(|history| history.compacted > after)
    }

    /// How many bytes of frames the journal has.
    pub(crate) fn journal_bytes(&self) -> u64 {
        self.journal_bytes
    }

    /// So many bytes of frames more are in the journal.
    pub(crate) fn add_journal_bytes(&mut self, bytes: u64) {
        self.journal_bytes = self.journal_bytes.saturating_add(bytes);
    }

    /// So many bytes of frames are not in the journal any more.
    pub(crate) fn take_journal_bytes(&mut self, bytes: u64) {
        self.journal_bytes = self.journal_bytes.saturating_sub(bytes);
    }

    fn standing_history(&self, session: SessionId) -> Option<&History> {
        let is_to_be_read = |owner| matches!(owner, Owner::Session | Owner::Staged);
        self.of.get(&session).filter(|history| is_to_be_read(history.standing.owner))
    }

    /// A history whose row in the database says how it begins.
    pub(crate) fn begin(&mut self, session: SessionId, owner: Owner, beginning: Beginning) {
        let standing = Standing { owner, head: beginning.base.map(|base| base.revision) };
        self.of.insert(session, History { standing, beginning, ..History::default() });
    }

    /// The row that says how the session's history begins is damaged, and stored under this identity. It came to this
    /// revision at least.
    pub(crate) fn set_damaged(&mut self, session: SessionId, stored: SessionId, head: Revision) {
        let standing = &mut self.of.entry(session).or_default().standing;
        standing.owner = Owner::Damaged;
        standing.head = standing.head.max(Some(head));
        self.damaged_rows.insert(session, stored);
    }

    /// Whether nothing of the session may be deleted or moved, since nobody knows what it is.
    pub(crate) fn is_damaged(&self, session: SessionId) -> bool {
        self.damaged_rows.contains_key(&session)
    }

    /// Under which identity the damaged row of a session's history is stored.
    pub(crate) fn damaged_row(&self, session: SessionId) -> Option<SessionId> {
        self.damaged_rows.get(&session).copied()
    }

    /// The session has compacted commits up to this one.
    pub(crate) fn find_compacted(&mut self, session: SessionId, last: Revision) {
        let history = self.of.entry(session).or_default();
        history.compacted = last;
        history.standing.head = history.standing.head.max(Some(last));
    }

    /// Whether a row of the journal is forgotten.
    pub(crate) fn is_forgotten(&self, session: SessionId, id: JournalId) -> bool {
        self.of.get(&session).is_some_and(|history| history.is_forgotten(id))
    }

    /// How the history's first rows in the journal, and its base, stand to these.
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

    /// The history's rows in the journal up to this commit are compacted.
    pub(crate) fn compact(&mut self, session: SessionId, last: Revision) {
        let Some(history) = self.of.get_mut(&session) else { return };
        history.compacted = last;
        drop(history.forget_rows(last));
    }

    /// A row that was found in the database; whether it is part of a history.
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

    /// The rows of a session that have no place in its history, from now on not there.
    pub(crate) fn take_strays(&mut self, session: SessionId) -> Vec<JournalId> {
        self.strays.extract_if(.., |(whose, _)| *whose == session).map(|(_, id)| id).collect()
    }

    /// How the history begins.
    pub(crate) fn in_force(&self, session: SessionId) -> Beginning {
        self.of.get(&session).map(|history| history.beginning).unwrap_or_default()
    }

    /// A row that was written.
    pub(crate) fn append(&mut self, session: SessionId, revision: Revision, id: JournalId) {
        self.of.entry(session).or_default().append(revision, id);
    }

    /// Takes note of a base that is wholly stored; a staged history goes on from it. The one that was
    /// put before it is not needed any more.
    pub(crate) fn put(&mut self, session: SessionId, base: Base) {
        let history = self.of.entry(session).or_default();
        history.put = Some(Box::new(base));
        let Standing { owner, head } = &mut history.standing;
        if *owner == Owner::Staged {
            *head = (*head).max(Some(base.revision));
        }
    }

    /// The base that was put, from now on not there.
    pub(crate) fn take_put(&mut self, session: SessionId) -> Option<Base> {
        self.of.get_mut(&session).and_then(|history| history.put.take()).map(|put| *put)
    }

    /// The base that was put and is not in force.
    pub(crate) fn put_base(&self, session: SessionId) -> Option<Base> {
        self.of.get(&session).and_then(|history| history.put.as_deref().copied())
    }

    /// How the history would begin if the base that was put came in force.
    pub(crate) fn beginning(&self, session: SessionId) -> Beginning {
        let Some(history) = self.of.get(&session) else { return Beginning::default() };
        let Some(base) = history.put.as_deref().copied() else { return history.beginning };
        let rows = history.rows.as_deref();
        let forgotten = rows.and_then(|rows| rows.last_up_to(base.revision));
        Beginning { base: Some(base), forgotten: forgotten.unwrap_or(history.beginning.forgotten) }
    }

    /// The base that was put is in force, and the history the session's. The cut that it makes, unless a pin keeps
    /// it.
    pub(crate) fn set_beginning(&mut self, session: SessionId) -> Option<Cut> {
        let beginning = self.beginning(session);
        let history = self.of.entry(session).or_default();
        history.standing.owner = Owner::Session;
        let base = history.put.take()?.revision;
        let before = std::mem::replace(&mut history.beginning, beginning).base;
        let cut = Cut { session, base, before, rows: history.forget_rows(base) };
        self.pins.keep(cut)
    }

    /// The history is nobody's any more. Its rows, and the base that was put.
    pub(crate) fn discard(&mut self, session: SessionId) -> (Vec<JournalId>, Option<Base>) {
        let history = self.of.entry(session).or_default();
        history.standing.owner = Owner::Discarded;
        self.damaged_rows.remove(&session);
        let put = history.put.take().map(|put| *put);
        (history.forget_rows(Revision(u64::MAX)).into_ids(), put)
    }

    /// Nothing of it is left.
    pub(crate) fn remove(&mut self, session: SessionId) {
        self.of.remove(&session);
    }
}

impl History {
    /// A row that does not ascend is damaged, and has no place; who replays finds it. Whether it has one.
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

    /// Takes out the rows up to a revision.
    fn forget_rows(&mut self, revision: Revision) -> Rows {
        let forgotten = self.rows.as_mut().map(|rows| rows.forget(revision)).unwrap_or_default();
        self.rows.take_if(|rows| rows.is_empty());
        forgotten
    }
}

#[cfg(test)]
mod tests;
