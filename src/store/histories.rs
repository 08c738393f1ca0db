//! Where each session's history is: its base, its head, and the rows of the commits between them.
//!
//! In memory only, since an index in the database costs more than the rows: built when the store is opened,
//! kept by the writer, read by all. A commit costs eight bytes here.

use std::collections::HashMap;

use super::{JournalId, StoreError};
use crate::board::{Revision, SessionId};

/// A base that is wholly stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) revision: Revision,
    /// How many parts it has, numbered from 0.
    pub(super) parts: u64,
}

/// Whose a history is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Owner {
    /// The session's.
    #[default]
    Session,
    /// Nobody's yet.
    Staged,
    /// Nobody's any more: its rows are on their way out.
    Discarded,
}

/// What a run is judged against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) owner: Owner,
    /// None while nothing is there.
    pub(super) head: Option<Revision>,
}

/// A base with what it makes forgotten: what the database is told when it comes in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Beginning {
    pub(super) base: Option<Base>,
    /// The last row of the session that is forgotten, 0 if none is.
    pub(super) forgotten: JournalId,
}

#[derive(Debug, Default)]
struct History {
    standing: Standing,
    beginning: Beginning,
    /// A base that was put and is not in force.
    put: Option<Base>,
    rows: Rows,
}

/// All histories.
#[derive(Debug, Default)]
pub(super) struct Histories(HashMap<SessionId, History>);

impl Histories {
    pub(super) fn standing(&self, session: SessionId) -> Standing {
        self.0.get(&session).map_or_else(Standing::default, |history| history.standing)
    }

    pub(super) fn is_known(&self, session: SessionId) -> bool {
        self.0.contains_key(&session)
    }

    /// The base in force.
    pub(super) fn base(&self, session: SessionId) -> Option<Base> {
        self.standing_history(session).and_then(|history| history.beginning.base)
    }

    /// The base in force of a session that is known, if it has one.
    pub(super) fn base_or_none(&self, session: SessionId) -> Result<Option<Base>, StoreError> {
        let history = self.standing_history(session).ok_or(StoreError::NoHistory { session })?;
        Ok(history.beginning.base)
    }

    /// The places of at most `max` commits after a revision.
    pub(super) fn page(
        &self,
        session: SessionId,
        after: Revision,
        max: usize,
    ) -> Result<Vec<(Revision, JournalId)>, StoreError> {
        match self.standing_history(session) {
            Some(History { beginning: Beginning { base: Some(base), .. }, .. })
                if base.revision > after =>
            {
                Err(StoreError::Forgotten { session, base: base.revision })
            }
            Some(history) => Ok(history.rows.after(after).take(max).collect()),
            None => Ok(Vec::new()),
        }
    }

    fn standing_history(&self, session: SessionId) -> Option<&History> {
        self.0.get(&session).filter(|history| history.standing.owner != Owner::Discarded)
    }

    /// A history whose row in the database says how it begins.
    pub(super) fn begin(&mut self, session: SessionId, owner: Owner, beginning: Beginning) {
        let standing = Standing { owner, head: beginning.base.map(|base| base.revision) };
        self.0.insert(session, History { standing, beginning, ..History::default() });
    }

    /// A row that was found in the database; whether it is part of a history.
    pub(super) fn find(&mut self, session: SessionId, revision: Revision, id: JournalId) -> bool {
        let history = self.0.entry(session).or_default();
        let forgotten = id <= history.beginning.forgotten;
        if forgotten || history.standing.owner == Owner::Discarded {
            return false;
        }
        history.append(revision, id);
        true
    }

    /// A row that was written.
    pub(super) fn append(&mut self, session: SessionId, revision: Revision, id: JournalId) {
        self.0.entry(session).or_default().append(revision, id);
    }

    /// Takes note of a base that is wholly stored; a staged history goes on from it. The one that was
    /// put before it is not needed any more.
    pub(super) fn put(&mut self, session: SessionId, base: Base) {
        let history = self.0.entry(session).or_default();
        history.put = Some(base);
        let Standing { owner, head } = &mut history.standing;
        if *owner == Owner::Staged {
            *head = (*head).max(Some(base.revision));
        }
    }

    /// The base that was put, from now on not there.
    pub(super) fn take_put(&mut self, session: SessionId) -> Option<Base> {
        self.0.get_mut(&session).and_then(|history| history.put.take())
    }

    /// The base that was put and is not in force.
    pub(super) fn put_base(&self, session: SessionId) -> Option<Base> {
        self.0.get(&session).and_then(|history| history.put)
    }

