//! Plans of requests: the requests to wait for, and the number of attempts. Members that a worker looks for.

use std::sync::Arc;

use crate::{Item, Json, Seq, json};

/// The maximum number of requests that one request waits for.
pub const AFTER_MAX: usize = 1_000;

/// The maximum number of requests that wait for the same one.
pub const DEPENDANTS_MAX: usize = 10_000;

/// The maximum number of attempts.
pub const ATTEMPTS_MAX: u32 = 1_000;

/// The terms under which a request was posted. At least one of them is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The requests that must be done first, ascending.
    pub after: Arc<[Seq]>,
    /// The number of claims that may end without success before the request fails.
    pub attempts: Option<u32>,
}

/// A planned request: its plan, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The plan.
    pub plan: Plan,
    /// The requests of the plan that exist and are not done, ascending.
    pub blocked_by: Box<[Seq]>,
    /// The number of claims that ended without success.
    pub failures: u32,
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
        self.after.is_empty() && self.attempts.is_none()
    }

    /// Returns true if the plan is within its limits: `after` is ascending, and `attempts` is at least 1.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        !self.is_empty()
            && self.after.len() <= AFTER_MAX
            && self.after.is_sorted_by(|before, after| before < after)
            && self.attempts.is_none_or(|attempts| (1..=ATTEMPTS_MAX).contains(&attempts))
    }
}

impl Task {
    /// Creates the task of a plan, without failures. Nothing blocks it yet.
    pub(crate) fn of(plan: Plan) -> Self {
        Self { plan, blocked_by: Box::default(), failures: 0 }
    }

    /// Returns true if the plan is within its limits, and names only requests before this one.
    #[must_use]
    pub fn is_sound(&self, request: Seq) -> bool {
        self.plan.is_sound() && self.plan.after.last().is_none_or(|last| *last < request)
    }

    /// Returns the number of failures, if the number of attempts is limited.
    #[must_use]
    pub fn failures_of_attempts(&self) -> Option<u32> {
        self.plan.attempts.map(|_| self.failures)
    }

    /// Returns true if this number of failures ends the request.
    pub(crate) fn is_spent(&self) -> bool {
        self.plan.attempts.is_some_and(|attempts| self.failures >= attempts)
    }

    /// Returns the memory of the task besides the entry's, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        ((self.plan.after.len() + self.blocked_by.len()) * size_of::<Seq>()) as u64
    }
}
