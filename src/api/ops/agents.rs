//! Agents: set a status.

use crate::api::refusal::{Place, Refusal, invalid_item};
use crate::board::{AgentCommand, AgentName, Command, Item, Json};

/// Returns the command that sets an agent's status.
pub(crate) fn set_status(agent: AgentName, status: &Json) -> Result<Command, Refusal> {
    let patch = Item::from_json(&format!("{{\"status\":{}}}", status.text()));
    let patch = patch.map_err(|invalid| invalid_item(&invalid, Place::default()))?;
    Ok(Command::Agent(agent, AgentCommand::Patch { patch }))
}