    /// How the history would begin if the base that was put came in force.
    pub(super) fn beginning(&self, session: SessionId) -> Beginning {
        let Some(history) = self.0.get(&session) else { return Beginning::default() };
        let Some(base) = history.put else { return history.beginning };
        let forgotten = history.rows.last_up_to(base.revision);
        Beginning { base: Some(base), forgotten: forgotten.unwrap_or(history.beginning.forgotten) }
    }

    /// The base that was put is in force, and the history the session's. The rows and the base that are
    /// forgotten.
    pub(super) fn set_beginning(&mut self, session: SessionId) -> (Vec<JournalId>, Option<Base>) {
        let beginning = self.beginning(session);
        let history = self.0.entry(session).or_default();
        history.standing.owner = Owner::Session;
        let Some(base) = history.put.take() else { return (Vec::new(), None) };
        let before = std::mem::replace(&mut history.beginning, beginning);
        (history.rows.forget(base.revision), before.base)
    }

    /// The history is nobody's any more. Its rows, and the base that was put.
    pub(super) fn discard(&mut self, session: SessionId) -> (Vec<JournalId>, Option<Base>) {
        let history = self.0.entry(session).or_default();
        history.standing.owner = Owner::Discarded;
        (history.rows.forget(Revision(u64::MAX)), history.put.take())
    }

    /// Nothing of it is left.
    pub(super) fn remove(&mut self, session: SessionId) {
        self.0.remove(&session);
    }
}

impl History {
    fn append(&mut self, revision: Revision, id: JournalId) {
        self.standing.head = Some(revision);
        self.rows.push(revision, id);
    }
}

/// A session's rows in the journal, by revision.
#[derive(Debug, Default)]
struct Rows {
    ids: Vec<JournalId>,
    /// Where the revisions do not follow one another, the beginning too: hardly more than one.
    jumps: Vec<Jump>,
}

/// From this place on, revisions follow one another.
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

    /// The place of a revision that is not below this jump's.
    fn place_of(self, revision: u64) -> usize {
        let offset = revision.saturating_sub(self.revision);
        self.at.saturating_add(usize::try_from(offset).unwrap_or(usize::MAX))
    }
}

impl Rows {
    /// A row that does not ascend is damaged; who replays finds it.
    fn push(&mut self, Revision(revision): Revision, id: JournalId) {
        let at = self.ids.len();
        let next = self.jumps.last().map(|jump| jump.revision_at(at));
        if next.is_some_and(|next| revision < next) {
            return;
        }
        if next != Some(revision) {
            self.jumps.push(Jump { at, revision });
        }
        self.ids.push(id);
    }

    /// The place of the first row after a revision, and how many jumps have come by then.
    fn first_after(&self, Revision(revision): Revision) -> (usize, usize) {
        let come = self.jumps.partition_point(|jump| jump.revision <= revision);
        let end = self.jumps.get(come).map_or(self.ids.len(), |next| next.at);
        let last = come.checked_sub(1).and_then(|last| self.jumps.get(last));
        let place = last.map_or(0, |jump| jump.place_of(revision).saturating_add(1).min(end));
        (place, come)
    }

    fn after(&self, revision: Revision) -> impl Iterator<Item = (Revision, JournalId)> {
        let (first, come) = self.first_after(revision);
        let mut jumps = self.jumps.iter().skip(come.saturating_sub(1)).copied().peekable();
        let mut jump = jumps.next();
        self.ids.iter().enumerate().skip(first).filter_map(move |(place, id)| {
            jump = jumps.next_if(|next| next.at <= place).or(jump);
            jump.map(|jump| (Revision(jump.revision_at(place)), *id))
        })
    }

    fn last_up_to(&self, revision: Revision) -> Option<JournalId> {
        let (end, _) = self.first_after(revision);
        end.checked_sub(1).and_then(|last| self.ids.get(last)).copied()
    }

    /// Takes out the rows up to a revision.
    fn forget(&mut self, revision: Revision) -> Vec<JournalId> {
        let (end, come) = self.first_after(revision);
        let forgotten = self.ids.drain(..end).collect();
        self.ids.shrink_to_fit();
        let first = come.checked_sub(1).and_then(|last| self.jumps.get(last)).copied();
        self.jumps.drain(..come);
        for jump in &mut self.jumps {
            jump.at -= end;
        }
        let follows = self.jumps.first().is_none_or(|next| next.at > 0);
        if let Some(jump) = first.filter(|_| follows && !self.ids.is_empty()) {
            self.jumps.insert(0, Jump { at: 0, revision: jump.revision_at(end) });
        }
        forgotten
    }
}
