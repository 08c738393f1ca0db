//! Rules for requests as tasks: plans, failures, retries, and the next one to claim.

use super::Draft;
use crate::command::Answer;
use crate::command::rejected::Rejected;
use crate::commit::{Change, RequestChange};
use crate::model::tasks::Next;
use crate::values::claim::{Claim, Failed, Work};
use crate::values::task::{DEPENDANTS_MAX, Plan, Wanted};
use crate::{Item, Json, LogName, Revision, Seq, SeqRange, Ttl};

/// The maximum number of claimable requests that a search for the next one examines in the writer.
const EXAMINED_MAX: usize = 10_000;

impl Draft<'_> {
    /// Appends requests with a plan.
    pub(super) fn append_planned(
        &mut self,
        items: &[Item],
        plan: &Plan,
    ) -> Result<Answer, Rejected> {
        let [_, requests, ..] = self.board.logs();
        for (index, request) in plan.after.iter().copied().enumerate() {
            if requests.get(request).is_none() {
                return Err(Rejected::NoBlocker { request, index });
            }
            let waiting = self.board.tasks().dependants_len(request).saturating_add(items.len());
            if waiting > DEPENDANTS_MAX {
                return Err(Rejected::TooManyDependants { request, index });
            }
        }
        let answer = self.append(&LogName::Requests, items)?;
        let [_, requests, ..] = self.board.logs();
        let last = requests.last_seq();
        // A limit of the log may have evicted some of them at once.
        let first = answer.first_added().and_then(|first| {
            let added = requests.iter().rev().map(|entry| entry.seq);
            added.take_while(|seq| *seq >= first).last()
        });
        if let Some(first) = first.filter(|_| !plan.is_empty()) {
            self.change(Change::Planned { first, last, plan: plan.clone() });
        }
        Ok(answer)
    }

    /// Ends a claim without success.
    pub(super) fn fail(
        &mut self,
        request: Seq,
        fence: Option<Revision>,
        reason: Option<&Json>,
    ) -> Result<Answer, Rejected> {
        let author = self.stamp.agent;
        let stale = |fence| Err(Rejected::StaleFence { request, fence });
        if let Some(fence) = fence.filter(|fence| *fence <= self.board.fences_after) {
            return stale(fence);
        }
        match (self.work_on(request)?, fence) {
            (Some(Work::Claimed(claim)), Some(fence)) if claim.fence != fence => stale(fence),
            (Some(Work::Claimed(claim)), fence) => {
                let is_own = author.map_or(fence.is_some(), |author| *author == claim.agent);
                if !is_own {
                    return Err(claimed(request, claim));
                }
                let reason = reason.cloned();
                self.change(Change::Request(request, RequestChange::Failed { reason }));
                Ok(Answer::Done)
            }
            // The attempt has been counted already.
            (
                Some(Work::Lapsed { fence: own } | Work::Failed(Failed { fence: own, .. })),
                given,
            ) if given == Some(*own) => Ok(Answer::Done),
            (_, Some(fence)) => stale(fence),
            (Some(Work::Done(_)), None) => Err(Rejected::AlreadyDone { request }),
            (Some(Work::Failed(_)), None) => Err(Rejected::AlreadyFailed { request }),
            (Some(Work::Lapsed { .. }) | None, None) => Err(Rejected::NotClaimed { request }),
        }
    }

    /// Gives a failed request all its attempts again.
    pub(super) fn retry(&mut self, request: Seq) -> Result<Answer, Rejected> {
        match self.work_on(request)? {
            Some(Work::Failed(_)) => {
                self.change(Change::Request(request, RequestChange::Retried));
                Ok(Answer::Done)
            }
            Some(Work::Done(_)) => Err(Rejected::AlreadyDone { request }),
            Some(Work::Claimed(_) | Work::Lapsed { .. }) | None => Ok(Answer::Done),
        }
    }

    /// Claims the oldest claimable request with these members, from a seq on.
    pub(super) fn claim_next(
        &mut self,
        wanted: &Wanted,
        from: Seq,
        ttl: Ttl,
    ) -> Result<Answer, Rejected> {
        self.author()?;
        let request = match self.board.next_claimable(wanted, from, EXAMINED_MAX) {
            Next::Found(request) => request,
            Next::None => return Ok(Answer::Next(None)),
            Next::After(_) => return Err(Rejected::TooManyExamined { examined: EXAMINED_MAX }),
        };
        let (claim, _) = self.claimed(request, ttl)?;
        Ok(Answer::Next(Some((request, claim))))
    }

    /// Refuses work on a request that waits for others, or has failed.
    pub(super) fn check_unblocked(&self, request: Seq) -> Result<(), Rejected> {
        let [_, requests, ..] = self.board.logs();
        let entry = requests.get(request);
        let by = entry.and_then(|entry| entry.task.as_deref()).map(|task| &task.blocked_by);
        match by.and_then(|by| by.first()) {
            Some(first) => Err(Rejected::Blocked { request, by: *first }),
            None => Ok(()),
        }
    }

    /// Refuses the removal of requests that others wait for, unless these are removed too.
    pub(super) fn check_dependants(&self, removed: &[SeqRange]) -> Result<(), Rejected> {
        let is_removed = |seq: Seq| {
            let range = removed.get(removed.partition_point(|range| range.last < seq));
            range.is_some_and(|range| range.contains(seq))
        };
        let tasks = self.board.tasks();
        for (request, mut dependants) in removed.iter().flat_map(|range| tasks.awaited(*range)) {
            if let Some(dependant) = dependants.find(|seq| !is_removed(*seq)) {
                return Err(Rejected::HasDependants { request, dependant });
            }
        }
        Ok(())
    }
}

fn claimed(request: Seq, claim: &Claim) -> Rejected {
    Rejected::AlreadyClaimed { request, by: claim.agent.clone() }
}
