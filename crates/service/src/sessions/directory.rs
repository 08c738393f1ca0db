//! Directory of running sessions by name, sharded to keep lookups off each other's locks.
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;
use tokio::sync::watch;

use super::by_id;
use super::by_id::SessionsById;
use super::known::Known;
use super::labels::LabelIndex;
use super::recent_commits::Weighed;
use super::session::{Published, Session, Shown};
use blackboard_board::{Revision, SessionId, SessionName, size};
use blackboard_store::Among;

const SHARDS: usize = 64;

/// The memory of a session's places in the directory.
pub(crate) const SESSION_BYTES: usize = size::hashed(size_of::<(SessionName, Arc<Session>)>())
    + size::sorted(size_of::<SessionName>())
    + by_id::SESSION_BYTES;

type Shard = RwLock<HashMap<SessionName, Arc<Session>>>;

/// All sessions by name, recently deleted ones included.
#[derive(Debug)]
pub(crate) struct Directory {
    shards: [Shard; SHARDS],
    hasher: RandomState,
    /// The names of the sessions that exist, in order, for lists.
    names: RwLock<BTreeSet<SessionName>>,
    /// The names of sessions with open questions, for the inbox.
    asking: RwLock<BTreeSet<SessionName>>,
    /// The names of sessions with claimable requests, for the inbox.
    requesting: RwLock<BTreeSet<SessionName>>,
    /// The names of sessions whose costs have passed their budget.
    over_budget: RwLock<BTreeSet<SessionName>>,
    /// The names of damaged sessions.
    damaged: RwLock<BTreeSet<SessionName>>,
    /// The existing sessions by label.
    labels: LabelIndex,
    /// All sessions by id.
    identities: SessionsById,
    /// The number of sessions in a store that other servers write to, as counted last.
    counted: AtomicUsize,
}

/// Error: the name cannot be removed now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InUse;

