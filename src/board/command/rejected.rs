//! Rejections of writes, each with its facts.

use std::sync::Arc;

use crate::board::log::Entry;
use crate::board::model::agent::{AGENTS_MAX, Agent, PROFILE_BYTES_MAX, Status};
use crate::board::model::checkpoint::CHECKPOINTS_MAX;
use crate::board::state::{STATE_BYTES_MAX, StatePath, StateValue};
use crate::board::{
    AgentName, CheckpointName, Code, InvalidItem, LogName, Revision, Seq, SessionName, Version,
};

/// The reason why a write is refused. A refused write changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// There is no such session, and this write does not make one.
    #[error("session '{session}' does not exist")]
    NoSession {
        /// The name.
        session: SessionName,
    },
    /// There is no such entry.
    #[error("{log} has no entry {seq}")]
    NoEntry {
        /// Which log.
        log: LogName,
        /// Which entry.
        seq: Seq,
    },
    /// The thing written is not as the condition wants it.
    #[error("the resource does not meet the condition of If-Match or If-None-Match")]
    Precondition {
        /// Its current version, if it exists.
        present: Option<Version>,
        /// The thing itself, where a refusal may show it.
        current: Option<Current>,
    },
    /// The entry was changed since this write was made from it; only seen inside the server.
    #[error("the entry was changed in the meantime; read it again")]
    Stale,
    /// Answered questions are to be loaded into a session that exists already.
    #[error("'qa_pairs' is allowed only when the session is created")]
    NotAtCreation,
    /// The session would have too many labels.
    #[error("the session would have {labels} labels, the limit is {max}")]
    TooManyLabels {
        /// The number that it would have.
        labels: usize,
        /// The limit.
        max: usize,
    },
    /// Too many items in one write.
    #[error("the write has {items} items, the limit is {max}")]
    TooManyItems {
        /// The number of items.
        items: usize,
        /// The limit.
        max: usize,
    },
    /// The session would have more item text than it may.
    #[error(
        "the session is full: items, state, profiles and remembered answers are limited to {max} bytes"
    )]
    SessionFull {
        /// The size that it would have.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// The session would have more entries than it may.
    #[error(
        "the session is full: its logs and memories are limited to {max} items (--session-items-max)"
    )]
    TooManyEntries {
        /// The number that it would have.
        items: u64,
        /// The limit.
        max: u64,
    },
    /// There would be more sessions than there may be.
    #[error("the server already has {max} sessions, the limit (--sessions-max)")]
    TooManySessions {
        /// How many there are.
        sessions: usize,
        /// The limit.
        max: usize,
    },
    /// There is nothing at this path of the state.
    #[error("the state has no value at '{path}'")]
    NoPath {
        /// Which path.
        path: StatePath,
    },
    /// A value above this path of the state is no object.
    #[error("the state's value at '{at}' is not an object, so it has no members")]
    NotAnObject {
        /// The path of that value.
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
    /// A sum is beyond a double, or too long an integer.
    #[error("the sum is out of range for a JSON number")]
    SumTooLarge,
    /// The whole state would be something else than an object.
    #[error("the root of the state must be an object")]
    RootNotAnObject,
    /// The state would be too large.
    #[error("the state would have {bytes} bytes, the limit is {STATE_BYTES_MAX}")]
    StateFull {
        /// The size that it would have.
        bytes: u64,
    },
    /// There is no such agent.
    #[error("agent '{agent}' is not registered in this session")]
    NoAgent {
        /// Its name.
        agent: AgentName,
    },
    /// The session does not know this status.
    #[error("status '{status}' is not known in this session")]
    UnknownStatus {
        /// Its name.
        status: Status,
    },
    /// An agent's status is no text.
    #[error("an agent's status must be a string")]
    NoStatus,
    /// A member of an agent's profile is not as it must be.
    #[error("{why}")]
    AgentField {
        /// Its name.
        name: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// An agent's profile would be too large.
    #[error("the profile has {bytes} bytes, the limit is {PROFILE_BYTES_MAX}")]
    ProfileTooLarge {
        /// The size that it would have.
        bytes: u64,
    },
    /// The agent may not go from its status to this one.
    #[error("an agent cannot go from status {from} to {to}")]
    IllegalTransition {
        /// Its status.
        from: Status,
        /// The other one.
        to: Status,
    },
    /// The session would have too many agents.
    #[error(
        "the session already has {AGENTS_MAX} agents, the limit, including removed ones with a memory"
    )]
    TooManyAgents,
    /// Only an agent can do this.
    #[error("this operation needs an agent; name it in X-Agent-ID")]
    AgentRequired,
    /// Another agent works on the request.
    #[error("request {request} is claimed by {by}")]
    AlreadyClaimed {
        /// Which request.
        request: Seq,
        /// The agent.
        by: AgentName,
    },
    /// The request is done.
    #[error("request {request} is already done")]
    AlreadyDone {
        /// Which request.
        request: Seq,
    },
    /// The claim under which this would be done is over.
    #[error("claim {fence} on request {request} is no longer valid")]
    StaleFence {
        /// Which request.
        request: Seq,
        /// The claim's fence.
        fence: Revision,
    },
    /// The question has an answer.
    #[error("question {question} already has an answer")]
    AlreadyAnswered {
        /// Which question.
        question: Seq,
    },
    /// There is a session of this name.
    #[error("session '{session}' already exists")]
    SessionExists {
        /// The name.
        session: SessionName,
    },
    /// There is no such checkpoint.
    #[error("checkpoint '{checkpoint}' does not exist")]
    NoCheckpoint {
        /// Its name.
        checkpoint: CheckpointName,
    },
    /// The session would have too many checkpoints.
    #[error("the session already has {CHECKPOINTS_MAX} checkpoints, the limit")]
    TooManyCheckpoints,
    /// The session never was at this revision, or is not yet.
    #[error("the session has no revision {revision}")]
    NoRevision {
        /// Which one.
        revision: Revision,
    },
    /// Another request had this idempotency key.
    #[error("the Idempotency-Key was already used for another request")]
    KeyReused,
    /// The resulting item is invalid.
    #[error(transparent)]
    Item(#[from] InvalidItem),
    /// An operation of a transaction is refused, and so all of it.
    #[error("{rejected}")]
    InOperation {
        /// The branch.
        branch: Branch,
        /// Which operation of it, from 0.
        index: usize,
        /// Why.
        rejected: Box<Rejected>,
    },
    /// The session would have more images than it may.
    #[error("the session's images would have {bytes} bytes, the limit is {max}")]
    ImagesFull {
        /// The size that it would have.
        bytes: u64,
        /// The limit.
        max: u64,
    },
}

