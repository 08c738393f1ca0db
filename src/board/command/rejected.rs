//! Rejections of writes, each with its facts.

use std::sync::Arc;

use crate::board::log::Entry;
use crate::board::model::agent::{AGENTS_MAX, Agent, PROFILE_BYTES_MAX, Status};
use crate::board::model::checkpoint::CHECKPOINTS_MAX;
use crate::board::state::{STATE_BYTES_MAX, StatePath, StateValue};
use crate::board::{
    AgentName, CheckpointName, Code, InvalidItem, LogName, Revision, Seq, SessionName, Version,
};

/// Why a write is refused. A refused write changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// There is no such session, and this write does not make one.
    #[error("there is no session '{session}'")]
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
    #[error("the resource is not as the condition requires")]
    Precondition {
        /// How it is, where it exists.
        present: Option<Version>,
        /// The thing itself, where a refusal may show it.
        current: Option<Current>,
    },
    /// The entry was changed since this write was made from it; only seen inside the server.
    #[error("the entry was changed meanwhile")]
    Stale,
    /// Answered questions are to be loaded into a session that exists already.
    #[error("questions are loaded only into a session that this write makes")]
    NotAtCreation,
    /// The session would have too many labels.
    #[error("a session has at most {max} labels, this one would have {labels}")]
    TooManyLabels {
        /// How many it would have.
        labels: usize,
        /// How many it may have.
        max: usize,
    },
    /// Too many items in one write.
    #[error("one write may bring {max} items, this one brings {items}")]
    TooManyItems {
        /// How many it brings.
        items: usize,
        /// How many it may bring.
        max: usize,
    },
    /// The session would have more item text than it may.
    #[error(
        "the session may have {max} bytes of items, state, profiles and kept answers, and would have more"
    )]
    SessionFull {
        /// How much it would be.
        bytes: u64,
        /// How much it may be.
        max: u64,
    },
    /// The session would have more entries than it may.
    #[error(
        "the session may have {max} items in its logs and memories (--session-items-max), and would have more"
    )]
    TooManyEntries {
        /// How many it would have.
        items: u64,
        /// How many it may have.
        max: u64,
    },
    /// There would be more sessions than there may be.
    #[error("this server may have {max} sessions (--sessions-max), and has as many")]
    TooManySessions {
        /// How many there are.
        sessions: usize,
        /// How many there may be.
        max: usize,
    },
    /// There is nothing at this path of the state.
    #[error("the state has nothing at '{path}'")]
    NoPath {
        /// Which path.
        path: StatePath,
    },
    /// A value above this path of the state is no object.
    #[error("the state has a value at '{at}' that is no object, so nothing can be below it")]
    NotAnObject {
        /// Where that value is.
        at: StatePath,
    },
    /// What is to be added to is no number.
    #[error("the value at '{path}' is no number")]
    NotANumber {
        /// Where it is.
        path: StatePath,
    },
    /// What is to be appended to is no array.
    #[error("the value at '{path}' is no array")]
    NotAnArray {
        /// Where it is.
        path: StatePath,
    },
    /// A sum is beyond a double, or too long an integer.
    #[error("the sum is a number that a client could not read again")]
    SumTooLarge,
    /// The whole state would be something else than an object.
    #[error("the whole state is an object")]
    RootNotAnObject,
    /// The state would be too large.
    #[error("the state would have {bytes} bytes, and may have {STATE_BYTES_MAX}")]
    StateFull {
        /// How large it would be.
        bytes: u64,
    },
    /// There is no such agent.
    #[error("there is no agent '{agent}' here")]
    NoAgent {
        /// Its name.
        agent: AgentName,
    },
    /// The session does not know this status.
    #[error("there is no status '{status}' in this session")]
    UnknownStatus {
        /// Its name.
        status: Status,
    },
    /// An agent's status is no text.
    #[error("an agent's status is a text")]
    NoStatus,
    /// A member of an agent's profile is not as it must be.
    #[error("{why}")]
    AgentField {
        /// Its name.
        name: &'static str,
        /// Why it cannot be so.
        why: &'static str,
    },
    /// An agent's profile would be too large.
    #[error("what an agent says of itself has at most {PROFILE_BYTES_MAX} bytes, this has {bytes}")]
    ProfileTooLarge {
        /// How large it would be.
        bytes: u64,
    },
    /// The agent may not go from its status to this one.
    #[error("an agent may not go from {from} to {to}")]
    IllegalTransition {
        /// Its status.
        from: Status,
        /// The other one.
        to: Status,
    },
    /// The session would have too many agents.
    #[error(
        "a session has at most {AGENTS_MAX} agents, those removed whose memory was used included"
    )]
    TooManyAgents,
    /// Only an agent can do this.
    #[error("only an agent can do this; name it in X-Agent-ID")]
    AgentRequired,
    /// Another agent works on the request.
    #[error("{by} has claimed request {request}")]
    AlreadyClaimed {
        /// Which request.
        request: Seq,
        /// Who.
        by: AgentName,
    },
    /// The request is done.
    #[error("request {request} is done")]
    AlreadyDone {
        /// Which request.
        request: Seq,
    },
    /// The claim under which this would be done is over.
    #[error("the claim {fence} on request {request} does not stand any more")]
    StaleFence {
        /// Which request.
        request: Seq,
        /// The claim's fence.
        fence: Revision,
    },
    /// The question has an answer.
    #[error("question {question} has an answer already")]
    AlreadyAnswered {
        /// Which question.
        question: Seq,
    },
    /// There is a session of this name.
    #[error("there is a session '{session}' already")]
    SessionExists {
        /// The name.
        session: SessionName,
    },
    /// There is no such checkpoint.
    #[error("there is no checkpoint '{checkpoint}' here")]
    NoCheckpoint {
        /// Its name.
        checkpoint: CheckpointName,
    },
    /// The session would have too many checkpoints.
    #[error("a session has at most {CHECKPOINTS_MAX} checkpoints")]
    TooManyCheckpoints,
    /// The session never was at this revision, or is not yet.
    #[error("the session has no revision {revision}")]
    NoRevision {
        /// Which one.
        revision: Revision,
    },
    /// Another request had this idempotency key.
    #[error("another request had this Idempotency-Key")]
    KeyReused,
    /// What a write makes of an item is none.
    #[error(transparent)]
    Item(#[from] InvalidItem),
    /// An operation of a transaction is refused, and so all of it.
    #[error("{rejected}")]
    InOperation {
        /// Of which branch.
        branch: Branch,
        /// Which operation of it, from 0.
        index: usize,
        /// Why.
        rejected: Box<Rejected>,
    },
    /// The session would have more images than it may.
    #[error("the session's images would have {bytes} bytes, and may have {max}")]
    ImagesFull {
        /// How much it would be.
        bytes: u64,
        /// How much it may be.
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
    /// What is done where all tests hold.
    Then,
    /// What is done where one does not.
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
