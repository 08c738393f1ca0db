//! Reasons for rejecting a write, with their details.

use std::fmt;
use std::sync::Arc;

use crate::log::Entry;
use crate::model::agent::{AGENTS_MAX, Agent, PROFILE_BYTES_MAX, Status};
use crate::model::attention::unacked::UNACKED_MAX;
use crate::model::blob::BLOBS_MAX;
use crate::model::checkpoint::CHECKPOINTS_MAX;
use crate::model::tasks::caps::Cap;
use crate::state::{STATE_BYTES_MAX, StatePath, StateValue};
use crate::values::task::DEPENDANTS_MAX;
use crate::{
    AgentName, Budget, CheckpointName, Code, Digest, InvalidItem, LogName, Revision, Seq,
    SessionName, Timestamp, Version,
};

/// The reason why a write is refused. A refused write changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The session does not exist and the write does not create it.
    #[error("session '{session}' does not exist")]
    NoSession {
        /// The name.
        session: SessionName,
    },
    /// The entry does not exist.
    #[error("{log} has no entry {seq}")]
    NoEntry {
        /// The log.
        log: LogName,
        /// The seq of the entry.
        seq: Seq,
    },
    /// The target does not meet the condition.
    #[error("the resource does not meet the condition of If-Match or If-None-Match")]
    Precondition {
        /// The target's current version, if it exists.
        present: Option<Version>,
        /// The target's current value, if a refusal may show it.
        current: Option<Current>,
    },
    /// The entry changed after this write was computed from it. Only seen inside the server.
    #[error("the entry was changed in the meantime; read it again")]
    Stale,
    /// Answered questions were sent for an existing session.
    #[error("'qa_pairs' is allowed only when the session is created")]
    NotAtCreation,
    /// The session would have too many labels.
    #[error("the session would have {labels} labels; the limit is {max}")]
    TooManyLabels {
        /// The resulting number of labels.
        labels: usize,
        /// The limit.
        max: usize,
    },
    /// The write has too many items.
    #[error("the write has {items} items; the limit is {max}")]
    TooManyItems {
        /// The number of items.
        items: usize,
        /// The limit.
        max: usize,
    },
    /// The session would exceed its limit of item text.
    #[error(
        "the session is full: items, state, profiles and remembered answers are limited to {max} bytes"
    )]
    SessionFull {
        /// The resulting size in bytes.
        bytes: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// The session would exceed its limit of entries.
    #[error(
        "the session is full: its logs and memories may hold {max} items in total (--session-items-max)"
    )]
    TooManyEntries {
        /// The resulting number of entries.
        items: u64,
        /// The limit.
        max: u64,
    },
    /// The server has the maximum number of sessions.
    #[error("the server has reached its limit of {max} sessions (--sessions-max)")]
    TooManySessions {
        /// The current number of sessions.
        sessions: usize,
        /// The limit.
        max: usize,
    },
    /// The state has no value at this path.
    #[error("the state has no value at '{path}'")]
    NoPath {
        /// The path.
        path: StatePath,
    },
    /// A value above this state path is not an object.
    #[error("the state's value at '{at}' is not an object, so it has no members")]
    NotAnObject {
        /// The path of the value that is not an object.
        at: StatePath,
    },
    /// The target of an addition is not a number.
    #[error("the value at '{path}' is not a number")]
    NotANumber {
        /// The path.
        path: StatePath,
    },
    /// The target of an append is not an array.
    #[error("the value at '{path}' is not an array")]
    NotAnArray {
        /// The path.
        path: StatePath,
    },
    /// The sum is beyond a double, or an integer with too many digits.
    #[error("the sum is out of range for a JSON number")]
    SumTooLarge,
    /// The write would replace the root of the state by a value other than an object.
    #[error("the root of the state must be an object")]
    RootNotAnObject,
    /// The state would be too large.
    #[error("the state would have {bytes} bytes; the limit is {STATE_BYTES_MAX}")]
    StateFull {
        /// The resulting size in bytes.
        bytes: u64,
    },
    /// The agent does not exist.
    #[error("agent '{agent}' is not registered in this session")]
    NoAgent {
        /// The name.
        agent: AgentName,
    },
    /// The status is not one of the session's statuses.
    #[error("status '{status}' is not known in this session")]
    UnknownStatus {
        /// The known statuses.
        known: Vec<String>,
        /// The status.
        status: Status,
    },
    /// An agent's status is not a string.
    #[error("an agent's status must be a string")]
    NoStatus,
    /// A member of an agent's profile is invalid.
    #[error("{why}")]
    AgentField {
        /// The member's name.
        name: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// An agent's profile is too large.
    #[error("the profile has {bytes} bytes; the limit is {PROFILE_BYTES_MAX}")]
    ProfileTooLarge {
        /// The size in bytes.
        bytes: u64,
    },
    /// The state machine does not allow this change of an agent's status.
    #[error("an agent cannot go from status {from} to {to}")]
    IllegalTransition {
        /// The current status.
        from: Status,
        /// The requested status.
        to: Status,
    },
    /// The session has the maximum number of agents.
    #[error(
        "the session has reached its limit of {AGENTS_MAX} agents; removed agents count while their memory or messages exist"
    )]
    TooManyAgents,
    /// An agent has the maximum number of unacknowledged messages.
    #[error("{agent} has reached the limit of {UNACKED_MAX} unacknowledged messages")]
    TooManyUnacked {
        /// The agent.
        agent: AgentName,
    },
    /// The operation needs an agent.
    #[error("this operation needs an agent; name it in X-Agent-ID")]
    AgentRequired,
    /// Another agent has claimed the request.
    #[error("request {request} is claimed by {by}")]
    AlreadyClaimed {
        /// The request.
        request: Seq,
        /// The agent that holds the claim.
        by: AgentName,
    },
    /// The request is done.
    #[error("request {request} is already done")]
    AlreadyDone {
        /// The request.
        request: Seq,
    },
    /// The request has failed.
    #[error("request {request} has failed already")]
    AlreadyFailed {
        /// The request.
        request: Seq,
    },
    /// The request cannot be claimed, or not done.
    #[error("request {request} {why}")]
    NotClaimable {
        /// The request.
        request: Seq,
        /// The reason.
        why: Why,
    },
    /// No result of the request waits for a verdict.
    #[error("request {request} has no result that waits for a verdict")]
    NotInReview {
        /// The request.
        request: Seq,
    },
    /// The agent would judge its own result.
    #[error("{agent} did request {request}; another agent must give the verdict")]
    OwnResult {
        /// The request.
        request: Seq,
        /// The agent.
        agent: AgentName,
    },
    /// The verdict does not say which attempt it is about.
    #[error("the verdict on request {request} needs 'fence', which its 'in_review' shows")]
    VerdictWithoutFence {
        /// The request.
        request: Seq,
    },
    /// The deadline of a request is not after the time before which it cannot be claimed.
    #[error("the deadline {deadline} is not after 'not_before', which is {not_before}")]
    DeadlineTooEarly {
        /// The time before which it cannot be claimed.
        not_before: Timestamp,
        /// The deadline.
        deadline: Timestamp,
    },
    /// Nobody has claimed the request.
    #[error("request {request} is not claimed, so no attempt at it can fail")]
    NotClaimed {
        /// The request.
        request: Seq,
    },
    /// A plan names a request that does not exist.
    #[error("request {request} does not exist; a request can only wait for earlier ones")]
    NoBlocker {
        /// The request.
        request: Seq,
        /// The index in the plan.
        index: usize,
    },
    /// Too many requests wait for the same one.
    #[error("at most {DEPENDANTS_MAX} requests can wait for request {request}")]
    TooManyDependants {
        /// The request.
        request: Seq,
        /// The index in the plan.
        index: usize,
    },
    /// The costs of all agents have passed the session's budget.
    #[error(
        "the costs of the session's agents have passed 'cost_max', which is {}; raise it to continue", .max.cost().to_f64()
    )]
    BudgetExhausted {
        /// The budget.
        max: Budget,
    },
    /// Other requests wait for the request.
    #[error(
        "request {dependant} waits for request {request}; delete it first, or finish {request}"
    )]
    HasDependants {
        /// The request.
        request: Seq,
        /// The first request that waits for it.
        dependant: Seq,
    },
    /// Too many claimable requests do not match.
    #[error("none of the first {examined} claimable requests matches; claim one by its seq")]
    TooManyExamined {
        /// The number of requests examined.
        examined: usize,
    },
    /// The claim belongs to another agent than the one that the token is bound to.
    #[error("the claim on request {request} belongs to another agent; the token is bound to {own}")]
    ForeignClaim {
        /// The request.
        request: Seq,
        /// The agent that the token is bound to.
        own: AgentName,
    },
    /// The status belongs to another agent, and the token is bound neither to it nor to its host.
    #[error(
        "the token is bound to {own}: only {agent} itself and its registered host may set its status"
    )]
    ForeignStatus {
        /// The agent.
        agent: AgentName,
        /// The agent that the token is bound to.
        own: AgentName,
    },
    /// The host of another agent, and the token is bound neither to it nor to its present host.
    #[error(
        "the token is bound to {own}: only {agent} itself and its present host may set its host"
    )]
    ForeignHost {
        /// The agent.
        agent: AgentName,
        /// The agent that the token is bound to.
        own: AgentName,
    },
    /// The claim under which the write is made has ended.
    #[error("claim {fence} on request {request} is no longer valid")]
    StaleFence {
        /// The request.
        request: Seq,
        /// The claim's fence.
        fence: Revision,
    },
    /// The answer, or the default, is not one of the question's options.
    #[error("{} must be one of the question's options: {}", if *is_default { "the default" } else { "the answer" }, listed(options))]
    NotAnOption {
        /// The first options.
        options: Vec<String>,
        /// True for the default.
        is_default: bool,
    },
    /// The question already has an answer.
    #[error("question {question} already has an answer")]
    AlreadyAnswered {
        /// The question.
        question: Seq,
    },
    /// A session of this name already exists.
    #[error("session '{session}' already exists")]
    SessionExists {
        /// The name.
        session: SessionName,
    },
    /// The checkpoint does not exist.
    #[error("checkpoint '{checkpoint}' does not exist")]
    NoCheckpoint {
        /// The name.
        checkpoint: CheckpointName,
    },
    /// The session has the maximum number of checkpoints.
    #[error("the session has reached its limit of {CHECKPOINTS_MAX} checkpoints; remove one first")]
    TooManyCheckpoints,
    /// The session has no such revision.
    #[error("the session has no revision {revision}")]
    NoRevision {
        /// The revision.
        revision: Revision,
    },
    /// The idempotency key was used for another request.
    #[error("the Idempotency-Key was already used for another request")]
    KeyReused,
    /// The resulting item is invalid.
    #[error(transparent)]
    Item(#[from] InvalidItem),
    /// An operation of a transaction is refused, so the whole transaction is.
    #[error("{rejected}")]
    InOperation {
        /// The branch.
        branch: Branch,
        /// The index of the operation in the branch, from 0.
        index: usize,
        /// The reason.
        rejected: Box<Rejected>,
    },
    /// An item or a value refers to a blob that the session does not have.
    #[error("the session has no blob {sha256}; upload its bytes first")]
    NoBlob {
        /// The digest.
        sha256: Digest,
        /// The place of the text that refers to it.
        place: BlobPlace,
        /// The JSON pointer (RFC 6901) of the reference in that text.
        pointer: String,
    },
    /// The session has the maximum number of blobs.
    #[error(
        "the session has reached its limit of {BLOBS_MAX} blobs; those that nothing refers to are deleted within \
         hours"
    )]
    TooManyBlobs,
    /// The session would exceed its limit of images and blobs.
    #[error("the session's images and blobs would have {bytes} bytes; the limit is {max}")]
    ImagesFull {
        /// The resulting size in bytes.
        bytes: u64,
        /// The limit in bytes.
        max: u64,
    },
}

