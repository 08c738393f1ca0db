//! Images that a write brings and that are not kept: those that its session drops, and those of a write that
//! was refused.

use std::sync::Arc;

use super::images::ImagesIn;
use super::job::WriterError;
use super::{Reply, Service, ServiceError};
use crate::board::{Command, LogName, SessionName, Write};

impl Service {
    /// Whether the session is set to drop what this write brings.
    pub(super) fn drops(&self, write: &Write) -> Result<bool, ServiceError> {
        if !matches!(&write.command, Command::Append { log: LogName::Screenshots, .. }) {
            return Ok(false);
        }
        let Some(session) = self.existing(&write.terms.session)? else { return Ok(false) };
        let shown = session.shown();
        Ok(shown.life().is_some_and(|life| !life.settings.keeps_screenshots()))
    }

    /// Lets images go that were stored for a write which came to nothing.
    pub(super) fn note_unkept(
        &self,
        name: &SessionName,
        images_in: Option<ImagesIn>,
        written: &Result<Reply, WriterError>,
    ) {
        let is_refused = match written {
            Ok(Reply::Now(_)) => return,
            Ok(Reply::Before(_)) | Err(WriterError::Moved) => true,
            Err(WriterError::Service(error)) => matches!(
                error,
                ServiceError::Rejected { .. }
                    | ServiceError::StoreFull
                    | ServiceError::Overloaded
                    | ServiceError::CommitTooLarge { .. }
            ),
        };
        match images_in {
            Some(ImagesIn::Present(_)) => self.inner.looks.after_refusal(name),
            // Nobody else will make this session. After a fault it may be there; the next start knows.
            Some(ImagesIn::New(session)) if is_refused => {
                let store = Arc::clone(&self.inner.store);
                tokio::task::spawn_blocking(move || {
                    if let Err(error) = store.remove_blobs(session) {
                        tracing::warn!(%session, %error, "the images of a refused write were left behind");
                    }
                });
            }
            Some(ImagesIn::New(_)) | None => {}
        }
    }
}
