//! Attention: all that waits for an agent, and the wait for it.

use axum::body::Body;
use axum::http::header;
use axum::response::Response;

use super::openapi;
use super::read::deadline::Sought;
use super::read::{Early, Reading, RevisionQuery};
use super::request::path::AgentPath;
use super::response::JSON;
use blackboard_api::attention::{AttentionBody, AttentionQuery, AttentionReader};
use blackboard_api::refusal::no_session;
use blackboard_api::tag::{Rendering, Resource};
use blackboard_board::{AgentName, Attention, LogName, SessionName};
use blackboard_service::Published;

/// Read what waits for an agent
///
/// The response has the agent's unacknowledged messages, the requests that it can claim, the answers to its questions, its
/// claimed requests that are cancelled, and the results that wait for its verdict: everything that should wake the
/// agent, so that it waits in one place. With `after`, `wait` ends as soon as something waits. With `If-None-Match` it ends
/// when that changes.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/agents/{agent}/attention", operation_id = "get_attention", tag = "messages",
    params(AttentionQuery, RevisionQuery, openapi::AttentionWaitQuery),
    responses(
        (status = 200, description = "What waits for the agent", body = AttentionBody, headers(("ETag" = String, description = "Changes with what waits for the agent"))),
        openapi::AttentionRefusals,
    )
)]
pub(super) async fn get(
    AgentPath { session, agent }: AgentPath,
    mut reading: Reading,
) -> Result<Response, Early> {
    reading.caller.sees_log(&LogName::Messages(agent.clone()))?;
    let query = AttentionQuery::take(&mut reading.params)?;
    let reader = query.reader(&reading.service, &session, agent.clone());
    let knows = reading.headers.contains_key(header::IF_NONE_MATCH);
    let found = None;
    let mut sought = SoughtAttention { session: session.name(), agent, reader, knows, found };
    let (answer, Published { board, .. }) = reading.seek(&session, None, &mut sought).await?;
    let SoughtAttention { mut reader, found, .. } = sought;
    let attention = found.ok_or_else(|| no_session(session.name()))?;
    Ok(answer.body(JSON, Body::from(reader.text(&board, attention).await?)))
}

/// The attention that a reader waits for.
struct SoughtAttention<'a> {
    session: &'a SessionName,
    agent: AgentName,
    reader: AttentionReader,
    /// True if the client has an answer, so that any other one ends the wait, also one with nothing but a pause.
    knows: bool,
    /// What waited at the last look, which is the one that is answered.
    found: Option<Attention>,
}

impl SoughtAttention<'_> {
    /// Returns the rendering of what waits now, and true if nothing does.
    async fn looked(&mut self, now: Option<&Published>) -> Result<(Rendering, bool), Early> {
        let board = &now.ok_or_else(|| no_session(self.session))?.board;
        let attention = self.reader.look(board).await?;
        let (version, is_empty) = (board.at_version(attention.next), attention.is_empty());
        self.found = Some(attention.clone());
        let resource = Resource::Attention(self.agent.clone(), attention);
        Ok((Rendering::of(resource, version), is_empty))
    }
}

impl Sought for SoughtAttention<'_> {
    fn may_come(&self) -> bool {
        self.reader.goes_on()
    }

    async fn look(&mut self, now: Option<&Published>) -> Result<Option<Rendering>, Early> {
        let (rendering, is_empty) = self.looked(now).await?;
        let waits_on = self.may_come() && is_empty && !self.knows;
        Ok((!waits_on).then_some(rendering))
    }

    async fn at_last(&mut self, now: Option<&Published>) -> Result<Rendering, Early> {
        Ok(self.looked(now).await?.0)
    }
}