/// The reason why a request cannot be claimed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// It waits for another one.
    #[error("waits for request {by}, which {}", if *is_stopped { "failed or was cancelled" } else { "is not done" })]
    Blocked {
        /// The first request that it waits for; one that failed or was cancelled, if there is one.
        by: Seq,
        /// True if that request failed or was cancelled.
        is_stopped: bool,
    },
    /// It waits for its time.
    #[error("cannot be claimed before {at}")]
    NotBefore {
        /// The time.
        at: Timestamp,
    },
    /// As many as a cap allows are claimed.
    #[error("waits for others to end: 'running_max' allows {}", Allowed(cap))]
    RunningMax {
        /// The cap.
        cap: Cap,
    },
    /// Its result waits for a verdict.
    #[error("waits for the verdict on its result")]
    InReview,
    /// It was cancelled.
    #[error("was cancelled; POST its 'retry' to make it claimable again")]
    Cancelled,
    /// It was cancelled, and its holder had its time to end.
    #[error(
        "was cancelled, and its claim can be renewed no more; end it by 'done' or 'failed', or release the claim"
    )]
    Cancelling,
    /// It has failed.
    #[error("has failed; POST its 'retry' to make it claimable again")]
    Failed,
}

impl Why {
    /// Returns the reason in one word, for clients to match on.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Blocked { .. } => "blocked",
            Self::NotBefore { .. } => "not_before",
            Self::RunningMax { .. } => "running_max",
            Self::InReview => "in_review",
            Self::Cancelled | Self::Cancelling => "cancelled",
            Self::Failed => "failed",
        }
    }
}

