//! Application of changes of requests: claims, results, failures, cancellations, verdicts and due times.

use crate::log::{Entry, SeqRange, Stamp};
use crate::values::attempt::{Cancel, Outcome, PastAttempt};
use crate::values::claim::{Claim, Done, Failed, Review, Verdict, Work};
use crate::values::task::{Plan, Task};
use crate::{AgentName, Board, Json, LogName, RequestChange, Revision, Seq, Timestamp};

/// The reason of a request whose deadline passed.
const DEADLINE: &str = "\"deadline\"";

pub(super) fn apply_request(board: &mut Board, seq: Seq, change: &RequestChange, stamp: Stamp<'_>) {
    match change {
        RequestChange::Claimed { agent, fence, expires_at } => {
            board.edit_request(seq, stamp, |entry| claim(entry, agent, *fence, *expires_at, stamp));
        }
        RequestChange::Released => end(board, seq, &End::new(Outcome::Released, None), stamp),
        RequestChange::Failed { reason, retry_at } => {
            let end_of = End { retry_at: *retry_at, ..End::new(Outcome::Failed, reason.as_ref()) };
            end(board, seq, &end_of, stamp);
        }
        RequestChange::Finished { fence, result } => {
            let (agent, result) = (stamp.agent.cloned(), result.clone());
            let done = Done { agent, at: stamp.at, fence: *fence, result, verdict: None };
            finish(board, seq, done, stamp);
        }
        RequestChange::Verdict { accepted, reason } => {
            judge(board, seq, *accepted, reason.as_ref(), stamp);
        }
        RequestChange::CancelRequested { reason } => {
            let cancel = cancel_of(reason.as_ref(), stamp);
            board.edit_request(seq, stamp, |entry| {
                task(entry).cancel = Some(Box::new(cancel));
            });
        }
        RequestChange::Cancelled { reason } => cancel(board, seq, reason.as_ref(), stamp),
        RequestChange::Retried { deadline } => retry(board, seq, *deadline, stamp),
    }
}

pub(super) fn put_plan(board: &mut Board, requests: SeqRange, plan: &Plan) {
    let blocked_by = board.blockers(&plan.after);
    let stopped_by = board.stoppers(&blocked_by);
    for request in (requests.first.0..=requests.last.0).map(Seq) {
        let (blocked_by, stopped_by) = (blocked_by.clone(), stopped_by.clone());
        let task = Task { blocked_by, stopped_by, ..Task::of(plan.clone()) };
        board.edit_requests(request, |log| log.plan(request, task));
    }
}

/// Ends the claim of a request, which expired.
pub(super) fn lapse(board: &mut Board, seq: Seq, stamp: Stamp<'_>) {
    end(board, seq, &End::new(Outcome::Lapsed, None), stamp);
}

/// Ends the wait of requests for their times.
pub(super) fn fall_due(board: &mut Board, ranges: &[SeqRange], stamp: Stamp<'_>) {
    for request in ranges.iter().flat_map(|range| range.first.0..=range.last.0).map(Seq) {
        board.edit_request(request, stamp, |entry| task(entry).plan.not_before = None);
    }
}

/// Fails a request whose deadline passed, unless it is cancelled with its claim.
pub(super) fn miss_deadline(board: &mut Board, seq: Seq, stamp: Stamp<'_>) {
    board.edit_request(seq, stamp, |entry| {
        let reason = Json::of(DEADLINE);
        let deadline = task(entry).plan.deadline.unwrap_or(stamp.at);
        let attempt = entry.work.as_deref().and_then(|work| {
            let expired = work.claim().map(|claim| claim.expires_at).filter(|at| *at <= deadline);
            match expired {
                Some(at) => work.attempt(at, Outcome::Lapsed, None),
                None => work.attempt(stamp.at, Outcome::Failed, Some(&reason)),
            }
        });
        let fence = entry.work.as_deref().and_then(Work::fence);
        let agent = attempt.as_ref().and_then(|attempt| attempt.agent.clone());
        remember(entry, attempt);
        entry.work = Some(Box::new(match task(entry).cancel.take() {
            Some(cancel) => Work::Cancelled(*cancel),
            None => Work::Failed(Failed { agent, at: stamp.at, fence, reason: Some(reason) }),
        }));
        task(entry).plan.not_before = None;
    });
    stop_dependants(board, seq, stamp);
}

