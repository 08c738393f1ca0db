//! A token without its secret: name, rights, dates.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use super::{Scopes, SessionPattern};
use blackboard_board::{AgentName, Timestamp, TokenName};

/// The maximum number of session patterns of a token.
pub const PATTERNS_MAX: usize = 16;

/// The public id of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(pub Uuid);

/// A token as listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The id.
    pub id: TokenId,
    /// The name, unique among live tokens.
    pub name: TokenName,
    /// The scopes.
    pub scopes: Scopes,
    /// The patterns of the sessions that it reaches.
    pub sessions: Vec<SessionPattern>,
    /// The agent that it is bound to.
    pub agent: Option<AgentName>,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// The time of its expiry.
    pub expires_at: Option<Timestamp>,
    /// The time of its revocation.
    pub revoked_at: Option<Timestamp>,
}

/// A token to be created.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// The name.
    pub name: TokenName,
    /// The scopes.
    pub scopes: Scopes,
    /// The patterns of the sessions that it reaches.
    pub sessions: Vec<SessionPattern>,
    /// The agent to bind it to.
    pub agent: Option<AgentName>,
    /// The time of its expiry.
    pub expires_at: Option<Timestamp>,
    /// Creates a first token even without the scope `admin`.
    pub anyway: bool,
}

/// A created token.
#[derive(Clone, Debug)]
pub struct Created {
    /// The token.
    pub token: Token,
    /// True if no request needed a token before.
    pub first: bool,
}

impl Token {
    /// Returns true if the token is neither expired nor revoked at this time.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && !self.is_expired(now)
    }

    /// Returns true if the token has expired.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }

    /// Returns the time of its expiry or revocation, if past.
    pub(super) fn ended_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.revoked_at.or_else(|| self.expires_at.filter(|expires_at| *expires_at <= now))
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_simple().fmt(f)
    }
}

impl FromStr for TokenId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}
