//! Truncating history: a base replaces the commits up to it.
//!
//! The base is stored outside the writer; putting it in force is one small transaction of the writer.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::blocking;
use crate::board::{AgentName, Board, Rejected, Revision, SessionName};
use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::job::{Job, Rebase};
use crate::service::sessions::session::Pin;
use crate::service::sessions::snapshots::put_parts;
use crate::store::Store;

impl Service {
    /// Deletes all history of a session up to now. Returns the revision at which it begins.
    ///
    /// # Errors
    ///
    /// [`Rejected::NoSession`], or why it could not be stored.
    pub async fn purge(
        &self,
        name: &SessionName,
        author: Option<&AgentName>,
    ) -> Result<Revision, ServiceError> {
        // The board is loaded and pinned first, so that nobody waits for a load within the turn.
        let _pinned = self.inner.sessions.directory.get(name).map(|session| Pin::new(&session));
        let none = || {
            let rejected = Rejected::NoSession { session: name.clone() };
            ServiceError::Rejected { rejected, revision: None }
        };
        self.published(name).await?.ok_or_else(none)?;
        let mut turn = self.inner.history.bases.wait().await?;
        let published = self.published(name).await?.ok_or_else(none)?;
        let (board, base) = (Arc::clone(&published.board), published.board.revision());
        if published.board.oldest() < base {
            let (store, dropped_bytes) =
                (Arc::clone(&self.inner.deps.store), published.history_bytes);
            drop(published);
            let stored = Arc::clone(&board);
            // The turn goes with the work: whoever asked may leave.
            let put = move || put_base(&*store, &stored, dropped_bytes).map(|()| turn);
            turn = blocking(put).await?;
            let (rebase, answer) = rebase(name, &board, dropped_bytes);
            self.inner.writer.queue.send(Job::Rebase(rebase))?;
            answer.await.map_err(|_| ServiceError::Stopping)??;
            self.inner.images.schedule.after_cut(name);
            // A purge leaves no commit, so the log records it.
            let agent = author.map(AgentName::as_str);
            tracing::info!(session = %name, agent, oldest = %base, "purged the history");
        }
        drop(turn);
        self.forget_past(board.id());
        Ok(base)
    }
}

/// A rebase job for the writer, and the receiver of its answer.
pub(crate) fn rebase(
    name: &SessionName,
    board: &Board,
    dropped_bytes: u64,
) -> (Rebase, oneshot::Receiver<Result<(), ServiceError>>) {
    let (reply, answer) = oneshot::channel();
    let (name, session, base) = (name.clone(), board.id(), board.revision());
    (Rebase { name, session, base, dropped_bytes, reply }, answer)
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
