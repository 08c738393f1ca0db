//! Salvage of damaged sessions: each keeps its readable part and is reported.

use super::Maintenance;
use crate::archive::Lacks;
use crate::{Cut, Damage, Listing, ServiceError};
use blackboard_board::{Command, Digest, Revision, SessionCommand, SessionName, Terms, Write};

/// A session that lost a part.
#[derive(Debug)]
pub struct Lost {
    /// Its name.
    pub name: SessionName,
    /// The last retained revision; `None` if nothing can be read.
    pub kept: Option<Revision>,
    /// The last known revision before the salvage.
    pub head: Revision,
    /// Missing or damaged images that the retained part names.
    pub images: Vec<Digest>,
}

impl Maintenance<'_> {
    /// Rebuilds each damaged session, also those of `damage`, from its readable part, and forgets damaged histories that
    /// no session has: the ends of earlier sessions, and those without a name. Revisions continue above all former
    /// ones.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] if the store takes no writes.
    pub async fn salvage(self, damage: &[Damage]) -> Result<Vec<Lost>, ServiceError> {
        let service = self.0;
        let identities = service.inner.sessions.directory.identities();
        for damage in damage.iter().filter(|damage| damage.is_of_history()) {
            match identities.running(damage.session) {
                Some(session) if session.exists() || session.is_damaged() => {
                    service.inner.sessions.directory.set_aside(&session);
                }
                Some(_) | None => {
                    service.inner.deps.store.forget(&identities.remove(damage.session))?;
                }
            }
        }
        let listed = service.list(&Listing::all(""), None, usize::MAX)?;
        let mut lost = Vec::new();
        for damaged in listed.iter().filter(|listed| listed.is_damaged) {
            let name = damaged.summary.name.clone();
            let last = damaged.summary.extent.revision;
            let (kept, head, images) = match self.keep_sound_part(&name).await {
                Ok((Cut { revision, head, .. }, images)) => (Some(revision), head, images),
                Err(error) => {
                    tracing::debug!(session = %name, %error, "no part of a session can be salvaged");
                    let command = Command::Session(SessionCommand::Delete);
                    let write = Write { session: name.clone(), terms: Terms::default(), command };
                    service.write(write, Vec::new(), None).await?;
                    (None, last, Vec::new())
                }
            };
            lost.push(Lost { name, kept, head, images });
        }
        Ok(lost)
    }

    /// Exports a damaged session's readable part and imports it again.
    async fn keep_sound_part(self, name: &SessionName) -> Result<(Cut, Vec<Digest>), ServiceError> {
        let service = self.0;
        let (mut export, cut, lost) = service.export_cut(name, Lacks::Images).await?;
        let images = lost.keys().copied().collect();
        let mut import = service.import_lacking(name, lost).await?;
        while let Some(lines) = export.next().await? {
            if !import.push(lines.into_bytes()).await {
                break;
            }
        }
        let imported = import.finish().await?;
        service.adopt_import(name, Terms::default(), imported, None).await?;
        Ok((cut, images))
    }
}