impl Directory {
    pub(crate) fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| Shard::default()),
            hasher: RandomState::new(),
            names: RwLock::default(),
            asking: RwLock::default(),
            requesting: RwLock::default(),
            over_budget: RwLock::default(),
            damaged: RwLock::default(),
            labels: LabelIndex::default(),
            identities: SessionsById::default(),
            counted: AtomicUsize::new(0),
        }
    }

    pub(crate) fn identities(&self) -> &SessionsById {
        &self.identities
    }

    pub(crate) fn labels(&self) -> &LabelIndex {
        &self.labels
    }

    fn shard(&self, name: &SessionName) -> Option<&Shard> {
        let hash = self.hasher.hash_one(name) % SHARDS as u64;
        self.shards.get(usize::try_from(hash).ok()?)
    }

    pub(crate) fn get(&self, name: &SessionName) -> Option<Arc<Session>> {
        self.shard(name)?.read().get(name).cloned()
    }

    /// Returns the session of a name, or a placeholder for it, with its wake-ups.
    pub(crate) fn watch(&self, name: &SessionName) -> (Arc<Session>, watch::Receiver<()>) {
        // Subscribed under the shard's lock, so that no placeholder is removed in between.
        let watched = |session: &Arc<Session>| (Arc::clone(session), session.subscribe());
        let nothing = || Shown::Hot(Published::nothing());
        let placeholder = || Arc::new(Session::new(name.clone(), nothing()));
        let Some(shard) = self.shard(name) else {
            return watched(&placeholder());
        };
        if let Some(session) = shard.read().get(name) {
            return watched(session);
        }
        let mut sessions = shard.write();
        watched(sessions.entry(name.clone()).or_insert_with(placeholder))
    }

    /// Removes a placeholder that is no longer watched; returns true if it was removed.
    pub(crate) fn forget_placeholder(&self, name: &SessionName, session: &Arc<Session>) -> bool {
        if !session.is_idle_placeholder() {
            return false;
        }
        let Some(shard) = self.shard(name) else { return false };
        let mut sessions = shard.write();
        let same = |found: &Arc<Session>| Arc::ptr_eq(found, session);
        let is_unused = sessions.get(name).is_some_and(same) && session.is_idle_placeholder();
        is_unused && sessions.remove(name).is_some()
    }

    /// Removes the name of a deleted session and returns its id. A watched one stays, since its watchers wait for the
    /// next session.
    pub(crate) fn forget_deleted(
        &self,
        name: &SessionName,
        session: &Arc<Session>,
    ) -> Result<SessionId, InUse> {
        let shard = self.shard(name).ok_or(InUse)?;
        let mut sessions = shard.write();
        let id = session.extent().session;
        let is_unused = !session.exists() && !session.is_watched() && !session.is_damaged();
        if !is_unused || !sessions.get(name).is_some_and(|found| Arc::ptr_eq(found, session)) {
            return Err(InUse);
        }
        sessions.remove(name);
        self.identities.remove(id);
        Ok(id)
    }

    /// Removes a session whose board is not in memory and that nobody watches; a store that other servers write to is
    /// asked for it again. Returns true if it was removed.
    pub(crate) fn release(&self, session: &Arc<Session>) -> bool {
        let name = session.name();
        let Some(shard) = self.shard(name) else { return false };
        // Held to the end, so that the session is not published meanwhile.
        let mut sessions = shard.write();
        let is_listed = sessions.get(name).is_some_and(|found| Arc::ptr_eq(found, session));
        if !is_listed || session.is_in_use() || session.is_damaged() {
            return false;
        }
        sessions.remove(name);
        self.identities.remove(session.extent().session);
        for names in [&self.names, &self.asking, &self.requesting, &self.over_budget] {
            note(names, name, false);
        }
        self.labels.note(name, None);
        true
    }

    /// Publishes a session's board and commits, and whether the store lost what was published before; a new name is added.
    pub(crate) fn publish(
        &self,
        name: &SessionName,
        published: Published,
        commits: Vec<Weighed>,
        known: (Known, bool),
        held: &AtomicUsize,
    ) -> Arc<Session> {
        let exists = published.board.life().is_some();
        let asks = exists && !published.board.asked().open().is_empty();
        let requests = exists && published.board.tasks().can_be_claimed();
        let is_over = published.board.budget_passed().is_some();
        let labels = published.board.life().map(|life| Arc::clone(&life.labels));
        let session = self.show(name, published, commits, known, held);
        note(&self.damaged, name, false);
        self.labels.note(name, labels.as_ref());
        self.list(name, exists);
        note(&self.asking, name, asks);
        note(&self.requesting, name, requests);
        note(&self.over_budget, name, is_over);
        session
    }

    fn show(
        &self,
        name: &SessionName,
        published: Published,
        commits: Vec<Weighed>,
        known: (Known, bool),
        held: &AtomicUsize,
    ) -> Arc<Session> {
        let id = published.board.id();
        let new = |published| Arc::new(Session::new(name.clone(), Shown::Hot(published)));
        let Some(shard) = self.shard(name) else { return new(published) };
        let show = |session: &Arc<Session>, published| {
            if let Some(former) = session.publish(published, commits, known, held) {
                self.identities.follow(id, session, former);
            }
            Arc::clone(session)
        };
        // Published under the lock, so that no placeholder is removed while it becomes a session.
        let sessions = shard.read();
        if let Some(session) = sessions.get(name) {
            return show(session, published);
        }
        drop(sessions);
        let mut sessions = shard.write();
        if let Some(session) = sessions.get(name) {
            return show(session, published);
        }
        let session = new(published);
        session.set_known(known.0);
        self.identities.add(id, &session, Revision::default());
        sessions.insert(name.clone(), Arc::clone(&session));
        session
    }

    /// Adds a session by its name; an existing one is also listed.
    pub(crate) fn insert(&self, session: Arc<Session>, exists: bool) {
        let name = session.name().clone();
        let shown = session.shown();
        let (is_damaged, life) = (session.is_damaged(), shown.life());
        let is_sound = exists && !is_damaged;
        note(&self.damaged, &name, is_damaged);
        self.labels.note(&name, life.map(|life| &life.labels));
        self.list(&name, exists || is_damaged);
        note(&self.asking, &name, is_sound && shown.asks());
        note(&self.requesting, &name, is_sound && shown.requests());
        note(&self.over_budget, &name, is_sound && shown.is_over_budget());
        if let Some(shard) = self.shard(&name) {
            shard.write().insert(name, session);
        }
    }

    /// Marks a session as damaged.
    pub(crate) fn set_aside(&self, session: &Session) {
        note(&self.damaged, session.name(), true);
        note(&self.asking, session.name(), false);
        note(&self.requesting, session.name(), false);
        note(&self.over_budget, session.name(), false);
        session.mark_damaged();
    }

    /// Number of damaged sessions.
    pub(crate) fn damaged(&self) -> usize {
        self.damaged.read().len()
    }

    /// Visits every session. A lookup may wait until a shard has been visited.
    pub(crate) fn visit(&self, mut visit: impl FnMut(&Arc<Session>)) {
        for shard in &self.shards {
            shard.read().values().for_each(&mut visit);
        }
    }

    /// Adds a name to the list, or removes it.
    pub(crate) fn list(&self, name: &SessionName, exists: bool) {
        let is_changed = note(&self.names, name, exists);
        if is_changed && !exists {
            // Its place is free before the store is counted again.
            let less = |counted: usize| counted.checked_sub(1);
            self.counted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok();
        }
    }

    /// Returns the number of sessions that exist.
    pub(crate) fn len(&self) -> usize {
        self.names.read().len().max(self.counted.load(Ordering::Relaxed))
    }

    /// Notes the number of sessions in the store, most of which this server may not know.
    pub(crate) fn set_count(&self, sessions: usize) {
        self.counted.store(sessions, Ordering::Relaxed);
    }

    /// Returns the number of these names.
    pub(crate) fn count(&self, among: Among) -> usize {
        self.of(among).read().len()
    }

    /// Returns at most `limit` names with this prefix, in order.
    pub(crate) fn names(
        &self,
        among: Among,
        from: Bound<&str>,
        prefix: &str,
        limit: usize,
    ) -> Vec<SessionName> {
        some(&self.of(among).read(), from, prefix, limit)
    }

    fn of(&self, among: Among) -> &RwLock<BTreeSet<SessionName>> {
        match among {
            Among::All => &self.names,
            Among::Asking => &self.asking,
            Among::Requesting => &self.requesting,
            Among::OverBudget => &self.over_budget,
        }
    }
}

