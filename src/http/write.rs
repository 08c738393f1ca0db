//! One way for a write: what it takes of its request, its condition read, the command carried out, and
//! its answer shaped.
//!
//! A handler takes its own parameters, then its body, then makes one call.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::agents::{Seen, write_agent};
use super::answer::unwritten;
use super::body::{ARCHIVE_BODY_BYTES_MAX, Arriving, BodyBytes, BodyRoom, read, work};
use super::error::{no_session, refused};
use super::etag::{Resource, Tag, condition, version};
use super::params::{Params, invalid};
use super::path::{Author, SessionPath};
use super::problem::Problem;
use super::repeat::Repeat;
use super::sessions::session_rendering;
use super::shaped::{ShapeResult, Shaped, Written};
use super::view::{Images, View};
use crate::board::{
    self, AgentName, Board, Command, Current, Fence, Rejected, Revision, Seq, SessionName, Terms,
    Version, Write, permits,
};
use crate::service::{
    At, ImageBytes, Import, Imported, Keep, Patch, Published, Receipt, Reply, Service, ServiceError,
};

/// Up to this size a refused condition shows the resource as it is.
const CURRENT_BYTES_MAX: usize = 64 << 10;

/// A write on its way from its request to the service.
pub(super) struct Writing {
    service: Service,
    room: BodyRoom,
    session: SessionName,
    author: Option<AgentName>,
    pub(super) headers: HeaderMap,
    /// What is left of the query: the handler takes its own of it before it takes the body.
    pub(super) params: Params,
    fence: Option<Fence>,
    repeat: Option<Repeat>,
}

impl<S> FromRequestParts<S> for Writing
where
    S: Send + Sync,
    Service: FromRef<S>,
    BodyRoom: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let SessionPath(session) = SessionPath::from_request_parts(parts, state).await?;
        let Author(author) = Author::from_request_parts(parts, state).await?;
        let params = Params::from_request_parts(parts, state).await?;
        let repeat = Repeat::of(parts)?;
        Ok(Self {
            service: Service::from_ref(state),
            room: BodyRoom::from_ref(state),
            session,
            author,
            headers: parts.headers.clone(),
            params,
            fence: None,
            repeat,
        })
    }
}

impl Writing {
    /// Ends the query, and reads a body of at most `max` bytes.
    pub(super) async fn body(&mut self, body: Body, max: usize) -> Result<BodyBytes, Problem> {
        self.no_body()?;
        let bytes = read(&self.headers, body, max, &self.room).await?;
        let Some(repeat) = self.repeat.take() else { return Ok(bytes) };
        let length = bytes.len();
        let hash = move || {
            let repeat = repeat.with_body(&bytes);
            Ok((repeat, bytes))
        };
        let (repeat, bytes) = work(length, hash).await?;
        self.repeat = Some(repeat);
        Ok(bytes)
    }

    /// Ends the query, for a write that takes no body.
    pub(super) fn no_body(&mut self) -> Result<(), Problem> {
        let mut params = std::mem::take(&mut self.params);
        let request = params.number("claim", 0..=u64::MAX)?.map(Seq);
        let fence = params.number("fence", 0..=u64::MAX)?.map(Revision);
        self.fence = match (request, fence) {
            (Some(request), Some(fence)) => Some(Fence { request, fence }),
            (None, None) => None,
            (Some(_), None) => return Err(invalid("claim", "goes with its fence")),
            (None, Some(_)) => return Err(invalid("fence", "goes with the claim that it is of")),
        };
        params.finish()
    }

    /// Refuses the write where nobody is named who writes.
    pub(super) fn by_an_agent(&self) -> Result<(), Problem> {
        match &self.author {
            Some(_) => Ok(()),
            None => Err(refused(&Rejected::AgentRequired, None)),
        }
    }

    /// Carries out a command that writes `resource`, on the condition that the headers name.
    pub(super) async fn write(
        self,
        resource: Resource,
        command: Command,
        images: Vec<ImageBytes>,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let (terms, shape) = (self.terms(&resource)?, Arc::new(shape));
        let keep = self.keep(&terms, &shape);
        let reply = self.service.write(Write { terms, command }, images, keep).await;
        self.answer(&resource, reply, &*shape).await
    }

    /// Patches an entry, on the condition that the headers name.
    pub(super) async fn patch(
        self,
        log: board::LogName,
        seq: Seq,
        patch: &Patch,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let resource = Resource::Entry(log.clone(), seq);
        let (terms, shape) = (self.terms(&resource)?, Arc::new(shape));
        let keep = self.keep(&terms, &shape);
        let reply = self.service.patch_entry(terms, log, seq, patch, keep).await;
        self.answer(&resource, reply, &*shape).await
    }

