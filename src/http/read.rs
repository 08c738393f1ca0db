//! One way for a read: what it takes of its request, the published board at the revision that was asked
//! for, its tag, and 304 where the client has it.
//!
//! A handler takes its own parameters, then makes one call.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRef, FromRequestParts, RawPathParams, Request, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::answer::Answer;
use super::error::{REVISION_HEADER, no_session, revision_value};
use super::etag::{Rendering, Tag, is_known};
use super::params::Params;
use super::problem::Problem;
use crate::board::{Board, Revision, SessionName};
use crate::service::{Published, Service, ServiceError};

/// How long a read waits for the revision that it names.
const REVISION_WAIT_MAX: Duration = Duration::from_secs(2);

/// Names the revision of the session in every answer about it, where the handler did not: a refusal that
/// never came to look at the board has it too.
pub(super) async fn name_revision(
    State(service): State<Service>,
    path: RawPathParams,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    if !response.headers().contains_key(REVISION_HEADER)
        && let Some((_, name)) = path.iter().find(|(key, _)| *key == "session")
        && let Ok(session) = name.parse()
        && let Ok(Some(published)) = service.published(&session)
    {
        let revision = revision_value(published.board.revision());
        response.headers_mut().insert(REVISION_HEADER, revision);
    }
    response
}

/// How a read ends before there is anything to show.
#[derive(Debug)]
pub(super) enum Early {
    /// It is refused, or failed.
    Refused(Problem),
    /// It is answered without a body: the client has it already.
    Bare(Box<Response>),
}

impl IntoResponse for Early {
    fn into_response(self) -> Response {
        match self {
            Self::Refused(problem) => problem.into_response(),
            Self::Bare(response) => *response,
        }
    }
}

impl From<Problem> for Early {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

impl From<ServiceError> for Early {
    fn from(error: ServiceError) -> Self {
        Self::Refused(error.into())
    }
}

/// A read on its way from its request to what is published.
pub(super) struct Reading {
    pub(super) service: Service,
    pub(super) headers: HeaderMap,
    /// What is left of the query: the handler takes its own of it first.
    pub(super) params: Params,
    query: String,
}

impl<S> FromRequestParts<S> for Reading
where
    S: Send + Sync,
    Service: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self {
            service: Service::from_ref(state),
            headers: parts.headers.clone(),
            params: Params::from_request_parts(parts, state).await?,
            query: parts.uri.query().unwrap_or_default().to_owned(),
        })
    }
}

impl Reading {
    /// The board that is shown, and the answer's beginning with its tag; `rendering` tells what is shown
    /// of the board, or that it is not there.
    pub(super) async fn of(
        &mut self,
        session: &SessionName,
        mut rendering: impl FnMut(&Board) -> Result<Rendering, Problem>,
    ) -> Result<(Answer, Arc<Board>), Early> {
        let found = self.published(session, |now| rendering(&now.board)).await?;
        Ok((found.0, found.1.board))
    }

    /// The same where more is shown than the board.
    pub(super) async fn published(
        &mut self,
        session: &SessionName,
        mut rendering: impl FnMut(&Published) -> Result<Rendering, Problem>,
    ) -> Result<(Answer, Published), Early> {
        let mut params = std::mem::take(&mut self.params);
        let wanted = params.number("min_revision", 0..=u64::MAX)?;
        params.finish()?;
        if let Some(wanted) = wanted {
            self.service.reach(session, Revision(wanted), REVISION_WAIT_MAX).await?;
        }
        let now = self.service.published(session)?.ok_or_else(|| no_session(session))?;
        let tag = Tag::of(self.service.epoch(), &rendering(&now)?, &self.query);
        let answer = Answer::of(now.board.revision()).tag(&tag);
        if is_known(&self.headers, &tag)? {
            return Err(Early::Bare(Box::new(answer.not_modified())));
        }
        Ok((answer, now))
    }

    /// An answer that shows no single session: its tag is of its text.
    pub(super) fn text(self, media_type: &'static str, text: &str) -> Result<Response, Early> {
        self.params.finish()?;
        let tag = Tag::of_bytes(self.service.epoch(), text.as_bytes());
        let answer = Answer::plain().tag(&tag);
        if is_known(&self.headers, &tag)? {
            return Err(Early::Bare(Box::new(answer.not_modified())));
        }
        Ok(answer.body(media_type, Body::from(text.to_owned())))
    }
}
