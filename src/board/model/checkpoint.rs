//! Checkpoints: names for revisions.

use crate::board::{AgentName, Revision, Timestamp};

/// How many checkpoints a session may have.
pub const CHECKPOINTS_MAX: usize = 1_000;

/// What a checkpoint's name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The revision of the commit that made it.
    pub revision: Revision,
    /// When it was made.
    pub at: Timestamp,
    /// Who made it, where one was named.
    pub agent: Option<AgentName>,
}