    /// The session that it writes.
    pub(super) fn session(&self) -> &SessionName {
        &self.session
    }

    /// Lets it write this session in place of the one in its path, and tells the latter.
    pub(super) fn elsewhere(&mut self, session: SessionName) -> SessionName {
        std::mem::replace(&mut self.session, session)
    }

    /// The answer to its first, where it is a repeat: that needs nothing of what was there then.
    pub(super) fn repeated(&self, resource: &Resource) -> Result<Option<Response>, Problem> {
        let Some(kept) = self.service.recall(&self.terms(resource)?)? else { return Ok(None) };
        Ok(Some(Shaped::again(&kept).map_err(unwritten)?.into_response()))
    }

    /// A session's board as it was, or as it is where no point in its history is named.
    pub(super) async fn board_at(
        &self,
        session: &SessionName,
        at: Option<&At>,
    ) -> Result<Arc<Board>, Problem> {
        let published = self.service.published(session)?.ok_or_else(|| no_session(session))?;
        let board = match at {
            Some(at) => self.service.board_at(&published, at).await?,
            None => published.board,
        };
        if board.life().is_none() {
            // Before its first commit there is nothing to begin with, or to go back to.
            let revision = board.revision();
            return Err(refused(&Rejected::NoRevision { revision }, None));
        }
        Ok(board)
    }

    /// Makes its session of the board of another one.
    pub(super) async fn fork(
        self,
        board: Arc<Board>,
        fork_of: SessionName,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let (terms, shape) = (self.terms(&Resource::Session)?, Arc::new(shape));
        let keep = self.keep(&terms, &shape);
        let reply = self.service.fork(terms, board, fork_of, keep).await;
        self.answer(&Resource::Session, reply, &*shape).await
    }

    /// Takes in the archive that its body is, as its session, which does not exist yet.
    pub(super) async fn import(
        mut self,
        body: Body,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        self.no_body()?;
        let max = ARCHIVE_BODY_BYTES_MAX;
        let mut arriving = Arriving::begin(&self.headers, body, max).await?;
        let import = match self.service.import(&self.session).await {
            Ok(import) => import,
            Err(error) => return self.not_imported(error, arriving).await,
        };
        let imported = self.receive(&mut arriving, Some(import)).await?;
        let (terms, shape) = (self.terms(&Resource::Session)?, Arc::new(shape));
        let keep = self.keep(&terms, &shape);
        let reply = match imported {
            Some(imported) => self.service.adopt_import(terms, imported, keep).await,
            None => Err(ServiceError::Fault),
        };
        self.answer(&Resource::Session, reply, &*shape).await
    }

