//! Forks: a board at one revision as the beginning of another session.
//!
//! What the fork begins with is stored under its own identity first; then the writer gives it its name.

use std::sync::Arc;

use super::error::ServiceError;
use super::job::{Order, WriterError};
use super::past::blocking;
use super::rebase::put_base;
use super::{Keep, Reply, Service, new_session_id};
use crate::board::{Board, Command, Extent, Rejected, SessionId, SessionName, Terms, Write};
use crate::store::{Store, StoreError};

impl Service {
    /// Makes the session that the terms name, with a board to begin with. Their key is kept by the source
    /// and by the fork, so that a repeat is known whichever of the two is left.
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
        let keeps_in = terms.key.clone().map(|key| (fork_of.clone(), key));
        let in_source = Terms { session: fork_of.clone(), ..terms.clone() };
        for terms in [&in_source, &terms] {
            if let Some(answer) = self.recall(terms).await? {
                return Ok(Reply::Before(answer));
            }
        }
        if self.extent(&terms.session)?.is_some() {
            let rejected = Rejected::SessionExists { session: terms.session };
            return Err(ServiceError::Rejected { rejected, revision: None });
        }
        let turn = self.inner.bases.wait().await?;
        // From here on none of its images goes. One from before what is kept may have lost some.
        let hold = self.inner.holds.session(board.id());
        if let Some(Extent { session, oldest, .. }) = self.extent(&fork_of)?
            && session == board.id()
            && oldest > board.revision()
        {
            return Err(ServiceError::Compacted { oldest });
        }
        let (store, id) = (Arc::clone(&self.inner.store), new_session_id());
        let source = fork_of.clone();
        let staged = blocking(move || {
            let _held = (hold, turn);
            let forked = stage(&*store, id, &board, &source);
            if forked.is_err() {
                discard(&*store, id);
            }
            forked
        });
        let command = Command::Adopt { board: Arc::new(staged.await?), fork_of: Some(fork_of) };
        let order = Order { keep, keeps_in, ..Order::of(Write { terms, command }) };
        self.adopt(id, order).await
    }

    /// Gives a staged history its name; where that is refused, the history is forgotten.
    pub(super) async fn adopt(&self, id: SessionId, order: Order) -> Result<Reply, ServiceError> {
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
