//! The model: a list of requests that is looked through whole at each step, written from the contract.

use std::collections::BTreeMap;
use std::mem::take;

use crate::{Cap, Op, Plan};

/// The expected answer to an operation: the request that it claims, or the `why` of its rejection, else its code.
pub type Verdict = Result<Option<u64>, &'static str>;

/// How a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words are those of the contract")]
pub enum End {
    Failed,
    Lapsed,
    Released,
    Refused,
}

/// A request as the contract describes it. Times are milliseconds since any moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the members are those of the contract")]
pub struct Task {
    pub device: Option<u8>,
    pub priority: i64,
    pub after: Vec<u64>,
    pub attempts: Option<u32>,
    pub not_before: Option<i64>,
    pub deadline: Option<i64>,
    pub review: bool,
    pub failures: u32,
    /// Whether its holder was asked to end it.
    pub cancel: bool,
    pub state: State,
    /// The ends of claims, but those that were given back.
    pub past: Vec<(String, End)>,
}

/// The state of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the members are those of the contract")]
pub enum State {
    Free,
    /// Nobody holds it; the last fence is still accepted.
    Lapsed(u64),
    Claimed {
        agent: String,
        fence: u64,
        expires: i64,
    },
    InReview {
        agent: String,
        fence: Option<u64>,
    },
    Done {
        agent: String,
        fence: Option<u64>,
        judge: Option<String>,
    },
    Failed(Option<u64>),
    Cancelled,
}

/// All requests of a board, and its caps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// By `seq`.
    pub requests: BTreeMap<u64, Task>,
    /// The last seq that was given, which restores keep.
    pub last: u64,
    /// The setting `running_max`.
    pub caps: Vec<Cap>,
}

