//! Rules for claims on requests.
//!
//! One agent at a time works on a request, until the claim expires or the work is done.

use crate::command::rejected::{Rejected, Why};
use crate::command::{Answer, Write};
use crate::commit::{Change, RequestChange};
use crate::decide::Draft;
use crate::decide::logs::find_entry;
use crate::values::attempt::CANCEL_GRACE_MS;
use crate::values::claim::{Claim, Fence, Review, Work};
use crate::{AgentName, Board, Json, LogName, Revision, Seq, Timestamp, Ttl, json};

/// Refuses a write under a claim that is no longer valid, or is not the agent's to which the token is bound.
pub(in crate::decide) fn check_fence(board: &Board, write: &Write) -> Result<(), Rejected> {
    let Some(Fence { request, fence }) = write.terms.fence else { return Ok(()) };
    let work = board.work(request).filter(|work| work.honours(fence));
    let Some(work) = work.filter(|_| fence > board.fences_after) else {
        return Err(Rejected::StaleFence { request, fence });
    };
    match (&write.terms.bound_to, work.agent()) {
        (Some(own), Some(holder)) if own != holder => {
            Err(Rejected::ForeignClaim { request, own: own.clone() })
        }
        _ => Ok(()),
    }
}

impl Draft<'_> {
    pub(in crate::decide) fn claim(&mut self, request: Seq, ttl: Ttl) -> Result<Answer, Rejected> {
        let (claim, won) = self.claimed(request, ttl)?;
        Ok(Answer::Claimed { claim, won })
    }

    /// Claims a request. Returns false beside the claim if the agent had it already.
    pub(in crate::decide) fn claimed(
        &mut self,
        request: Seq,
        ttl: Ttl,
    ) -> Result<(Claim, bool), Rejected> {
        let agent = self.author()?;
        let expires_at = self.now.after(ttl);
        let (fence, won) = match self.work_on(request)? {
            Some(Work::Claimed(claim)) if claim.agent == agent => {
                let expires_at = self.renewed_until(request, claim, expires_at)?;
                if claim.expires_at == expires_at {
                    return Ok((claim.clone(), false));
                }
                let claim = Claim { expires_at, ..claim.clone() };
                self.claim_until(request, &claim);
                return Ok((claim, false));
            }
            work => {
                check_free(request, work)?;
                (self.stamp.revision, true)
            }
        };
        self.check_claimable(request)?;
        let claim = Claim { agent, fence, since: self.stamp.at, expires_at };
        self.claim_until(request, &claim);
        Ok((claim, won))
    }

    fn claim_until(&mut self, request: Seq, claim: &Claim) {
        let Claim { agent, fence, expires_at, .. } = claim.clone();
        self.change(Change::Request(request, RequestChange::Claimed { agent, fence, expires_at }));
    }

    /// Returns the end of a renewed claim. A cancelled one is renewed for a few minutes at most.
    fn renewed_until(
        &self,
        request: Seq,
        claim: &Claim,
        expires_at: Timestamp,
    ) -> Result<Timestamp, Rejected> {
        let task = find_entry(&self.board, &LogName::Requests, request)?.task.as_deref();
        let Some(cancel) = task.and_then(|task| task.cancel.as_deref()) else {
            return Ok(expires_at);
        };
        let last = Timestamp(cancel.at.0.saturating_add(CANCEL_GRACE_MS));
        if self.now > last {
            return Err(Rejected::NotClaimable { request, why: Why::Cancelling });
        }
        Ok(expires_at.min(last.max(claim.expires_at)))
    }

    pub(in crate::decide) fn release(&mut self, request: Seq) -> Result<Answer, Rejected> {
        let agent = self.author()?;
        match self.work_on(request)? {
            Some(Work::Claimed(claim)) if claim.agent != agent => Err(claimed(request, claim)),
            Some(Work::Claimed(_)) => {
                self.change(Change::Request(request, RequestChange::Released));
                Ok(Answer::Done)
            }
            Some(
                Work::Lapsed { .. }
                | Work::InReview(_)
                | Work::Done(_)
                | Work::Failed(_)
                | Work::Cancelled(_),
            )
            | None => Ok(Answer::Done),
        }
    }

    pub(in crate::decide) fn finish(
        &mut self,
        request: Seq,
        fence: Option<Revision>,
        result: Option<&Json>,
    ) -> Result<Answer, Rejected> {
        let author = self.stamp.agent;
        let work = self.work_on(request)?;
        if let Some(fence) = fence.filter(|fence| *fence <= self.board.fences_after) {
            return Err(Rejected::StaleFence { request, fence });
        }
        let held = work.and_then(Work::claim).map(|claim| claim.fence);
        match (work, fence) {
            (Some(Work::InReview(Review { done, .. }) | Work::Done(done)), _)
                if is_same(done.result.as_ref(), result)
                    && (done.agent.as_ref() == author || author.is_none() && fence.is_some())
                    && (fence.is_none() || done.fence == fence) =>
            {
                return Ok(Answer::Done);
            }
            (work, Some(fence)) => {
                let open = work.filter(|work| work.is_open());
                if !open.is_some_and(|work| work.honours(fence)) {
                    return Err(Rejected::StaleFence { request, fence });
                }
                let claim = open.and_then(Work::claim);
                if let Some(claim) = claim.filter(|claim| author.is_some_and(|a| *a != claim.agent))
                {
                    return Err(claimed(request, claim));
                }
            }
            (Some(Work::Claimed(claim)), None) if author == Some(&claim.agent) => {}
            (work, None) => check_free(request, work)?,
        }
        let fence = fence.or(held);
        self.check_unblocked(request)?;
        self.change(Change::Request(
            request,
            RequestChange::Finished { fence, result: result.cloned() },
        ));
        Ok(Answer::Done)
    }

    pub(in crate::decide) fn author(&self) -> Result<AgentName, Rejected> {
        self.stamp.agent.cloned().ok_or(Rejected::AgentRequired)
    }

    pub(in crate::decide) fn work_on(&self, request: Seq) -> Result<Option<&Work>, Rejected> {
        Ok(find_entry(&self.board, &LogName::Requests, request)?.work.as_deref())
    }
}

/// Refuses work on a request that is claimed, in review or ended.
pub(in crate::decide) fn check_free(request: Seq, work: Option<&Work>) -> Result<(), Rejected> {
    let not_claimable = |why| Err(Rejected::NotClaimable { request, why });
    match work {
        Some(Work::Claimed(claim)) => Err(claimed(request, claim)),
        Some(Work::Done(_)) => Err(Rejected::AlreadyDone { request }),
        Some(Work::InReview(_)) => not_claimable(Why::InReview),
        Some(Work::Failed(_)) => not_claimable(Why::Failed),
        Some(Work::Cancelled(_)) => not_claimable(Why::Cancelled),
        Some(Work::Lapsed { .. }) | None => Ok(()),
    }
}

/// Compares by value, since a repeat may be formatted differently.
fn is_same(known: Option<&Json>, result: Option<&Json>) -> bool {
    match (known, result) {
        (Some(known), Some(result)) => json::equal(known.text(), result.text()),
        (known, result) => known.is_none() && result.is_none(),
    }
}

pub(in crate::decide) fn claimed(request: Seq, claim: &Claim) -> Rejected {
    Rejected::AlreadyClaimed { request, by: claim.agent.clone() }
}
