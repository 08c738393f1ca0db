//! Commit filters: the parameters `on`, `agent` and `trace`.

use super::query::{Of, many_to, queries};
use crate::params::{Params, invalid};
use crate::refusal::Refusal;
use crate::schema::pattern;
use crate::schema::shapes::PART;
use blackboard_address::parse_log_path;
use blackboard_board::{AgentName, Change, Commit, Json, LogName, Part, StatePath, TraceId, json};

/// The maximum number of parts in `on`.
const ON_MAX: usize = 100;

queries! {
    /// A filter of commits and of their changes.
    #[derive(Default, PartialEq, Eq)]
    pub Wanted {
        /// Only changes to these parts: a log of the board, `agents`, `agents/{agent}`, `agents/{agent}/memory`,
        /// `state`, `state/{path}`. Changes to the whole session are always included
        on via parts: Box<[On]> => many_to(pattern(PART), ON_MAX),
        /// Only commits by this agent
        agent: Of<AgentName>,
        /// Only commits of requests with this trace id in their `traceparent`
        trace: Of<TraceId>,
    }
}

/// Takes parts of a session.
fn parts(params: &mut Params, name: &'static str) -> Result<Option<Box<[On]>>, Refusal> {
    let Some(names) = params.list(name)? else { return Ok(None) };
    if names.len() > ON_MAX {
        return Err(invalid(name, format!("takes at most {ON_MAX} parts of a session")));
    }
    names.iter().map(|name| On::parse(name)).collect::<Result<_, _>>().map(Some)
}

/// A part of a session that commits change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum On {
    /// A log or a memory.
    Log(LogName),
    /// All agents.
    Agents,
    /// One agent.
    Agent(AgentName),
    /// A value of the state, with those below it.
    State(StatePath),
}

impl Wanted {
    /// Returns true if every commit matches, with all its changes.
    pub fn is_all(&self) -> bool {
        let Self { on, agent, trace } = self;
        on.is_none() && agent.is_none() && trace.is_none()
    }

    /// Returns the changes of a commit that match, or `None` if the commit does not match.
    pub fn of<'a>(&self, commit: &'a Commit) -> Option<Vec<&'a Change>> {
        let is_by = self.agent.is_none() || self.agent == commit.agent;
        let is_of = self.trace.is_none() || self.trace == commit.trace;
        if !is_by || !is_of {
            return None;
        }
        let Some(on) = &self.on else { return Some(commit.changes.iter().collect()) };
        let wanted = |change: &&Change| {
            change.facts().part.is_whole() || on.iter().any(|on| on.is_in(change))
        };
        let changes: Vec<_> = commit.changes.iter().filter(wanted).collect();
        (!changes.is_empty()).then_some(changes)
    }
}

impl On {
    /// Parses the name of a part.
    fn parse(name: &str) -> Result<Self, Refusal> {
        if let Some(log) = parse_log_path(name) {
            return Ok(Self::Log(log));
        }
        match name.split_once('/') {
            None if name == "agents" => Ok(Self::Agents),
            None if name == "state" => Ok(Self::State(StatePath::root())),
            Some(("agents", agent))
                if agent.ends_with("/memory") || agent.ends_with("/messages") =>
            {
                Err(invalid("on", format!("contains '{name}', which has an invalid agent name")))
            }
            Some(("agents", agent)) => {
                let why = |why| invalid("on", format!("has an invalid agent name: {why}"));
                agent.parse().map(Self::Agent).map_err(why)
            }
            Some(("state", path)) => {
                let why = |why| invalid("on", format!("has an invalid state path: {why}"));
                path.parse().map(Self::State).map_err(why)
            }
            _ => Err(unknown(name)),
        }
    }

    /// Returns true if the change is to this part.
    fn is_in(&self, change: &Change) -> bool {
        match change.facts().part {
            Part::Log(log) => self.is_log(log),
            Part::State(path) => self.meets(path),
            Part::Merged(path, patch) => self.is_merged(path, patch),
            Part::Agent(agent) => self.is_agent(agent),
            Part::AgentWithLogs(agent) => {
                let logs = LogName::owned_by(agent);
                self.is_agent(agent) || logs.iter().any(|log| self.is_log(log))
            }
            Part::Unnamed | Part::Session | Part::Restored(_) | Part::Adopted(_) => false,
        }
    }

    fn is_log(&self, log: &LogName) -> bool {
        matches!(self, Self::Log(own) if own == log)
    }

    fn is_agent(&self, agent: &AgentName) -> bool {
        match self {
            Self::Agents => true,
            Self::Agent(own) => own == agent,
            Self::Log(_) | Self::State(_) => false,
        }
    }

    /// Returns true if a change at this path affects a value at, above or below the part's path.
    fn meets(&self, path: &StatePath) -> bool {
        matches!(self, Self::State(own) if own.contains(path) || path.contains(own))
    }

    /// Returns true if a merge patch at this path affects the part. Members that it does not name are unchanged.
    fn is_merged(&self, path: &StatePath, patch: &Json) -> bool {
        let Self::State(own) = self else { return false };
        let Some(names) = own.segments().get(path.len()..).filter(|_| path.contains(own)) else {
            return own.contains(path);
        };
        let mut patch = patch.text();
        for name in names {
            if json::kind(patch) != json::Kind::Object {
                return true;
            }
            let Some(member) = json::get(patch, name) else { return false };
            patch = member;
        }
        true
    }
}

fn unknown(name: &str) -> Refusal {
    let known = "questions, requests, trajectories, screenshots, agents, agents/{agent}, \
        agents/{agent}/memory, state or state/{path}";
    invalid("on", format!("has the unknown part '{name}'; use {known}"))
}

#[cfg(test)]
mod tests;