/// Adds or removes a name; takes the write lock only for a change. Returns true if there was one.
fn note(names: &RwLock<BTreeSet<SessionName>>, name: &SessionName, belongs: bool) -> bool {
    let noted = names.read().contains(name);
    if belongs && !noted {
        names.write().insert(name.clone())
    } else {
        !belongs && noted && names.write().remove(name)
    }
}

/// Returns at most `limit` of these names with this prefix, in order.
pub(crate) fn some(
    names: &BTreeSet<SessionName>,
    from: Bound<&str>,
    prefix: &str,
    limit: usize,
) -> Vec<SessionName> {
    let start = match from {
        Bound::Included(name) | Bound::Excluded(name) if name >= prefix => from,
        Bound::Included(_) | Bound::Excluded(_) | Bound::Unbounded => Bound::Included(prefix),
    };
    let range = names.range::<str, _>((start, Bound::Unbounded));
    range.take_while(|name| name.as_str().starts_with(prefix)).take(limit).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_session_makes_room_before_the_next_count() {
        let directory = Directory::new();
        let [a, b] = ["a", "b"].map(|name| name.parse().unwrap());
        directory.list(&a, true);
        directory.list(&b, true);
        directory.set_count(5);
        directory.list(&b, false);
        directory.list(&b, false);
        assert_eq!(directory.len(), 4);
        directory.list(&a, false);
        assert_eq!(directory.len(), 3);
    }
}
