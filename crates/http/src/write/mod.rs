//! Writes: parameters, condition, the call and the response.
//!
//! A handler takes its own parameters, then the body, and then makes one call.

mod claims;
mod histories;
pub(crate) mod response;
mod uploads;

use crate::request::query;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use serde_json::value::RawValue;

use super::access::session_detail::Sight;
use super::request::body::{BodyBytes, BodyRoom, read};
use super::request::conditions::{condition, explained};
use super::request::idempotency::Repeat;
use super::request::path::{Author, SessionPath};
use super::response::problem::Problem;
use super::response::trace_context::Trace;
use super::response::{tag_value, unwritten};
use blackboard_api::intake::tasks::fence_params;
use blackboard_api::offload::work;
use blackboard_api::ops::{NotWritten, WriteCall};
use blackboard_api::params::Params;
use blackboard_api::refusal::{Place, no_blob_at, refused};
use blackboard_api::tag::{Resource, Tag};
use blackboard_api::view::agent::{Seen, write_agent};
use blackboard_api::view::entry::View;
use blackboard_auth::{Caller, Scope};
use blackboard_board as board;
use blackboard_board::{
    AgentName, BlobPlace, Command, Current, Epoch, Fence, ImagesShown, Json, Rejected, Seq,
    SessionCommand, Terms, TraceId, Version,
};
use blackboard_service::{
    ImageBytes, Keep, Patch, Receipt, Reply, Service, ServiceError, SessionHandle,
};
use response::{ShapeResult, Shaped, Written};

/// The maximum size of a resource that a refused condition shows.
const CURRENT_BYTES_MAX: usize = 64 << 10;

/// A write between its request and the service. Boxed, since the future of a handler has room for it several times.
pub(super) struct Writing {
    session: SessionHandle,
    room: BodyRoom,
    author: Option<AgentName>,
    pub(super) headers: HeaderMap,
    /// The rest of the query. The handler takes its own parameters before it takes the body.
    pub(super) params: Params,
    fence: Option<Fence>,
    repeat: Option<Repeat>,
    trace: Option<TraceId>,
    /// True if the response describes the session to callers who may read.
    describes: bool,
    /// The places in the body of the items that refer to blobs.
    blob_places: BTreeMap<usize, Place>,
}

impl<S> FromRequestParts<S> for Box<Writing>
where
    S: Send + Sync,
    Service: FromRef<S>,
    BodyRoom: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let SessionPath(session) = SessionPath::from_request_parts(parts, state).await?;
        Writing::begin(session, parts, state)
    }
}

impl Writing {
    /// Begins a write to a session.
    pub(super) fn begin<S>(
        session: SessionHandle,
        parts: &mut Parts,
        state: &S,
    ) -> Result<Box<Self>, Problem>
    where
        BodyRoom: FromRef<S>,
    {
        let Author(author) = Author::of(session.caller(), &parts.headers)?;
        let params = query::params(parts)?;
        let repeat = Repeat::of(parts)?;
        let trace = Trace::of(&parts.headers).map(|trace| trace.id());
        Ok(Box::new(Self {
            session,
            room: BodyRoom::from_ref(state),
            author,
            // The last to ask for them.
            headers: std::mem::take(&mut parts.headers),
            params,
            fence: None,
            repeat,
            trace,
            describes: false,
            blob_places: BTreeMap::new(),
        }))
    }

    /// Returns the caller.
    pub(super) fn caller(&self) -> &Caller {
        self.session.caller()
    }

    fn epoch(&self) -> Epoch {
        self.session.service().epoch()
    }

