//! Search over all sessions.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::openapi;
use super::read::wait::{REVISION_WAIT_MAX, wait_param};
use super::response::Answer;
use super::response::problem::Problem;
use crate::api::params::{Params, invalid};
use crate::api::refusal::no_session;
use crate::auth::Caller;
use crate::board::{AgentName, LogName, Revision, SessionName};
use crate::search::{Query, RANKED_MAX};
use crate::service::{Hit, Hits, Service, Sought};

/// The number of hits on a page by default.
const LIMIT_DEFAULT: usize = 20;

/// The maximum number of hits on a page.
const LIMIT_MAX: u64 = 100;

/// The names of logs in hits; all memories have one.
const SEARCHED: [&str; 5] = ["questions", "requests", "trajectories", "screenshots", "memory"];

/// A page of hits.
#[derive(Serialize, ToSchema)]
pub(super) struct SearchPage {
    /// At most `limit` hits, best first.
    hits: Vec<HitBody>,
    /// The value of `after` for the next page; null at the end.
    #[schema(required)]
    next: Option<String>,
}

/// An entry with the words.
#[derive(Serialize, ToSchema)]
struct HitBody {
    /// The session's name.
    #[schema(example = "sess_12345")]
    session: String,
    /// The log: `questions`, `requests`, `trajectories`, `screenshots`, or `memory`.
    log: &'static str,
    /// The entry.
    seq: u64,
    /// The rank by BM25 within this answer; higher is better.
    score: f64,
    /// The words around the best match, as HTML whose only tags are `<mark>` and `</mark>`.
    #[schema(example = "the <mark>disk</mark> is full")]
    snippet: String,
    /// The time of the append.
    #[schema(format = DateTime)]
    at: String,
    /// The owner of a memory, else the author; null if not named.
    #[schema(required)]
    agent: Option<String>,
}

impl HitBody {
    fn of(hit: Hit) -> Self {
        let Hit { session, log, entry, agent, score, snippet } = hit;
        Self {
            session: session.to_string(),
            log: searched(&log),
            seq: entry.seq.0,
            score,
            snippet,
            at: entry.at.to_string(),
            agent: agent.map(|agent| agent.to_string()),
        }
    }
}

fn searched(log: &LogName) -> &'static str {
    match log {
        LogName::Questions => "questions",
        LogName::Requests => "requests",
        LogName::Trajectories => "trajectories",
        LogName::Screenshots => "screenshots",
        LogName::Memory(_) => "memory",
    }
}

/// Search all sessions
///
/// Finds entries of the logs and memories that the token may read, best first (BM25). Case and accents do not count.
/// Characters of scripts without spaces are words of their own. Entries are found about a tenth of a second after
/// their commit. The newest 10,000 matches are ranked. The state is not searched.
#[utoipa::path(
    get, path = "/v1/search", operation_id = "search", tag = "search",
    params(openapi::SearchQuery),
    responses(
        (status = 200, description = "A page of hits", body = SearchPage),
        openapi::SearchRefusals,
    )
)]
pub(super) async fn get(
    State(service): State<Service>,
    caller: Caller,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response, Problem> {
    let begun = Instant::now();
    let query = params.text("q")?.unwrap_or_default();
    let query: Query = query.parse().map_err(|why| invalid("q", why))?;
    let session: Option<SessionName> = params.parsed("session")?;
    let prefix = params.text("prefix")?.unwrap_or_default();
    let log = params.choice("log", &SEARCHED.map(|name| (name, name)))?;
    let agent: Option<AgentName> = params.parsed("agent")?;
    let since = params.parsed("since")?;
    let limit = params.count("limit", 1, LIMIT_MAX)?.unwrap_or(LIMIT_DEFAULT);
    let passed = params.count("after", 0, RANKED_MAX as u64)?.unwrap_or_default();
    let revision = params.number("min_revision", 0..=u64::MAX)?.map(Revision);
    let wait = wait_param(&mut params, &headers, revision.is_some())?;
    params.finish()?;
    if revision.is_some() && session.is_none() {
        return Err(invalid("min_revision", "needs 'session'").into());
    }
    if let Some(session) = &session {
        if !caller.reaches(session) || service.extent(session)?.is_none() {
            return Err(no_session(session).into());
        }
        if let Some(revision) = revision {
            let deadline = begun + wait.unwrap_or(REVISION_WAIT_MAX);
            service.indexed(session, revision, deadline).await?;
        }
    }
    let reader = caller.clone();
    let reaches = move |name: &SessionName| {
        session.as_ref().is_none_or(|only| only == name)
            && name.as_str().starts_with(&prefix)
            && reader.reaches(name)
    };
    let reader = caller.clone();
    let sees =
        move |name: &LogName| log.is_none_or(|log| log == searched(name)) && reader.sees(name);
    let sought = Sought { query, session: Arc::new(reaches), log: Arc::new(sees), agent, since };
    let Hits { hits, next } = service.search(sought, passed, limit).await?;
    let hits = hits.into_iter().map(HitBody::of).collect();
    Answer::plain().json(&SearchPage { hits, next: next.map(|next| next.to_string()) })
}
