//! Writes to a whole history: fork, restore, purge and import of an archive.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;

use super::Writing;
use super::response::{ShapeResult, Written};
use crate::request::body::{ARCHIVE_BODY_BYTES_MAX, Arriving};
use crate::response::problem::Problem;
use crate::response::unwritten;
use blackboard_api::ops::history::{Forking, Past};
use blackboard_api::tag::Resource;
use blackboard_board::{Hashing, Json, Rejected, Revision};
use blackboard_service::{At, Import, Imported, ServiceError, SessionHandle};

impl Writing {
    /// Returns the session that this writes.
    pub(crate) fn session(&self) -> &SessionHandle {
        &self.session
    }

    /// Returns the first response, if this is a repeat.
    async fn repeated(&self) -> Result<Option<Response>, Problem> {
        let kept = self.call(&Resource::Session)?.repeated().await?;
        kept.map(|kept| self.replay(&kept)).transpose()
    }

    fn replay(&self, kept: &Json) -> Result<Response, Problem> {
        Ok(self.again(kept).map_err(unwritten)?.into_response())
    }

    /// Creates another session from the board of this one. The shape gets the revision that was forked.
    pub(crate) async fn fork(
        mut self: Box<Self>,
        Forking { to, at }: Forking,
        shape: impl Fn(&Written<'_>, Revision) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        if let Some(answer) = self.repeated().await? {
            return Ok(answer);
        }
        let to = self.session.service().session(self.caller(), &to).await?;
        let source = std::mem::replace(&mut self.session, to);
        let call = self.call(&Resource::Session)?;
        let board = match call.to_fork(&source, at.as_ref()).await? {
            Past::Repeated(kept) => return self.replay(&kept),
            Past::Board { then, .. } => then,
        };
        let forked = board.revision();
        let shape = Arc::new(move |written: &Written<'_>| shape(written, forked));
        let keep = self.keep(&call, &shape);
        let reply = call.fork(board, source.name().clone(), keep).await;
        self.answer(&Resource::Session, reply, &*shape).await
    }

    /// Imports the archive in the body as the session, which must not exist unless damaged.
    pub(crate) async fn import(
        mut self: Box<Self>,
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
        mut self: Box<Self>,
        error: ServiceError,
        mut arriving: Arriving,
    ) -> Result<Response, Problem> {
        let is_taken = matches!(
            error,
            ServiceError::Rejected { rejected: Rejected::SessionExists { .. }, .. }
        );
        if is_taken && self.repeat.is_some() {
            self.receive(&mut arriving, None).await?;
            if let Some(answer) = self.repeated().await? {
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
    pub(crate) async fn restore(
        self: Box<Self>,
        at: &At,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let (call, shape) = (self.call(&Resource::Session)?, Arc::new(shape));
        let then = match call.to_restore(at).await? {
            Past::Repeated(kept) => return self.replay(&kept),
            Past::Board { then, .. } => then,
        };
        let reply = call.restore(then, self.keep(&call, &shape)).await;
        self.answer(&Resource::Session, reply, &*shape).await
    }

    /// Deletes the session's history before now.
    pub(crate) async fn purge(
        self: Box<Self>,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let (call, shape) = (self.call(&Resource::Session)?, Arc::new(shape));
        let reply = call.purge(self.keep(&call, &shape)).await;
        self.answer(&Resource::Session, reply, &*shape).await
    }
}
