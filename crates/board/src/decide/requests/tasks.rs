//! Rules for requests as tasks: plans, failures, and the next one to claim.

use super::claims::{check_free, claimed};
use crate::command::Answer;
use crate::command::rejected::{Rejected, Why};
use crate::commit::{Change, RequestChange};
use crate::decide::Draft;
use crate::model::tasks::Next;
use crate::values::claim::Work;
use crate::values::task::{DEPENDANTS_MAX, PlanRequest, Rank, Wanted};
use crate::{Item, Json, LogName, Revision, Seq, SeqRange, Ttl};

/// The maximum number of claimable requests that a search for the next one examines in the writer.
const EXAMINED_MAX: usize = 10_000;

impl Draft<'_> {
    /// Appends requests with a plan.
    pub(in crate::decide) fn append_planned(
        &mut self,
        items: &[Item],
        plan: &PlanRequest,
    ) -> Result<Answer, Rejected> {
        let plan = plan.at(self.now);
        if let (Some(not_before), Some(deadline)) = (plan.not_before, plan.deadline)
            && deadline <= not_before
        {
            return Err(Rejected::DeadlineTooEarly { not_before, deadline });
        }
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
            self.change(Change::Planned { first, last, plan });
        }
        Ok(answer)
    }

    /// Ends a claim without success.
    pub(in crate::decide) fn fail(
        &mut self,
        request: Seq,
        fence: Option<Revision>,
        reason: Option<&Json>,
        retry_in: Option<Ttl>,
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
                let retry_at = retry_in.map(|retry_in| self.now.after(retry_in));
                self.change(Change::Request(request, RequestChange::Failed { reason, retry_at }));
                Ok(Answer::Done)
            }
            // The attempt has been counted already.
            (Some(work @ (Work::Lapsed { .. } | Work::Failed(_))), given)
                if given.is_some() && given == work.fence() =>
            {
                Ok(Answer::Done)
            }
            (_, Some(fence)) => stale(fence),
            (work, None) => {
                check_free(request, work)?;
                Err(Rejected::NotClaimed { request })
            }
        }
    }

    /// Claims the first request with these members. Those before `from` are known not to match, unless they came since.
    pub(in crate::decide) fn claim_next(
        &mut self,
        wanted: &Wanted,
        from: Rank,
        ttl: Ttl,
    ) -> Result<Answer, Rejected> {
        self.author()?;
        let next = match self.board.next_claimable(wanted, Rank::FIRST, EXAMINED_MAX) {
            Next::After(last) => self.board.next_claimable(wanted, from.max(last), EXAMINED_MAX),
            next @ (Next::Found(_) | Next::None) => next,
        };
        let request = match next {
            Next::Found(rank) => rank.seq,
            Next::None => return Ok(Answer::Next(None)),
            Next::After(_) => return Err(Rejected::TooManyExamined { examined: EXAMINED_MAX }),
        };
        let (claim, _) = self.claimed(request, ttl)?;
        Ok(Answer::Next(Some((request, claim))))
    }

    /// Refuses work on a request that waits for others.
    pub(in crate::decide) fn check_unblocked(&self, request: Seq) -> Result<(), Rejected> {
        let [_, requests, ..] = self.board.logs();
        let entry = requests.get(request);
        let task = entry.and_then(|entry| entry.task.as_deref());
        let Some((by, task)) = task.and_then(|task| Some((*task.blocked_by.first()?, task))) else {
            return Ok(());
        };
        let stopped = task.stopped_by.first().copied();
        let (by, is_stopped) = (stopped.unwrap_or(by), stopped.is_some());
        Err(Rejected::NotClaimable { request, why: Why::Blocked { by, is_stopped } })
    }

    /// Refuses a claim of a request that waits for others, for its time, or for other claims to end.
    pub(in crate::decide) fn check_claimable(&self, request: Seq) -> Result<(), Rejected> {
        self.check_unblocked(request)?;
        let [_, requests, ..] = self.board.logs();
        let Some(entry) = requests.get(request) else { return Ok(()) };
        let refused = |why| Err(Rejected::NotClaimable { request, why });
        if let Some(at) = entry.task.as_deref().and_then(|task| task.plan.not_before) {
            return refused(Why::NotBefore { at });
        }
        match self.board.tasks().full_cap(&entry.item) {
            Some(cap) => refused(Why::RunningMax { cap: cap.clone() }),
            None => Ok(()),
        }
    }

    /// Refuses the removal of requests that others wait for, unless these are removed too.
    pub(in crate::decide) fn check_dependants(&self, removed: &[SeqRange]) -> Result<(), Rejected> {
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
