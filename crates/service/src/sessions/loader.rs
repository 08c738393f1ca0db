//! Loader of evicted boards: a few threads, and one read for concurrent callers.
//!
//! A session that cannot be read is marked as damaged; the others continue.

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::directory::Directory;
use super::memory_budget::MemoryBudget;
use super::replay::{is_damage, replay_to_head};
use super::session::{Published, Session, Shown};
use crate::deps::Deps;
use crate::error::ServiceError;
use crate::work_turns::TURN_WAIT_MAX;
use blackboard_board::{Rejected, Summary};
use blackboard_error_chain::Chain;
use blackboard_fairness::{Client, Queue, Refused};
use blackboard_store::{Store, StoreError};

/// The number of boards loaded at once.
const LOADS_MAX: usize = 4;

/// The number of sessions that may wait for one client.
const WAITING_MAX: usize = 16 << 10;

/// The number of loads of a board whose session changes meanwhile.
const TRIES_MAX: usize = 8;

/// Loads evicted boards. Cloning gives another handle.
#[derive(Clone)]
pub(crate) struct Loader {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn Store>,
    memory: Arc<MemoryBudget>,
    directory: Arc<Directory>,
    under_way: Mutex<UnderWay>,
    waiting: Queue<Arc<Session>>,
}

/// The sessions queued or being loaded, by address, with their callers.
#[derive(Default)]
struct UnderWay(HashMap<usize, Vec<Asked>>);

/// Sender to a caller that waits for a board.
type Asked = oneshot::Sender<Result<Published, Unloaded>>;

/// Reasons why a board could not be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unloaded {
    /// The stored history is damaged.
    Damaged,
    /// The session changed repeatedly, or too many callers wait.
    Overloaded,
    /// The server is about to end.
    Stopping,
    /// The database service does not answer.
    Unreachable,
    /// The store cannot read.
    Failed,
}

impl From<Unloaded> for ServiceError {
    fn from(unloaded: Unloaded) -> Self {
        match unloaded {
            Unloaded::Damaged => Self::Damaged,
            Unloaded::Overloaded => Self::Overloaded,
            Unloaded::Stopping => Self::Stopping,
            Unloaded::Unreachable => Self::Unreachable,
            Unloaded::Failed => Self::Fault,
        }
    }
}

/// A session's state without a read of the store.
pub(crate) enum AtHand {
    /// The board.
    Board(Published),
    /// The board must be loaded.
    Cold(Arc<Summary>),
    /// The board cannot be loaded.
    Damaged,
}

impl AtHand {
    fn of(session: &Session) -> Self {
        if session.is_damaged() {
            return Self::Damaged;
        }
        let summary = match session.shown() {
            Shown::Hot(published) => return Self::Board(published),
            Shown::Cold(summary) => summary,
        };
        match session.bare_board(&summary) {
            Some(board) => {
                let history_bytes = summary.history_bytes;
                Self::Board(Published { board: Arc::new(board), history_bytes })
            }
            None => Self::Cold(summary),
        }
    }
}

impl UnderWay {
    fn answer(&mut self, session: &Arc<Session>, loaded: &Result<Published, Unloaded>) {
        for asked in self.0.remove(&place(session)).into_iter().flatten() {
            // The caller may have gone away.
            asked.send(loaded.clone()).ok();
        }
    }
}

