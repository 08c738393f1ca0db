//! Handle of a session: the way to it for a caller.
//!
//! A handle has checked that the caller reaches the session, and has caught up with what other servers wrote. A wait does both
//! anew at each wake.

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use super::claims::{NextClaim, Wait};
use super::error::ServiceError;
use super::history::At;
use super::watch::{Commits, Watch};
use super::{ImageBytes, Keep, Published, Reply, Service};
use crate::auth::Caller;
use crate::board::{Board, Extent, Json, Revision, SessionName, Terms, Write};

/// A session as a caller reaches it, whether it exists or not.
#[derive(Clone)]
pub struct SessionHandle {
    service: Service,
    caller: Caller,
    name: SessionName,
}

/// The reason why a caller has no handle.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// To the caller, there is no such session.
    #[error("the caller does not reach {0}")]
    Hidden(SessionName),
    /// The caller's rights have ended.
    #[error("the token has expired or was revoked")]
    Over,
    /// What other servers wrote is not known here yet.
    #[error(transparent)]
    Behind(#[from] ServiceError),
}

impl Service {
    /// Returns the handle of a session, up to date with what other servers wrote.
    ///
    /// # Errors
    ///
    /// [`Unreachable`].
    pub async fn session(
        &self,
        caller: &Caller,
        name: &SessionName,
    ) -> Result<SessionHandle, Unreachable> {
        let handle =
            SessionHandle { service: self.clone(), caller: caller.clone(), name: name.clone() };
        handle.renew().await?;
        Ok(handle)
    }
}

impl SessionHandle {
    /// Checks the rights again, and catches up.
    async fn renew(&self) -> Result<(), Unreachable> {
        if !self.caller.reaches(&self.name) {
            return Err(Unreachable::Hidden(self.name.clone()));
        }
        if self.caller.is_over(self.service.now()) {
            return Err(Unreachable::Over);
        }
        Ok(self.service.catch_up(&self.name).await?)
    }

    /// Returns the session's name.
    #[must_use]
    pub fn name(&self) -> &SessionName {
        &self.name
    }

    /// Returns the published board; `None` if there is no such session. An evicted board is loaded first.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Damaged`], or the reason why the board cannot be loaded now.
    pub async fn published(&self) -> Result<Option<Published>, ServiceError> {
        self.service.published(&self.name).await
    }

    /// Returns the extent of the history; `None` if there is no such session. No board is loaded.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Damaged`].
    pub fn extent(&self) -> Result<Option<Extent>, ServiceError> {
        self.service.extent(&self.name)
    }

    /// Returns the board at a point of the past of `now`.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] if there is no such point, or it cannot be read.
    pub async fn board_at(&self, now: &Published, at: &At) -> Result<Arc<Board>, ServiceError> {
        self.service.board_at(now, at).await
    }

    /// Waits for changes, from now on.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Damaged`].
    pub fn wait(&self) -> Result<SessionWait, ServiceError> {
        Ok(SessionWait { watch: self.service.watch(&self.name)?, session: self.clone() })
    }

    /// Carries out a write, as [`Service::write`] does.
    ///
    /// # Errors
    ///
    /// [`ServiceError`]; nothing was changed, unless the error says that the outcome is unknown.
    pub async fn write(
        &self,
        write: Write,
        images: Vec<ImageBytes>,
        keep: Option<Keep>,
    ) -> Result<Reply, ServiceError> {
        self.service.write(write, images, keep).await
    }

    /// Returns the first answer to a write, if it is a repeat.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] if the key belongs to another write.
    pub async fn recall(&self, terms: &Terms) -> Result<Option<Json>, ServiceError> {
        self.service.recall(terms).await
    }

    /// Claims the next request that is wanted, as [`Service::claim_next`] does.
    ///
    /// # Errors
    ///
    /// [`ServiceError`].
    pub async fn claim_next(
        &self,
        terms: &Terms,
        claim: &NextClaim,
        wait: Option<Wait>,
        keep: Option<Keep>,
    ) -> Result<Reply, ServiceError> {
        self.service.claim_next(terms, claim, wait, keep).await
    }

    /// Waits until the search index has this revision.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] if it has not at the deadline.
    pub async fn indexed(&self, revision: Revision, until: Instant) -> Result<(), ServiceError> {
        self.service.indexed(&self.name, revision, until).await
    }
}

/// Writes the session's name.
impl fmt::Display for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionHandle").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A wait for changes of a session.
#[derive(Debug)]
pub struct SessionWait {
    watch: Watch,
    session: SessionHandle,
}

impl SessionWait {
    /// Waits for a commit since the last call or the begin of the wait. Returns false when the server stops.
    ///
    /// # Errors
    ///
    /// [`Unreachable::Hidden`] or [`Unreachable::Over`] if the caller's rights have ended.
    pub async fn changed(&mut self) -> Result<bool, Unreachable> {
        if !self.watch.changed().await {
            return Ok(false);
        }
        match self.session.renew().await {
            // What woke it is here, and a later wake brings the rest.
            Ok(()) | Err(Unreachable::Behind(_)) => Ok(true),
            Err(ended @ (Unreachable::Hidden(_) | Unreachable::Over)) => Err(ended),
        }
    }

    /// Returns the extent of the session's history; revision 0 if the name never had a session.
    #[must_use]
    pub fn extent(&self) -> Extent {
        self.watch.extent()
    }

    /// Returns the commits after a revision, a page of them.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] if the store cannot be read.
    pub async fn commits(&mut self, after: Revision) -> Result<Commits, ServiceError> {
        self.watch.commits(after).await
    }
}
