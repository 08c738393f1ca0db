//! Rules for claims on requests.
//!
//! One agent at a time works on a request, until the claim expires or the work is done.

use super::Draft;
use super::logs::find_entry;
use crate::command::rejected::Rejected;
use crate::command::{Answer, Write};
use crate::commit::{Change, RequestChange};
use crate::values::claim::{Claim, Fence, Work};
use crate::{AgentName, Board, Json, LogName, Revision, Seq, Ttl, json};

/// Refuses a write under a claim that is no longer valid, or is not the agent's to which the token is bound.
pub(super) fn check_fence(board: &Board, write: &Write) -> Result<(), Rejected> {
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
    pub(super) fn claim(&mut self, request: Seq, ttl: Ttl) -> Result<Answer, Rejected> {
        let (claim, won) = self.claimed(request, ttl)?;
        Ok(Answer::Claimed { claim, won })
    }

    /// Claims a request. Returns false beside the claim if the agent had it already.
    pub(super) fn claimed(&mut self, request: Seq, ttl: Ttl) -> Result<(Claim, bool), Rejected> {
        let agent = self.author()?;
        let expires_at = self.now.after(ttl);
        let (fence, won) = match self.work_on(request)? {
            Some(Work::Claimed(claim)) if claim.agent == agent => {
                if claim.expires_at == expires_at {
                    return Ok((claim.clone(), false));
                }
                (claim.fence, false)
            }
            Some(Work::Claimed(claim)) => return Err(claimed(request, claim)),
            Some(Work::Done(_)) => return Err(Rejected::AlreadyDone { request }),
            Some(Work::Failed(_)) => return Err(Rejected::AlreadyFailed { request }),
            Some(Work::Lapsed { .. }) | None => (self.stamp.revision, true),
        };
        self.check_unblocked(request)?;
        let claim = Claim { agent: agent.clone(), fence, expires_at };
        self.change(Change::Request(request, RequestChange::Claimed { agent, fence, expires_at }));
        Ok((claim, won))
    }

    pub(super) fn release(&mut self, request: Seq) -> Result<Answer, Rejected> {
        let agent = self.author()?;
        match self.work_on(request)? {
            Some(Work::Claimed(claim)) if claim.agent != agent => Err(claimed(request, claim)),
            Some(Work::Claimed(_)) => {
                self.change(Change::Request(request, RequestChange::Released));
                Ok(Answer::Done)
            }
            Some(Work::Lapsed { .. } | Work::Done(_) | Work::Failed(_)) | None => Ok(Answer::Done),
        }
    }

    pub(super) fn finish(
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
            (Some(Work::Done(done)), _)
                if is_same(done.result.as_ref(), result)
                    && done.agent.as_ref() == author
                    && (fence.is_none() || done.fence == fence) =>
            {
                return Ok(Answer::Done);
            }
            (work, Some(fence)) => {
                let open = work.filter(|work| !matches!(work, Work::Done(_) | Work::Failed(_)));
                if !open.is_some_and(|work| work.honours(fence)) {
                    return Err(Rejected::StaleFence { request, fence });
                }
                let claim = open.and_then(Work::claim);
                if let Some(claim) = claim.filter(|claim| author.is_some_and(|a| *a != claim.agent))
                {
                    return Err(claimed(request, claim));
                }
            }
            (Some(Work::Done(_)), None) => return Err(Rejected::AlreadyDone { request }),
            (Some(Work::Failed(_)), None) => return Err(Rejected::AlreadyFailed { request }),
            (Some(Work::Claimed(claim)), None) if author != Some(&claim.agent) => {
                return Err(claimed(request, claim));
            }
            (Some(Work::Claimed(_) | Work::Lapsed { .. }) | None, None) => {}
        }
        let fence = fence.or(held);
        self.check_unblocked(request)?;
        self.change(Change::Request(
            request,
            RequestChange::Finished { fence, result: result.cloned() },
        ));
        Ok(Answer::Done)
    }

    pub(super) fn author(&self) -> Result<AgentName, Rejected> {
        self.stamp.agent.cloned().ok_or(Rejected::AgentRequired)
    }

    pub(super) fn work_on(&self, request: Seq) -> Result<Option<&Work>, Rejected> {
        Ok(find_entry(&self.board, &LogName::Requests, request)?.work.as_deref())
    }
}

/// Compares by value, since a repeat may be formatted differently.
fn is_same(known: Option<&Json>, result: Option<&Json>) -> bool {
    match (known, result) {
        (Some(known), Some(result)) => json::equal(known.text(), result.text()),
        (known, result) => known.is_none() && result.is_none(),
    }
}

fn claimed(request: Seq, claim: &Claim) -> Rejected {
    Rejected::AlreadyClaimed { request, by: claim.agent.clone() }
}