impl Model {
    fn get(&self, seq: u64) -> Result<&Task, &'static str> {
        self.requests.get(&seq).ok_or("entry-not-found")
    }

    fn get_mut(&mut self, seq: u64) -> Result<&mut Task, &'static str> {
        self.requests.get_mut(&seq).ok_or("entry-not-found")
    }

    fn is_blocked(&self, task: &Task) -> bool {
        let is_done = |seq| matches!(self.get(seq), Ok(Task { state: State::Done { .. }, .. }));
        task.after.iter().any(|seq| !is_done(*seq))
    }

    /// Whether only a cap may hold it back.
    #[must_use]
    pub fn is_waiting(&self, task: &Task) -> bool {
        matches!(task.state, State::Free | State::Lapsed(_))
            && task.not_before.is_none()
            && !self.is_blocked(task)
    }

    fn has_room(&self, task: &Task) -> bool {
        self.caps.iter().all(|cap| {
            let is_counted = |other: &Task| {
                !cap.by_device || (other.device.is_some() && other.device == task.device)
            };
            let is_claimed = |other: &&Task| matches!(other.state, State::Claimed { .. });
            let claimed =
                self.requests.values().filter(is_claimed).filter(|other| is_counted(other));
            !is_counted(task) || claimed.count() < cap.max
        })
    }

    /// Whether an agent can claim it.
    #[must_use]
    pub fn is_claimable(&self, task: &Task) -> bool {
        self.is_waiting(task) && self.has_room(task)
    }

    /// Why a claim by an agent that does not hold it is rejected.
    fn why(&self, task: &Task) -> Option<&'static str> {
        match &task.state {
            State::Claimed { .. } | State::Done { .. } => Some("already-claimed"),
            State::InReview { .. } => Some("in_review"),
            State::Failed(_) => Some("failed"),
            State::Cancelled => Some("cancelled"),
            State::Free | State::Lapsed(_) if self.is_blocked(task) => Some("blocked"),
            State::Free | State::Lapsed(_) if task.not_before.is_some() => Some("not_before"),
            State::Free | State::Lapsed(_) if !self.has_room(task) => Some("running_max"),
            State::Free | State::Lapsed(_) => None,
        }
    }

    /// The request that a claim of the next one wins: by priority, then by age.
    #[must_use]
    pub fn first(&self, device: Option<u8>) -> Option<u64> {
        let fits = |task: &Task| {
            self.is_claimable(task) && device.is_none_or(|device| task.device == Some(device))
        };
        let fitting = self.requests.iter().filter(|(_, task)| fits(task));
        fitting.min_by_key(|(seq, task)| (-task.priority, **seq)).map(|(seq, _)| *seq)
    }

    /// Applies the times that have passed by now: deadlines, then ends of claims, then ends of waits.
    pub fn expire(&mut self, now: i64) {
        for task in self.requests.values_mut() {
            if task.is_open() && task.deadline.is_some_and(|deadline| deadline <= now) {
                task.miss_deadline();
            }
        }
        for task in self.requests.values_mut() {
            if let State::Claimed { expires, .. } = task.state
                && expires <= now
            {
                task.end(End::Lapsed, None);
            }
            task.not_before = task.not_before.filter(|at| *at > now);
        }
    }

    /// These requests on a restored board, or as a fork if `now` is what is forked: no claim holds.
    #[must_use]
    pub fn freed(&self, now: &Self) -> Self {
        let mut then = Self { caps: now.caps.clone(), last: now.last, ..self.clone() };
        for task in then.requests.values_mut() {
            task.state = match task.state.clone() {
                State::Claimed { .. } if take(&mut task.cancel) => State::Cancelled,
                State::Claimed { .. } | State::Lapsed(_) => State::Free,
                state => state,
            };
        }
        then
    }

    /// The fence that a worker would send with the end of this request.
    #[must_use]
    pub fn fence(&self, seq: u64) -> Option<u64> {
        match self.get(seq).ok()?.state {
            State::Claimed { fence, .. } | State::Lapsed(fence) => Some(fence),
            _ => None,
        }
    }

    /// The fence that a reviewer would send with the verdict on this request.
    #[must_use]
    pub fn review_fence(&self, seq: u64) -> Option<u64> {
        if let State::InReview { fence, .. } = self.get(seq).ok()?.state { fence } else { None }
    }

    /// Takes a write by this agent now; if it commits anything, that commit has this revision.
    ///
    /// # Panics
    ///
    /// The operation is no write: a restore, a fork or a crash.
    pub fn take(&mut self, op: &Op, by: &str, now: i64, revision: u64) -> Verdict {
        match op {
            Op::Post { device, plan } => self.post(*device, plan, now),
            Op::Claim { seq, ttl } => self.claim(*seq, by, now + ttl, revision),
            Op::Next { device, ttl } => {
                let first = self.first(*device);
                first.map_or(Ok(None), |seq| self.claim(seq, by, now + ttl, revision))?;
                Ok(first)
            }
            Op::Release { seq } => self.release(*seq, by),
            Op::Finish { seq, with_fence } => self.finish(*seq, by, *with_fence),
            Op::Fail { seq, retry_in } => self.fail(*seq, by, retry_in.map(|pause| now + pause)),
            Op::Cancel { seq } => self.cancel(*seq),
            Op::Judge { seq, accepted } => self.judge(*seq, by, *accepted),
            Op::Retry { seq } => self.retry(*seq),
            Op::Caps(caps) => {
                self.caps.clone_from(caps);
                Ok(None)
            }
            Op::Restore(_) | Op::Fork(_) | Op::Crash => unreachable!("no write"),
        }
    }

    fn post(&mut self, device: Option<u8>, plan: &Plan, now: i64) -> Verdict {
        let Plan { after, attempts, priority, review, .. } = plan.clone();
        let not_before = plan.not_before.map(|pause| now + pause).filter(|at| *at > now);
        let deadline = plan.deadline.map(|pause| now + pause);
        let is_known = after.iter().all(|seq| self.get(*seq).is_ok());
        let is_inverted = not_before.zip(deadline).is_some_and(|(from, to)| to <= from);
        if !is_known || is_inverted {
            return Err("invalid-field");
        }
        let (failures, cancel, state, past) = (0, false, State::Free, Vec::new());
        let times = (not_before, deadline);
        self.last += 1;
        self.requests.insert(
            self.last,
            Task {
                device,
                priority,
                after,
                attempts,
                not_before: times.0,
                deadline: times.1,
                review,
                failures,
                cancel,
                state,
                past,
            },
        );
        Ok(None)
    }

    fn claim(&mut self, seq: u64, by: &str, expires: i64, revision: u64) -> Verdict {
        let task = self.get(seq)?;
        let fence = match &task.state {
            // Within the five minutes after a cancellation, which no play outlasts.
            State::Claimed { agent, fence, .. } if agent == by => *fence,
            _ => self.why(task).map_or(Ok(revision), Err)?,
        };
        self.get_mut(seq)?.state = State::Claimed { agent: by.to_owned(), fence, expires };
        Ok(None)
    }

    fn release(&mut self, seq: u64, by: &str) -> Verdict {
        let task = self.get_mut(seq)?;
        if matches!(&task.state, State::Claimed { agent, .. } if agent != by) {
            return Err("already-claimed");
        }
        task.end(End::Released, None);
        Ok(None)
    }

    fn finish(&mut self, seq: u64, by: &str, with_fence: bool) -> Verdict {
        let task = self.get(seq)?;
        let fence = match &task.state {
            State::Claimed { agent, fence, .. } if agent == by => Some(*fence),
            State::Claimed { .. } => return Err("already-claimed"),
            State::Lapsed(fence) if with_fence => Some(*fence),
            State::Free | State::Lapsed(_) => None,
            // The same result by the same agent again changes nothing.
            State::Done { agent, .. } | State::InReview { agent, .. } if agent == by => {
                return Ok(None);
            }
            State::Done { .. } => return Err("already-claimed"),
            State::InReview { .. } => return Err("in_review"),
            State::Failed(_) => return Err("failed"),
            State::Cancelled => return Err("cancelled"),
        };
        if self.is_blocked(task) {
            return Err("blocked");
        }
        let (task, agent) = (self.get_mut(seq)?, by.to_owned());
        // A cancellation waits for the verdict.
        task.cancel &= task.review;
        task.not_before = None;
        task.state = match task.review {
            true => State::InReview { agent, fence },
            false => State::Done { agent, fence, judge: None },
        };
        Ok(None)
    }

    fn fail(&mut self, seq: u64, by: &str, retry_at: Option<i64>) -> Verdict {
        let task = self.get_mut(seq)?;
        match &task.state {
            State::Claimed { agent, .. } if agent == by => {
                task.end(End::Failed, retry_at);
                Ok(None)
            }
            State::Claimed { .. } | State::Done { .. } => Err("already-claimed"),
            State::InReview { .. } => Err("in_review"),
            State::Failed(_) => Err("failed"),
            State::Cancelled => Err("cancelled"),
            State::Free | State::Lapsed(_) => Err("illegal-transition"),
        }
    }

    fn cancel(&mut self, seq: u64) -> Verdict {
        let task = self.get_mut(seq)?;
        match task.state {
            State::Cancelled => {}
            State::Done { .. } => return Err("already-claimed"),
            State::Failed(_) => return Err("failed"),
            State::Claimed { .. } if !task.cancel => task.cancel = true,
            State::Claimed { .. } | State::InReview { .. } | State::Free | State::Lapsed(_) => {
                (task.cancel, task.not_before) = (false, None);
                task.state = State::Cancelled;
            }
        }
        Ok(None)
    }

    fn judge(&mut self, seq: u64, by: &str, accepted: bool) -> Verdict {
        let task = self.get_mut(seq)?;
        let (agent, fence) = match &task.state {
            State::InReview { agent, .. } if agent == by => return Err("forbidden"),
            State::InReview { agent, fence } => (agent.clone(), *fence),
            // The same verdict by the same agent again changes nothing; a play has a fence only while it is in review.
            State::Done { fence: None, judge: Some(judge), .. } if accepted && judge == by => {
                return Ok(None);
            }
            _ => return Err("illegal-transition"),
        };
        let is_cancelled = take(&mut task.cancel);
        if accepted {
            task.state = State::Done { agent, fence, judge: Some(by.to_owned()) };
            return Ok(None);
        }
        task.past.push((agent, End::Refused));
        let is_spent = task.spends_an_attempt();
        task.state = if is_cancelled {
            State::Cancelled
        } else if is_spent {
            State::Failed(fence)
        } else {
            State::Free
        };
        Ok(None)
    }

    fn retry(&mut self, seq: u64) -> Verdict {
        let task = self.get_mut(seq)?;
        match task.state {
            State::Done { .. } => return Err("already-claimed"),
            State::Failed(_) | State::Cancelled => {
                (task.state, task.failures, task.deadline) = (State::Free, 0, None);
            }
            State::Free | State::Lapsed(_) | State::Claimed { .. } | State::InReview { .. } => {}
        }
        Ok(None)
    }
}