/// A thing that a refused condition may show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Current {
    /// An entry of a log.
    Entry(Arc<Entry>),
    /// A value of the state.
    State(StateValue),
    /// An agent.
    Agent(AgentName, Box<Agent>),
}

/// Which branch of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// The branch for tests that all pass.
    Then,
    /// The branch for a failed test.
    Else,
}

impl Rejected {
    /// Its stable code.
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
            Self::StateFull { .. } | Self::TooManyAgents | Self::TooManyCheckpoints => {
                Code::SessionFull
            }
            Self::NoAgent { .. } => Code::AgentNotFound,
            Self::IllegalTransition { .. } => Code::IllegalTransition,
            Self::AgentRequired => Code::AgentRequired,
            Self::AlreadyClaimed { .. } | Self::AlreadyDone { .. } => Code::AlreadyClaimed,
            Self::StaleFence { .. } => Code::StaleFence,
            Self::AlreadyAnswered { .. } => Code::AlreadyAnswered,
            Self::SessionExists { .. } => Code::SessionExists,
            Self::NoCheckpoint { .. } => Code::CheckpointNotFound,
            Self::NoRevision { .. } => Code::RevisionNotFound,
            Self::KeyReused => Code::IdempotencyKeyReused,
            Self::NoSession { .. } => Code::SessionNotFound,
            Self::NoEntry { .. } => Code::EntryNotFound,
            Self::Precondition { .. } => Code::PreconditionFailed,
            Self::Stale => Code::Overloaded,
            Self::NotAtCreation | Self::TooManyLabels { .. } => Code::InvalidField,
            Self::TooManyItems { .. } => Code::CommitTooLarge,
            Self::SessionFull { .. } | Self::ImagesFull { .. } | Self::TooManyEntries { .. } => {
                Code::SessionFull
            }
            Self::TooManySessions { .. } => Code::StoreFull,
        }
    }
}
