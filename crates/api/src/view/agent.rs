//! Agents as JSON.

use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::raw;
use crate::intake::query::{Choice, Worded, queries};
use crate::push;
use crate::schema::shapes::boolean;
use blackboard_board::json;
use blackboard_board::{Agent, AgentName};

queries! {
    /// The choice to show the time of an agent's last write.
    pub SeenQuery {
        /// Show the time of an agent's last write, which changes no tag
        seen: Choice<Seen> = Seen::Hidden => boolean(),
    }
}

/// The visibility of an agent's `last_seen`, which changes no tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It is shown.
    Shown,
    /// It is left out.
    Hidden,
}

impl Worded for Seen {
    const WORDS: &'static [(&'static str, Self)] =
        &[("true", Self::Shown), ("false", Self::Hidden)];
}

/// An agent, with all members of its profile.
#[derive(ToSchema)]
#[expect(dead_code, reason = "written by hand: the profile's members keep the text of their names")]
pub struct AgentBody {
    /// The agent's name.
    #[schema(example = "AppAgent")]
    agent: String,
    /// The kind of agent.
    #[schema(required = false, nullable = false, rename = "type", example = "AppAgent")]
    r#type: Option<String>,
    /// The platform that the agent runs on.
    #[schema(required = false, nullable = false, example = "windows")]
    platform: Option<String>,
    /// The agent that leads this agent.
    #[schema(required = false, nullable = false, example = "HostAgent")]
    host: Option<String>,
    /// The agent's status.
    #[schema(example = "CONTINUE")]
    status: String,
    /// The revision of the agent's last change.
    revision: u64,
    /// The time of registration, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    registered_at: String,
    /// The time of registration or of the last change, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    updated_at: String,
    /// With `seen=true`: the time of the agent's last write, RFC 3339 in UTC; null if it never wrote.
    #[schema(required = false, format = DateTime)]
    last_seen: Option<String>,
}

/// Renders an agent as JSON.
pub fn shown_agent(name: &AgentName, agent: &Agent, seen: Seen) -> Box<RawValue> {
    let mut text = String::new();
    write_agent(name, agent, seen, &mut text);
    raw(text)
}

/// Writes an agent as JSON.
pub fn write_agent(name: &AgentName, agent: &Agent, seen: Seen, out: &mut String) {
    out.push_str("{\"agent\":");
    json::quote(name.as_str(), out);
    for member in json::members(agent.profile.item().text()) {
        out.push(',');
        out.push_str(member.name);
        out.push(':');
        out.push_str(member.value);
    }
    let Agent { changed, registered_at, updated_at, last_seen, .. } = agent;
    push(out, format_args!(",\"revision\":{changed},\"registered_at\":\"{registered_at}\""));
    push(out, format_args!(",\"updated_at\":\"{updated_at}\""));
    match (seen, last_seen) {
        (Seen::Hidden, _) => {}
        (Seen::Shown, Some(at)) => push(out, format_args!(",\"last_seen\":\"{at}\"")),
        (Seen::Shown, None) => out.push_str(",\"last_seen\":null"),
    }
    out.push('}');
}
