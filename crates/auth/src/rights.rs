//! Rights of a caller: the scopes, the sessions that it reaches, the memories that it sees, and permitted commands.
//!
//! A memory belongs to its agent, and so do the messages to it. The token of another agent reads them only with
//! `memory:read` and never changes them, but may send a message. A token without an agent belongs to a person or program,
//! and sees them as part of its boards.

use super::caller::{Caller, Kind};
use super::{Scope, SessionPattern};
use blackboard_board::{
    AgentCommand, AgentName, Command, Edit, LogCommand, LogName, MaxItems, SessionCommand,
    SessionName, Set, SettingsPatch, Test,
};

/// A missing right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// The token lacks the scope.
    #[error("the token lacks the scope {0}")]
    Scope(Scope),
    /// The request would read or take another agent's memory or messages.
    #[error(
        "the token is bound to {own}; memories of other agents, and messages to them, need the scope memory:read"
    )]
    ForeignMemory {
        /// The agent that the token is bound to.
        own: AgentName,
    },
    /// The setting could empty another agent's logs, or limits and reveals the costs of all.
    #[error(
        "the token is bound to {own}, and the setting {setting} concerns all agents; use a token without an agent, or \
         the scope admin"
    )]
    Setting {
        /// The agent that the token is bound to.
        own: AgentName,
        /// The setting.
        setting: &'static str,
    },
    /// The request would change another agent's memory or messages.
    #[error(
        "the token is bound to {own}, and this would change memories of other agents, or messages to them: use a token \
         without an agent"
    )]
    ForeignWrite {
        /// The agent that the token is bound to.
        own: AgentName,
    },
}

impl Caller {
    /// Returns true if the caller has this scope.
    #[must_use]
    pub fn may(&self, scope: Scope) -> bool {
        match &self.0 {
            Kind::Anyone(_) => true,
            Kind::Bearer { grant, .. } => grant.token().scopes.allow(scope),
            // Of what it was given it reads one image.
            Kind::Signed => scope == Scope::Read,
            Kind::Nobody => false,
        }
    }

    /// Checks the scope.
    ///
    /// # Errors
    ///
    /// [`Forbidden::Scope`] without it.
    pub fn needs(&self, scope: Scope) -> Result<(), Forbidden> {
        if self.may(scope) { Ok(()) } else { Err(Forbidden::Scope(scope)) }
    }

    /// Returns true if the caller can reach a session of this name.
    #[must_use]
    pub fn reaches(&self, session: &SessionName) -> bool {
        match &self.0 {
            Kind::Anyone(_) | Kind::Signed => true,
            Kind::Bearer { grant, .. } => {
                grant.token().sessions.iter().any(|pattern| pattern.matches(session))
            }
            Kind::Nobody => false,
        }
    }

    /// Returns the only session that the caller reaches, if its token names one.
    #[must_use]
    pub fn only_session(&self) -> Option<SessionName> {
        match self.grant()?.token().sessions.as_slice() {
            [pattern] => pattern.name(),
            _ => None,
        }
    }

    /// Returns the patterns of the names that the caller reaches; `None` if it reaches all.
    #[must_use]
    pub fn patterns(&self) -> Option<&[SessionPattern]> {
        match &self.0 {
            Kind::Anyone(_) | Kind::Signed => None,
            Kind::Bearer { grant, .. } => Some(&grant.token().sessions),
            Kind::Nobody => Some(&[]),
        }
    }

    /// Returns the prefixes of all names that the caller reaches.
    #[must_use]
    pub fn stems(&self) -> Vec<String> {
        match &self.0 {
            Kind::Anyone(_) | Kind::Signed => vec![String::new()],
            Kind::Bearer { grant, .. } => {
                grant.token().sessions.iter().map(|pattern| pattern.stem().to_owned()).collect()
            }
            Kind::Nobody => Vec::new(),
        }
    }

    /// Returns true if the caller reaches every session.
    #[must_use]
    pub fn reaches_all(&self) -> bool {
        match &self.0 {
            Kind::Anyone(_) => true,
            Kind::Bearer { grant, .. } => grant.token().sessions.iter().any(SessionPattern::is_all),
            Kind::Signed | Kind::Nobody => false,
        }
    }

    /// Returns the only agent whose memory and messages the caller may read.
    #[must_use]
    pub fn limited_to(&self) -> Option<&AgentName> {
        self.agent().filter(|_| !self.may(Scope::MemoryRead))
    }

    /// Returns the only agent whose logs, claims and status the caller may write.
    #[must_use]
    pub fn kept_to(&self) -> Option<&AgentName> {
        self.agent().filter(|_| !self.may(Scope::Admin))
    }

    /// Returns true if the caller may see this log.
    #[must_use]
    pub fn sees(&self, log: &LogName) -> bool {
        log.owner().is_none_or(|owner| self.sees_logs_of(owner))
    }

    /// Returns true if the caller may see the memory of this agent and the messages to it.
    #[must_use]
    pub fn sees_logs_of(&self, agent: &AgentName) -> bool {
        self.limited_to().is_none_or(|own| own == agent)
    }

    /// Checks that the caller may see this log.
    ///
    /// # Errors
    ///
    /// [`Forbidden::ForeignMemory`] if not.
    pub fn sees_log(&self, log: &LogName) -> Result<(), Forbidden> {
        if self.sees(log) { Ok(()) } else { self.sees_all_memories() }
    }

    /// Checks that the caller may see all of every board that it reaches.
    ///
    /// # Errors
    ///
    /// [`Forbidden::ForeignMemory`] if not.
    pub fn sees_all_memories(&self) -> Result<(), Forbidden> {
        match self.limited_to() {
            None => Ok(()),
            Some(own) => Err(Forbidden::ForeignMemory { own: own.clone() }),
        }
    }

