//! Agents: list, register, update, remove.
use axum::body::Body;
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::openapi;
use super::read::until::SoughtPart;
use super::read::{Early, PastQuery, Reading, RevisionQuery};
use super::request::body::{BODY_BYTES_MAX, from_json, media_type, only_json, unpatchable};
use super::request::path::{AgentPath, SessionPath};
use super::response::problem::Problem;
use super::write::Writing;
use super::write::response::WrittenBody;
use blackboard_address::agent_url;
use blackboard_api::inbox::PAGE_BYTES;
use blackboard_api::intake::query::{Count, Of, Text, queries};

use blackboard_api::intake::until::{AgentUntilQuery, Prospect};
use blackboard_api::ops::agents::{agent as registered, profile};
use blackboard_api::tag::{Rendering, Resource};
use blackboard_api::view::agent::{AgentBody, SeenQuery, shown_agent, write_agent};
use blackboard_board::{Agent, AgentCommand, AgentName, Board, Command};
use blackboard_service::Published;

queries! {
    /// The query of a page of agents.
    pub(crate) AgentsQuery {
        /// The maximum number of agents on a page; 100 by default
        limit: Count<1, 1000> = 100,
        /// Only names after this one, in byte order
        after: Of<AgentName>,
        /// Only agents with this status
        status: Text,
    }
}

const PATCH_TYPES: &str = "application/merge-patch+json, application/json";

/// A page of agents in the order of their names.
#[derive(Serialize, ToSchema)]
pub(super) struct AgentPage {
    /// At most `limit` agents.
    #[schema(value_type = Vec<AgentBody>)]
    agents: Vec<Box<RawValue>>,
    /// The value of `after` for the next page; null if nothing has been listed yet.
    #[schema(required)]
    next: Option<String>,
    /// True if more agents follow.
    more: bool,
    /// The number of agents in the session.
    count: usize,
    /// The revision of the agents' last change; the session's is in `Blackboard-Revision`.
    revision: u64,
}

/// An agent's profile: these members and any others.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the OpenAPI schema of a body that is stored as JSON text")]
pub(super) struct ProfileBody {
    /// The kind of agent.
    #[schema(required = false, nullable = false, rename = "type", example = "AppAgent")]
    r#type: Option<String>,
    /// The platform that the agent runs on.
    #[schema(required = false, nullable = false, example = "windows")]
    platform: Option<String>,
    /// The agent that leads this agent.
    #[schema(required = false, nullable = false, example = "HostAgent")]
    host: Option<String>,
    /// The agent's status: `CONTINUE`, `FINISH`, `FAIL`, `ERROR`, `PENDING`, `CONFIRM`, `SCREENSHOT`, or a status of
    /// the session's `agent_states`.
    #[schema(required = false, nullable = false, example = "CONTINUE")]
    status: Option<String>,
}

/// List agents
///
/// Agents are sorted by name, a page at a time.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/agents", operation_id = "list_agents", tag = "agents",
    params(AgentsQuery, SeenQuery, PastQuery, RevisionQuery, openapi::WaitQuery),
    responses(
        (status = 200, description = "A page of agents", body = AgentPage, headers(("ETag" = String, description = "Changes with the agents and the query"))),
        openapi::ReadRefusals,
    )
)]
pub(super) async fn list(
    SessionPath(session): SessionPath,
    mut reading: Reading,
) -> Result<Response, Early> {
    let AgentsQuery { limit, after, status } = AgentsQuery::take(&mut reading.params)?;
    let SeenQuery { seen } = SeenQuery::take(&mut reading.params)?;
    let agents = |board: &Board| Ok(Rendering::of(Resource::Agents, board.agents_version()));
    let (answer, board) = reading.of(&session, agents).await?;
    let wanted = |agent: &Agent| {
        status.as_ref().is_none_or(|status| agent.profile.status().as_str() == status)
    };
    let from = after.clone().map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
    let range = board.agents().range((from, std::ops::Bound::Unbounded));
    let mut found = range.filter(|(_, agent)| wanted(agent)).peekable();
    let (mut agents, mut next, mut bytes) = (Vec::new(), after, 0);
    while agents.len() < limit
        && bytes < PAGE_BYTES
        && let Some((name, agent)) = found.next()
    {
        let body = shown_agent(name, agent, seen);
        bytes += body.get().len();
        agents.push(body);
        next = Some(name.clone());
    }
    let page = AgentPage {
        agents,
        next: next.map(|name| name.to_string()),
        more: found.peek().is_some(),
        count: board.agents().len(),
        revision: board.agents_version().changed.0,
    };
    Ok(answer.json(&page)?)
}

