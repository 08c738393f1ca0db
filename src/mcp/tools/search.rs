//! The search for entries by words.

use futures_util::FutureExt as _;

use crate::api::search::SearchQuery;
use crate::mcp::answer::{Answer, Failure};
use crate::mcp::call::Call;
use crate::mcp::catalog::{Outcome, Running};

pub(crate) fn search_board(call: Call) -> Running {
    search(call).boxed()
}

async fn search(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.optional_session()?;
    let mut params = call.arguments.params(&["q", "log", "limit"])?;
    if let Some(session) = &session {
        params = params.and("session", session.as_str());
    }
    let query = SearchQuery::params(&mut params)?;
    params.finish()?;
    call.finish()?;
    query.check_session(&call.service, call.caller())?;
    let page = query.hits(&call.service, call.caller()).await?;
    let count = page.len();
    if count == 0 {
        return Ok(Answer::text("No entry has these words.").into());
    }
    let about = format!(
        "{count} hits, best first. Read one with read_log: its 'session', its 'log', after=seq-1, before=seq+1."
    );
    let data = serde_json::to_string(&page).map_err(|_| crate::service::ServiceError::Fault)?;
    Ok(Answer::reading(&about, &data).into())
}
