//! The search for entries by words.

use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::Instant;

use super::reading::{Keep, fit, member};
use crate::call::answer::{Answer, Failure};
use crate::call::{Call, Outcome, Running};
use blackboard_api::refusal::existing;
use blackboard_api::search::SearchQuery;
use blackboard_board::json;
use blackboard_service::ServiceError;

/// How to read a hit.
const READ: &str = " Read one with read_log: its 'session', its 'log', after=seq-1, before=seq+1; one of a memory with \
    recall: of=agent.";

/// The time that a search of one session waits for the index.
const INDEXED_WITHIN: Duration = Duration::from_secs(1);

pub(crate) fn search_board(call: Call) -> Running {
    search(call).boxed()
}

async fn search(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.optional_session().await?;
    let mut params = call.arguments.params(&["q", "log", "limit"], &[])?;
    if let Some(session) = &session {
        params = params.and("session", session.name().as_str());
    }
    let query = SearchQuery::take(&mut params)?;
    params.finish()?;
    call.finish()?;
    if let Some(session) = &session {
        let extent = existing(session)?;
        // A write before the search is found, unless the index lags behind.
        let deadline = Instant::now() + INDEXED_WITHIN;
        session.indexed(extent.revision, deadline).await.ok();
    }
    let page = query.hits(&call.service, call.caller()).await?;
    let count = page.count();
    if count == 0 {
        return Ok(Answer::text("No entry has these words.").into());
    }
    let data = serde_json::to_string(&page).map_err(|_| ServiceError::Fault)?;
    let path = |hit: &str| {
        let part = |name| json::decode(member(hit, name).unwrap_or_default());
        format!("{}/{}/{}", part("session"), part("log"), part("seq"))
    };
    let hits = member(&data, "hits").unwrap_or("[]");
    let fitted = fit(hits, call.visit.max_tokens, Keep::First, path);
    let (is_full, has_next) =
        (fitted.left_out > 0, member(&data, "next").is_some_and(|next| next != "null"));
    let rest = match (is_full, has_next) {
        (true, _) => " More did not fit: use more words.",
        (false, true) => " There are more: use more words, or a larger limit.",
        (false, false) => "",
    };
    let about = format!("{} hits, best first.{rest}{READ}", fitted.elements.len());
    Ok(Answer::reading(about, fitted.elements).into())
}
