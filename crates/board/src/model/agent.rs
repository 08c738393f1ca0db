//! Agents: their profiles and statuses.
//!
//! The statuses and their transitions are the original's. A session may add statuses of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::json;
use crate::json::Kind;
use crate::{InvalidItem, Item, Revision, Timestamp};

/// The maximum size of a profile, in bytes.
pub const PROFILE_BYTES_MAX: usize = 64 << 10;

/// The maximum number of statuses that a session may add.
pub const AGENT_STATES_MAX: usize = 64;

/// The maximum number of agents in a session, including removed agents with a memory.
pub const AGENTS_MAX: usize = 100_000;

/// The status of an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(Arc<str>);

impl Status {
    /// The built-in statuses of every session.
    pub const BUILT_IN: [&str; 7] =
        ["ERROR", "FINISH", "CONTINUE", "FAIL", "PENDING", "CONFIRM", "SCREENSHOT"];

    /// The status of a new agent, and of each new round.
    pub const FIRST: &str = "CONTINUE";

    /// Creates a status without checking that the session knows it.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// Returns the status's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The statuses that a session adds, each with its transitions.
pub type AgentStates = BTreeMap<String, Moves>;

/// The transitions of a session's own status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moves {
    /// The statuses that may precede this one.
    pub from: Vec<String>,
    /// The statuses that may follow this one.
    pub to: Vec<String>,
}

/// Returns true if this status is built in, or if the session added it.
#[must_use]
pub fn is_known(states: &AgentStates, status: &str) -> bool {
    Status::BUILT_IN.contains(&status) || states.contains_key(status)
}

/// Returns the names of all statuses: the built-in ones, then those of the session.
pub(crate) fn known_statuses(states: &AgentStates) -> Vec<String> {
    let built_in = Status::BUILT_IN.iter().map(|name| (*name).to_owned());
    built_in.chain(states.keys().cloned()).collect()
}

/// Returns true if an agent may change from one status to the other. A status may always follow itself.
#[must_use]
pub(crate) fn may_move(states: &AgentStates, from: &str, to: &str) -> bool {
    let listed = |names: &[String], name: &str| names.iter().any(|listed| listed == name);
    let enters = states.get(to).is_some_and(|own| listed(&own.from, from));
    let leaves = states.get(from).is_some_and(|own| listed(&own.to, to));
    // An agent must be able to leave a status that the session has removed.
    let forgotten = !is_known(states, from) && to == Status::FIRST;
    from == to || enters || leaves || forgotten || moves_as_built_in(from, to)
}

fn moves_as_built_in(from: &str, to: &str) -> bool {
    match from {
        "CONTINUE" => Status::BUILT_IN.contains(&to),
        "CONFIRM" => matches!(to, "CONTINUE" | "FAIL"),
        "PENDING" | "SCREENSHOT" | "FINISH" | "FAIL" | "ERROR" => to == "CONTINUE",
        _ => false,
    }
}

/// The profile of an agent: an object with its status as a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    item: Item,
    status: Status,
}

impl Profile {
    /// Returns the profile of an agent that has not described itself.
    #[must_use]
    pub fn first() -> Self {
        let item = Item::trusted("{\"status\":\"CONTINUE\"}");
        Self { item, status: Status::new(Status::FIRST) }
    }

    /// Creates a profile from an object whose `status` is a string. Returns `None` for any other item.
    #[must_use]
    pub fn new(item: Item) -> Option<Self> {
        let status = item.get("status").filter(|status| json::kind(status) == Kind::String)?;
        let status = Status::new(&json::decode(status));
        Some(Self { item, status })
    }

    /// Returns the object, with `status` added if it has none.
    ///
    /// # Errors
    ///
    /// [`InvalidItem`] if the result is too large.
    pub fn with_status(item: &Item, status: &Status) -> Result<Item, InvalidItem> {
        if item.get("status").is_some() {
            return Ok(item.clone());
        }
        let mut literal = String::new();
        json::quote(status.as_str(), &mut literal);
        let patch = format!("{{\"status\":{literal}}}");
        Item::from_json(&json::merge_patch(item.text(), &patch))
    }

    /// Returns the profile's object.
    #[must_use]
    pub fn item(&self) -> &Item {
        &self.item
    }

    /// Returns the agent's status.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Returns the name of the agent that runs this one, if registered.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        let host = self.item.get("host").filter(|host| json::kind(host) == Kind::String)?;
        Some(json::decode(host).into_owned())
    }
}

/// An agent registered in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The profile.
    pub profile: Profile,
    /// The time of registration.
    pub registered_at: Timestamp,
    /// The time of registration or of the last change.
    pub updated_at: Timestamp,
    /// The revision of its last change.
    pub changed: Revision,
    /// The time of the agent's last write.
    pub last_seen: Option<Timestamp>,
}
