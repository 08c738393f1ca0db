//! Errors of the service, besides the board's own rejections.

use blackboard_thumbnail::Undecodable;

use blackboard_board::stored::archive::Fault;
use blackboard_board::{Code, InvalidItem, Rejected, Revision, json};
use blackboard_store::{Outcome, PostgresFailure, StoreError};

/// An error of the service.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// A rule of the board refuses it.
    #[error("{rejected}")]
    Rejected {
        /// The rule.
        rejected: Rejected,
        /// The revision of the session that it was decided against, if there is one.
        revision: Option<Revision>,
    },
    /// A patch's result is not a valid item.
    #[error(transparent)]
    Item(#[from] InvalidItem),
    /// A patch cannot be applied.
    #[error("{error}")]
    Patch {
        /// The reason.
        error: json::PatchError,
        /// The revision of the session that was patched.
        revision: Revision,
    },
    /// The commit would be larger than a commit may be.
    #[error("the write commits {bytes} bytes; the limit is {max}; split it into several")]
    CommitTooLarge {
        /// The commit's size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The session does not reach this revision in time.
    #[error("the session is at revision {head} and did not reach {wanted} in time")]
    RevisionNotReached {
        /// The session's head.
        head: Revision,
        /// The requested revision.
        wanted: Revision,
    },
    /// The requested revision is older than the retained history.
    #[error(
        "the history of this session begins at revision {oldest}; earlier revisions have been deleted"
    )]
    Compacted {
        /// The oldest retained revision.
        oldest: Revision,
    },
    /// An archive cannot be taken in.
    #[error("line {line}: {fault}")]
    Archive {
        /// The number of the line, from 1.
        line: usize,
        /// The reason.
        fault: Box<Fault>,
    },
    /// Too much waits to be written or made.
    #[error("the server is overloaded; try again later")]
    Overloaded,
    /// The server was started without search.
    #[error("search is off on this server (--search off)")]
    SearchOff,
    /// A search took longer than it may.
    #[error(
        "the search took longer than {max_s} s; ask for rarer words, or in fewer sessions by 'session' or 'prefix'"
    )]
    SearchTooLong {
        /// The limit in seconds.
        max_s: u64,
    },
    /// The search index does not have all sessions yet.
    #[error("the search index is being built; try again later")]
    SearchNotReady,
    /// The store takes no writes until the server restarts. If the outcome is unknown, this write may be there then.
    #[error("the store has failed and accepts no writes until the server restarts")]
    Poisoned {
        /// True if this write may have been stored.
        outcome_unknown: bool,
    },
    /// Another program has the database locked, and nothing was written.
    #[error("{}", StoreError::Busy)]
    Busy,
    /// The store is a service that did not carry out a statement. Nothing was written.
    #[error(transparent)]
    Failed(PostgresFailure),
    /// The store is a service that does not answer. Nothing was written.
    #[error("the database cannot be reached; try again later")]
    Unreachable,
    /// The database lost commits in a failover after the write was prepared. Nothing was written.
    #[error(
        "the database lost commits in a failover while the write waited, and nothing was written: read again, then repeat it"
    )]
    FailedOver,
    /// The database did not tell whether the write is stored. A repeat with the same key is answered once it does.
    #[error("the database cannot be reached; the write may have been stored")]
    InDoubt,
    /// The write would change a page of the database that cannot be read, and nothing was written.
    #[error("{}", StoreError::Malformed)]
    Malformed,
    /// There is no room on the disk.
    #[error("the disk is full: only deletions succeed until space is free")]
    StoreFull,
    /// The session's stored history cannot be read.
    #[error(
        "the stored history of this session is damaged (see the server's log): delete the session, or import an \
         archive in its place"
    )]
    Damaged,
    /// The server is about to end.
    #[error("the server is shutting down")]
    Stopping,
    /// An image cannot be shown.
    #[error(transparent)]
    Undecodable(#[from] Undecodable),
    /// An internal error.
    #[error("internal error; see the server's log")]
    Fault,
    /// The store could not read or write something.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unreachable(_) => {
                tracing::debug!(%error, "the database cannot be reached");
                Self::Unreachable
            }
            StoreError::Poisoned => Self::Poisoned { outcome_unknown: false },
            StoreError::Busy => Self::Busy,
            StoreError::Failed(failure) => Self::Failed(failure),
            StoreError::NoConnection => Self::Overloaded,
            StoreError::Malformed => Self::Malformed,
            StoreError::Closed => Self::Stopping,
            StoreError::Forgotten { base, .. } => Self::Compacted { oldest: base },
            StoreError::NotEmbedded
            | StoreError::Postgres(_)
            | StoreError::InUse { .. }
            | StoreError::NotABlackboard { .. }
            | StoreError::BeforeRelease { .. }
            | StoreError::DamagedFormat { .. }
            | StoreError::NewerFormat { .. }
            | StoreError::DatabaseMissing { .. }
            | StoreError::DatabaseEmpty { .. }
            | StoreError::LogMissing { .. }
            | StoreError::DamagedLog { .. }
            | StoreError::CommitsMissing { .. }
            | StoreError::Unfinished { .. }
            | StoreError::Occupied { .. }
            | StoreError::Within { .. }
            | StoreError::Copying
            | StoreError::SqliteTooOld { .. }
            | StoreError::NoWriteAheadLog { .. }
            | StoreError::Full
            | StoreError::DamagedRow { .. }
            | StoreError::DamagedSegment { .. }
            | StoreError::DamagedHistory
            | StoreError::DamagedBase { .. }
            | StoreError::NoHistory { .. }
            | StoreError::HistoryExists { .. }
            | StoreError::DamagedMeta
            | StoreError::DamagedFile(_)
            | StoreError::DamagedTree { .. }
            | StoreError::BlobMissing { .. }
            | StoreError::BlobDamaged { .. }
            | StoreError::Io { .. }
            | StoreError::Unsynced { .. }
            | StoreError::Sqlite(_) => Self::Store(error),
        }
    }
}

