//! Forks: a board at one revision becomes the start of another session.
//!
//! The fork's base is stored under its own id first; then the writer gives it its name.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::blocking;
use super::staged_history::{StagedHistory, discard};
use super::truncate::put_base;
use crate::error::ServiceError;
use crate::image_pins::ImagePin;
use crate::job::WriteJob;
use crate::{Keep, Reply, Service, SessionHandle, new_session_id};
use blackboard_board::{
    Board, Command, Extent, Rejected, SessionCommand, SessionId, SessionName, Terms, Write,
};
use blackboard_store::StoreError;

impl SessionHandle {
    /// Creates the session from another session's board. Source and fork both store the key, so that a repeat is
    /// known when one of them is deleted.
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
        let Self { service, name, .. } = self;
        let fork_key = terms.key.clone().map(|key| (fork_of.clone(), key));
        for session in [&fork_of, name] {
            if let Some(answer) = service.recall(session, terms.key.as_ref()).await? {
                return Ok(Reply::Before(answer));
            }
        }
        let session = name.clone();
        if self.extent()?.is_some() {
            let rejected = Rejected::SessionExists { session };
            return Err(ServiceError::Rejected { rejected, revision: None });
        }
        // The pin keeps all images from here on. A board from before the retained history may have lost some.
        let hold = service.inner.images.pins.session(board.id());
        if let Some(Extent { session: id, oldest, .. }) = service.extent(&fork_of)?
            && id == board.id()
            && oldest > board.revision()
        {
            return Err(ServiceError::Compacted { oldest });
        }
        let (staged, forked) = service.stage_fork(board, fork_of.clone(), hold).await?;
        let command = Command::Session(SessionCommand::Adopt {
            board: Arc::new(forked),
            fork_of: Some(fork_of),
        });
        let job = WriteJob { keep, fork_key, ..WriteJob::of(Write { session, terms, command }) };
        service.adopt(staged.hand_over(), job).await
    }
}

impl Service {
    /// Stores a fork's images, which may be many, in a turn of their own; then its base.
    async fn stage_fork(
        &self,
        board: Arc<Board>,
        source: SessionName,
        hold: ImagePin,
    ) -> Result<(StagedHistory, Board), ServiceError> {
        let has_images = board.images().next().is_some();
        let turn = if has_images { Some(self.inner.history.links.wait().await?) } else { None };
        let (store, orphans) =
            (Arc::clone(&self.inner.deps.store), Arc::clone(&self.inner.images.orphans));
        let stopping = self.inner.deps.stopping.clone();
        let linked = blocking(move || {
            let _held = (hold, turn);
            let staged = StagedHistory::begin(store, orphans, new_session_id())?;
            let forked = board.forked(staged.id());
            if has_images {
                link_images(&staged, board.id(), &forked, source, &stopping)?;
            }
            Ok((staged, forked))
        });
        let (staged, forked) = linked.await?;
        let turn = self.inner.history.bases.wait().await?;
        let put = blocking(move || {
            let _turn = turn;
            put_base(&**staged.store(), &forked, 0)?;
            Ok((staged, forked))
        });
        put.await
    }

    /// Gives a staged history its name, or deletes the history if that is refused.
    pub(crate) async fn adopt(&self, id: SessionId, job: WriteJob) -> Result<Reply, ServiceError> {
        let is_keyed = job.write.terms.key.is_some() || job.fork_key.is_some();
        let reply = self.enqueue(Box::new(job)).await;
        let reply = reply.map_err(|refused| ServiceError::from(refused).in_doubt(is_keyed));
        // A fault may follow the adoption; then the next start deletes the history if it has no name.
        let is_refused = match &reply {
            Ok(Reply::Before(_)) => true,
            Ok(Reply::Now(_)) => false,
            Err(error) => matches!(
                error,
                ServiceError::Rejected { .. }
                    | ServiceError::StoreFull
                    | ServiceError::Busy
                    | ServiceError::Failed(_)
                    | ServiceError::Malformed
                    | ServiceError::Overloaded
                    | ServiceError::CommitTooLarge { .. }
            ),
        };
        if is_refused {
            let inner = Arc::clone(&self.inner);
            let discarded = blocking(move || {
                discard(&*inner.deps.store, &inner.images.orphans, id);
                Ok(())
            });
            discarded.await?;
        }
        reply
    }
}

/// Links the source's images to a fork, unless the server stops meanwhile.
fn link_images(
    staged: &StagedHistory,
    from: SessionId,
    forked: &Board,
    source: SessionName,
    stopping: &CancellationToken,
) -> Result<(), ServiceError> {
    let images = forked.images().map(|(sha256, _)| *sha256);
    let mut images = images.take_while(|_| !stopping.is_cancelled());
    staged.store().link_blobs(from, staged.id(), &mut images).map_err(|error| {
        if !matches!(error, StoreError::BlobMissing { .. }) {
            return error.into();
        }
        // The image was deleted with its session after this board was read.
        let rejected = Rejected::NoSession { session: source };
        ServiceError::Rejected { rejected, revision: None }
    })?;
    if stopping.is_cancelled() { Err(ServiceError::Stopping) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
