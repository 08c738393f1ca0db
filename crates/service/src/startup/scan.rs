//! Startup scan: all stored sessions, with as little reading as possible.
//!
//! A session with a summary of its head needs no board. The journal is read once, piece by piece. Boards beyond the
//! budget are reduced to summaries after each piece.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::damage::{Damage, DamageCause, Loading};
use super::recover::{Piece, PieceCommit, Slot, Task, spread};
use crate::sessions::by_id::summary_of;
use crate::sessions::session::{Published, Shown};
use blackboard_board::{Extent, Frame, Misfit, Revision, SessionId, SessionName, Summary};
use blackboard_store::{EmbeddedStore, Record, StoreError, StoredSession};

/// Bytes of commits in one piece of work.
const PIECE_BYTES: usize = 16 << 20;

/// Number of sessions without such commits in one piece of work.
const PIECE_SESSIONS: usize = 64;

/// The loaded boards may take this part of the budget. Freed boards leave holes in the allocator, and summaries take
/// room too.
const BOARDS_PART: usize = 2;

/// A session found by the scan.
pub(crate) struct ScannedSession {
    pub(crate) name: SessionName,
    pub(crate) shown: Shown,
    /// The history's bytes when the last snapshot was stored.
    pub(crate) snapshot_bytes: u64,
    /// The revision of the stored summary.
    pub(crate) stored: Revision,
    pub(crate) is_damaged: bool,
}

impl ScannedSession {
    /// Returns true if the session exists, or may exist since it is damaged.
    pub(crate) fn is_live(&self) -> bool {
        self.is_damaged || self.shown.life().is_some()
    }

    /// Raises the revision to the last known one of the name.
    pub(crate) fn raise_to(&mut self, revision: Revision) {
        if let Shown::Cold(summary) = &mut self.shown {
            let summary = Arc::make_mut(summary);
            summary.extent.revision = summary.extent.revision.max(revision);
        }
    }
}

/// State of the scan.
struct Finding<'a> {
    store: &'a dyn EmbeddedStore,
    boards_max: usize,
    /// The memory taken by the boards read so far.
    held: usize,
    heads: HashMap<SessionId, Revision>,
    slots: HashMap<SessionId, Slot>,
    piece: Piece,
    damage: Vec<Damage>,
    strays: Strays,
}

/// Damaged ids that no session has, by the session whose rows have them.
pub(crate) type Strays = HashMap<SessionId, Vec<SessionId>>;

/// The found sessions, the damage, and the stray ids.
pub(crate) type Scan = (Vec<ScannedSession>, Vec<Damage>, Strays);

/// Finds all sessions and their damage.
pub(crate) fn find_all(store: &dyn EmbeddedStore, budget: usize) -> Result<Scan, StoreError> {
    let mut finding = Finding {
        store,
        boards_max: budget / BOARDS_PART,
        held: 0,
        heads: HashMap::new(),
        slots: HashMap::new(),
        piece: Piece::default(),
        damage: Vec::new(),
        strays: HashMap::new(),
    };
    finding.begin()?;
    finding.read_uncompacted()?;
    finding.read_the_others()?;
    finding.compare_heads();
    finding.find_names()?;
    let Finding { slots, heads, damage, strays, .. } = finding;
    let head = |session: &SessionId| heads.get(session).copied().unwrap_or_default();
    let found = slots.into_iter().filter_map(|(session, slot)| found(slot, head(&session)));
    Ok((found.collect(), damage, strays))
}

