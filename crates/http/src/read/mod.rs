//! Reads of published and past boards, with tags.
//!
//! A handler takes its own parameters, then makes one call, which waits if the query asks for it: it reads the published
//! board, waits for a change, and reads again. Wake-ups carry no data, and no board is held while waiting, since boards
//! are large.

pub(crate) mod deadline;
pub(crate) mod shared_scans;
pub(crate) mod until;
use crate::request::query;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::time::{Instant, timeout_at};

use super::access::caller_of;
use super::request::conditions::{check_known, is_known};
use super::response::problem::Problem;
use super::response::{Answer, JSON};
use blackboard_api::intake::query::{AnyRevision, Of, queries};
use blackboard_api::params::{Params, invalid};
use blackboard_api::refusal::Refusal;
use blackboard_api::refusal::no_session;
use blackboard_api::tag::{Rendering, Tag};
use blackboard_auth::{Caller, Forbidden};
use blackboard_board::Board;
use blackboard_service::{At, Published, Service, ServiceError, SessionHandle, Unreachable};
use deadline::{Sought, WaitDeadline, wait_param};
use shared_scans::{Listed, Lists, Look};

queries! {
    /// The revision to show.
    pub(crate) PastQuery {
        /// The past revision to show, or the name of a checkpoint
        at: Of<At>,
    }

    /// The minimum revision to show.
    pub(crate) RevisionQuery {
        /// Wait until the session has reached this revision, for 2 s or the time of `wait`; then 503
        min_revision: AnyRevision,
    }
}

/// The end of a read without a body to show.
#[derive(Debug)]
pub(super) enum Early {
    /// A refusal or a failure.
    Refused(Problem),
    /// An answer without a body: the client has the body already, or waited for a deletion.
    Bare(Box<Response>),
}

impl Early {
    /// Creates the end with this answer, without a body.
    pub(super) fn bare(answer: Answer) -> Self {
        Self::Bare(Box::new(answer.without_body()))
    }

    /// Sets the caching of an answer that is not modified, as a full answer would have it.
    pub(super) fn cached(mut self, caching: &HeaderValue) -> Self {
        if let Self::Bare(response) = &mut self {
            response.headers_mut().insert(header::CACHE_CONTROL, caching.clone());
        }
        self
    }
}

impl IntoResponse for Early {
    fn into_response(self) -> Response {
        match self {
            Self::Refused(problem) => problem.into_response(),
            Self::Bare(response) => *response,
        }
    }
}

impl From<Refusal> for Early {
    fn from(refusal: Refusal) -> Self {
        Problem::from(refusal).into()
    }
}

impl From<Problem> for Early {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

impl From<Forbidden> for Early {
    fn from(forbidden: Forbidden) -> Self {
        Self::Refused(forbidden.into())
    }
}

impl From<Unreachable> for Early {
    fn from(why: Unreachable) -> Self {
        Self::Refused(why.into())
    }
}

impl From<ServiceError> for Early {
    fn from(error: ServiceError) -> Self {
        Self::Refused(error.into())
    }
}

/// A read request.
pub(super) struct Reading {
    pub(super) service: Service,
    /// The caller, whose rights limit the read.
    pub(super) caller: Caller,
    pub(super) headers: HeaderMap,
    /// The rest of the query: the handler takes its own parameters first.
    pub(super) params: Params,
    query: String,
    lists: Lists,
}

impl<S> FromRequestParts<S> for Reading
where
    S: Send + Sync,
    Service: FromRef<S>,
    Lists: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Self::begin(caller_of(parts)?, parts, state)
    }
}

impl Reading {
    /// Begins a read by a caller.
    pub(super) fn begin<S>(caller: Caller, parts: &mut Parts, state: &S) -> Result<Self, Problem>
    where
        Service: FromRef<S>,
        Lists: FromRef<S>,
    {
        Ok(Self {
            service: Service::from_ref(state),
            caller,
            params: query::params(parts)?,
            // The last to ask for them.
            headers: std::mem::take(&mut parts.headers),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            lists: Lists::from_ref(state),
        })
    }

    /// Returns the board to show, now or at a past revision, and the beginning of the answer with its tag.
    /// `rendering` says what is shown of the board, or refuses.
    pub(super) async fn of(
        &mut self,
        session: &SessionHandle,
        mut rendering: impl FnMut(&Board) -> Result<Rendering, Problem> + Send,
    ) -> Result<(Answer, Arc<Board>), Early> {
        let rendering = move |now: &Published| rendering(&now.board);
        let (answer, shown) = self.seek_at(session, &mut Existing { session, rendering }).await?;
        Ok((answer, shown.board))
    }

    /// Returns what is published now, for resources that have no past or show more than the board.
    pub(super) async fn published(
        &mut self,
        session: &SessionHandle,
        rendering: impl FnMut(&Published) -> Result<Rendering, Problem> + Send,
    ) -> Result<(Answer, Published), Early> {
        self.seek(session, None, &mut Existing { session, rendering }).await
    }

    /// Returns what is sought, now or at a past revision.
    pub(super) async fn seek_at(
        &mut self,
        session: &SessionHandle,
        sought: &mut impl Sought,
    ) -> Result<(Answer, Published), Early> {
        let PastQuery { at } = PastQuery::take(&mut self.params)?;
        if at.is_some() && self.params.has("wait") {
            return Err(invalid(
                "wait",
                "cannot be combined with 'at': a past revision never changes",
            )
            .into());
        }
        self.seek(session, at, sought).await
    }

