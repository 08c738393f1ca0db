//! What may be asked of a board, and what a refusal knows.

use std::sync::Arc;

use super::log::Entry;
use super::settings::{LabelsPatch, Set, SettingsPatch};
use super::{
    AgentName, Code, Item, LogName, Nonce, Revision, Seq, SessionName, Timestamp, Version,
};

/// One write, as a caller wants it.
#[derive(Clone, Debug)]
pub struct Write {
    /// The session's name.
    pub session: SessionName,
    /// What to do.
    pub command: Command,
    /// On what condition.
    pub condition: Condition,
    /// Who writes, where one was named.
    pub author: Option<AgentName>,
}

/// What to do.
#[derive(Clone, Debug)]
pub enum Command {
    /// Make the session, or change its settings and labels.
    PutSession {
        /// The change of settings.
        settings: Set<SettingsPatch>,
        /// The change of labels.
        labels: Set<LabelsPatch>,
        /// Questions with their answers, loaded where this makes the session.
        qa_pairs: Vec<Item>,
    },
    /// Delete the session with all it has.
    DeleteSession,
    /// Add items at the end of a log.
    Append {
        /// Which log.
        log: LogName,
        /// What to add.
        items: Vec<Item>,
    },
    /// Let these be all the items of a log.
    ReplaceLog {
        /// Which log.
        log: LogName,
        /// Its new items.
        items: Vec<Item>,
    },
    /// Remove entries of a log.
    RemoveEntries {
        /// Which log.
        log: LogName,
        /// Which of its entries.
        which: Which,
    },
    /// Give an entry another item.
    PutEntry {
        /// Which log.
        log: LogName,
        /// Which entry.
        seq: Seq,
        /// Its new item.
        item: Item,
        /// The revision at which the entry must have changed last, where the item was made from it.
        basis: Option<Revision>,
    },
    /// Remove one entry.
    DeleteEntry {
        /// Which log.
        log: LogName,
        /// Which entry.
        seq: Seq,
    },
    /// Let these be all the items of the four logs, in the order of [`LogName::BOARD`].
    ReplaceBoard {
        /// The items of each.
        logs: [Vec<Item>; 4],
    },
    /// Empty the four logs.
    ClearBoard,
}

/// Which entries to remove.
#[derive(Clone, Debug)]
pub enum Which {
    /// All of them.
    All,
    /// Those whose item has one of these steps.
    Steps(Vec<super::json::Exact>),
    /// All but this many, the newest.
    AllButNewest(usize),
}

/// On what condition a write may be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// `If-Match`: how the thing written must stand.
    pub matches: Option<Matches>,
    /// `If-None-Match: *`: the thing written must not exist.
    pub absent: bool,
}

/// How the thing written must stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matches {
    /// It must exist.
    Any,
    /// It must be one of these versions.
    Versions(Vec<Version>),
}

/// What a decision takes from outside: the time, a mark, and how the server is set.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The clock.
    pub now: Timestamp,
    /// The mark of the commit, if there will be one.
    pub nonce: Nonce,
    /// How the server is set.
    pub policy: &'a Policy,
}

/// How the server is set, as far as the board's rules depend on it.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whether a first write makes its session.
    pub auto_create: bool,
    /// The most bytes of item text in a session.
    pub session_bytes_max: u64,
    /// The most bytes of images in a session, each counted once.
    pub session_blob_bytes_max: u64,
    /// The questions with their answers that every new session gets.
    pub qa_pairs: Vec<Item>,
}

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Something was made, changed, or is as it was asked to be.
    Done,
    /// Items were added, these seqs given.
    Added {
        /// The first seq; the others follow one by one.
        first: Seq,
        /// How many.
        count: usize,
        /// How many were not kept, because the session is set so.
        dropped: usize,
    },
    /// Entries were removed.
    Removed {
        /// How many.
        count: usize,
    },
}

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
        /// The entry as it is, where it is one.
        current: Option<Arc<Entry>>,
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
    #[error("the session's items would have {bytes} bytes, and may have {max}")]
    SessionFull {
        /// How much it would be.
        bytes: u64,
        /// How much it may be.
        max: u64,
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

impl Rejected {
    /// Its stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::NoSession { .. } => Code::SessionNotFound,
            Self::NoEntry { .. } => Code::EntryNotFound,
            Self::Precondition { .. } => Code::PreconditionFailed,
            Self::Stale => Code::Overloaded,
            Self::NotAtCreation | Self::TooManyLabels { .. } => Code::InvalidField,
            Self::TooManyItems { .. } => Code::CommitTooLarge,
            Self::SessionFull { .. } | Self::ImagesFull { .. } => Code::SessionFull,
        }
    }
}