/// Ends the wait of the requests that wait for this one, which is done or removed.
pub(super) fn unblock(board: &mut Board, request: Seq, stamp: Stamp<'_>) {
    edit_dependants(board, request, stamp, |task| {
        task.blocked_by = without(&task.blocked_by, request);
        task.stopped_by = without(&task.stopped_by, request);
    });
}

/// The end of a claim without success.
struct End<'a> {
    outcome: Outcome,
    reason: Option<&'a Json>,
    /// The time before which the request cannot be claimed again.
    retry_at: Option<Timestamp>,
}

impl<'a> End<'a> {
    const fn new(outcome: Outcome, reason: Option<&'a Json>) -> Self {
        Self { outcome, reason, retry_at: None }
    }
}

fn claim(
    entry: &mut Entry,
    agent: &AgentName,
    fence: Revision,
    expires_at: Timestamp,
    stamp: Stamp<'_>,
) {
    let renewed = entry.work.as_deref().and_then(Work::claim);
    let since = renewed.map_or(stamp.at, |claim| claim.since);
    let claim = Claim { agent: agent.clone(), fence, since, expires_at };
    entry.work = Some(Box::new(Work::Claimed(claim)));
}

/// Ends a claim without success. The request is cancelled if that was asked for, and has failed if its attempts are spent.
fn end(board: &mut Board, seq: Seq, end: &End<'_>, stamp: Stamp<'_>) {
    board.edit_request(seq, stamp, |entry| {
        let Some(claim) = entry.work.as_deref().and_then(Work::claim).cloned() else { return };
        remember(entry, Some(claim.attempt(stamp.at, end.outcome, end.reason)));
        let Claim { agent, fence, .. } = claim;
        let (agent, reason) = (Some(agent), end.reason.cloned());
        let failed = Failed { agent, at: stamp.at, fence: Some(fence), reason };
        let task = task(entry);
        let work = end_attempt(task, end.outcome, failed).or_else(|| {
            task.plan.not_before = end.retry_at;
            (end.outcome == Outcome::Lapsed).then_some(Work::Lapsed { fence })
        });
        entry.work = work.map(Box::new);
    });
    stop_dependants(board, seq, stamp);
}

/// Counts an attempt without success. Returns the end of the request: cancelled if that was asked for, failed if its
/// attempts are spent, and none if it can be tried again.
fn end_attempt(task: &mut Task, outcome: Outcome, failed: Failed) -> Option<Work> {
    let counts = outcome != Outcome::Released && task.plan.attempts.is_some();
    task.failures = task.failures.saturating_add(u32::from(counts));
    match task.cancel.take() {
        Some(cancel) => Some(Work::Cancelled(*cancel)),
        None => (counts && task.is_spent()).then_some(Work::Failed(failed)),
    }
}

/// Ends a claim with a result. A result in review belongs to the claim's holder, even if it was sent without an agent, and
/// a cancellation is kept until the verdict.
fn finish(board: &mut Board, seq: Seq, mut done: Done, stamp: Stamp<'_>) {
    let mut is_done = true;
    board.edit_request(seq, stamp, |entry| {
        let claim = entry.work.as_deref().and_then(Work::claim);
        let since = claim.map_or(done.at, |claim| claim.since);
        let holder = claim.map(|claim| claim.agent.clone());
        let task = task(entry);
        task.plan.not_before = None;
        is_done = !task.plan.review;
        entry.work = Some(Box::new(if is_done {
            task.cancel = None;
            Work::Done(done)
        } else {
            done.agent = done.agent.or(holder);
            Work::InReview(Review { since, done })
        }));
    });
    if is_done {
        unblock(board, seq, stamp);
    }
}

fn judge(board: &mut Board, seq: Seq, accepted: bool, reason: Option<&Json>, stamp: Stamp<'_>) {
    board.edit_request(seq, stamp, |entry| {
        let attempt = entry.work.as_deref();
        let attempt = attempt.and_then(|work| work.attempt(stamp.at, Outcome::Refused, reason));
        let Some(Work::InReview(Review { done, .. })) = entry.work.as_deref().cloned() else {
            return;
        };
        let Some(agent) = stamp.agent.cloned() else { return };
        if accepted {
            task(entry).cancel = None;
            let reason = reason.cloned();
            let verdict = Some(Box::new(Verdict { agent, at: stamp.at, reason }));
            entry.work = Some(Box::new(Work::Done(Done { verdict, ..done })));
            return;
        }
        remember(entry, attempt);
        let Done { agent, fence, .. } = done;
        let failed = Failed { agent, at: stamp.at, fence, reason: reason.cloned() };
        entry.work = end_attempt(task(entry), Outcome::Refused, failed).map(Box::new);
    });
    if accepted {
        unblock(board, seq, stamp);
    } else {
        stop_dependants(board, seq, stamp);
    }
}