impl ServiceError {
    /// Returns the result of a run; `outcome_unknown` says if the caller must know that it may be stored.
    pub(super) fn stored(outcome: Outcome, outcome_unknown: bool) -> Result<(), Self> {
        Err(match outcome {
            Outcome::Appended => return Ok(()),
            Outcome::Full => Self::StoreFull,
            Outcome::Busy => Self::Busy,
            Outcome::Failed(failure) => Self::Failed(failure),
            Outcome::Malformed => Self::Malformed,
            Outcome::Overloaded => Self::Overloaded,
            Outcome::Unknown => Self::Poisoned { outcome_unknown },
            Outcome::Unreachable => Self::Unreachable,
            Outcome::InDoubt => Self::InDoubt,
            Outcome::BlobsMissing => Self::Overloaded,
            Outcome::Refused => Self::Poisoned { outcome_unknown: false },
            Outcome::Conflict { .. } => Self::Fault,
        })
    }

    /// Returns the error for a write that may be a repeat: a poisoned store cannot tell whether the first is stored.
    pub(super) fn in_doubt(self, is_keyed: bool) -> Self {
        if let Self::Poisoned { outcome_unknown } = self {
            return Self::Poisoned { outcome_unknown: outcome_unknown || is_keyed };
        }
        self
    }

    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Rejected { rejected, .. } => rejected.code(),
            Self::Item(invalid) => invalid.code(),
            Self::Patch { error, .. } => patch_code(error),
            Self::CommitTooLarge { .. } => Code::CommitTooLarge,
            Self::RevisionNotReached { .. } => Code::RevisionNotReached,
            Self::Compacted { .. } => Code::HistoryCompacted,
            Self::Archive { fault, .. } => fault.code(),
            Self::Overloaded | Self::SearchTooLong { .. } | Self::SearchNotReady => {
                Code::Overloaded
            }
            Self::SearchOff => Code::RouteNotFound,
            Self::Poisoned { .. } => Code::StorePoisoned,
            Self::StoreFull | Self::Store(StoreError::Full) => Code::StoreFull,
            Self::Busy
            | Self::Unreachable
            | Self::FailedOver
            | Self::InDoubt
            | Self::Malformed
            | Self::Damaged
            | Self::Stopping => Code::StoreUnavailable,
            Self::Failed(
                PostgresFailure::Serialization
                | PostgresFailure::Deadlock
                | PostgresFailure::Locked
                | PostgresFailure::Cancelled
                | PostgresFailure::Resources
                | PostgresFailure::Files
                | PostgresFailure::Statement,
            ) => Code::StoreUnavailable,
            Self::Undecodable(_) => Code::NotAnImage,
            Self::Failed(PostgresFailure::Row) | Self::Fault | Self::Store(_) => Code::Internal,
        }
    }
}

const fn patch_code(error: &json::PatchError) -> Code {
    match error {
        json::PatchError::Refused { fault: json::Fault::TestFailed { .. }, .. } => {
            Code::ConditionNotMet
        }
        json::PatchError::TooLarge { .. } => Code::ItemTooLarge,
        json::PatchError::Refused { .. }
        | json::PatchError::NotAnArray
        | json::PatchError::TargetTooDeep => Code::InvalidField,
    }
}
