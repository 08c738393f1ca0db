//! Forks: a board at one revision as the beginning of another session.
//!
//! What the fork begins with is stored under its own identity first; then the writer gives it its name.

use std::sync::Arc;

use super::error::ServiceError;
use super::past::blocking;
use super::rebase::put_base;
use super::writer::{Order, WriterError};
use super::{Keep, Reply, Service, new_session_id};
use crate::board::{Board, Command, Rejected, SessionId, SessionName, Terms, Write};
use crate::store::{Store, StoreError};

impl Service {
    /// Makes the session that the terms name, with a board to begin with.
    ///
    /// # Errors
    ///
    /// [`Rejected::SessionExists`], or why it could not be stored.
    pub async fn fork(
        &self,
        terms: Terms,
        board: Arc<Board>,
        fork_of: SessionName,
        keep: Option<Keep>,
    ) -> Result<Reply, ServiceError> {
        if let Some(answer) = self.recall(&terms)? {
            return Ok(Reply::Before(answer));
        }
        if self.published(&terms.session)?.is_some() {
            let rejected = Rejected::SessionExists { session: terms.session };
            return Err(ServiceError::Rejected { rejected, revision: None });
        }
        let _turn = self.inner.bases.acquire().await.map_err(|_| ServiceError::Stopping)?;
        let (store, id) = (Arc::clone(&self.inner.store), new_session_id());
        let source = fork_of.clone();
        let staged = blocking(move || {
            let forked = stage(&*store, id, &board, &source);
            if forked.is_err() {
                discard(&*store, id);
            }
            forked
        });
        let command = Command::Adopt { board: Arc::new(staged.await?), fork_of: Some(fork_of) };
        self.adopt(id, Write { terms, command }, 0, keep).await
    }

    /// Gives a staged history its name; where that is refused, the history is forgotten.
    pub(super) async fn adopt(
        &self,
        id: SessionId,
        write: Write,
        staged_bytes: u64,
        keep: Option<Keep>,
    ) -> Result<Reply, ServiceError> {
        let order = Order { write, images_in: None, keep, staged_bytes };
        let reply = self.enqueue(order).await.and_then(|reply| {
            reply.map_err(|error| match error {
                WriterError::Service(error) => error,
                WriterError::Moved => ServiceError::Fault,
            })
        });
        // A fault may have come after the adoption: then the next start knows what is nobody's.
        let is_refused = match &reply {
            Ok(Reply::Before(_)) => true,
            Ok(Reply::Now(_)) => false,
            Err(error) => matches!(
                error,
                ServiceError::Rejected { .. }
                    | ServiceError::StoreFull
                    | ServiceError::Overloaded
                    | ServiceError::CommitTooLarge { .. }
            ),
        };
        if is_refused {
            let store = Arc::clone(&self.inner.store);
            let discarded = blocking(move || {
                discard(&*store, id);
                Ok(())
            });
            discarded.await?;
        }
        reply
    }
}

/// Stores what a fork begins with.
fn stage(
    store: &dyn Store,
    id: SessionId,
    board: &Board,
    source: &SessionName,
) -> Result<Board, ServiceError> {
    let forked = board.forked(id);
    store.stage(id)?;
    for (digest, _) in forked.images() {
        store.link_blob(board.id(), id, *digest).map_err(|error| {
            if !matches!(error, StoreError::BlobMissing { .. }) {
                return error.into();
            }
            // It went with its session after this board was shown.
            let rejected = Rejected::NoSession { session: source.clone() };
            ServiceError::Rejected { rejected, revision: None }
        })?;
    }
    put_base(store, &forked)?;
    Ok(forked)
}

/// Forgets a history that is nobody's. What is left of it goes at the next start.
pub(super) fn discard(store: &dyn Store, id: SessionId) {
    for gone in [store.discard(id), store.remove_blobs(id)] {
        if let Err(error) = gone {
            tracing::warn!(session = %id, %error, "a history that is nobody's was left behind");
        }
    }
}

#[cfg(test)]
#[path = "fork_tests.rs"]
mod tests;
