//! Rules for agents: registration, profiles and changes of status.

use super::Draft;
use crate::command::Answer;
use crate::command::rejected::Rejected;
use crate::commit::{AgentChange, Change, LogChange};
use crate::json;
use crate::json::Kind;
use crate::model::agent::{AGENTS_MAX, Profile, Status, is_known, known_statuses, may_move};
use crate::model::agent::{AgentStates, PROFILE_BYTES_MAX};
use crate::{AgentName, Item, LogName};

/// Members that only the server sets.
const OURS: [&str; 5] = ["agent", "revision", "registered_at", "updated_at", "last_seen"];

/// Members that must be strings.
const TEXTS: [&str; 3] = ["type", "platform", "host"];

impl Draft<'_> {
    pub(super) fn put_agent(
        &mut self,
        agent: &AgentName,
        profile: &Item,
    ) -> Result<Answer, Rejected> {
        let status = self.board.agents.get(agent).map(|known| known.profile.status().clone());
        let status = status.unwrap_or_else(|| Status::new(Status::FIRST));
        let profile = Profile::with_status(profile, &status)?;
        self.say(agent, profile)
    }

    pub(super) fn patch_agent(
        &mut self,
        agent: &AgentName,
        patch: &Item,
    ) -> Result<Answer, Rejected> {
        let known = self.board.agents.get(agent);
        let known = known.ok_or_else(|| Rejected::NoAgent { agent: agent.clone() })?;
        let text = json::merge_patch(known.profile.item().text(), patch.text());
        self.say(agent, Item::trusted(&text))
    }

    fn say(&mut self, agent: &AgentName, profile: Item) -> Result<Answer, Rejected> {
        let bytes = profile.bytes();
        if bytes > PROFILE_BYTES_MAX as u64 {
            return Err(Rejected::ProfileTooLarge { bytes });
        }
        check_fields(&profile)?;
        let profile = Profile::new(profile).ok_or(Rejected::NoStatus)?;
        let none = AgentStates::new();
        let own = self.board.life.as_ref().and_then(|life| life.settings.agent_states.as_ref());
        let states = own.unwrap_or(&none);
        let to = profile.status();
        let known = self.board.agents.get(agent);
        let from = known.map(|known| known.profile.status());
        if from != Some(to) && !is_known(states, to.as_str()) {
            let known = known_statuses(states);
            return Err(Rejected::UnknownStatus { known, status: to.clone() });
        }
        if let Some(from) = from
            && !may_move(states, from.as_str(), to.as_str())
        {
            return Err(Rejected::IllegalTransition { from: from.clone(), to: to.clone() });
        }
        self.check_rights(agent, known.map(|known| &known.profile), &profile)?;
        let answer = Answer::Status(to.clone());
        if known.is_none_or(|known| known.profile != profile) {
            self.put_profile(agent, profile)?;
        }
        Ok(answer)
    }

    /// Refuses another agent's status and host to an author whose token is bound to an agent, unless that is the
    /// present host.
    fn check_rights(
        &self,
        agent: &AgentName,
        known: Option<&Profile>,
        profile: &Profile,
    ) -> Result<(), Rejected> {
        let Some(own) = self.bound_to.filter(|own| *own != agent) else { return Ok(()) };
        let host = known.and_then(Profile::host);
        if host.as_deref() == Some(own.as_str()) {
            return Ok(());
        }
        let first = Status::new(Status::FIRST);
        let (agent, own) = (agent.clone(), own.clone());
        if known.map_or(&first, Profile::status) != profile.status() {
            return Err(Rejected::ForeignStatus { agent, own });
        }
        if host != profile.host() {
            return Err(Rejected::ForeignHost { agent, own });
        }
        Ok(())
    }

    fn put_profile(&mut self, agent: &AgentName, profile: Profile) -> Result<(), Rejected> {
        let board = &self.board;
        let known = board.agents.contains_key(agent) || board.memories.contains_key(agent);
        if !known && board.agents_known() >= AGENTS_MAX {
            return Err(Rejected::TooManyAgents);
        }
        self.change(Change::Agent(agent.clone(), AgentChange::Put { profile }));
        Ok(())
    }

    /// Registers the agent of a memory at the first write to the memory. A message registers nobody.
    pub(super) fn register(&mut self, log: &LogName) -> Result<(), Rejected> {
        match log {
            LogName::Messages(agent)
                if !self.board.messages.contains_key(agent)
                    && self.board.agents_known() >= AGENTS_MAX =>
            {
                Err(Rejected::TooManyAgents)
            }
            LogName::Memory(agent) if !self.board.agents.contains_key(agent) => {
                self.put_profile(agent, Profile::first())
            }
            LogName::Memory(_)
            | LogName::Messages(_)
            | LogName::Questions
            | LogName::Requests
            | LogName::Trajectories
            | LogName::Screenshots => Ok(()),
        }
    }

    pub(super) fn remove_agent(&mut self, agent: &AgentName) -> Result<Answer, Rejected> {
        if !self.board.agents.contains_key(agent) {
            return Err(Rejected::NoAgent { agent: agent.clone() });
        }
        self.change(Change::Agent(agent.clone(), AgentChange::Removed));
        Ok(Answer::Removed { count: 1 })
    }

    pub(super) fn remove_agents(&mut self) -> Answer {
        let agents: Vec<AgentName> = self.board.agents.keys().cloned().collect();
        let count = agents.len();
        for agent in agents {
            self.change(Change::Agent(agent, AgentChange::Removed));
        }
        // Memories may be older than the registration of agents, and a message registers nobody.
        let full = self.board.owned_logs().filter(|(_, log)| !log.is_empty());
        let full: Vec<LogName> = full.map(|(log, _)| log).collect();
        full.into_iter().for_each(|log| self.change(Change::Log(log, LogChange::Cleared)));
        Answer::Removed { count }
    }
}

/// Checks that a profile sets no member reserved to the server, and that its text members are strings.
pub(crate) fn check_fields(profile: &Item) -> Result<(), Rejected> {
    if let Some(name) = OURS.into_iter().find(|name| profile.get(name).is_some()) {
        return Err(Rejected::AgentField { name, why: "the server sets this member itself" });
    }
    let is_text = |value: &str| json::kind(value) == Kind::String;
    match TEXTS.into_iter().find(|name| profile.get(name).is_some_and(|value| !is_text(value))) {
        Some(name) => Err(Rejected::AgentField { name, why: "must be a string" }),
        None => Ok(()),
    }
}