impl Finding<'_> {
    /// Notes every session, with its stored summary if that covers the retained history.
    fn begin(&mut self) -> Result<(), StoreError> {
        let sessions = self.store.sessions();
        let known: HashMap<_, _> =
            sessions.iter().map(|stored| (stored.session, *stored)).collect();
        for StoredSession { session, head, compacted, .. } in sessions {
            self.heads.insert(session, head);
            self.slots.insert(session, Slot::Unread { name: None, compacted });
        }
        let (store, mut orphans) = (self.store, Vec::new());
        store.summaries(&mut |row| {
            match summary_of(row) {
                Some(summary) => self.know(summary, known.get(&row.session)),
                None if !known.contains_key(&row.session) => orphans.push(row.session),
                None => {}
            }
            ControlFlow::Continue(())
        })?;
        if !orphans.is_empty() && store.forget(&orphans).is_err() {
            tracing::debug!(summaries = orphans.len(), "orphaned summaries could not be deleted");
        }
        for StoredSession { session, head, .. } in known.values().filter(|one| one.is_damaged) {
            if let Some(slot) = self.slots.get_mut(session).filter(|slot| !slot.is_damaged()) {
                self.damage.push(slot.mark_damaged(*session, *head, DamageCause::Beginning));
            }
        }
        Ok(())
    }

    /// Notes a summary's revision. A summary is stored after its commits, so it is ahead of them only if some are
    /// lost.
    fn know(&mut self, summary: Summary, stored: Option<&StoredSession>) {
        let Extent { session, revision, .. } = summary.extent;
        let base = self.store.base(session).ok().flatten();
        let found = stored.map(|stored| stored.head);
        let is_lost = match found {
            Some(head) => is_of_history(&summary, base) && revision > head,
            None => summary.life.is_some(),
        };
        if is_lost {
            let mut slot = Slot::Cold { stored: revision, summary: Arc::new(summary) };
            let cause = DamageCause::Lost { found: found.unwrap_or_default() };
            self.damage.push(slot.mark_damaged(session, revision, cause));
            self.slots.insert(session, slot);
        } else if let Some(stored) = stored {
            self.slots.insert(session, slot_of(summary, stored, base));
        }
    }

    /// Finds the names of damaged sessions whose histories have lost them.
    fn find_names(&mut self) -> Result<(), StoreError> {
        if self.damage.iter().all(|damage| damage.name.is_some()) {
            return Ok(());
        }
        let names = names(self.store)?;
        for damage in self.damage.iter_mut().filter(|damage| damage.name.is_none()) {
            damage.name = name_of(&names, damage.session);
            if let Some(Slot::Open { loading, .. }) = self.slots.get_mut(&damage.session) {
                loading.name = damage.name.clone();
            }
        }
        self.find_strays(&names);
        Ok(())
    }

    /// Marks sessions with rows under a damaged id: such a row may be the last commit, which nothing else would miss.
    fn find_strays(&mut self, names: &HashMap<SessionId, Vec<u8>>) {
        let nameless = self.damage.iter().filter(|damage| damage.name.is_none());
        let nameless: HashMap<_, _> =
            nameless.map(|damage| (damage.session, damage.revision)).collect();
        for (identity, revision) in nameless {
            let Some((owner, name)) = self.owner_of(identity, names) else { continue };
            self.strays.entry(owner).or_default().push(identity);
            let head = self.heads.entry(owner).or_default();
            *head = revision.max(*head);
            let unread = || Slot::Unread { name: Some(name.clone()), compacted: Revision(0) };
            let slot = self.slots.entry(owner).or_insert_with(unread);
            if !slot.is_damaged() {
                let damage = slot.mark_damaged(owner, revision, DamageCause::Stray { identity });
                self.damage.push(damage);
            }
            for damage in self.damage.iter_mut().filter(|damage| damage.session == identity) {
                damage.name = Some(name.clone());
            }
        }
    }

    /// Returns the session whose id differs little from this one, with its name.
    fn owner_of(
        &self,
        identity: SessionId,
        names: &HashMap<SessionId, Vec<u8>>,
    ) -> Option<(SessionId, SessionName)> {
        let is_near = |session: &SessionId| *session != identity && session.is_near(identity);
        let mut slots = self.slots.iter().filter(|(session, _)| is_near(session));
        let named = slots.find_map(|(session, slot)| Some((*session, slot.name()?.clone())));
        named.or_else(|| {
            let mut near = names.keys().filter(|session| is_near(session));
            near.find_map(|session| Some((*session, name_of(names, *session)?)))
        })
    }

    /// Reads the commits that are not compacted, except those that a summary covers.
    fn read_uncompacted(&mut self) -> Result<(), StoreError> {
        let (store, mut failed) = (self.store, None);
        store.replay_journal(&mut |record| match self.take(&record) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        })?;
        match failed {
            None => self.work(),
            Some(error) => Err(error),
        }
    }

    fn take(&mut self, record: &Record<'_>) -> Result<(), StoreError> {
        if let Some(slot @ Slot::Cold { .. }) = self.slots.get_mut(&record.session)
            && slot.sound_head().is_some_and(|head| record.revision <= head)
        {
            // A later commit whose row has a wrong revision is not skipped.
            let Record { journal_id, session, revision, frame } = *record;
            if let Err(error) = Frame::check(session, revision, frame) {
                let damage = slot.mark_damaged(session, revision, error.into());
                self.damage.push(Damage { journal_id, ..damage });
            }
            return Ok(());
        }
        if self.piece.add(record) < PIECE_BYTES { Ok(()) } else { self.work() }
    }

    /// Applies the commits read so far.
    fn work(&mut self) -> Result<(), StoreError> {
        let Piece { frames, records } = std::mem::take(&mut self.piece);
        let records = records.into_iter().collect();
        self.work_on(records, &frames)
    }

    fn work_on(
        &mut self,
        records: Vec<(SessionId, Vec<PieceCommit>)>,
        frames: &[u8],
    ) -> Result<(), StoreError> {
        let tasks = records.into_iter().map(|(session, records)| {
            let unread = || Slot::Unread { name: None, compacted: Revision::default() };
            let slot = self.slots.remove(&session).unwrap_or_else(unread);
            self.held -= held(&slot).min(self.held);
            Task { session, slot, records }
        });
        let tasks = tasks.collect();
        let store = self.store;
        for done in spread(tasks, |task| task.work(store, frames)) {
            let (session, slot, damage) = done?;
            self.held += held(&slot);
            self.slots.insert(session, slot);
            self.damage.extend(damage);
        }
        self.make_room();
        Ok(())
    }

    /// Replaces boards with their summaries until the rest fits the budget.
    fn make_room(&mut self) {
        if self.held <= self.boards_max {
            return;
        }
        for slot in self.slots.values_mut() {
            let bytes = held(slot);
            if bytes > 0 && slot.cool() {
                self.held -= bytes.min(self.held);
            }
            if self.held <= self.boards_max / 2 {
                return;
            }
        }
    }

    /// Reads the sessions that are compacted and have no summary.
    fn read_the_others(&mut self) -> Result<(), StoreError> {
        let unread = self.slots.iter().filter(|(_, slot)| matches!(slot, Slot::Unread { .. }));
        let unread: Vec<SessionId> = unread.map(|(session, _)| *session).collect();
        for some in unread.chunks(PIECE_SESSIONS) {
            let records = some.iter().map(|session| (*session, Vec::new())).collect();
            self.work_on(records, &[])?;
        }
        Ok(())
    }

    /// A history that ends before its head has lost commits.
    fn compare_heads(&mut self) {
        for (session, slot) in &mut self.slots {
            let (Some(found), Some(revision)) = (self.heads.get(session), slot.sound_head()) else {
                continue;
            };
            if revision != *found {
                let misfit = Misfit::Revision { head: revision, found: *found };
                self.damage.push(slot.mark_damaged(*session, *found, DamageCause::Misfit(misfit)));
            }
        }
    }
}

