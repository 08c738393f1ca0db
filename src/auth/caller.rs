//! The caller of a request, and the rights checked on every view and write.
//!
//! A memory belongs to its agent. The token of another agent reads it only with `memory:read` and never writes it.
//! A token without an agent belongs to a person or program, and sees memories as part of its boards.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Grant, Scope, SessionPattern};
use crate::board::{
    AgentCommand, AgentName, Command, Edit, LogName, MaxItems, SessionCommand, SessionName, Set,
    SettingsPatch, Test, Timestamp,
};
use crate::fairness::Client;

/// The caller of a request.
#[derive(Clone, Debug)]
pub struct Caller(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// An unauthenticated caller of a public route.
    Nobody,
    /// Any caller of a server without tokens, until a first one is created.
    Anyone(CancellationToken),
    /// The holder of a signed image address; its signature is checked with the image.
    Signed,
    /// The holder of a token.
    Bearer(Arc<Grant>),
}

/// A missing right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// The token lacks the scope.
    #[error("the token lacks the scope {0}")]
    Scope(Scope),
    /// The request would read or take another agent's memory.
    #[error("the token is bound to {own}; memories of other agents need the scope memory:read")]
    ForeignMemory {
        /// The agent that the token is bound to.
        own: AgentName,
    },
    /// The setting could empty another agent's memory.
    #[error(
        "the token is bound to {own}, and the setting {setting} can empty memories of other agents"
    )]
    Setting {
        /// The agent that the token is bound to.
        own: AgentName,
        /// The setting.
        setting: &'static str,
    },
    /// The request would change another agent's memory.
    #[error("the token is bound to {own}, and only a memory's own agent may write it")]
    ForeignWrite {
        /// The agent that the token is bound to.
        own: AgentName,
    },
}

impl Caller {
    /// Returns the caller of a public route, who sees no board.
    #[must_use]
    pub const fn nobody() -> Self {
        Self(Kind::Nobody)
    }

    /// Returns the reader of an image by a signed address.
    #[must_use]
    pub const fn signed() -> Self {
        Self(Kind::Signed)
    }

    pub(super) const fn anyone(ended: CancellationToken) -> Self {
        Self(Kind::Anyone(ended))
    }

    pub(super) const fn with(grant: Arc<Grant>) -> Self {
        Self(Kind::Bearer(grant))
    }

    /// Returns the token of the request, if any.
    #[must_use]
    pub fn grant(&self) -> Option<&Arc<Grant>> {
        match &self.0 {
            Kind::Bearer(grant) => Some(grant),
            Kind::Nobody | Kind::Anyone(_) | Kind::Signed => None,
        }
    }

    /// Returns the client whose share the requests take: the token, else the address.
    #[must_use]
    pub fn client(&self) -> Client {
        self.grant()
            .map_or_else(Client::current, |grant| Client::Token(grant.token().id.0.into_bytes()))
    }

