//! Work on a request: claimed until a deadline, lapsed, done, or failed.
//!
//! A fence is the revision at which a claim was won. It identifies the claim for good, so that a write under a lost
//! claim can be refused.

use crate::{AgentName, Json, Revision, Seq, Timestamp};

/// The work on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// An agent works on the request.
    Claimed(Claim),
    /// A claim expired, and the request was not claimed again.
    Lapsed {
        /// The fence of the expired claim.
        fence: Revision,
    },
    /// The request is done.
    Done(Done),
    /// All attempts ended without success.
    Failed(Failed),
}

/// An agent's claim on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The agent that holds the claim.
    pub agent: AgentName,
    /// The revision at which the claim was won. A renewal keeps this revision.
    pub fence: Revision,
    /// The deadline of the claim.
    pub expires_at: Timestamp,
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The agent that finished the request, if named.
    pub agent: Option<AgentName>,
    /// The time at which the request was finished.
    pub at: Timestamp,
    /// The fence under which the request was finished, if it was claimed.
    pub fence: Option<Revision>,
    /// The result.
    pub result: Option<Json>,
}

/// The end of a request without success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The agent that held the last claim.
    pub agent: AgentName,
    /// The time at which the last claim ended.
    pub at: Timestamp,
    /// The fence of the last claim.
    pub fence: Revision,
    /// The reason, if the agent gave one. A lapsed claim has none.
    pub reason: Option<Json>,
}

/// The claim under which a client writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The request.
    pub request: Seq,
    /// The fence of the claim on the request.
    pub fence: Revision,
}

impl Work {
    /// Returns true if a write under this fence is still allowed: the claim was neither released nor followed by
    /// another claim.
    #[must_use]
    pub fn honours(&self, fence: Revision) -> bool {
        match self {
            Self::Claimed(claim) => claim.fence == fence,
            Self::Lapsed { fence: last } => *last == fence,
            Self::Done(done) => done.fence == Some(fence),
            Self::Failed(failed) => failed.fence == fence,
        }
    }

    /// Returns the claim, unless it expired or the request is done.
    #[must_use]
    pub fn claim(&self) -> Option<&Claim> {
        match self {
            Self::Claimed(claim) => Some(claim),
            Self::Lapsed { .. } | Self::Done(_) | Self::Failed(_) => None,
        }
    }

    /// Returns the agent that holds the claim or ended the request. A lapsed claim does not name its agent.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Claimed(claim) => Some(&claim.agent),
            Self::Done(done) => done.agent.as_ref(),
            Self::Failed(failed) => Some(&failed.agent),
            Self::Lapsed { .. } => None,
        }
    }

    /// Returns the end of the request, if it is done.
    #[must_use]
    pub fn done(&self) -> Option<&Done> {
        match self {
            Self::Done(done) => Some(done),
            Self::Claimed(_) | Self::Lapsed { .. } | Self::Failed(_) => None,
        }
    }

    /// Returns the end without success, if all attempts failed.
    #[must_use]
    pub fn failed(&self) -> Option<&Failed> {
        match self {
            Self::Failed(failed) => Some(failed),
            Self::Claimed(_) | Self::Lapsed { .. } | Self::Done(_) => None,
        }
    }

    /// Returns true for a claim, expired or not.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Claimed(_) | Self::Lapsed { .. })
    }

    /// Returns the size of the text of the result or the reason in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Done(Done { result: Some(text), .. })
            | Self::Failed(Failed { reason: Some(text), .. }) => text.bytes(),
            Self::Claimed(_) | Self::Lapsed { .. } | Self::Done(_) | Self::Failed(_) => 0,
        }
    }
}
