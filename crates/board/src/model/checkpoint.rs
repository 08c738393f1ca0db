//! Checkpoints: names for revisions.

use crate::{AgentName, Revision, Timestamp};

/// The maximum number of checkpoints in a session.
pub const CHECKPOINTS_MAX: usize = 1_000;

/// A checkpoint: a named revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The named revision, which is that of the commit that created the checkpoint.
    pub revision: Revision,
    /// The time of creation.
    pub at: Timestamp,
    /// The author, if named.
    pub agent: Option<AgentName>,
}
