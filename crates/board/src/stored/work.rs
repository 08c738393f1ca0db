//! Stored work on requests and their tasks.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    AgentName, Cancel, Claim, Done, Failed, Json, Outcome, PastAttempt, Plan, Priority, Review,
    Revision, Seq, Task, Timestamp, Verdict, Work,
};

/// The work on a request. The board finds what blocks it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(super) enum StoredWork<'a> {
    Claimed {
        agent: AgentName,
        fence: Revision,
        /// Absent in what earlier versions stored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
        expires_at: Timestamp,
    },
    Lapsed {
        fence: Revision,
    },
    InReview(StoredReview<'a>),
    Failed(StoredFailure<'a>),
    Done(StoredDone<'a>),
    Cancelled(StoredCancel<'a>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredReview<'a> {
    since: Timestamp,
    done: StoredDone<'a>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredDone<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentName>,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fence: Option<Revision>,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    result: Option<Cow<'a, RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verdict: Option<StoredVerdict<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredVerdict<'a> {
    agent: AgentName,
    at: Timestamp,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, RawValue>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredFailure<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentName>,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fence: Option<Revision>,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, RawValue>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredCancel<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentName>,
    at: Timestamp,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, RawValue>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredAttempt<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentName>,
    from: Timestamp,
    to: Timestamp,
    outcome: Outcome,
    #[serde(default, deserialize_with = "super::present", skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, RawValue>>,
}

/// The task of a request. The board finds what blocks it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredTask<'a> {
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    after: Arc<[Seq]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    priority: Priority,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_default")]
    review: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    failures: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    past_attempts: Vec<StoredAttempt<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cancel: Option<StoredCancel<'a>>,
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn raw(json: Option<&Json>) -> Option<Cow<'_, RawValue>> {
    json.map(|json| Cow::Borrowed(json.raw()))
}

fn json(raw: Option<Cow<'_, RawValue>>) -> Option<Json> {
    raw.map(|raw| Json::from(raw.into_owned()))
}

impl StoredWork<'_> {
    /// Returns the work on an entry that changed last at this time.
    pub(super) fn restore(self, changed_at: Timestamp) -> Work {
        match self {
            Self::Claimed { agent, fence, since, expires_at } => {
                let since = since.unwrap_or(changed_at);
                Work::Claimed(Claim { agent, fence, since, expires_at })
            }
            Self::Lapsed { fence } => Work::Lapsed { fence },
            Self::InReview(review) => Work::InReview(Review::from(review)),
            Self::Failed(failed) => Work::Failed(Failed::from(failed)),
            Self::Done(done) => Work::Done(Done::from(done)),
            Self::Cancelled(cancel) => Work::Cancelled(Cancel::from(cancel)),
        }
    }
}

impl<'a> From<&'a Work> for StoredWork<'a> {
    fn from(work: &'a Work) -> Self {
        match work {
            Work::Claimed(Claim { agent, fence, since, expires_at }) => {
                let (fence, expires_at) = (*fence, *expires_at);
                Self::Claimed { agent: agent.clone(), fence, since: Some(*since), expires_at }
            }
            Work::Lapsed { fence } => Self::Lapsed { fence: *fence },
            Work::InReview(review) => Self::InReview(StoredReview::from(review)),
            Work::Failed(failed) => Self::Failed(StoredFailure::from(failed)),
            Work::Done(done) => Self::Done(StoredDone::from(done)),
            Work::Cancelled(cancel) => Self::Cancelled(StoredCancel::from(cancel)),
        }
    }
}

impl<'a> From<&'a Review> for StoredReview<'a> {
    fn from(review: &'a Review) -> Self {
        Self { since: review.since, done: StoredDone::from(&review.done) }
    }
}

impl From<StoredReview<'_>> for Review {
    fn from(stored: StoredReview<'_>) -> Self {
        Self { since: stored.since, done: Done::from(stored.done) }
    }
}

impl<'a> From<&'a Done> for StoredDone<'a> {
    fn from(done: &'a Done) -> Self {
        let verdict = done.verdict.as_deref().map(|verdict| StoredVerdict {
            agent: verdict.agent.clone(),
            at: verdict.at,
            reason: raw(verdict.reason.as_ref()),
        });
        let (agent, result) = (done.agent.clone(), raw(done.result.as_ref()));
        Self { agent, at: done.at, fence: done.fence, result, verdict }
    }
}

impl From<StoredDone<'_>> for Done {
    fn from(stored: StoredDone<'_>) -> Self {
        let StoredDone { agent, at, fence, result, verdict } = stored;
        let verdict = verdict.map(|StoredVerdict { agent, at, reason }| {
            Box::new(Verdict { agent, at, reason: json(reason) })
        });
        Self { agent, at, fence, result: json(result), verdict }
    }
}

impl<'a> From<&'a Failed> for StoredFailure<'a> {
    fn from(failed: &'a Failed) -> Self {
        let (agent, reason) = (failed.agent.clone(), raw(failed.reason.as_ref()));
        Self { agent, at: failed.at, fence: failed.fence, reason }
    }
}

impl From<StoredFailure<'_>> for Failed {
    fn from(stored: StoredFailure<'_>) -> Self {
        let StoredFailure { agent, at, fence, reason } = stored;
        Self { agent, at, fence, reason: json(reason) }
    }
}

impl<'a> From<&'a Cancel> for StoredCancel<'a> {
    fn from(cancel: &'a Cancel) -> Self {
        let (agent, reason) = (cancel.agent.clone(), raw(cancel.reason.as_ref()));
        Self { agent, at: cancel.at, reason }
    }
}

impl From<StoredCancel<'_>> for Cancel {
    fn from(stored: StoredCancel<'_>) -> Self {
        let StoredCancel { agent, at, reason } = stored;
        Self { agent, at, reason: json(reason) }
    }
}

impl<'a> From<&'a PastAttempt> for StoredAttempt<'a> {
    fn from(attempt: &'a PastAttempt) -> Self {
        let PastAttempt { agent, from, to, outcome, reason } = attempt;
        let (agent, reason) = (agent.clone(), raw(reason.as_ref()));
        Self { agent, from: *from, to: *to, outcome: *outcome, reason }
    }
}

impl From<StoredAttempt<'_>> for PastAttempt {
    fn from(stored: StoredAttempt<'_>) -> Self {
        let StoredAttempt { agent, from, to, outcome, reason } = stored;
        Self { agent, from, to, outcome, reason: json(reason) }
    }
}

impl<'a> From<&'a Task> for StoredTask<'a> {
    fn from(task: &'a Task) -> Self {
        let Plan { after, attempts, priority, not_before, deadline, review } = task.plan.clone();
        Self {
            after,
            attempts,
            priority,
            not_before,
            deadline,
            review,
            failures: task.failures,
            past_attempts: task.past_attempts.iter().map(StoredAttempt::from).collect(),
            cancel: task.cancel.as_deref().map(StoredCancel::from),
        }
    }
}

impl From<StoredTask<'_>> for Task {
    fn from(stored: StoredTask<'_>) -> Self {
        let StoredTask { after, attempts, priority, not_before, deadline, review, .. } = stored;
        let plan = Plan { after, attempts, priority, not_before, deadline, review };
        Self {
            failures: stored.failures,
            past_attempts: stored.past_attempts.into_iter().map(PastAttempt::from).collect(),
            cancel: stored.cancel.map(|cancel| Box::new(Cancel::from(cancel))),
            ..Self::of(plan)
        }
    }
}
