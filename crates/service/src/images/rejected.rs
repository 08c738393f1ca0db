//! Removes the images of rejected writes and of sessions that drop screenshots.

use std::sync::Arc;

use super::gc::is_known;
use crate::job::{ImagesIn, Unwritten};
use crate::{Reply, Service, ServiceError};
use blackboard_board::{Command, Digest, LogCommand, LogName, SessionId, SessionName, Write};

impl Service {
    /// Returns true if the session is set to drop the images that this write brings.
    pub(crate) fn drops(&self, write: &Write) -> Result<bool, ServiceError> {
        if !matches!(&write.command, Command::Log(LogName::Screenshots, LogCommand::Append { .. }))
        {
            return Ok(false);
        }
        let Some(session) = self.existing(&write.session)? else { return Ok(false) };
        let shown = session.shown();
        Ok(shown.life().is_some_and(|life| !life.settings.keeps_screenshots()))
    }

    /// Removes the images of a write that was not carried out.
    pub(crate) fn discard_rejected(
        &self,
        name: &SessionName,
        images_in: ImagesIn,
        images: &[Digest],
        written: &Result<Reply, Unwritten>,
    ) {
        let is_refused = match written {
            Ok(Reply::Now(_)) => return,
            Ok(Reply::Before(_)) | Err(Unwritten::Moved(_) | Unwritten::Cold(_)) => true,
            Err(Unwritten::Failed(error)) => matches!(
                error,
                ServiceError::Rejected { .. }
                    | ServiceError::StoreFull
                    | ServiceError::Malformed
                    | ServiceError::Failed(_)
                    | ServiceError::Overloaded
                    | ServiceError::CommitTooLarge { .. }
            ),
        };
        self.leave(name, images_in, images, is_refused);
    }

    /// Removes images from a place where no write names them.
    pub(crate) fn discard(&self, name: &SessionName, images_in: ImagesIn, images: &[Digest]) {
        self.leave(name, images_in, images, true);
    }

    fn leave(&self, name: &SessionName, images_in: ImagesIn, images: &[Digest], is_refused: bool) {
        match images_in {
            // A put may have created the directory again after the images were removed.
            ImagesIn::Present(session) if self.is_deleted(name, session) => {
                self.inner.images.orphans.add(session);
            }
            ImagesIn::Present(session) if is_refused => {
                self.remove_rejected(name, session, images);
            }
            ImagesIn::Present(_) => self.inner.images.schedule.after_refusal(name),
            // No other write creates this session. After a fault it may exist; the next start decides.
            ImagesIn::New(session) if is_refused => self.inner.images.orphans.add(session),
            ImagesIn::New(_) => {}
        }
    }

    /// Removes the images that were stored before a failed one.
    pub(crate) fn note_unstored(&self, name: &SessionName, images_in: ImagesIn) {
        match images_in {
            ImagesIn::Present(_) => self.inner.images.schedule.after_refusal(name),
            ImagesIn::New(session) => self.inner.images.orphans.add(session),
        }
    }

    /// Returns true if the name no longer belongs to this session. A damaged session is not deleted.
    fn is_deleted(&self, name: &SessionName, id: SessionId) -> bool {
        let Some(session) = self.inner.sessions.directory.get(name) else { return true };
        !session.is_damaged() && (session.extent().session != id || !session.exists())
    }

    /// Removes images of a rejected write at once, or rejections could fill the disk. Images of the session or of
    /// another write stay.
    fn remove_rejected(&self, name: &SessionName, id: SessionId, images: &[Digest]) {
        let Some(session) = self.inner.sessions.directory.get(name) else { return };
        self.inner.images.schedule.after_refusal(name);
        let (inner, images, name) = (Arc::clone(&self.inner), images.to_vec(), name.clone());
        tokio::task::spawn_blocking(move || {
            for sha256 in images {
                let is_free =
                    || !inner.images.pins.contains(id, sha256) && !is_known(&session, id, &sha256);
                if let Err(error) = inner.deps.store.remove_blob(id, sha256, &is_free) {
                    tracing::warn!(session = %name, %error, "an image of a rejected write could not be deleted");
                }
            }
        });
    }
}
