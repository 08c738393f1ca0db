//! One way for a read: the published board, at the revision that was asked for, if it exists.

use std::time::Duration;

use axum::extract::{RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::error::{REVISION_HEADER, no_session, revision_value};
use super::params::Params;
use super::problem::Problem;
use crate::board::{Revision, SessionName};
use crate::service::{Published, Service};

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

/// What is published of a session, once it has reached the `min_revision` of the query, which must be
/// the last parameter to be taken.
pub(super) async fn shown(
    service: &Service,
    session: &SessionName,
    mut params: Params,
) -> Result<Published, Problem> {
    let wanted = params.number("min_revision", 0..=u64::MAX)?;
    params.finish()?;
    if let Some(wanted) = wanted {
        service.reach(session, Revision(wanted), REVISION_WAIT_MAX).await?;
    }
    service.published(session)?.ok_or_else(|| no_session(session))
}
