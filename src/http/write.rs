//! One way for a write: what it takes of its request, its condition read, the command carried out, and
//! its answer shaped.
//!
//! A handler takes its own parameters, then its body, then makes one call.

use axum::body::Body;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri, header};
use axum::response::Response;

use super::answer::unwritten;
use super::body::{BodyBytes, BodyRoom, read};
use super::etag::{Resource, Tag, condition};
use super::params::Params;
use super::path::{Author, SessionPath};
use super::problem::Problem;
use super::shaped::{ShapeResult, Written};
use super::view::{Images, View};
use crate::board::{self, AgentName, Command, Rejected, SessionName, Write};
use crate::service::{ImageBytes, Patch, Receipt, Service, ServiceError};

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
    #[expect(dead_code, reason = "nothing asks yet whether a request is a repeat")]
    said: Said,
}

/// What else tells one write from another, so that a repeat can be known.
#[expect(dead_code, reason = "nothing asks yet whether a request is a repeat")]
struct Said {
    method: Method,
    uri: Uri,
    /// The body's SHA-256, once it was read.
    body: Option<[u8; 32]>,
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
        let said = Said { method: parts.method.clone(), uri: parts.uri.clone(), body: None };
        Ok(Self {
            service: Service::from_ref(state),
            room: BodyRoom::from_ref(state),
            session,
            author,
            headers: parts.headers.clone(),
            params,
            said,
        })
    }
}

impl Writing {
    /// Ends the query, and reads a body of at most `max` bytes.
    pub(super) async fn body(&mut self, body: Body, max: usize) -> Result<BodyBytes, Problem> {
        self.no_body()?;
        read(&self.headers, body, max, &self.room).await
    }

    /// Ends the query, for a write that takes no body.
    pub(super) fn no_body(&mut self) -> Result<(), Problem> {
        std::mem::take(&mut self.params).finish()
    }

    /// Carries out a command that writes `resource`, on the condition that the headers name.
    pub(super) async fn write(
        self,
        resource: Resource,
        command: Command,
        images: Vec<ImageBytes>,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let write = Write {
            session: self.session.clone(),
            command,
            condition: self.condition(&resource)?,
            author: self.author.clone(),
        };
        let result = self.service.write(write, images).await;
        self.answer(&resource, result, shape).await
    }

    /// Patches an entry, on the condition that the headers name.
    pub(super) async fn patch(
        self,
        log: board::LogName,
        seq: board::Seq,
        patch: &Patch,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let resource = Resource::Entry(log.clone(), seq);
        let condition = self.condition(&resource)?;
        let (session, author) = (self.session.clone(), self.author.clone());
        let result = self.service.patch_entry(session, log, seq, patch, condition, author).await;
        self.answer(&resource, result, shape).await
    }

    fn condition(&self, resource: &Resource) -> Result<board::Condition, Problem> {
        let published = self.service.published(&self.session)?;
        let session = published.map(|published| published.board.id());
        condition(&self.headers, self.service.epoch(), session, resource)
    }

    async fn answer(
        &self,
        resource: &Resource,
        result: Result<Receipt, ServiceError>,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let receipt = match result {
            Ok(receipt) => receipt,
            Err(error) => return Err(self.refusal(resource, error).await),
        };
        let epoch = self.service.epoch();
        let written = Written { receipt: &receipt, session: &self.session, epoch };
        Ok(shape(&written).map_err(unwritten)?.into_response())
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
            let tag = Tag::new(self.service.epoch(), version, resource);
            problem = problem.header(header::ETAG, tag.value());
        }
        if let Some(entry) = current
            && let Some(text) = self.current(&entry).await
        {
            problem = problem.member("current", &text);
        }
        problem
    }

    async fn current(&self, entry: &board::Entry) -> Option<Box<serde_json::value::RawValue>> {
        let view = View { session: self.session.clone(), keys: None, images: Images::Url };
        let published = self.service.published(&self.session).ok()??;
        let mut text = String::new();
        view.write_entry(&self.service, &published.board, entry, &mut text).await.ok()?;
        if text.len() > CURRENT_BYTES_MAX {
            return None;
        }
        serde_json::value::RawValue::from_string(text).ok()
    }
}
