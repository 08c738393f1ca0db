//! What can be asked for by the control socket; each request has its own answer.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::board::SessionName;

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
    /// A copy of the whole store, as a data directory.
    Backup {
        /// Where, from the root; it is absent or empty.
        to: PathBuf,
    },
    /// Whether the store is sound: a line [`Fault`](super::Fault) for each place where it is not.
    Check {},
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
            Self::Backup { .. } => "backup",
            Self::Check {} => "check",
        })
    }
}
