//! Rules for the end of a request by others than its worker: cancellations, verdicts and retries.

use crate::command::Answer;
use crate::command::rejected::Rejected;
use crate::commit::{Change, RequestChange};
use crate::decide::Draft;
use crate::values::claim::{Review, Work};
use crate::values::time::When;
use crate::{Json, Revision, Seq};

use crate::LogName;
use crate::decide::logs::find_entry;

impl Draft<'_> {
    /// Cancels a request: at once if nobody works on it or if this is the second time, else with its claim.
    pub(in crate::decide) fn cancel(
        &mut self,
        request: Seq,
        reason: Option<&Json>,
    ) -> Result<Answer, Rejected> {
        let entry = find_entry(&self.board, &LogName::Requests, request)?;
        let is_asked = entry.task.as_deref().is_some_and(|task| task.cancel.is_some());
        let reason = reason.cloned();
        let change = match entry.work.as_deref() {
            Some(Work::Cancelled(_)) => return Ok(Answer::Done),
            Some(Work::Done(_)) => return Err(Rejected::AlreadyDone { request }),
            Some(Work::Failed(_)) => return Err(Rejected::AlreadyFailed { request }),
            Some(Work::Claimed(_)) if !is_asked => RequestChange::CancelRequested { reason },
            Some(Work::Claimed(_) | Work::Lapsed { .. } | Work::InReview(_)) | None => {
                RequestChange::Cancelled { reason }
            }
        };
        self.change(Change::Request(request, change));
        Ok(Answer::Done)
    }

    /// Judges the result of a request.
    pub(in crate::decide) fn judge(
        &mut self,
        request: Seq,
        fence: Option<Revision>,
        accepted: bool,
        reason: Option<&Json>,
    ) -> Result<Answer, Rejected> {
        let agent = self.author()?;
        let done = match self.work_on(request)? {
            Some(Work::InReview(Review { done, .. })) => done,
            // A repeat of the same verdict.
            Some(Work::Done(done))
                if accepted
                    && fence == done.fence
                    && done.verdict.as_deref().is_some_and(|verdict| verdict.agent == agent) =>
            {
                return Ok(Answer::Done);
            }
            Some(
                Work::Claimed(_)
                | Work::Lapsed { .. }
                | Work::Done(_)
                | Work::Failed(_)
                | Work::Cancelled(_),
            )
            | None => return Err(Rejected::NotInReview { request }),
        };
        if done.agent.as_ref() == Some(&agent) {
            return Err(Rejected::OwnResult { request, agent });
        }
        match (fence, done.fence) {
            (Some(fence), held) if held != Some(fence) => {
                return Err(Rejected::StaleFence { request, fence });
            }
            (None, Some(_)) => return Err(Rejected::VerdictWithoutFence { request }),
            (Some(_) | None, _) => {}
        }
        let reason = reason.cloned();
        self.change(Change::Request(request, RequestChange::Verdict { accepted, reason }));
        Ok(Answer::Done)
    }

    /// Gives a request that failed or was cancelled all its attempts again. Its deadline goes, unless there is a new one.
    pub(in crate::decide) fn retry(
        &mut self,
        request: Seq,
        deadline: Option<When>,
    ) -> Result<Answer, Rejected> {
        match self.work_on(request)? {
            Some(Work::Failed(_) | Work::Cancelled(_)) => {
                let deadline = deadline.map(|deadline| deadline.at(self.now));
                self.change(Change::Request(request, RequestChange::Retried { deadline }));
                Ok(Answer::Done)
            }
            Some(Work::Done(_)) => Err(Rejected::AlreadyDone { request }),
            Some(Work::Claimed(_) | Work::Lapsed { .. } | Work::InReview(_)) | None => {
                Ok(Answer::Done)
            }
        }
    }
}
