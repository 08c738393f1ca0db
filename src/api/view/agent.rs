//! Agents as they are shown.

use super::entry::push;
use crate::api::params::Params;
use crate::api::refusal::Refusal;
use crate::board::json;
use crate::board::{Agent, AgentName};

/// Whether it is shown when an agent wrote last. That changes no tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Shown,
    Hidden,
}

impl Seen {
    /// The parameter `seen`.
    pub(crate) fn param(params: &mut Params) -> Result<Self, Refusal> {
        Ok(if params.flag("seen")? { Self::Shown } else { Self::Hidden })
    }
}

/// Writes an agent as it is shown.
pub(crate) fn write_agent(name: &AgentName, agent: &Agent, seen: Seen, out: &mut String) {
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
