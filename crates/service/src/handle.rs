//! Handle of a session: the way to it for a caller.
//!
//! A handle has checked that the caller reaches the session, and has caught up with what other servers wrote. A wait does both
//! anew at each wake.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::error::ServiceError;
use super::image_bytes::ImageBytes;
use super::sessions::recent_commits::SharedText;
use super::watch::{Commits, Watch};
use super::{Keep, Published, Reply, Service};
use blackboard_auth::{Caller, Unauthorized};
use blackboard_board::{Code, Command, Extent, Json, Revision, SessionName, Summary, Terms, Write};

/// A session as a caller reaches it, whether it exists or not.
///
/// There is no other way to a board. A door that asks for no rights does not compile:
///
/// ```compile_fail,E0624
/// use blackboard_board::SessionName;
/// use blackboard_service::{Published, Service, ServiceError};
///
/// async fn door(service: &Service, name: &SessionName) -> Result<Option<Published>, ServiceError> {
///     service.published(name).await
/// }
/// ```
///
/// ```
/// use blackboard_auth::Caller;
/// use blackboard_board::SessionName;
/// use blackboard_service::{Published, Service};
///
/// async fn door(
///     service: &Service,
///     caller: &Caller,
///     name: &SessionName,
/// ) -> Result<Option<Published>, Box<dyn std::error::Error>> {
///     Ok(service.session(caller, name).await?.published().await?)
/// }
/// ```
#[derive(Clone)]
pub struct SessionHandle {
    pub(crate) service: Service,
    pub(crate) caller: Caller,
    pub(crate) name: SessionName,
}

/// The reason why a caller has no handle.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// To the caller, there is no such session.
    #[error("the caller does not reach {0}")]
    Hidden(SessionName),
    /// The caller's rights have ended.
    #[error(transparent)]
    Over(#[from] Unauthorized),
    /// What other servers wrote is not known here yet.
    #[error(transparent)]
    Behind(#[from] ServiceError),
}

impl Unreachable {
    /// Returns the code of the API.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Hidden(_) => Code::SessionNotFound,
            Self::Over(_) => Code::Unauthorized,
            Self::Behind(error) => error.code(),
        }
    }
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

    /// Returns the last known revision of a session that the caller reaches, for an answer that is made already. It catches
    /// up with nothing.
    #[must_use]
    pub fn known_revision(&self, caller: &Caller, name: &SessionName) -> Option<Revision> {
        let extent = caller.reaches(name).then(|| self.extent(name).ok()?)?;
        extent.map(|extent| extent.revision)
    }
}

impl SessionHandle {
    /// Checks the rights again, and catches up.
    ///
    /// # Errors
    ///
    /// [`Unreachable`].
    pub async fn renew(&self) -> Result<(), Unreachable> {
        self.check()?;
        Ok(self.service.catch_up(&self.name).await?)
    }

    /// Checks the rights.
    fn check(&self) -> Result<(), Unreachable> {
        if !self.caller.reaches(&self.name) {
            return Err(Unreachable::Hidden(self.name.clone()));
        }
        Ok(self.caller.still_may(self.service.now())?)
    }

    /// Returns the caller.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the boards that the session is one of.
    #[must_use]
    pub fn service(&self) -> &Service {
        &self.service
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

    /// Returns the summary; `None` if there is no such session. No board is loaded.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Damaged`].
    pub fn summary(&self) -> Result<Option<Arc<Summary>>, ServiceError> {
        self.service.summary(&self.name)
    }

    /// Waits for changes, from now on.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Damaged`].
    pub fn wait(&self) -> Result<SessionWait, ServiceError> {
        Ok(SessionWait { watch: self.service.watch(&self.name)?, session: self.clone() })
    }

    /// Carries out a write with the images that its items name. For a keyed write, `keep` makes the answer to a repeat.
    ///
    /// # Errors
    ///
    /// [`ServiceError`]; nothing was changed, unless the error says that the outcome is unknown.
    pub fn write(
        &self,
        terms: Terms,
        command: Command,
        images: Vec<ImageBytes>,
        keep: Option<Keep>,
    ) -> impl Future<Output = Result<Reply, ServiceError>> + Send {
        let write = Write { session: self.name.clone(), terms, command };
        self.service.write(write, images, keep)
    }

    /// Returns the first answer to a write, if it is a repeat. The writer checks again.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] if the key belongs to another write.
    pub async fn recall(&self, terms: &Terms) -> Result<Option<Json>, ServiceError> {
        self.service.recall(&self.name, terms.key.as_ref()).await
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
        self.session.check()?;
        if self.session.service.has_replicas() {
            // What woke it is here, and a later wake brings the rest. Boxed, so that a wait has no room for it.
            Box::pin(self.session.service.catch_up(&self.session.name)).await.ok();
        }
        Ok(true)
    }

    /// Returns the session that is waited for.
    #[must_use]
    pub fn session(&self) -> &SessionHandle {
        &self.session
    }

    /// Returns the extent of the session's history; revision 0 if the name never had a session.
    #[must_use]
    pub fn extent(&self) -> Extent {
        self.watch.extent()
    }

    /// Returns true if the server stops.
    pub async fn is_stopping(&mut self) -> bool {
        self.watch.is_stopping().await
    }

    /// Returns true if the last delivered commit was the newest, so that [`changed`](Self::changed) tells of the next.
    #[must_use]
    pub fn is_at_head(&self) -> bool {
        self.watch.is_at_head()
    }

    /// Returns the text of the commits after a revision, and the last of these, if another reader who may see them shared
    /// it.
    pub fn shared(&mut self, after: Revision) -> Option<(Bytes, Revision)> {
        self.watch.shared(after, self.session.caller.sees_all())
    }

    /// Shares the text of commits that were delivered with the other readers of the session.
    pub fn share(&self, shared: SharedText) {
        self.watch.share(shared);
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
