//! Writes to a whole history: fork, restore, purge and import of an archive.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;

use super::Writing;
use super::response::{ShapeResult, Written};
use crate::api::refusal::{no_session, refused};
use crate::api::tag::Resource;
use crate::board::{Board, Command, Condition, Hashing, Rejected, SessionName, Terms, permits};
use crate::http::request::body::{ARCHIVE_BODY_BYTES_MAX, Arriving};
use crate::http::response::problem::Problem;
use crate::http::response::unwritten;
use crate::service::{At, Import, Imported, ServiceError, SessionHandle};

impl Writing {
    /// Returns the session that this writes.
    pub(in crate::http) fn session(&self) -> &SessionHandle {
        &self.session
    }

    /// Redirects the write to another session, and returns the session in the path.
    pub(in crate::http) async fn redirect(
        &mut self,
        to: &SessionName,
    ) -> Result<SessionHandle, Problem> {
        let to = self.session.service().session(self.caller(), to).await?;
        Ok(std::mem::replace(&mut self.session, to))
    }

    /// Returns the first response if this is a repeat. The session's past board is not needed for that.
    pub(in crate::http) async fn repeated(
        &self,
        resource: &Resource,
    ) -> Result<Option<Response>, Problem> {
        let kept = self.session.recall(&self.terms(resource)?).await?;
        let Some(kept) = kept else { return Ok(None) };
        Ok(Some(self.again(&kept).map_err(unwritten)?.into_response()))
    }

    /// Returns a session's board at a point in its history, or the current board if no point is given.
    pub(in crate::http) async fn board_at(
        &self,
        session: &SessionHandle,
        at: Option<&At>,
    ) -> Result<Arc<Board>, Problem> {
        let published = session.published().await?;
        let published = published.ok_or_else(|| no_session(session.name()))?;
        let board = match at {
            Some(at) => session.board_at(&published, at).await?,
            None => published.board,
        };
        if board.life().is_none() {
            // Before the first commit there is no board to fork or restore.
            let revision = board.revision();
            return Err(refused(&Rejected::NoRevision { revision }, None).into());
        }
        Ok(board)
    }

    /// Creates the session from another session's board.
    pub(in crate::http) async fn fork(
        self,
        board: Arc<Board>,
        fork_of: SessionName,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let board = match self.caller().limited_to() {
            Some(own) => Arc::new(board.remembering_only(own)),
            None => board,
        };
        let (terms, shape) = (self.terms(&Resource::Session)?, Arc::new(shape));
        let keep = self.keep(&terms, &shape);
        let reply = self.session.fork(terms, board, fork_of, keep).await;
        self.answer(&Resource::Session, reply, &*shape).await
    }

    /// Imports the archive in the body as the session, which must not exist unless damaged.
    pub(in crate::http) async fn import(
        mut self,
        body: Body,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        self.finish_query()?;
        let max = ARCHIVE_BODY_BYTES_MAX;
        let mut arriving = Arriving::begin(&self.headers, body, max).await?;
        let import = match self.session.import().await {
            Ok(import) => import,
            Err(error) => return self.not_imported(error, arriving).await,
        };
        let imported = self.receive(&mut arriving, Some(import)).await?;
        let (terms, shape) = (self.terms(&Resource::Session)?, Arc::new(shape));
        let keep = self.keep(&terms, &shape);
        let reply = match imported {
            Some(imported) => self.session.adopt_import(terms, imported, keep).await,
            None => Err(ServiceError::Fault),
        };
        self.answer(&Resource::Session, reply, &*shape).await
    }

    /// Refuses a name that is in use, unless the same request imported it before.
    async fn not_imported(
        mut self,
        error: ServiceError,
        mut arriving: Arriving,
    ) -> Result<Response, Problem> {
        let is_taken = matches!(
            error,
            ServiceError::Rejected { rejected: Rejected::SessionExists { .. }, .. }
        );
        if is_taken && self.repeat.is_some() {
            self.receive(&mut arriving, None).await?;
            if let Some(answer) = self.repeated(&Resource::Session).await? {
                return Ok(answer);
            }
        } else {
            arriving.linger().await;
        }
        Err(error.into())
    }

    /// Reads a body to its end, hashes it if the write has a key, and passes it to the import.
    async fn receive(
        &mut self,
        arriving: &mut Arriving,
        mut import: Option<Import>,
    ) -> Result<Option<Imported>, Problem> {
        let mut hashing = self.repeat.as_ref().map(|_| Hashing::default());
        while let Some(piece) = arriving.next().await? {
            if let Some(hashing) = &mut hashing {
                hashing.add(&piece);
            }
            if let Some(import) = &mut import
                && !import.push(piece.into()).await
            {
                arriving.linger().await;
                break;
            }
        }
        if let Some((repeat, hashing)) = self.repeat.take().zip(hashing) {
            self.repeat = Some(repeat.with_digest(hashing.digest()));
        }
        match import {
            Some(import) => Ok(Some(import.finish().await?)),
            None => Ok(None),
        }
    }

    /// Restores the session to an earlier board.
    pub(in crate::http) async fn restore(
        self,
        then: Arc<Board>,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let (terms, shape) = (self.terms(&Resource::Session)?, Arc::new(shape));
        let keep = self.keep(&terms, &shape);
        let reply = self.session.restore(terms, then, keep).await;
        self.answer(&Resource::Session, reply, &*shape).await
    }

    /// Deletes the session's history before now. The purge itself commits nothing. A key is recorded with a commit,
    /// so that a repeat does not delete newer history.
    pub(in crate::http) async fn purge(
        self,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let resource = Resource::Session;
        if let Some(answer) = self.repeated(&resource).await? {
            return Ok(answer);
        }
        let board = self.board_at(&self.session, None).await?;
        let terms = self.terms(&resource)?;
        if let Err(rejected) = permits(&board, self.session.name(), &terms) {
            let error = ServiceError::Rejected { rejected, revision: Some(board.revision()) };
            return Err(self.refusal(&resource, error).await);
        }
        self.session.purge(terms.author.as_ref()).await?;
        // The terms were checked already; writes made meanwhile no longer matter.
        let terms = Terms { condition: Condition::default(), fence: None, ..terms };
        let nothing = Command::Transact(Box::default());
        let shape = Arc::new(shape);
        let keep = self.keep(&terms, &shape);
        let reply = self.session.write(terms, nothing, Vec::new(), keep).await;
        self.answer(&resource, reply, &*shape).await
    }
}