impl Task {
    /// Returns all past ends of claims, of which a board keeps only these last ones.
    #[must_use]
    pub fn with_forgotten(&self, kept: Vec<(String, End)>) -> Vec<(String, End)> {
        let forgotten = self.past.len().saturating_sub(kept.len());
        self.past.iter().take(forgotten).cloned().chain(kept).collect()
    }

    fn is_open(&self) -> bool {
        !matches!(self.state, State::Done { .. } | State::Failed(_) | State::Cancelled)
    }

    /// Whether this failed attempt was the last.
    fn spends_an_attempt(&mut self) -> bool {
        self.failures += u32::from(self.attempts.is_some());
        self.attempts.is_some_and(|attempts| self.failures >= attempts)
    }

    fn end(&mut self, end: End, retry_at: Option<i64>) {
        let State::Claimed { agent, fence, .. } = self.state.clone() else { return };
        let mut is_spent = false;
        if end != End::Released {
            self.past.push((agent, end));
            is_spent = self.spends_an_attempt();
        }
        self.state = if take(&mut self.cancel) {
            State::Cancelled
        } else if is_spent {
            State::Failed(Some(fence))
        } else {
            self.not_before = retry_at;
            if end == End::Lapsed { State::Lapsed(fence) } else { State::Free }
        };
    }

    /// A claim that lapsed before the deadline has lapsed, if both are seen at once.
    fn miss_deadline(&mut self) {
        let fence = match self.state.clone() {
            State::Claimed { agent, fence, expires } => {
                let has_lapsed = self.deadline.is_some_and(|deadline| expires <= deadline);
                self.past.push((agent, if has_lapsed { End::Lapsed } else { End::Failed }));
                Some(fence)
            }
            State::InReview { agent, fence } => {
                self.past.push((agent, End::Failed));
                fence
            }
            State::Lapsed(fence) => Some(fence),
            State::Free | State::Done { .. } | State::Failed(_) | State::Cancelled => None,
        };
        let is_cancelled = take(&mut self.cancel);
        self.state = if is_cancelled { State::Cancelled } else { State::Failed(fence) };
        self.not_before = None;
    }
}
