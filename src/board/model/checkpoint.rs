//! Checkpoints: names for revisions.

use crate::board::{AgentName, Revision, Timestamp};

/// The most checkpoints of a session.
pub const CHECKPOINTS_MAX: usize = 1_000;

/// A checkpoint: a named revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The revision of the commit that made it.
    pub revision: Revision,
    /// When it was made.
    pub at: Timestamp,
    /// The author, if named.
    pub agent: Option<AgentName>,
}
