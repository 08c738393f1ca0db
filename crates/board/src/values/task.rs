//! Plans of requests: what they wait for, in which order and how often they are tried. Members that a worker looks for.

use std::cmp::Reverse;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::attempt::{Cancel, PastAttempt};
use crate::{Item, Json, Seq, Timestamp, When, json};

/// The maximum number of requests that one request waits for.
pub const AFTER_MAX: usize = 1_000;

/// The maximum number of requests that wait for the same one.
pub const DEPENDANTS_MAX: usize = 10_000;

/// The maximum number of attempts.
pub const ATTEMPTS_MAX: u32 = 1_000;

/// The highest priority. The lowest is its opposite.
pub const PRIORITY_MAX: i8 = 100;

/// The priority of a request: higher ones are claimed first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Priority(i8);

impl Priority {
    /// The priority of a request that was posted without one.
    pub const DEFAULT: Self = Self(0);

    /// Returns this priority, if it is within [`PRIORITY_MAX`].
    #[must_use]
    pub fn new(priority: i64) -> Option<Self> {
        let max = i64::from(PRIORITY_MAX);
        let fits = (-max..=max).contains(&priority);
        i8::try_from(priority).ok().filter(|_| fits).map(Self)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> i8 {
        self.0
    }

    fn is_sound(self) -> bool {
        Self::new(i64::from(self.0)).is_some()
    }
}

/// The text is not a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a whole number from -{PRIORITY_MAX} to {PRIORITY_MAX}")]
pub struct InvalidPriority;

impl FromStr for Priority {
    type Err = InvalidPriority;

    fn from_str(text: &str) -> Result<Self, InvalidPriority> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let priority = is_plain.then(|| text.parse().ok()).flatten();
        priority.and_then(Self::new).ok_or(InvalidPriority)
    }
}

/// The place of a request in the order of claims: by priority, then by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    priority: Reverse<Priority>,
    /// The request.
    pub seq: Seq,
}

impl Rank {
    /// The place before all others.
    pub const FIRST: Self = Self { priority: Reverse(Priority(PRIORITY_MAX)), seq: Seq(0) };

    /// The place after all others.
    pub const LAST: Self = Self { priority: Reverse(Priority(-PRIORITY_MAX)), seq: Seq(u64::MAX) };

    /// Returns the next place in the order.
    #[must_use]
    pub const fn next(self) -> Self {
        Self { seq: Seq(self.seq.0.saturating_add(1)), ..self }
    }

    /// Creates the place of a request.
    #[must_use]
    pub const fn new(priority: Priority, seq: Seq) -> Self {
        Self { priority: Reverse(priority), seq }
    }
}

/// The terms under which a request was posted. At least one of them is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The requests that must be done first, ascending.
    pub after: Arc<[Seq]>,
    /// The number of claims that may end without success before the request fails.
    pub attempts: Option<u32>,
    /// The priority.
    pub priority: Priority,
    /// The time before which the request cannot be claimed. It goes when the time has come.
    pub not_before: Option<Timestamp>,
    /// The time at which the request fails, unless it ended before.
    pub deadline: Option<Timestamp>,
    /// True if another agent must accept the result.
    pub review: bool,
}

/// A plan as requested, with times that may count from the decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanRequest {
    /// The requests that must be done first, ascending.
    pub after: Arc<[Seq]>,
    /// The number of claims that may end without success before the request fails.
    pub attempts: Option<u32>,
    /// The priority.
    pub priority: Priority,
    /// The time before which the request cannot be claimed.
    pub not_before: Option<When>,
    /// The time at which the request fails.
    pub deadline: Option<When>,
    /// True if another agent must accept the result.
    pub review: bool,
}

/// A request as a task: its plan, and how far it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The plan. A request that was posted without one may have an empty plan.
    pub plan: Plan,
    /// The requests of the plan that exist and are not done, ascending.
    pub blocked_by: Box<[Seq]>,
    /// Those of `blocked_by` that failed or were cancelled, ascending.
    pub stopped_by: Box<[Seq]>,
    /// The number of claims that ended without success since the request was posted or retried.
    pub failures: u32,
    /// The last ends of claims, oldest first.
    pub past_attempts: Arc<[PastAttempt]>,
    /// The cancellation of a claimed request, which ends with its claim.
    pub cancel: Option<Box<Cancel>>,
}

/// The maximum number of members that a request must have to be claimed.
pub const WANTED_MAX: usize = 16;

/// Members that a request must have, compared by value.
#[derive(Clone, Debug, Default)]
pub struct Wanted(pub Arc<[(String, Json)]>);

impl Wanted {
    /// Returns true if the item has these members.
    #[must_use]
    pub fn fits(&self, item: &Item) -> bool {
        self.0.iter().all(|(name, value)| {
            item.get(name).is_some_and(|found| json::equal(found, value.text()))
        })
    }
}

impl Plan {
    /// Returns true if the plan sets nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if the plan is within its limits: `after` is ascending, `attempts` is at least 1, and the deadline
    /// is after `not_before`.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.after.len() <= AFTER_MAX
            && self.after.is_sorted_by(|before, after| before < after)
            && self.attempts.is_none_or(|attempts| (1..=ATTEMPTS_MAX).contains(&attempts))
            && self.priority.is_sound()
    }
}

impl PlanRequest {
    /// Returns true if the plan sets nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the plan, with the times that count from `now`.
    pub(crate) fn at(&self, now: Timestamp) -> Plan {
        let Self { after, attempts, priority, not_before, deadline, review } = self.clone();
        let not_before = not_before.map(|when| when.at(now)).filter(|at| *at > now);
        let deadline = deadline.map(|when| when.at(now));
        Plan { after, attempts, priority, not_before, deadline, review }
    }
}

impl Task {
    /// Creates the task of a plan. Nothing blocks it yet.
    pub(crate) fn of(plan: Plan) -> Self {
        Self { plan, ..Self::default() }
    }

    /// Returns true if the task is within its limits, and names only requests before this one.
    #[must_use]
    pub fn is_sound(&self, request: Seq) -> bool {
        *self != Self::default()
            && self.plan.is_sound()
            && self.plan.after.last().is_none_or(|last| *last < request)
            && PastAttempt::are_sound(&self.past_attempts)
    }

    /// Returns the number of failures, if the number of attempts is limited.
    #[must_use]
    pub fn failures_of_attempts(&self) -> Option<u32> {
        self.plan.attempts.map(|_| self.failures)
    }

    /// Returns true if nothing but a claim keeps the request from being claimed.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.blocked_by.is_empty() && self.plan.not_before.is_none()
    }

    /// Returns true if this number of failures ends the request.
    pub(crate) fn is_spent(&self) -> bool {
        self.plan.attempts.is_some_and(|attempts| self.failures >= attempts)
    }

    /// Returns the reasons of past attempts and of a cancellation.
    pub fn reasons(&self) -> impl Iterator<Item = &Json> {
        let past = self.past_attempts.iter().filter_map(|attempt| attempt.reason.as_ref());
        past.chain(self.cancel.as_deref().and_then(|cancel| cancel.reason.as_ref()))
    }

    /// Returns the memory of the task besides the entry's, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let seqs = self.plan.after.len() + self.blocked_by.len() + self.stopped_by.len();
        let attempts = self.past_attempts.iter().map(PastAttempt::bytes).sum::<u64>();
        let cancel = self.cancel.as_deref().map_or(0, Cancel::bytes);
        (seqs * size_of::<Seq>()) as u64 + attempts + cancel
    }
}