impl Loader {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        memory: Arc<MemoryBudget>,
        directory: Arc<Directory>,
    ) -> Self {
        let (under_way, waiting) = (Mutex::default(), Queue::new(WAITING_MAX));
        Self { shared: Arc::new(Shared { store, memory, directory, under_way, waiting }) }
    }

    /// Starts the threads.
    pub(crate) fn start(&self, deps: &Deps) -> io::Result<()> {
        // One signal for all: a thread that returns before it is stopped has failed.
        let signal = Arc::default();
        (0..LOADS_MAX).try_for_each(|_| {
            let (loader, own) = (self.clone(), self.clone());
            let signal = Arc::clone(&signal);
            deps.threads.start_on_queue(
                "loader",
                signal,
                move || loader.close(),
                move |_| own.run(),
            )
        })
    }

    /// Closes the queue, and refuses those who wait in it.
    fn close(&self) {
        let shared = &self.shared;
        shared.waiting.close();
        while let Ok((_, session)) = shared.waiting.try_pop() {
            shared.under_way.lock().answer(&session, &Err(Unloaded::Stopping));
        }
    }

    /// Returns the published board, after loading it if it was evicted.
    pub(crate) async fn published(
        &self,
        session: &Arc<Session>,
    ) -> Result<Published, ServiceError> {
        match self.hot(session)? {
            Some(published) => Ok(published),
            // Boxed, since most boards are in memory.
            None => Box::pin(self.loaded(session)).await,
        }
    }

    /// Returns the published board if it is in memory.
    fn hot(&self, session: &Arc<Session>) -> Result<Option<Published>, ServiceError> {
        if session.is_damaged() {
            return Err(ServiceError::Damaged);
        }
        self.shared.memory.touch(session);
        match session.shown() {
            Shown::Hot(published) => Ok(Some(published)),
            Shown::Cold(_) => Ok(None),
        }
    }

    async fn loaded(&self, session: &Arc<Session>) -> Result<Published, ServiceError> {
        for _ in 0..TRIES_MAX {
            if let Some(published) = self.hot(session)? {
                return Ok(published);
            }
            let (asked, loaded) = oneshot::channel();
            self.ask(session, Some(asked))?;
            // The load continues after the timeout, so a later call may find the board.
            let loaded = timeout(TURN_WAIT_MAX, loaded).await;
            let loaded = loaded.map_err(|_| ServiceError::Overloaded)?;
            let published = loaded.map_err(|_| ServiceError::Fault)??;
            // The board may have been replaced or evicted since; only the present one may be returned.
            match session.shown() {
                Shown::Hot(published) => return Ok(published),
                Shown::Cold(summary) if summary.extent == published.board.extent() => {
                    return Ok(published);
                }
                Shown::Cold(_) => {}
            }
        }
        Err(ServiceError::Overloaded)
    }

    /// Returns the published board on a blocking thread, which loads it itself.
    pub(crate) fn published_here(&self, session: &Arc<Session>) -> Result<Published, ServiceError> {
        self.shared.memory.touch(session);
        Ok(self.shared.load(session)?)
    }

    /// Returns a session's state in memory, for the writer, which loads no board.
    pub(crate) fn at_hand(&self, session: &Arc<Session>) -> AtHand {
        self.shared.memory.touch(session);
        AtHand::of(session)
    }

    /// Starts the load of a session's board, unless it is under way, without a caller.
    pub(crate) fn warm(&self, session: &Arc<Session>) -> Result<(), ServiceError> {
        self.ask(session, None)
    }

    /// Returns true if a session's board is being loaded or queued.
    pub(crate) fn is_under_way(&self, session: &Arc<Session>) -> bool {
        self.shared.under_way.lock().0.contains_key(&place(session))
    }

    fn ask(&self, session: &Arc<Session>, asked: Option<Asked>) -> Result<(), ServiceError> {
        let mut under_way = self.shared.under_way.lock();
        if let Some(others) = under_way.0.get_mut(&place(session)) {
            others.extend(asked);
            return Ok(());
        }
        let queued = self.shared.waiting.push(Client::current(), Arc::clone(session));
        queued.map_err(|refused| match refused {
            Refused::Full(_) => ServiceError::Overloaded,
            Refused::Closed(_) => ServiceError::Stopping,
        })?;
        under_way.0.insert(place(session), asked.into_iter().collect());
        Ok(())
    }

    fn run(&self) {
        while let Some((client, session)) = self.shared.waiting.pop() {
            self.answer(client, &session);
        }
    }

    /// Loads the next board that is waited for. Returns false if there is none.
    #[cfg(test)]
    pub(crate) fn step(&self) -> bool {
        let next = self.shared.waiting.try_pop();
        next.map(|(client, session)| self.answer(client, &session)).is_ok()
    }

    fn answer(&self, client: Client, session: &Arc<Session>) {
        let begun = Instant::now();
        let load = catch_unwind(AssertUnwindSafe(|| self.shared.load(session)));
        let loaded = load.unwrap_or(Err(Unloaded::Failed));
        self.shared.under_way.lock().answer(session, &loaded);
        self.shared.waiting.charge(client, begun.elapsed());
    }
}

impl Shared {
    /// Loads a session's board, unless it is in memory.
    fn load(&self, session: &Session) -> Result<Published, Unloaded> {
        for _ in 0..TRIES_MAX {
            let summary = match AtHand::of(session) {
                AtHand::Damaged => return Err(Unloaded::Damaged),
                AtHand::Board(published) => return Ok(published),
                AtHand::Cold(summary) => summary,
            };
            match replay_to_head(&*self.store, &summary) {
                Ok(board) => {
                    if let Some(published) = session.install(&board) {
                        self.memory.weigh(session);
                        return Ok(published);
                    }
                }
                // The history may have been truncated meanwhile, or the name may have a new session.
                Err(_) if session.extent() != summary.extent => {}
                Err(error) => return Err(self.unloaded(session, &error)),
            }
        }
        Err(Unloaded::Overloaded)
    }

    /// Returns the reason of a failed load, and marks the session if its history is damaged.
    fn unloaded(&self, session: &Session, error: &ServiceError) -> Unloaded {
        if self.store.shared().is_some() {
            if matches!(error, ServiceError::Unreachable) {
                return Unloaded::Unreachable;
            }
            // Another server truncated or deleted the history meanwhile, or a failover lost its end.
            let is_gone = matches!(
                error,
                ServiceError::Store(StoreError::NoHistory { .. })
                    | ServiceError::Rejected { rejected: Rejected::NoRevision { .. }, .. }
            );
            if is_gone || matches!(error, ServiceError::Compacted { .. }) {
                return Unloaded::Overloaded;
            }
        }
        let why = Chain(error);
        tracing::error!(session = %session.name(), error = %why, "a board could not be read");
        if !is_damage(error) {
            return Unloaded::Failed;
        }
        self.directory.set_aside(session);
        Unloaded::Damaged
    }
}

/// Its address: unique while the session is alive.
fn place(session: &Arc<Session>) -> usize {
    Arc::as_ptr(session).addr()
}
