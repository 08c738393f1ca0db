//! A token without its secret: name, rights, dates.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use super::{Scopes, SessionPattern};
use crate::board::{AgentName, Timestamp, TokenName};

/// How many patterns of sessions a token may have.
pub const PATTERNS_MAX: usize = 16;

/// The identity of a token, which is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(pub Uuid);

/// A token as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Which one.
    pub id: TokenId,
    /// What it is called; of all that are live, only one is called so.
    pub name: TokenName,
    /// What it may do.
    pub scopes: Scopes,
    /// Which sessions it reaches: those that match any of these.
    pub sessions: Vec<SessionPattern>,
    /// The agent as which it writes, where it is bound to one.
    pub agent: Option<AgentName>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// A token that is to be made.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// What it is called.
    pub name: TokenName,
    /// What it may do.
    pub scopes: Scopes,
    /// Which sessions it reaches.
    pub sessions: Vec<SessionPattern>,
    /// The agent as which it writes, where it is to be bound to one.
    pub agent: Option<AgentName>,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
}

impl Token {
    /// Whether it opens anything at this time.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && !self.is_expired(now)
    }

    /// Whether its time is over.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }

    /// When it ended, if it has.
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