/// Read an agent
///
/// With `until` and `wait`, the request waits until the agent has the status.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/agents/{agent}", operation_id = "get_agent", tag = "agents",
    params(SeenQuery, PastQuery, RevisionQuery, AgentUntilQuery, openapi::UntilWaitQuery),
    responses(
        (status = 200, description = "The agent", body = AgentBody,
            headers(("ETag" = String, description = "Changes with the agent, but not with `last_seen`"))),
        openapi::ReadAgentRefusals,
    )
)]
pub(super) async fn get(
    AgentPath { session, agent: name }: AgentPath,
    mut reading: Reading,
) -> Result<Response, Early> {
    let SeenQuery { seen } = SeenQuery::take(&mut reading.params)?;
    let rendering = |board: &Board| {
        let version = board.at_version(registered(board, &name)?.changed);
        Ok(Rendering::of(Resource::Agent(name.clone()), version))
    };
    let AgentUntilQuery { until: status } = AgentUntilQuery::take(&mut reading.params)?;
    let has = |status: String| {
        let name = &name;
        move |board: &Board| {
            let agent = board.agents().get(name);
            let has = agent.is_some_and(|agent| agent.profile.status().as_str() == status);
            if has { Prospect::Holds } else { Prospect::Open }
        }
    };
    let current = |board: &Board| {
        let mut text = String::new();
        write_agent(&name, board.agents().get(&name)?, seen, &mut text);
        Some(text)
    };
    let mut sought = SoughtPart { session: &session, rendering, until: status.map(has), current };
    let (answer, Published { board, .. }) = reading.seek_at(&session, &mut sought).await?;
    let mut text = String::new();
    write_agent(&name, registered(&board, &name)?, seen, &mut text);
    Ok(answer.text(text))
}

/// Register an agent, or replace its profile
///
/// The sent profile replaces the whole profile. Without `status`, a new agent gets `CONTINUE` and a registered agent
/// keeps its status.
#[utoipa::path(
    put, path = "/v1/sessions/{session}/agents/{agent}", operation_id = "put_agent", tag = "agents",
    request_body(content = ProfileBody, description = "The profile, at most 64 KiB"),
    responses(
        (status = 200, description = "Changed, or already the same", body = WrittenBody, headers(("ETag" = String, description = "The agent's tag"))),
        (status = 201, description = "Registered", body = WrittenBody,
            headers(("ETag" = String, description = "The agent's tag"), ("Location" = String, description = "The agent"))),
        openapi::PutAgentRefusals,
    )
)]
pub(super) async fn put(
    AgentPath { agent, .. }: AgentPath,
    mut writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    only_json(&writing.headers)?;
    let profile = from_json(bytes, profile).await?;
    change(writing, agent.clone(), Command::Agent(agent, AgentCommand::Put { profile })).await
}

/// Change an agent's profile
///
/// The patch may change the status, by the moves that the life cycle of agents allows.
#[utoipa::path(
    patch, path = "/v1/sessions/{session}/agents/{agent}", operation_id = "patch_agent", tag = "agents",
    request_body(description = "A JSON Merge Patch (RFC 7396), with either media type",
        content((ProfileBody = "application/merge-patch+json"), (ProfileBody = "application/json"))),
    responses(
        (status = 200, description = "Changed, or already the same", body = WrittenBody, headers(("ETag" = String, description = "The agent's tag"))),
        openapi::PatchAgentRefusals,
    )
)]
pub(super) async fn patch(
    AgentPath { agent, .. }: AgentPath,
    mut writing: Box<Writing>,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = writing.body(body, BODY_BYTES_MAX).await?;
    let sent = media_type(&writing.headers);
    if !PATCH_TYPES.split(", ").any(|taken| taken == sent) {
        return Err(unpatchable(&sent, PATCH_TYPES, "for example with curl -X PATCH --json"));
    }
    let patch = from_json(bytes, profile).await?;
    change(writing, agent.clone(), Command::Agent(agent, AgentCommand::Patch { patch })).await
}

async fn change(
    writing: Box<Writing>,
    agent: AgentName,
    command: Command,
) -> Result<Response, Problem> {
    let resource = Resource::Agent(agent.clone());
    writing
        .write(resource.clone(), command, Vec::new(), move |written| {
            let board = &written.receipt.board;
            let changed = board.agents().get(&agent).map_or(board.revision(), |a| a.changed);
            let tag = written.tag(board.at_version(changed), &resource);
            let made = (!written.receipt.existed).then(|| agent_url(written.session, &agent));
            written.changed(tag, made)
        })
        .await
}

/// Remove an agent
///
/// The agent's memory is emptied; its entries on the board stay.
#[utoipa::path(
    delete, path = "/v1/sessions/{session}/agents/{agent}", operation_id = "delete_agent", tag = "agents",
    responses(
        (status = 200, description = "Removed", body = WrittenBody, headers(("ETag" = String, description = "The tag of the list of agents"))),
        openapi::RemoveAgentRefusals,
    )
)]
pub(super) async fn delete(
    AgentPath { agent, .. }: AgentPath,
    mut writing: Box<Writing>,
) -> Result<Response, Problem> {
    writing.finish_query()?;
    let resource = Resource::Agent(agent.clone());
    writing
        .write(resource, Command::Agent(agent, AgentCommand::Remove), Vec::new(), |written| {
            let version = written.receipt.board.agents_version();
            written.changed(written.tag(version, &Resource::Agents), None)
        })
        .await
}

/// Remove all agents
///
/// All memories are emptied; the board stays. This is how the original ends a session.
#[utoipa::path(
    delete, path = "/v1/sessions/{session}/agents", operation_id = "delete_agents", tag = "agents",
    responses(
        (status = 200, description = "Removed", body = WrittenBody, headers(("ETag" = String, description = "The tag of the list of agents"))),
        openapi::RemoveRefusals,
    )
)]
pub(super) async fn delete_all(mut writing: Box<Writing>) -> Result<Response, Problem> {
    writing.finish_query()?;
    writing
        .write(Resource::Agents, Command::RemoveAgents, Vec::new(), |written| {
            let version = written.receipt.board.agents_version();
            written.removed(Some(written.tag(version, &Resource::Agents)))
        })
        .await
}