    /// Finishes the query and reads a body of at most `max` bytes.
    pub(super) async fn body(&mut self, body: Body, max: usize) -> Result<BodyBytes, Problem> {
        self.finish_query()?;
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

    /// Takes the claim of the query, and refuses what is left of it.
    pub(super) fn finish_query(&mut self) -> Result<(), Problem> {
        let mut params = std::mem::take(&mut self.params);
        self.fence = fence_params(&mut params)?;
        Ok(params.finish()?)
    }

    /// Records the places in the body of the items that refer to blobs, for a refusal.
    pub(super) fn items_at(&mut self, places: BTreeMap<usize, Place>) {
        self.blob_places = places;
    }

    /// Refuses a write without an author.
    pub(super) fn by_an_agent(&self) -> Result<(), Problem> {
        match &self.author {
            Some(_) => Ok(()),
            None => Err(refused(&Rejected::AgentRequired, None).into()),
        }
    }

    /// Runs a command that writes `resource`, under the condition in the headers.
    pub(super) async fn write(
        mut self: Box<Self>,
        resource: Resource,
        command: Command,
        images: Vec<ImageBytes>,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        self.describes = matches!(command, Command::Session(SessionCommand::Put { .. }));
        let (call, shape) = (self.call(&resource)?, Arc::new(shape));
        let keep = self.keep(&call, &shape);
        let reply = call.run(command, images, keep).await;
        self.answer(&resource, reply, &*shape).await
    }

    /// Patches an entry, under the condition in the headers.
    pub(super) async fn patch(
        self: Box<Self>,
        log: board::LogName,
        seq: Seq,
        patch: &Patch,
        shape: impl Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    ) -> Result<Response, Problem> {
        let resource = Resource::Entry(log.clone(), seq);
        let (call, shape) = (self.call(&resource)?, Arc::new(shape));
        let keep = self.keep(&call, &shape);
        let reply = call.patch(log, seq, patch, keep).await;
        self.answer(&resource, reply, &*shape).await
    }

    /// Begins the call that writes this resource.
    fn call(&self, resource: &Resource) -> Result<WriteCall, Problem> {
        // Reading the body may have taken long.
        self.caller().still_may(self.session.service().now())?;
        let session = match self.session.extent() {
            // The writer reports which operations a damaged session permits.
            Err(ServiceError::Damaged) => None,
            extent => extent?.map(|extent| extent.session),
        };
        let terms = Terms {
            condition: condition(&self.headers, self.epoch(), session, resource)?,
            fence: self.fence,
            author: self.author.clone(),
            bound_to: None,
            key: self
                .repeat
                .as_ref()
                .map(|repeat| repeat.key(self.author.as_ref(), self.caller().identity())),
            trace: self.trace,
        };
        Ok(WriteCall::new(self.session.clone(), terms))
    }

    /// Returns the shape of the response to store with the key, if there is one.
    fn keep<S>(&self, call: &WriteCall, shape: &Arc<S>) -> Option<Keep>
    where
        S: Fn(&Written<'_>) -> ShapeResult + Send + Sync + 'static,
    {
        let (shape, session, caller) =
            (Arc::clone(shape), self.session.name().clone(), self.caller().clone());
        let epoch = self.epoch();
        call.keep(move |receipt: &Receipt| {
            let (session, caller) = (&session, &caller);
            shape(&Written { receipt, session, epoch, caller, keyed: true }).ok()?.keep()
        })
    }

    async fn answer(
        &self,
        resource: &Resource,
        reply: Result<Reply, NotWritten>,
        shape: &(dyn Fn(&Written<'_>) -> ShapeResult + Send + Sync),
    ) -> Result<Response, Problem> {
        let shaped = match reply {
            Ok(Reply::Now(receipt)) => {
                let epoch = self.epoch();
                let (session, caller) = (self.session.name(), self.caller());
                let keyed = self.repeat.is_some();
                shape(&Written { receipt: &receipt, session, epoch, caller, keyed })
            }
            Ok(Reply::Before(kept)) => self.again(&kept),
            Err(NotWritten::Service(error)) => {
                return Err(Box::pin(self.refusal(resource, error)).await);
            }
            Err(refused) => return Err(refused.into()),
        };
        Ok(shaped.map_err(unwritten)?.into_response())
    }

    /// Replays a response. The key may come with another token of the same agent, so the rights of this token decide
    /// what the response shows.
    fn again(&self, kept: &Json) -> ShapeResult {
        Shaped::again(kept)?.seen_with(Sight::of(self.caller()), self.describes)
    }

    /// Adds the current tag and the current entry to the refusal of a condition, and the place of an item to the refusal
    /// of a blob.
    async fn refusal(&self, resource: &Resource, error: ServiceError) -> Problem {
        if let ServiceError::Rejected { rejected, revision } = &error
            && let Rejected::NoBlob { place: BlobPlace::Item(index), pointer, .. } = rejected
            && let Some(place) = self.blob_places.get(index)
        {
            return no_blob_at(rejected, *revision, *place, pointer).into();
        }
        let ServiceError::Rejected {
            rejected: Rejected::Precondition { present, current }, ..
        } = &error
        else {
            return error.into();
        };
        let (present, current) = (*present, current.clone());
        let mut problem = explained(Problem::from(error), &self.headers);
        if let Some(version) = present {
            let tag = self.present_tag(version, resource);
            problem = problem.header(header::ETAG, tag_value(&tag));
        }
        if let Some(current) = current
            && self.caller().may(Scope::Read)
            && let Some(text) = self.shown(&current).await
        {
            problem = problem.member("current", &text);
        }
        problem
    }

    /// Returns the tag that a read of the resource has, if the resource is unchanged.
    fn present_tag(&self, version: Version, resource: &Resource) -> Tag {
        let epoch = self.epoch();
        if matches!(resource, Resource::Session)
            && let Ok(Some(now)) = self.session.summary()
            && now.version() == version
        {
            let rendering = Sight::of(self.caller()).rendering(now.extent, now.history_bytes);
            return Tag::of(epoch, &rendering, "");
        }
        Tag::new(epoch, version, resource)
    }

    async fn shown(&self, current: &Current) -> Option<Box<RawValue>> {
        let mut text = String::new();
        match current {
            Current::Entry(entry) => {
                let view = View {
                    session: self.session.name().clone(),
                    keys: None,
                    images: ImagesShown::Url,
                };
                let published = self.session.published().await.ok()??;
                view.write_entry(&self.session, &published.board, entry, &mut text).await.ok()?;
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
