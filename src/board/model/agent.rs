//! Agents: their profiles, and the life cycle of their statuses.
//!
//! The statuses and their transitions are the original's. A session may add statuses of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::board::json;
use crate::board::json::Kind;
use crate::board::{InvalidItem, Item, Revision, Timestamp};

/// The longest profile, in bytes.
pub const PROFILE_BYTES_MAX: usize = 64 << 10;

/// The most statuses that a session may add.
pub const AGENT_STATES_MAX: usize = 64;

/// The most agents of a session, including removed ones with a memory.
pub const AGENTS_MAX: usize = 100_000;

/// The status of an agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(Arc<str>);

impl Status {
    /// The statuses that every session knows.
    pub const BUILT_IN: [&str; 7] =
        ["ERROR", "FINISH", "CONTINUE", "FAIL", "PENDING", "CONFIRM", "SCREENSHOT"];

    /// The initial status, and that of each new round.
    pub const FIRST: &str = "CONTINUE";

    /// A status by its name; whether the session knows it is to be seen.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// Its name.
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

/// The statuses that a session adds, each with its moves.
pub type AgentStates = BTreeMap<String, Moves>;

/// The transitions of a session's own status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moves {
    /// The statuses that it follows.
    pub from: Vec<String>,
    /// The statuses that follow it.
    pub to: Vec<String>,
}

/// Whether a session with these statuses of its own knows this one.
#[must_use]
pub fn is_known(states: &AgentStates, status: &str) -> bool {
    Status::BUILT_IN.contains(&status) || states.contains_key(status)
}

/// Whether an agent may go from one status to another. The same again is no move.
#[must_use]
pub(crate) fn may_move(states: &AgentStates, from: &str, to: &str) -> bool {
    let listed = |names: &[String], name: &str| names.iter().any(|listed| listed == name);
    let enters = states.get(to).is_some_and(|own| listed(&own.from, from));
    let leaves = states.get(from).is_some_and(|own| listed(&own.to, to));
    // A status that the session has forgotten must not hold an agent for ever.
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
    /// The profile of an agent that said nothing of itself.
    #[must_use]
    pub fn first() -> Self {
        let item = Item::trusted("{\"status\":\"CONTINUE\"}");
        Self { item, status: Status::new(Status::FIRST) }
    }

    /// An object that has a text as its status; `None` for any other.
    #[must_use]
    pub fn new(item: Item) -> Option<Self> {
        let status = item.get("status").filter(|status| json::kind(status) == Kind::String)?;
        let status = Status::new(&json::decode(status));
        Some(Self { item, status })
    }

    /// The object, with this status where it has none.
    ///
    /// # Errors
    ///
    /// [`InvalidItem`] where it would be too large.
    pub fn with_status(item: &Item, status: &Status) -> Result<Item, InvalidItem> {
        if item.get("status").is_some() {
            return Ok(item.clone());
        }
        let mut literal = String::new();
        json::quote(status.as_str(), &mut literal);
        let patch = format!("{{\"status\":{literal}}}");
        Item::from_json(&json::merge_patch(item.text(), &patch))
    }

    /// Its object.
    #[must_use]
    pub fn item(&self) -> &Item {
        &self.item
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
    }
}

/// An agent that takes part in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The profile.
    pub profile: Profile,
    /// When it was registered.
    pub registered_at: Timestamp,
    /// When it was registered, or last changed.
    pub updated_at: Timestamp,
    /// The revision of its last change.
    pub changed: Revision,
    /// When its last write was.
    pub last_seen: Option<Timestamp>,
}