/// Returns options as a part of a sentence, each cut.
fn listed(options: &[String]) -> String {
    let shown = options.iter().map(|option| {
        let end = option.floor_char_boundary(option.len().min(OPTION_BYTES_SHOWN));
        format!("'{}'", option.get(..end).unwrap_or_default())
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// The maximum bytes of an option that a rejection shows.
const OPTION_BYTES_SHOWN: usize = 100;

/// The claims that a cap allows.
struct Allowed<'a>(&'a Cap);

impl fmt::Display for Allowed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cap { by, max } = self.0;
        write!(f, "{max} claimed at once")?;
        by.as_ref().map_or(Ok(()), |by| write!(f, " with one value of '{by}'"))
    }
}

/// The current value shown with a failed condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Current {
    /// An entry of a log.
    Entry(Arc<Entry>),
    /// A value of the state.
    State(StateValue),
    /// An agent.
    Agent(AgentName, Box<Agent>),
}

/// The place of a text that refers to a blob, in its command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobPlace {
    /// An item, with its index.
    Item(usize),
    /// An item of a log that is replaced with the whole board, with its index.
    LogItem(LogName, usize),
    /// An answered question of a new session, with its index.
    QaPair(usize),
    /// The whole body: an entry's item, or the value at a path of the state.
    Value,
    /// An element appended to an array of the state, with its index.
    Element(usize),
    /// The whole state, replaced with the whole board.
    State,
    /// The result of a request.
    Result,
    /// The reason of a request's failure.
    Reason,
}

