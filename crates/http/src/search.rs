//! Search over all sessions.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use tokio::time::Instant;

use super::access::Calling;
use super::openapi;
use super::read::deadline::{REVISION_WAIT_MAX, wait_param};
use super::response::Answer;
use super::response::problem::Problem;
use crate::request::query::Query;
use blackboard_api::intake::query::{AnyRevision, queries};
use blackboard_api::params::invalid;
use blackboard_api::refusal::existing;
use blackboard_api::search::{SearchPage, SearchQuery};
use blackboard_service::Service;

queries! {
    /// The minimum revision of the index.
    pub(crate) IndexQuery {
        /// With `session`: wait until the index has this revision of it, for 2 s or the time in `wait`
        min_revision: AnyRevision,
    }
}

/// Search all sessions
///
/// Finds entries of the logs and memories that the token may read, best first: by how often an entry has the words,
/// and by its length. Case and accents are ignored. Each character of a script without spaces is a word. Entries are
/// found about a tenth of a second after their commit. The best 10,000 matches are ranked; `cut` is true if there may
/// be more. The state is not searched.
#[utoipa::path(
    get, path = "/v1/search", operation_id = "search", tag = "search",
    params(SearchQuery, IndexQuery, openapi::IndexWaitQuery),
    responses(
        (status = 200, description = "A page of hits", body = SearchPage),
        openapi::SearchRefusals,
    )
)]
pub(super) async fn get(
    State(service): State<Service>,
    Calling(caller): Calling,
    headers: HeaderMap,
    Query(mut params): Query,
) -> Result<Response, Problem> {
    let begun = Instant::now();
    let query = SearchQuery::take(&mut params)?;
    let IndexQuery { min_revision: revision } = IndexQuery::take(&mut params)?;
    let wait = wait_param(&mut params, &headers, revision.is_some())?;
    params.finish()?;
    if revision.is_some() && query.session.is_none() {
        return Err(invalid("min_revision", "needs 'session'").into());
    }
    if let Some(name) = &query.session {
        let session = service.session(&caller, name).await?;
        existing(&session)?;
        if let Some(revision) = revision {
            session.indexed(revision, begun + wait.unwrap_or(REVISION_WAIT_MAX)).await?;
        }
    }
    Answer::plain().json(&query.hits(&service, &caller).await?)
}