/// Facts from a session's stored summary. A summary older than the base or the compacted history gives the name only.
fn slot_of(summary: Summary, stored: &StoredSession, base: Option<Revision>) -> Slot {
    let extent = summary.extent;
    if is_of_history(&summary, base) && (stored.compacted..=stored.head).contains(&extent.revision)
    {
        Slot::Cold { stored: extent.revision, summary: Arc::new(summary) }
    } else {
        Slot::Unread { name: Some(summary.name), compacted: stored.compacted }
    }
}

/// Returns true if a summary was made after the last truncation. A deleted session's summary has no base revision.
pub(crate) fn is_of_history(summary: &Summary, base: Option<Revision>) -> bool {
    summary.life.is_none() || base.is_none_or(|base| base == summary.extent.oldest)
}

/// Returns the second copies of the names, as far as they can be read.
pub(crate) fn names(store: &dyn EmbeddedStore) -> Result<HashMap<SessionId, Vec<u8>>, StoreError> {
    let rows = store.names()?.into_iter();
    Ok(rows.filter_map(|row| Some((row.session, row.name?))).collect())
}

/// Returns the second copy of a session's name.
pub(crate) fn name_of(
    names: &HashMap<SessionId, Vec<u8>>,
    session: SessionId,
) -> Option<SessionName> {
    SessionName::from_bytes(names.get(&session)?)
}

/// Returns the memory of a session's board, if it was read.
fn held(slot: &Slot) -> usize {
    match slot {
        Slot::Open { loading, .. } if !loading.damaged => loading.board.resident_bytes(),
        Slot::Open { .. } | Slot::Cold { .. } | Slot::Unread { .. } => 0,
    }
}

/// Returns a session with a name. A damaged one has its known head.
fn found(slot: Slot, head: Revision) -> Option<ScannedSession> {
    match slot {
        Slot::Cold { summary, stored } => Some(ScannedSession {
            name: summary.name.clone(),
            snapshot_bytes: summary.snapshot_bytes,
            shown: Shown::Cold(summary),
            stored,
            is_damaged: false,
        }),
        Slot::Open { loading, stored } if loading.damaged => {
            let mut summary = match loading.known {
                Some(known) => Arc::unwrap_or_clone(known),
                None => loading.summary()?,
            };
            summary.extent.revision = summary.extent.revision.max(head);
            let (name, snapshot_bytes) = (summary.name.clone(), summary.snapshot_bytes);
            let shown = Shown::Cold(Arc::new(summary));
            Some(ScannedSession { name, shown, snapshot_bytes, stored, is_damaged: true })
        }
        Slot::Open { loading, stored } => {
            let history_bytes = loading.history_bytes();
            let Loading { board, name, snapshot_bytes, .. } = *loading;
            let shown = Shown::Hot(Published { board: Arc::new(board), history_bytes });
            Some(ScannedSession { name: name?, shown, snapshot_bytes, stored, is_damaged: false })
        }
        Slot::Unread { .. } => None,
    }
}
