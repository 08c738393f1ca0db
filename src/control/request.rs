//! Requests of the control socket, each with its own answer.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::auth::{Scope, SessionPattern};
use crate::board::{AgentName, SessionName, TokenName, Ttl};

/// A request, as its line has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The names of all sessions: a line [`Sought`] each.
    Sessions {},
    /// A session's archive: its lines.
    Export {
        /// Which one.
        session: SessionName,
    },
    /// Make a session of the archive that follows the request, up to the end of what is sent.
    Import {
        /// The name that it gets, which must have none yet.
        session: SessionName,
    },
    /// Make a token: a line [`TokenLine`](super::TokenLine), and the token itself in what was done.
    CreateToken {
        /// What it is called.
        name: TokenName,
        /// What it may do.
        scopes: Vec<Scope>,
        /// Which sessions it reaches.
        sessions: Vec<SessionPattern>,
        /// The agent as which it writes.
        agent: Option<AgentName>,
        /// How long it lives.
        expires: Option<Ttl>,
    },
    /// All tokens: a line [`TokenLine`](super::TokenLine) each, the oldest first.
    Tokens {},
    /// End a token: a line [`TokenLine`](super::TokenLine).
    RevokeToken {
        /// Its name or id.
        token: String,
    },
    /// A copy of the whole store, as a data directory.
    Backup {
        /// Where, from the root; it is absent or empty.
        to: PathBuf,
    },
    /// Whether the store is sound: a line [`Fault`](super::Fault) for each place where it is not.
    Check {
        /// Where a copy is made that is checked instead, from the root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scratch: Option<PathBuf>,
    },
}

/// A session that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sought {
    /// Its name.
    pub session: SessionName,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sessions {} => "sessions",
            Self::Export { .. } => "export",
            Self::Import { .. } => "import",
            Self::CreateToken { .. } => "create token",
            Self::Tokens {} => "tokens",
            Self::RevokeToken { .. } => "revoke token",
            Self::Backup { .. } => "backup",
            Self::Check { .. } => "check",
        })
    }
}
