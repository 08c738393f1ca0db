//! Progress of the index: sessions to follow, and how far each was followed.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::touched::Touched;
use crate::threads::signal::Signal;
use blackboard_board::{Revision, SessionId, SessionName};
use blackboard_metrics::SEARCH_INDEX_DAMAGES;
use blackboard_search::{Index, Position};

/// The progress of the index, shared by the writer, the indexer and the searches.
#[derive(Debug)]
pub(crate) struct Progress {
    state: Mutex<State>,
    /// Sessions with commits that are not indexed, and what these have touched if that is known. The writer adds to it, so it
    /// has its own lock.
    changed: Mutex<HashMap<SessionName, Option<Touched>>>,
    /// The number of clients who wait for the index.
    awaited: AtomicUsize,
    signal: Arc<Signal>,
    ticks: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    index: Option<Arc<Index>>,
    /// True once the index has followed all sessions to where they were at the start.
    is_ready: bool,
    /// True if the file was found damaged, until another one is made.
    is_distrusted: bool,
    /// True from then on until that one has followed all sessions.
    is_rebuilding: bool,
    positions: HashMap<SessionName, Position>,
    /// The sessions of names that are being followed into a store's texts.
    sessions: HashMap<SessionName, SessionId>,
}

impl State {
    fn distrust(&mut self) {
        if !self.is_distrusted {
            SEARCH_INDEX_DAMAGES.add_one();
        }
        (self.is_ready, self.is_distrusted, self.is_rebuilding) = (false, true, true);
    }
}

/// A client who waits for the index.
pub(super) struct Waiting<'a>(&'a Progress);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.awaited.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Progress {
    pub(crate) fn new() -> Self {
        let (ticks, _) = watch::channel(());
        let (state, changed, awaited) = (Mutex::default(), Mutex::default(), AtomicUsize::new(0));
        Self { state, changed, awaited, signal: Arc::default(), ticks }
    }

    /// Notes a session with new commits, and what they have touched if that is known.
    pub(crate) fn note(&self, session: &SessionName, touched: Option<Touched>) {
        let mut changed = self.changed.lock();
        match changed.get_mut(session) {
            Some(known) => {
                *known = known.take().zip(touched).and_then(|(known, next)| known.and(next));
            }
            None => drop(changed.insert(session.clone(), touched)),
        }
        drop(changed);
        self.signal.wake();
    }

    /// Notes a client who waits for the index, until the answer is dropped.
    pub(super) fn wait(&self) -> Waiting<'_> {
        self.awaited.fetch_add(1, Ordering::Relaxed);
        Waiting(self)
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.awaited.load(Ordering::Relaxed) > 0
    }

    /// Takes the sessions with new commits.
    pub(super) fn take(&self) -> HashMap<SessionName, Option<Touched>> {
        mem::take(&mut *self.changed.lock())
    }

    pub(super) fn has_changed(&self) -> bool {
        !self.changed.lock().is_empty()
    }

    /// Gives back sessions that could not be followed.
    pub(super) fn give_back(&self, sessions: impl IntoIterator<Item = SessionName>) {
        self.changed.lock().extend(sessions.into_iter().map(|session| (session, None)));
    }

    /// Returns the index once it is ready.
    pub(super) fn index(&self) -> Option<Arc<Index>> {
        let state = self.state.lock();
        state.index.clone().filter(|_| state.is_ready)
    }

    /// Takes the index from the searches.
    pub(super) fn take_index(&self) -> Option<Arc<Index>> {
        let mut state = self.state.lock();
        state.is_ready = false;
        state.index.take()
    }

    pub(super) fn opened(&self, index: Arc<Index>, positions: HashMap<SessionName, Position>) {
        let mut state = self.state.lock();
        (state.is_ready, state.is_distrusted) = (false, false);
        (state.index, state.positions) = (Some(index), positions);
    }

    pub(super) fn set_ready(&self) {
        let mut state = self.state.lock();
        if !state.is_distrusted {
            (state.is_ready, state.is_rebuilding) = (true, false);
        }
        drop(state);
        self.ticks.send_replace(());
    }

    /// Asks for a new file.
    pub(super) fn distrust(&self) {
        self.state.lock().distrust();
        self.signal.wake();
    }

    /// Asks for a new file in place of this index's, unless it has been replaced: damage of an earlier file is no reason
    /// to distrust a later one.
    pub(super) fn distrust_if_present(&self, index: &Arc<Index>) {
        let mut state = self.state.lock();
        if state.index.as_ref().is_some_and(|present| Arc::ptr_eq(present, index)) {
            state.distrust();
            drop(state);
            self.signal.wake();
        }
    }

    /// Returns true while the index is made anew because of damage.
    pub(crate) fn is_rebuilding(&self) -> bool {
        self.state.lock().is_rebuilding
    }

    pub(super) fn is_distrusted(&self) -> bool {
        self.state.lock().is_distrusted
    }

    /// Begins a round of following sessions into a store's texts, from where these are.
    pub(super) fn begin_round(&self, at: Vec<(SessionName, SessionId, Option<Revision>)>) {
        let mut state = self.state.lock();
        state.positions.clear();
        state.sessions.clear();
        for (name, session, revision) in at {
            if let Some(revision) = revision {
                state.positions.insert(name.clone(), Position { session, revision });
            }
            state.sessions.insert(name, session);
        }
    }

    /// Returns the session of a name in the round.
    pub(super) fn session(&self, name: &SessionName) -> Option<SessionId> {
        self.state.lock().sessions.get(name).copied()
    }

    pub(super) fn position(&self, session: &SessionName) -> Option<Position> {
        self.state.lock().positions.get(session).copied()
    }

    /// Notes how far sessions were followed; `None` if they are no longer indexed.
    pub(super) fn reached(&self, sessions: Vec<(SessionName, Option<Position>)>) {
        let mut state = self.state.lock();
        for (session, position) in sessions {
            match position {
                Some(position) => drop(state.positions.insert(session, position)),
                None => drop(state.positions.remove(&session)),
            }
        }
        drop(state);
        self.ticks.send_replace(());
    }

    /// Returns the revision whose entries of a session are indexed; 0 if there is none.
    pub(super) fn revision(&self, session: &SessionName) -> Revision {
        self.position(session).map_or(Revision(0), |position| position.revision)
    }

    /// Returns the indexed sessions.
    pub(super) fn sessions(&self) -> Vec<SessionName> {
        self.state.lock().positions.keys().cloned().collect()
    }

    pub(super) fn ticks(&self) -> watch::Receiver<()> {
        self.ticks.subscribe()
    }

    pub(super) fn signal(&self) -> Arc<Signal> {
        Arc::clone(&self.signal)
    }
}
