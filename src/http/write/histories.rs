//! Writes to a whole history: fork, restore, purge and import of an archive.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;

use super::Writing;
use super::response::{ShapeResult, Written};
use crate::api::tag::Resource;
use crate::board::{Board, Hashing, Rejected, SessionName};
use crate::http::request::body::{ARCHIVE_BODY_BYTES_MAX, Arriving};
use crate::http::response::problem::Problem;
use crate::http::response::unwritten;
use crate::service::{Import, Imported, ServiceError, SessionHandle};

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
        let Some(kept) = self.call(resource)?.repeated().await? else { return Ok(None) };
        Ok(Some(self.again(&kept).map_err(unwritten)?.into_response()))
    }

    /// Creates the session from another session's board.
    pub(in crate::http) async fn fork(
        self,
        board: Arc<Board>,
        fork_of: SessionName,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let (call, shape) = (self.call(&Resource::Session)?, Arc::new(shape));
        let keep = self.keep(&call, &shape);
        let reply = call.fork(board, fork_of, keep).await;
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
        let (call, shape) = (self.call(&Resource::Session)?, Arc::new(shape));
        let keep = self.keep(&call, &shape);
        let reply = match imported {
            Some(imported) => call.adopt(imported, keep).await,
            None => Err(ServiceError::Fault.into()),
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
        let (call, shape) = (self.call(&Resource::Session)?, Arc::new(shape));
        let keep = self.keep(&call, &shape);
        let reply = call.restore(then, keep).await;
        self.answer(&Resource::Session, reply, &*shape).await
    }

    /// Deletes the session's history before now.
    pub(in crate::http) async fn purge(
        self,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let resource = Resource::Session;
        if let Some(answer) = self.repeated(&resource).await? {
            return Ok(answer);
        }
        let (call, shape) = (self.call(&resource)?, Arc::new(shape));
        let reply = call.purge(self.keep(&call, &shape)).await;
        self.answer(&resource, reply, &*shape).await
    }
}