    /// Reads what is published until there is something that the client does not have, the deadline is
    /// reached, or the server shuts down.
    pub(super) async fn seek(
        &mut self,
        session: &SessionHandle,
        at: Option<At>,
        sought: &mut impl Sought,
    ) -> Result<(Answer, Published), Early> {
        let mut params = std::mem::take(&mut self.params);
        let wait = WaitDeadline::params(&mut params, &self.headers, sought.may_come())?;
        params.finish()?;
        if sought.may_come() {
            check_known(&self.headers)?;
        }
        let (mut waiting, mut stopping) = (None, false);
        loop {
            let now = session.published().await?;
            let deadline = wait.deadline(now.as_ref());
            let reached = wait.reached(now.as_ref());
            if stopping || Instant::now() >= deadline {
                reached?;
                return self.last(at, now, session, sought).await;
            }
            if reached.is_err() {
                drop(now);
            } else if let Some(found) = self.look(now, sought).await? {
                return Ok(found);
            }
            match &mut waiting {
                // Changes before the wait began are seen by one more look.
                None => waiting = Some(session.wait()?),
                Some(waiting) => {
                    let changed = Box::pin(timeout_at(deadline, waiting.changed())).await;
                    stopping = !changed.unwrap_or(Ok(true))?;
                }
            }
        }
    }

    /// Returns the answer if there is something that the client does not have.
    async fn look(
        &self,
        now: Option<Published>,
        sought: &mut impl Sought,
    ) -> Result<Option<(Answer, Published)>, Early> {
        let rendering = sought.look(now.as_ref()).await?;
        let Some((now, rendering)) = now.zip(rendering) else { return Ok(None) };
        let (answer, known) = self.begun(&now, &rendering)?;
        Ok((!known).then_some((answer, now)))
    }

    /// Returns the answer at the deadline.
    async fn last(
        &self,
        at: Option<At>,
        now: Option<Published>,
        session: &SessionHandle,
        sought: &mut impl Sought,
    ) -> Result<(Answer, Published), Early> {
        let shown = match (now, at) {
            (Some(now), Some(at)) => {
                let board = Box::pin(session.board_at(&now, &at)).await?;
                Some(Published { board, ..now })
            }
            (now, _) => now,
        };
        let rendering = sought.at_last(shown.as_ref()).await?;
        let shown = shown.ok_or_else(|| no_session(session.name()))?;
        match self.begun(&shown, &rendering)? {
            (answer, false) => Ok((answer, shown)),
            (answer, true) => Err(Early::bare(answer.status(StatusCode::NOT_MODIFIED))),
        }
    }

    /// Returns the answer without a body, and true if the client has the body already.
    fn begun(&self, shown: &Published, rendering: &Rendering) -> Result<(Answer, bool), Problem> {
        let tag = Tag::of(self.service.epoch(), rendering, &self.query);
        Ok((Answer::of(shown.board.revision()).tag(&tag), is_known(&self.headers, &tag)?))
    }

    /// Answers with a text that belongs to no single session; its tag is a hash of its bytes.
    pub(super) fn text(self, media_type: &'static str, text: &str) -> Result<Response, Early> {
        self.params.finish()?;
        let tag = Tag::of_bytes(self.service.epoch(), text.as_bytes());
        let answer = Answer::plain().tag(&tag);
        if is_known(&self.headers, &tag)? {
            return Err(Early::bare(answer.status(StatusCode::NOT_MODIFIED)));
        }
        Ok(answer.body(media_type, Body::from(text.to_owned())))
    }

    /// Answers with a list that covers several sessions.
    pub(super) async fn list(mut self, listed: &impl Listed) -> Result<Response, Early> {
        let wait = wait_param(&mut self.params, &self.headers, false)?.unwrap_or_default();
        std::mem::take(&mut self.params).finish()?;
        let deadline = Instant::now() + wait;
        let (mut ticks, stopping) = (listed.ticks(&self.service), self.service.stopping().clone());
        // The first look is not shared, so that it includes all commits answered before this request.
        let mut look = Look::at(listed, &self.service, &self.caller, &ticks, None).await?;
        let waited = self.lists.wait_for(listed, &self.caller);
        let mut is_over = wait.is_zero();
        loop {
            let tag = Tag::of_bytes(self.service.epoch(), look.body.text.as_bytes());
            if is_over || !is_known(&self.headers, &tag)? {
                return self.text(JSON, &look.body.text);
            }
            let seen = look.tick;
            let changed = async {
                // The service owns the sender and is held here, so this cannot fail.
                ticks.wait_for(|tick| *tick > seen).await.ok();
                let again = Look::at(listed, &self.service, &self.caller, &ticks, Some(&look));
                waited.next(seen, again).await
            };
            let next = tokio::select! {
                next = timeout_at(deadline, changed) => next.ok().transpose()?,
                () = stopping.cancelled() => None,
            };
            is_over = next.is_none();
            look = match next {
                Some(next) => next,
                None if *ticks.borrow() == seen => look,
                None => Look::at(listed, &self.service, &self.caller, &ticks, Some(&look)).await?,
            };
        }
    }
}

/// A resource that is refused if its session does not exist, without waiting.
struct Existing<'a, F> {
    session: &'a SessionHandle,
    rendering: F,
}

impl<F: FnMut(&Published) -> Result<Rendering, Problem> + Send> Sought for Existing<'_, F> {
    async fn look(&mut self, now: Option<&Published>) -> Result<Option<Rendering>, Early> {
        self.at_last(now).await.map(Some)
    }

    async fn at_last(&mut self, now: Option<&Published>) -> Result<Rendering, Early> {
        let now = now.ok_or_else(|| no_session(self.session.name()))?;
        Ok((self.rendering)(now)?)
    }
}