fn cancel(board: &mut Board, seq: Seq, reason: Option<&Json>, stamp: Stamp<'_>) {
    board.edit_request(seq, stamp, |entry| {
        let attempt = entry.work.as_deref();
        let attempt = attempt.and_then(|work| work.attempt(stamp.at, Outcome::Released, None));
        remember(entry, attempt);
        let task = task(entry);
        task.plan.not_before = None;
        let cancel = task.cancel.take().map(|cancel| *cancel);
        let cancel = cancel.unwrap_or_else(|| cancel_of(reason, stamp));
        entry.work = Some(Box::new(Work::Cancelled(cancel)));
    });
    stop_dependants(board, seq, stamp);
}

fn retry(board: &mut Board, seq: Seq, deadline: Option<Timestamp>, stamp: Stamp<'_>) {
    board.edit_request(seq, stamp, |entry| {
        let task = task(entry);
        (task.failures, task.plan.deadline) = (0, deadline);
        entry.work = None;
    });
    edit_dependants(board, seq, stamp, |task| task.stopped_by = without(&task.stopped_by, seq));
}

/// Notes at the requests that wait for this one that it failed or was cancelled, if it did.
fn stop_dependants(board: &mut Board, request: Seq, stamp: Stamp<'_>) {
    if board.stoppers(&[request]).is_empty() {
        return;
    }
    edit_dependants(board, request, stamp, |task| {
        let stopped_by = [&*task.stopped_by, &[request]].concat();
        task.stopped_by = sorted(stopped_by);
    });
}

fn edit_dependants(board: &mut Board, request: Seq, stamp: Stamp<'_>, edit: impl Fn(&mut Task)) {
    let waiting: Vec<Seq> = board.tasks.dependants(request).collect();
    for waiting in waiting {
        board.edit_request(waiting, stamp, |entry| edit(task(entry)));
    }
}

fn sorted(mut requests: Vec<Seq>) -> Box<[Seq]> {
    requests.sort_unstable();
    requests.dedup();
    requests.into()
}

fn without(requests: &[Seq], request: Seq) -> Box<[Seq]> {
    requests.iter().copied().filter(|seq| *seq != request).collect()
}

fn cancel_of(reason: Option<&Json>, stamp: Stamp<'_>) -> Cancel {
    Cancel { agent: stamp.agent.cloned(), at: stamp.at, reason: reason.cloned() }
}

fn remember(entry: &mut Entry, attempt: Option<PastAttempt>) {
    if let Some(attempt) = attempt {
        let task = task(entry);
        task.past_attempts = PastAttempt::added(&task.past_attempts, attempt);
    }
}

/// Returns the task of a request, which gets one if it has none.
fn task(entry: &mut Entry) -> &mut Task {
    entry.task.get_or_insert_default()
}

impl Board {
    /// Changes a request, which gets the stamp, and finds its new place among the tasks.
    pub(crate) fn edit_request(
        &mut self,
        request: Seq,
        stamp: Stamp<'_>,
        edit: impl FnOnce(&mut Entry),
    ) {
        self.edit_requests(request, |log| {
            log.change(request, stamp, |entry| {
                edit(entry);
                if entry.task.as_deref() == Some(&Task::default()) {
                    entry.task = None;
                }
            });
        });
    }

    /// Edits the log of requests at one of them, and finds its new place among the tasks.
    pub(crate) fn edit_requests(&mut self, request: Seq, edit: impl FnOnce(&mut crate::Log)) {
        let entry = |board: &Self| {
            let [_, requests, ..] = &board.logs;
            requests.get(request).cloned()
        };
        if let Some(before) = entry(self) {
            self.tasks.remove(&before);
        }
        self.edit_log(&LogName::Requests, edit);
        if let Some(after) = entry(self) {
            self.tasks.add(&after);
        }
    }
}