/// A branch of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// The branch for tests that all pass.
    Then,
    /// The branch for a failed test.
    Else,
}

impl Rejected {
    /// Returns the stable error code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::InOperation { rejected, .. } => rejected.code(),
            Self::NoPath { .. } => Code::PathNotFound,
            Self::NotAnObject { .. } => Code::NotAnObject,
            Self::NotANumber { .. } => Code::NotANumber,
            Self::NotAnArray { .. } => Code::ArrayRequired,
            Self::SumTooLarge => Code::UnsupportedValue,
            Self::RootNotAnObject
            | Self::UnknownStatus { .. }
            | Self::NoStatus
            | Self::AgentField { .. } => Code::InvalidField,
            Self::Item(invalid) => invalid.code(),
            Self::ProfileTooLarge { .. } => Code::ItemTooLarge,
            Self::StateFull { .. }
            | Self::TooManyAgents
            | Self::TooManyUnacked { .. }
            | Self::TooManyCheckpoints => Code::SessionFull,
            Self::NoAgent { .. } => Code::AgentNotFound,
            Self::IllegalTransition { .. }
            | Self::AlreadyFailed { .. }
            | Self::NotClaimable { .. }
            | Self::NotInReview { .. }
            | Self::NotClaimed { .. } => Code::IllegalTransition,
            Self::NoBlocker { .. }
            | Self::NotAnOption { .. }
            | Self::TooManyDependants { .. }
            | Self::VerdictWithoutFence { .. }
            | Self::DeadlineTooEarly { .. } => Code::InvalidField,
            Self::HasDependants { .. } => Code::HasDependants,
            Self::BudgetExhausted { .. } => Code::BudgetExhausted,
            Self::AgentRequired => Code::AgentRequired,
            Self::ForeignClaim { .. }
            | Self::ForeignStatus { .. }
            | Self::ForeignHost { .. }
            | Self::OwnResult { .. } => Code::Forbidden,
            Self::AlreadyClaimed { .. } | Self::AlreadyDone { .. } => Code::AlreadyClaimed,
            Self::StaleFence { .. } => Code::StaleFence,
            Self::AlreadyAnswered { .. } => Code::AlreadyAnswered,
            Self::SessionExists { .. } => Code::SessionExists,
            Self::NoCheckpoint { .. } => Code::CheckpointNotFound,
            Self::NoRevision { .. } => Code::RevisionNotFound,
            Self::NoBlob { .. } => Code::NoBlob,
            Self::KeyReused => Code::IdempotencyKeyReused,
            Self::NoSession { .. } => Code::SessionNotFound,
            Self::NoEntry { .. } => Code::EntryNotFound,
            Self::Precondition { .. } => Code::PreconditionFailed,
            Self::Stale => Code::Overloaded,
            Self::NotAtCreation | Self::TooManyLabels { .. } => Code::InvalidField,
            Self::TooManyItems { .. } | Self::TooManyExamined { .. } => Code::CommitTooLarge,
            Self::SessionFull { .. }
            | Self::ImagesFull { .. }
            | Self::TooManyEntries { .. }
            | Self::TooManyBlobs => Code::SessionFull,
            Self::TooManySessions { .. } => Code::StoreFull,
        }
    }
}
