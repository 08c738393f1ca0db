//! Truncating history: a base replaces the commits up to it.
//!
//! The base is stored outside the writer; putting it in force is one small transaction of the writer.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::error::ServiceError;
use crate::job::{Job, Rebase};
use crate::sessions::session::{Pin, Published};
use crate::sessions::snapshots::put_parts;
use crate::work_turns::WorkTurn;
use crate::{Service, SessionHandle};
use blackboard_board::{AgentName, Board, Extent, Rejected, Revision, SessionName};
use blackboard_fairness::with_files;
use blackboard_store::Store;

/// The number of times that a purge begins anew since another server truncates the history.
const TRIES_MAX: usize = 8;

impl SessionHandle {
    /// Deletes all history up to now. Returns the revision at which it begins.
    ///
    /// # Errors
    ///
    /// [`Rejected::NoSession`], or why it could not be stored.
    pub async fn purge(&self, author: Option<&AgentName>) -> Result<Revision, ServiceError> {
        let Self { service, name, .. } = self;
        // The board is loaded and pinned first, so that nobody waits for a load within the turn.
        let _pinned = service.inner.sessions.directory.get(name).map(|session| Pin::new(&session));
        let none = || {
            let rejected = Rejected::NoSession { session: name.clone() };
            ServiceError::Rejected { rejected, revision: None }
        };
        self.published().await?.ok_or_else(none)?;
        let mut turn = service.inner.history.bases.wait().await?;
        let mut wanted = None;
        for _ in 0..TRIES_MAX {
            let losses = service.inner.sessions.directory.get(name);
            let losses = losses.map(|session| session.extent_after_losses().1);
            let now = self.published().await?.ok_or_else(none)?;
            let Extent { session, oldest, revision: head, .. } = now.board.extent();
            let (of, until) = *wanted.get_or_insert((session, head));
            let mut begins = oldest;
            if of == session && oldest < until {
                let (held, cut) = service.cut_to(name, now, losses, turn).await?;
                turn = held;
                match cut {
                    Ok(()) => {
                        service.log_purge(name, author, head);
                        begins = head;
                    }
                    // Another server truncates the history too.
                    Err(ServiceError::Compacted { .. }) => {
                        service.catch_up(name).await?;
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            drop(turn);
            service.forget_past(of);
            return Ok(if of == session { begins } else { until });
        }
        Err(ServiceError::Overloaded)
    }
}

impl Service {
    /// Stores a board as the base of its history, and has the writer put it in force.
    async fn cut_to(
        &self,
        name: &SessionName,
        now: Published,
        losses: Option<u64>,
        turn: WorkTurn,
    ) -> Result<(WorkTurn, Result<(), ServiceError>), ServiceError> {
        let Published { board, history_bytes } = now;
        let (store, stored) = (Arc::clone(&self.inner.deps.store), Arc::clone(&board));
        // The turn goes with the work, since the caller may leave.
        let put = move || (turn, put_base(&*store, &stored, history_bytes));
        let (turn, put) = with_files(put).await.map_err(|_| ServiceError::Fault)?;
        if put.is_err() {
            return Ok((turn, put));
        }
        let (rebase, answer) = rebase(name, &board, history_bytes, losses);
        self.inner.writer.queue.send(Job::Rebase(rebase))?;
        Ok((turn, answer.await.map_err(|_| ServiceError::Stopping)?))
    }

    /// A purge leaves no commit, so the log records it.
    fn log_purge(&self, name: &SessionName, author: Option<&AgentName>, oldest: Revision) {
        self.inner.images.schedule.after_cut(name);
        let agent = author.map(AgentName::as_str);
        tracing::info!(session = %name, agent, %oldest, "purged the history");
    }
}

/// A rebase job for the writer, and the receiver of its answer.
pub(crate) fn rebase(
    name: &SessionName,
    board: &Board,
    dropped_bytes: u64,
    losses: Option<u64>,
) -> (Rebase, oneshot::Receiver<Result<(), ServiceError>>) {
    let (reply, answer) = oneshot::channel();
    let (name, session, base) = (name.clone(), board.id(), board.revision());
    (Rebase { name, session, base, dropped_bytes, losses, reply }, answer)
}

/// Stores a board as a base for the history, replacing this many bytes of commits.
pub(crate) fn put_base(
    store: &dyn Store,
    board: &Board,
    dropped_bytes: u64,
) -> Result<(), ServiceError> {
    let (session, base) = (board.id(), board.revision());
    put_parts(board, |parts| store.put_base(session, base, dropped_bytes, parts))
}
