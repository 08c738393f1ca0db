//! The caller of a request, and the rights checked on every view and write.
//!
//! An agent's memory is its own. The token of another agent sees it only with `memory:read` and writes it never;
//! a token of no agent is a person's or a program's, and the memories are a part of the boards it reads.

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

/// Who sends a request.
#[derive(Clone, Debug)]
pub struct Caller(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// Somebody of whom nothing is known, on a route for everybody.
    Nobody,
    /// Whoever it is: no token was ever made. It ends once one is.
    Anyone(CancellationToken),
    /// Who was given the signed address of an image: whether that opens it is looked at with the image.
    Signed,
    /// The holder of a token.
    Bearer(Arc<Grant>),
}

/// What a caller may not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// Its token has not the scope.
    #[error("the token has not the scope {0}")]
    Scope(Scope),
    /// It would show or take with it what another agent remembers.
    #[error("the token is {own}'s, and memories of other agents need the scope memory:read")]
    ForeignMemory {
        /// The agent that the token is bound to.
        own: AgentName,
    },
    /// It would let the session empty what another agent remembers.
    #[error("the token is {own}'s, and the setting {setting} can empty memories of other agents")]
    Setting {
        /// The agent that the token is bound to.
        own: AgentName,
        /// Which one.
        setting: &'static str,
    },
    /// It would change or empty what another agent remembers.
    #[error("the token is {own}'s, and a memory is written by its own agent only")]
    ForeignWrite {
        /// The agent that the token is bound to.
        own: AgentName,
    },
}

impl Caller {
    /// Somebody on a route that is for everybody; it sees no board.
    #[must_use]
    pub const fn nobody() -> Self {
        Self(Kind::Nobody)
    }

    /// Whoever reads an image by an address that says it was signed.
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

    /// Its token, where it came with one.
    #[must_use]
    pub fn grant(&self) -> Option<&Arc<Grant>> {
        match &self.0 {
            Kind::Bearer(grant) => Some(grant),
            Kind::Nobody | Kind::Anyone(_) | Kind::Signed => None,
        }
    }

    /// Whose share of the server its requests take: its token's, else its address's.
    #[must_use]
    pub fn client(&self) -> Client {
        self.grant()
            .map_or_else(Client::current, |grant| Client::Token(grant.token().id.0.into_bytes()))
    }

    /// Whether all it has is a signed address.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        matches!(self.0, Kind::Signed)
    }

    /// When its rights end: by a token that is revoked, or by the first one that is made.
    #[must_use]
    pub fn ended(&self) -> Option<&CancellationToken> {
        match &self.0 {
            Kind::Anyone(ended) => Some(ended),
            Kind::Bearer(grant) => Some(grant.ended()),
            Kind::Nobody | Kind::Signed => None,
        }
    }

    /// How long its token still is valid, where that has an end.
    #[must_use]
    pub fn left(&self, now: Timestamp) -> Option<Duration> {
        let expires_at = self.grant()?.token().expires_at?;
        Some(Duration::from_millis(u64::try_from(expires_at.0 - now.0).unwrap_or(0)))
    }

    /// Whether its rights have ended since the request came.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.ended().is_some_and(CancellationToken::is_cancelled)
            || self.left(now).is_some_and(|left| left.is_zero())
    }

    /// The agent that its token is bound to.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentName> {
        self.grant()?.token().agent.as_ref()
    }

    /// What tells it from other callers who write in the same name: of a token without an agent, its id.
    #[must_use]
    pub fn identity(&self) -> Option<[u8; 16]> {
        let token = self.grant()?.token();
        token.agent.is_none().then(|| token.id.0.into_bytes())
    }

    /// Whether its rights include this kind of thing.
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

    /// The same, as an answer.
    ///
    /// # Errors
    ///
    /// [`Forbidden::Scope`] where not.
    pub fn needs(&self, scope: Scope) -> Result<(), Forbidden> {
        if self.may(scope) { Ok(()) } else { Err(Forbidden::Scope(scope)) }
    }

    /// Whether there is, for it, a session of this name.
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

    /// What the names that it reaches begin with: each with one of these.
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

    /// Whether it reaches every session there may be.
    #[must_use]
    pub fn reaches_all(&self) -> bool {
        match &self.0 {
            Kind::Anyone(_) => true,
            Kind::Bearer(grant) => grant.token().sessions.iter().any(SessionPattern::is_all),
            Kind::Signed | Kind::Nobody => false,
        }
    }

    /// The agent to which its sight of memories is limited.
    #[must_use]
    pub fn limited_to(&self) -> Option<&AgentName> {
        self.agent().filter(|_| !self.may(Scope::MemoryRead))
    }

    /// The agent whose memory is the only one that it may write.
    fn kept_to(&self) -> Option<&AgentName> {
        self.agent().filter(|_| !self.may(Scope::Admin))
    }

    /// Whether it may see what is in this log.
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

    /// Whether it may see what this agent remembers.
    #[must_use]
    pub fn sees_memory_of(&self, agent: &AgentName) -> bool {
        self.limited_to().is_none_or(|own| own == agent)
    }

    /// The same, as an answer.
    ///
    /// # Errors
    ///
    /// [`Forbidden::ForeignMemory`] where not.
    pub fn sees_log(&self, log: &LogName) -> Result<(), Forbidden> {
        if self.sees(log) { Ok(()) } else { self.sees_all_memories() }
    }

    /// Whether it may see all of every board that it reaches.
    ///
    /// # Errors
    ///
    /// [`Forbidden::ForeignMemory`] where not.
    pub fn sees_all_memories(&self) -> Result<(), Forbidden> {
        match self.limited_to() {
            None => Ok(()),
            Some(own) => Err(Forbidden::ForeignMemory { own: own.clone() }),
        }
    }

    /// Whether it may write this log.
    ///
    /// # Errors
    ///
    /// [`Forbidden::ForeignWrite`] where it is another agent's.
    pub fn writes_log(&self, log: &LogName) -> Result<(), Forbidden> {
        match log {
            LogName::Memory(agent) => self.writes_memory_of(Some(agent)),
            LogName::Questions
            | LogName::Requests
            | LogName::Trajectories
            | LogName::Screenshots => Ok(()),
        }
    }

    /// Whether it may write the memory of this agent, or of all of them.
    fn writes_memory_of(&self, agent: Option<&AgentName>) -> Result<(), Forbidden> {
        match self.kept_to() {
            Some(own) if agent != Some(own) => Err(Forbidden::ForeignWrite { own: own.clone() }),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether it may let a session be as it was, and all memories with it.
    ///
    /// # Errors
    ///
    /// [`Forbidden::ForeignWrite`] where not.
    pub fn restores(&self) -> Result<(), Forbidden> {
        self.writes_memory_of(None)
    }

    /// Whether it may do this, in a session that it reaches and may write to.
    ///
    /// # Errors
    ///
    /// [`Forbidden`] where not.
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

    /// What a setting lets go later is as if the caller had removed it: a history as a purge does, a session and
    /// memories as their deletion.
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

    /// A test tells something of what it looks at.
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
    /// As the log names it.
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