    /// Returns true if the only right is a signed address.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        matches!(self.0, Kind::Signed)
    }

    /// Returns the signal that ends the rights: a revocation, or the creation of the first token.
    #[must_use]
    pub fn ended(&self) -> Option<&CancellationToken> {
        match &self.0 {
            Kind::Anyone(ended) => Some(ended),
            Kind::Bearer(grant) => Some(grant.ended()),
            Kind::Nobody | Kind::Signed => None,
        }
    }

    /// Returns the time until the token expires.
    #[must_use]
    pub fn left(&self, now: Timestamp) -> Option<Duration> {
        let expires_at = self.grant()?.token().expires_at?;
        Some(Duration::from_millis(u64::try_from(expires_at.0 - now.0).unwrap_or(0)))
    }

    /// Returns true if the rights have ended since the request came.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.ended().is_some_and(CancellationToken::is_cancelled)
            || self.left(now).is_some_and(|left| left.is_zero())
    }

    /// Returns the agent that the token is bound to.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentName> {
        self.grant()?.token().agent.as_ref()
    }

    /// Returns the id of a token without an agent, which tells callers apart that write under the same name.
    #[must_use]
    pub fn identity(&self) -> Option<[u8; 16]> {
        let token = self.grant()?.token();
        token.agent.is_none().then(|| token.id.0.into_bytes())
    }

    /// Returns true if the caller has this scope.
    #[must_use]
    pub fn may(&self, scope: Scope) -> bool {
        match &self.0 {
            Kind::Anyone(_) => true,
            Kind::Bearer(grant) => grant.token().scopes.allow(scope),
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
            Kind::Bearer(grant) => {
                grant.token().sessions.iter().any(|pattern| pattern.matches(session))
            }
            Kind::Nobody => false,
        }
    }

    /// Returns the prefixes of all names that the caller reaches.
    #[must_use]
    pub fn stems(&self) -> Vec<String> {
        match &self.0 {
            Kind::Anyone(_) | Kind::Signed => vec![String::new()],
            Kind::Bearer(grant) => {
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
            Kind::Bearer(grant) => grant.token().sessions.iter().any(SessionPattern::is_all),
            Kind::Signed | Kind::Nobody => false,
        }
    }

    /// Returns the only agent whose memory the caller may read.
    #[must_use]
    pub fn limited_to(&self) -> Option<&AgentName> {
        self.agent().filter(|_| !self.may(Scope::MemoryRead))
    }

    /// Returns the only agent whose memory the caller may write.
    fn kept_to(&self) -> Option<&AgentName> {
        self.agent().filter(|_| !self.may(Scope::Admin))
    }

    /// Returns true if the caller may see this log.
    #[must_use]
    pub fn sees(&self, log: &LogName) -> bool {
        match log {
            LogName::Memory(agent) => self.sees_memory_of(agent),
            LogName::Questions
            | LogName::Requests
            | LogName::Trajectories
            | LogName::Screenshots => true,
        }
    }

    /// Returns true if the caller may see the memory of this agent.
    #[must_use]
    pub fn sees_memory_of(&self, agent: &AgentName) -> bool {
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

    /// Checks that the caller may write this log.
    ///
    /// # Errors
    ///
    /// [`Forbidden::ForeignWrite`] if the log is another agent's memory.
    pub fn writes_log(&self, log: &LogName) -> Result<(), Forbidden> {
        match log {
            LogName::Memory(agent) => self.writes_memory_of(Some(agent)),
            LogName::Questions
            | LogName::Requests
            | LogName::Trajectories
            | LogName::Screenshots => Ok(()),
        }
    }

    /// Checks that the caller may write the memory of this agent, or all memories.
    fn writes_memory_of(&self, agent: Option<&AgentName>) -> Result<(), Forbidden> {
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
        self.writes_memory_of(None)
    }

    /// Checks a command to a session that the caller reaches and may write to.
    ///
    /// # Errors
    ///
    /// [`Forbidden`] if not.
    pub fn permits(&self, command: &Command) -> Result<(), Forbidden> {
        match command {
            Command::Log(log, _) => self.writes_log(log),
            // The answer has the whole of what it was added to.
            Command::State(_, Edit::Add(_) | Edit::Append(_)) => self.needs(Scope::Read),
            Command::Agent(agent, AgentCommand::Remove) => self.writes_memory_of(Some(agent)),
            // Each of them takes the memories of all agents.
            Command::RemoveAgents | Command::Session(SessionCommand::Delete) => {
                self.writes_memory_of(None)
            }
            Command::Session(SessionCommand::Restore { .. }) => self.restores(),
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
            Command::Session(
                SessionCommand::Put { .. }
                | SessionCommand::Adopt { .. }
                | SessionCommand::ForgetImages { .. },
            )
            | Command::Board(_)
            | Command::State(_, _)
            | Command::Agent(_, AgentCommand::Put { .. } | AgentCommand::Patch { .. })
            | Command::Request(_, _)
            | Command::Question(_, _)
            | Command::Ask { .. }
            | Command::Checkpoint(_, _) => Ok(()),
        }
    }

    /// A setting needs the rights of the deletions that it will cause: of a purge for a history, of a deletion for a
    /// session or memories.
    fn permits_settings(&self, settings: &SettingsPatch) -> Result<(), Forbidden> {
        if matches!(settings.history, Set::To(_)) {
            self.needs(Scope::Admin)?;
        }
        let limits_memories = match &settings.max_items {
            Set::To(MaxItems::All(_)) => true,
            Set::To(MaxItems::Each(each)) => each.memory.is_some(),
            Set::Keep | Set::Reset => false,
        };
        let setting = match (&settings.ttl, limits_memories) {
            (Set::To(_), _) => "ttl",
            (Set::Keep | Set::Reset, true) => "max_items",
            (Set::Keep | Set::Reset, false) => return Ok(()),
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

impl fmt::Display for Caller {
    /// Formats the caller as the log names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Nobody | Kind::Anyone(_) => f.write_str("anyone"),
            Kind::Signed => f.write_str("signed"),
            Kind::Bearer(grant) => grant.token().name.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
