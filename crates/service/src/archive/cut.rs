//! Archives of damaged sessions: the readable part, up to the damage.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Export;
use crate::history::blocking;
use crate::sessions::replay::sound_part;
use crate::{Service, ServiceError, SessionHandle};
use blackboard_board::{Digest, Revision, SessionName, Version};

/// The reach of an archive that ends before its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The session's last version.
    pub version: Version,
    /// The last revision that can be read.
    pub revision: Revision,
    /// The session's last revision.
    pub head: Revision,
}

/// Parts that an archive of a damaged session may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lacks {
    Nothing,
    Images,
}

/// The end of an archive that ends before its session.
pub(super) struct Ends {
    /// The session's last revision.
    pub(super) head: Revision,
    /// The images that are left out.
    pub(super) lost: BTreeMap<Digest, u64>,
}

impl SessionHandle {
    /// Exports the readable part of the session, which is damaged.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Damaged`] if nothing can be read, or the session is not marked as damaged;
    /// [`ServiceError::Overloaded`], or why the store cannot be read.
    pub async fn export_damaged(&self) -> Result<(Export, Cut), ServiceError> {
        let exported = self.service.export_cut(&self.name, Lacks::Nothing).await;
        exported.map(|(export, cut, _)| (export, cut))
    }
}

impl Service {
    /// Exports the readable part, which may lack missing or damaged images; returns these with their lengths.
    pub(crate) async fn export_cut(
        &self,
        name: &SessionName,
        lacks: Lacks,
    ) -> Result<(Export, Cut, BTreeMap<Digest, u64>), ServiceError> {
        let session =
            self.inner.sessions.directory.get(name).filter(|session| session.is_damaged());
        let extent = session.ok_or(ServiceError::Damaged)?.extent();
        let hold = self.inner.images.pins.session(extent.session);
        let turn = self.inner.archives.exports.wait().await?;
        let store = Arc::clone(&self.inner.deps.store);
        let (board, lost) = blocking(move || {
            let board = sound_part(&*store, extent.session)?;
            let is_lost =
                |sha256| lacks == Lacks::Images && store.blob(board.id(), sha256).is_err();
            let images = board.images().map(|(sha256, bytes)| (*sha256, *bytes));
            let lost: BTreeMap<_, _> = images.filter(|(sha256, _)| is_lost(*sha256)).collect();
            Ok((board, lost))
        })
        .await?;
        if board.life().is_none() {
            return Err(ServiceError::Damaged);
        }
        let revision = board.revision();
        // If the head is damaged too, at least the next revision existed.
        let head = extent.revision.max(revision.next());
        let pin = self.pin(&board).await?;
        let ends = Ends { head, lost: lost.clone() };
        let export = self.write_out(Arc::new(board), Some(ends), pin, (turn, hold));
        let version = Version { session: extent.session, changed: head };
        Ok((export, Cut { version, revision, head }, lost))
    }
}
