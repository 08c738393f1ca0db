//! Agents: register one, change its profile or its status, find it.

use crate::refusal::{Place, Refusal, invalid_item, object_required, refused};
use blackboard_board::json::{self, Kind};
use blackboard_board::{Agent, AgentCommand, AgentName, Board, Command, Item, Json, Rejected};

/// Reads a profile, or a patch of one.
pub fn profile(text: &str) -> Result<Item, Refusal> {
    if json::kind(text) != Kind::Object {
        return Err(object_required(String::new(), json::kind(text)));
    }
    Item::from_json(text).map_err(|invalid| invalid_item(&invalid, Place::default()))
}

/// Returns the command that sets an agent's status.
pub(crate) fn set_status(agent: AgentName, status: &Json) -> Result<Command, Refusal> {
    let patch = profile(&format!("{{\"status\":{}}}", status.text()))?;
    Ok(Command::Agent(agent, AgentCommand::Patch { patch }))
}

/// Returns an agent, which must be registered.
pub fn agent<'a>(board: &'a Board, name: &AgentName) -> Result<&'a Agent, Refusal> {
    let none = || refused(&Rejected::NoAgent { agent: name.clone() }, Some(board.revision()));
    board.agents().get(name).ok_or_else(none)
}
