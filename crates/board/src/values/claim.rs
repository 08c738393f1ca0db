//! Work on a request: claimed until a deadline, lapsed, in review, done, failed, or cancelled.
//!
//! A fence is the revision at which a claim was won. It identifies the claim for good, so that a write under a lost
//! claim can be refused.

use super::attempt::{Cancel, Outcome, PastAttempt, cut};
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
    /// The result waits for a verdict.
    InReview(Review),
    /// The request is done.
    Done(Done),
    /// All attempts ended without success, or the deadline passed.
    Failed(Failed),
    /// The request was cancelled.
    Cancelled(Cancel),
}

/// An agent's claim on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The agent that holds the claim.
    pub agent: AgentName,
    /// The revision at which the claim was won. A renewal keeps this revision.
    pub fence: Revision,
    /// The time at which the claim was won.
    pub since: Timestamp,
    /// The deadline of the claim.
    pub expires_at: Timestamp,
}

/// A result that waits for a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// The time at which the claim was won; without a claim, that of the result.
    pub since: Timestamp,
    /// The end of the request, if the result is accepted.
    pub done: Done,
}

/// The verdict by which a result was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The agent that gave it.
    pub agent: AgentName,
    /// The time of the verdict.
    pub at: Timestamp,
    /// The reason, if given.
    pub reason: Option<Json>,
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
    /// The verdict, if the result was reviewed.
    pub verdict: Option<Box<Verdict>>,
}

/// The end of a request without success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The agent that held the last claim. A request whose deadline passed may have had none.
    pub agent: Option<AgentName>,
    /// The time of the end.
    pub at: Timestamp,
    /// The fence of the last claim.
    pub fence: Option<Revision>,
    /// The reason, if there is one. A lapsed claim has none.
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
        self.fence() == Some(fence)
    }

    /// Returns the claim, unless it ended.
    #[must_use]
    pub fn claim(&self) -> Option<&Claim> {
        if let Self::Claimed(claim) = self { Some(claim) } else { None }
    }

    /// Returns the fence of the last claim, if it may still be honoured.
    #[must_use]
    pub fn fence(&self) -> Option<Revision> {
        match self {
            Self::Claimed(claim) => Some(claim.fence),
            Self::Lapsed { fence } => Some(*fence),
            Self::InReview(Review { done, .. }) | Self::Done(done) => done.fence,
            Self::Failed(failed) => failed.fence,
            Self::Cancelled(_) => None,
        }
    }

    /// Returns the agent that holds the claim, or that did or failed the request. A lapsed claim and a cancellation name
    /// none.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Claimed(claim) => Some(&claim.agent),
            Self::InReview(Review { done, .. }) | Self::Done(done) => done.agent.as_ref(),
            Self::Failed(failed) => failed.agent.as_ref(),
            Self::Lapsed { .. } | Self::Cancelled(_) => None,
        }
    }

    /// Returns the result that waits for a verdict, if one does.
    #[must_use]
    pub fn in_review(&self) -> Option<&Review> {
        if let Self::InReview(review) = self { Some(review) } else { None }
    }

    /// Returns the end of the request, if it is done.
    #[must_use]
    pub fn done(&self) -> Option<&Done> {
        if let Self::Done(done) = self { Some(done) } else { None }
    }

    /// Returns the end without success, if the request failed.
    #[must_use]
    pub fn failed(&self) -> Option<&Failed> {
        if let Self::Failed(failed) = self { Some(failed) } else { None }
    }

    /// Returns the cancellation, if the request was cancelled.
    #[must_use]
    pub fn cancelled(&self) -> Option<&Cancel> {
        if let Self::Cancelled(cancel) = self { Some(cancel) } else { None }
    }

    /// Returns true if the request ended: it is done, failed or cancelled.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        match self {
            Self::Done(_) | Self::Failed(_) | Self::Cancelled(_) => true,
            Self::Claimed(_) | Self::Lapsed { .. } | Self::InReview(_) => false,
        }
    }

    /// Returns true for a claim, expired or not.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Claimed(_) | Self::Lapsed { .. })
    }

    /// Returns the texts that agents gave: the result, the reason, and a verdict's reason.
    pub fn texts(&self) -> impl Iterator<Item = &Json> {
        let (first, verdict) = match self {
            Self::InReview(Review { done, .. }) | Self::Done(done) => {
                let verdict = done.verdict.as_deref();
                (done.result.as_ref(), verdict.and_then(|verdict| verdict.reason.as_ref()))
            }
            Self::Failed(failed) => (failed.reason.as_ref(), None),
            Self::Cancelled(cancel) => (cancel.reason.as_ref(), None),
            Self::Claimed(_) | Self::Lapsed { .. } => (None, None),
        };
        first.into_iter().chain(verdict)
    }

    /// Returns the size of the texts that agents gave, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.texts().map(Json::bytes).sum()
    }
}

impl Work {
    /// Returns the attempt that a claim or a result in review is, if it ends without success.
    pub(crate) fn attempt(
        &self,
        to: Timestamp,
        outcome: Outcome,
        reason: Option<&Json>,
    ) -> Option<PastAttempt> {
        match self {
            Self::Claimed(claim) => Some(claim.attempt(to, outcome, reason)),
            Self::InReview(Review { since, done }) => {
                let (agent, from, reason) = (done.agent.clone(), *since, reason.map(cut));
                Some(PastAttempt { agent, from, to, outcome, reason })
            }
            Self::Lapsed { .. } | Self::Done(_) | Self::Failed(_) | Self::Cancelled(_) => None,
        }
    }
}

impl Claim {
    /// Returns the attempt under the claim, which ended without success.
    pub(crate) fn attempt(
        &self,
        to: Timestamp,
        outcome: Outcome,
        reason: Option<&Json>,
    ) -> PastAttempt {
        let (agent, reason) = (Some(self.agent.clone()), reason.map(cut));
        PastAttempt { agent, from: self.since, to, outcome, reason }
    }
}
