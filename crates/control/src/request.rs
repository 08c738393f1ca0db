//! Requests of the control socket, each with its own answer.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use blackboard_auth::{Scope, SessionPattern};
use blackboard_board::{AgentName, SessionName, TokenName, Ttl};

/// A request, as read from its line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Lists the names of all sessions, a [`Sought`] line each.
    Sessions {},
    /// Exports a session: the lines of its archive.
    Export {
        /// The session.
        session: SessionName,
    },
    /// Imports the archive that follows the request, up to the end of input.
    Import {
        /// The name of the new session, which must be free.
        session: SessionName,
    },
    /// Creates a token: a [`TokenLine`](super::TokenLine), and the secret in the last line.
    CreateToken {
        /// The name.
        name: TokenName,
        /// The scopes.
        scopes: Vec<Scope>,
        /// The patterns of the sessions that it reaches.
        sessions: Vec<SessionPattern>,
        /// The agent that it is bound to.
        agent: Option<AgentName>,
        /// The lifetime.
        expires: Option<Ttl>,
        /// Creates a first token even without the scope `admin`.
        #[serde(default)]
        anyway: bool,
    },
    /// Exports all tokens as stored, with hashes instead of secrets: a [`CarriedToken`] line each.
    ExportTokens {},
    /// Takes in a token of another store.
    ImportToken(CarriedToken),
    /// Lists all tokens, oldest first, a [`TokenLine`](super::TokenLine) each.
    Tokens {},
    /// Revokes a token: a [`TokenLine`](super::TokenLine).
    RevokeToken {
        /// The name or id.
        token: String,
    },
    /// Deletes all tokens, so that requests need none.
    DisableTokens {},
    /// Backs up the whole store to a new data directory.
    Backup {
        /// The absolute path of the backup, absent or empty.
        to: PathBuf,
        /// Sends a [`Step`](super::Step) line from time to time.
        #[serde(default, skip_serializing_if = "is_false")]
        progress: bool,
    },
    /// Checks the store: a [`Fault`](super::Fault) line for each damaged place.
    Check {
        /// The absolute path for a copy that is checked instead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scratch: Option<PathBuf>,
        /// Sends a [`Step`](super::Step) line from time to time.
        #[serde(default, skip_serializing_if = "is_false")]
        progress: bool,
    },
}

/// A member that is false is not sent: a server of another version may not know it.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// A token on its way to another store: its id, and the text that is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CarriedToken {
    /// The id.
    pub id: Uuid,
    /// The stored form, with the secret's hash.
    pub stored: String,
}

/// A session in a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sought {
    /// The name.
    pub session: SessionName,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sessions {} => "sessions",
            Self::Export { .. } => "export",
            Self::Import { .. } => "import",
            Self::CreateToken { .. } => "create token",
            Self::ExportTokens {} => "export tokens",
            Self::ImportToken(_) => "import token",
            Self::Tokens {} => "tokens",
            Self::RevokeToken { .. } => "revoke token",
            Self::DisableTokens {} => "disable tokens",
            Self::Backup { .. } => "backup",
            Self::Check { .. } => "check",
        })
    }
}