    /// Checks that the caller may append to this log. Anyone may send a message.
    ///
    /// # Errors
    ///
    /// [`Forbidden::ForeignWrite`] if the log is another agent's memory.
    pub fn appends_to(&self, log: &LogName) -> Result<(), Forbidden> {
        if matches!(log, LogName::Messages(_)) { Ok(()) } else { self.writes_log(log) }
    }

    /// Checks that the caller may change this log.
    ///
    /// # Errors
    ///
    /// [`Forbidden::ForeignWrite`] if the log belongs to another agent.
    pub fn writes_log(&self, log: &LogName) -> Result<(), Forbidden> {
        log.owner().map_or(Ok(()), |owner| self.writes_logs_of(Some(owner)))
    }

    /// Checks that the caller may change the logs of this agent, or those of all agents.
    fn writes_logs_of(&self, agent: Option<&AgentName>) -> Result<(), Forbidden> {
        match self.kept_to() {
            Some(own) if agent != Some(own) => Err(Forbidden::ForeignWrite { own: own.clone() }),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks that the caller may restore a session with all its memories.
    ///
    /// # Errors
    ///
    /// [`Forbidden::ForeignWrite`] if not.
    pub fn restores(&self) -> Result<(), Forbidden> {
        self.writes_logs_of(None)
    }

    /// Checks a command to a session that the caller reaches and may write to.
    ///
    /// # Errors
    ///
    /// [`Forbidden`] if not.
    pub fn permits(&self, command: &Command) -> Result<(), Forbidden> {
        match command {
            Command::Log(log, LogCommand::Append { .. }) => self.appends_to(log),
            Command::Log(log, _) => self.writes_log(log),
            // The answer has the whole of what it was added to.
            Command::State(_, Edit::Add(_) | Edit::Append(_)) => self.needs(Scope::Read),
            Command::Ack { agent: Some(agent), .. } => self.writes_logs_of(Some(agent)),
            Command::Agent(agent, AgentCommand::Remove) => self.writes_logs_of(Some(agent)),
            // Each of them takes the logs of all agents.
            Command::RemoveAgents | Command::Session(SessionCommand::Delete) => {
                self.writes_logs_of(None)
            }
            Command::Session(SessionCommand::Restore { .. }) => self.restores(),
            // The members that match reveal part of the request.
            Command::ClaimNext { .. } => self.needs(Scope::Read),
            Command::Transact(transaction) => {
                if !transaction.tests.is_empty() {
                    self.needs(Scope::Read)?;
                }
                transaction.tests.iter().try_for_each(|test| self.permits_test(test))?;
                let mut both = transaction.then.iter().chain(&transaction.otherwise);
                both.try_for_each(|command| self.permits(command))
            }
            Command::Session(SessionCommand::Put { settings: Set::To(settings), .. }) => {
                self.permits_settings(settings)
            }
            // The lifetime, the budget and the caps go with all settings.
            Command::Session(SessionCommand::Put { settings: Set::Reset, .. }) => self
                .permits_settings(&SettingsPatch {
                    ttl: Set::Reset,
                    cost_max: Set::Reset,
                    running_max: Set::Reset,
                    ..SettingsPatch::default()
                }),
            Command::Session(
                SessionCommand::Put { settings: Set::Keep, .. }
                | SessionCommand::Adopt { .. }
                | SessionCommand::PutBlob { .. }
                | SessionCommand::ForgetImages { .. },
            )
            | Command::Board(_)
            | Command::State(_, _)
            | Command::Agent(_, AgentCommand::Put { .. } | AgentCommand::Patch { .. })
            | Command::Request(_, _)
            | Command::Question(_, _)
            | Command::Ack { agent: None, .. }
            | Command::Ask { .. }
            | Command::Plan { .. }
            | Command::Checkpoint(_, _) => Ok(()),
        }
    }

    /// A setting needs the rights of the deletions that it will cause: of a purge for a history, of a deletion for memories.
    /// A session's lifetime, its budget and its caps are its owner's, also to take away. An agent could also find the others'
    /// costs by trying budgets.
    fn permits_settings(&self, settings: &SettingsPatch) -> Result<(), Forbidden> {
        if matches!(settings.history, Set::To(_)) {
            self.needs(Scope::Admin)?;
        }
        let limits_memories = match &settings.max_items {
            Set::To(MaxItems::All(_)) => true,
            Set::To(MaxItems::Each(each)) => each.memory.is_some() || each.messages.is_some(),
            Set::Keep | Set::Reset => false,
        };
        let changes_lifetime = !matches!(settings.ttl, Set::Keep);
        let changes_budget = !matches!(settings.cost_max, Set::Keep);
        let changes_caps = !matches!(settings.running_max, Set::Keep);
        let changed = [
            (changes_lifetime, "ttl"),
            (limits_memories, "max_items"),
            (changes_budget, "cost_max"),
            (changes_caps, "running_max"),
        ];
        let Some((_, setting)) = changed.into_iter().find(|(is_changed, _)| *is_changed) else {
            return Ok(());
        };
        match self.kept_to() {
            Some(own) => Err(Forbidden::Setting { own: own.clone(), setting }),
            None => Ok(()),
        }
    }

    /// A test reveals part of what it reads.
    fn permits_test(&self, test: &Test) -> Result<(), Forbidden> {
        match test {
            Test::Count(log, _) => self.sees_log(log),
            Test::Equals(..)
            | Test::Absent(..)
            | Test::InVersion(..)
            | Test::Claimable(..)
            | Test::AtRevision(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