    /// A name that is taken is refused, unless the same request took it before.
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
            if let Some(answer) = self.repeated(&Resource::Session)? {
                return Ok(answer);
            }
        } else {
            arriving.linger().await;
        }
        Err(error.into())
    }

    /// Reads a body to its end, hashes it where the write has a key, and hands it on.
    async fn receive(
        &mut self,
        arriving: &mut Arriving,
        mut import: Option<Import>,
    ) -> Result<Option<Imported>, Problem> {
        let mut hash = self.repeat.as_ref().map(|_| Sha256::new());
        while let Some(piece) = arriving.next().await? {
            if let Some(hash) = &mut hash {
                hash.update(&piece);
            }
            if let Some(import) = &mut import
                && !import.push(piece.into()).await
            {
                arriving.linger().await;
                break;
            }
        }
        if let Some((repeat, hash)) = self.repeat.take().zip(hash) {
            self.repeat = Some(repeat.with_hash(hash));
        }
        match import {
            Some(import) => Ok(Some(import.finish().await?)),
            None => Ok(None),
        }
    }

    /// Lets its session be as it was.
    pub(super) async fn restore(
        self,
        then: Arc<Board>,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let (terms, shape) = (self.terms(&Resource::Session)?, Arc::new(shape));
        let keep = self.keep(&terms, &shape);
        let reply = self.service.restore(terms, then, keep).await;
        self.answer(&Resource::Session, reply, &*shape).await
    }

    /// Forgets its session's history before now; gives the session's tag with its revision. That commits
    /// nothing, so there is nothing to repeat, and its terms are looked at here.
    pub(super) async fn purge(self) -> Result<(Revision, Tag), Problem> {
        let board = self.board_at(&self.session, None).await?;
        let terms = self.terms(&Resource::Session)?;
        if let Err(rejected) = permits(&board, &terms) {
            let error = ServiceError::Rejected { rejected, revision: Some(board.revision()) };
            return Err(self.refusal(&Resource::Session, error).await);
        }
        let revision = self.service.purge(&self.session, terms.author.as_ref()).await?;
        let version = Version { session: board.id(), changed: revision };
        Ok((revision, self.present_tag(version, &Resource::Session)))
    }

    fn terms(&self, resource: &Resource) -> Result<Terms, Problem> {
        let published = self.service.published(&self.session)?;
        let session = published.map(|published| published.board.id());
        Ok(Terms {
            session: self.session.clone(),
            condition: condition(&self.headers, self.service.epoch(), session, resource)?,
            fence: self.fence,
            author: self.author.clone(),
            key: self.repeat.as_ref().map(|repeat| repeat.key(self.author.as_ref())),
        })
    }

    /// The tag's version, where it is one of this resource of the session.
    pub(super) fn version(
        &self,
        tag: &str,
        resource: &Resource,
    ) -> Result<Option<Version>, Problem> {
        let published = self.service.published(&self.session)?;
        let version = |shown: Published| {
            version(tag, false, self.service.epoch(), shown.board.id(), resource)
        };
        Ok(published.and_then(version))
    }

    /// What is kept with the key, where there is one: the whole answer, shaped by the writer.
    fn keep<S>(&self, terms: &Terms, shape: &Arc<S>) -> Option<Keep>
    where
        S: Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    {
        terms.key.as_ref()?;
        let (shape, session, epoch) =
            (Arc::clone(shape), self.session.clone(), self.service.epoch());
        Some(Arc::new(move |receipt: &Receipt| {
            shape(&Written { receipt, session: &session, epoch, keyed: true }).ok()?.keep()
        }))
    }

    async fn answer(
        &self,
        resource: &Resource,
        reply: Result<Reply, ServiceError>,
        shape: &(dyn Fn(&Written<'_>) -> ShapeResult + Send + Sync),
    ) -> Result<Response, Problem> {
        let shaped = match reply {
            Ok(Reply::Now(receipt)) => {
                let epoch = self.service.epoch();
                let (session, keyed) = (&self.session, self.repeat.is_some());
                shape(&Written { receipt: &receipt, session, epoch, keyed })
            }
            Ok(Reply::Before(kept)) => Shaped::again(&kept),
            Err(error) => return Err(self.refusal(resource, error).await),
        };
        Ok(shaped.map_err(unwritten)?.into_response())
    }

    /// A condition that was refused comes with the present tag, and with the present entry.
    async fn refusal(&self, resource: &Resource, error: ServiceError) -> Problem {
        let ServiceError::Rejected {
            rejected: Rejected::Precondition { present, current }, ..
        } = &error
        else {
            return error.into();
        };
        let (present, current) = (*present, current.clone());
        let mut problem = Problem::from(error);
        if let Some(version) = present {
            let tag = self.present_tag(version, resource);
            problem = problem.header(header::ETAG, tag.value());
        }
        if let Some(current) = current
            && let Some(text) = self.shown(&current).await
        {
            problem = problem.member("current", &text);
        }
        problem
    }

    /// The tag that a read of the resource has, if it is still so.
    fn present_tag(&self, version: Version, resource: &Resource) -> Tag {
        let epoch = self.service.epoch();
        if matches!(resource, Resource::Session)
            && let Ok(Some(now)) = self.service.published(&self.session)
            && now.board.version() == version
        {
            return Tag::of(epoch, &session_rendering(&now), "");
        }
        Tag::new(epoch, version, resource)
    }

    async fn shown(&self, current: &Current) -> Option<Box<RawValue>> {
        let mut text = String::new();
        match current {
            Current::Entry(entry) => {
                let view = View { session: self.session.clone(), keys: None, images: Images::Url };
                let published = self.service.published(&self.session).ok()??;
                view.write_entry(&self.service, &published.board, entry, &mut text).await.ok()?;
            }
            Current::State(value) if value.bytes() <= CURRENT_BYTES_MAX as u64 => {
                value.write(&mut text);
            }
            Current::State(_) => return None,
            Current::Agent(name, agent) => write_agent(name, agent, Seen::Hidden, &mut text),
        }
        if text.len() > CURRENT_BYTES_MAX {
            return None;
        }
        RawValue::from_string(text).ok()
    }
}
