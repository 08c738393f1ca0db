//! Faults of a base that keep it from being a board.

use super::VERSION;
use crate::board::state::StatePath;
use crate::board::{AgentName, Digest, LogName, Seq};

/// The reason why well-formed parts make no board.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// A later server wrote it.
    #[error("version {found} is not supported, only {VERSION} is")]
    Version {
        /// The version it names.
        found: u32,
    },
    /// A part is longer than its line.
    #[error("a part contains a line break")]
    LineBreak,
    /// A part is out of order, or one before it is missing.
    #[error("a part is missing or out of order")]
    Order,
    /// The number of parts differs from the one in the end part.
    #[error("{found} parts are present, {declared} were written")]
    Parts {
        /// The number in the end part.
        declared: u64,
        /// How many there are.
        found: u64,
    },
    /// A revision is after the board's own, or a counter is beyond its bound.
    #[error("a counter is {found}, the limit is {max}")]
    Count {
        /// The position found.
        found: u64,
        /// The limit.
        max: u64,
    },
    /// Something happened before 1970.
    #[error("a timestamp is before 1970")]
    Time,
    /// A session that does not exist has something.
    #[error("a deleted session has more than its keys")]
    Lifeless,
    /// An agent's memory comes twice, or has entries and is not named before.
    #[error("the memory of '{agent}' is repeated or was not declared")]
    Memory {
        /// The session.
        agent: AgentName,
    },
    /// The seqs of a log do not ascend to the last that it gave.
    #[error("{log}: the entry with seq {found} is out of order")]
    Seq {
        /// Which log.
        log: LogName,
        /// The seq of the entry.
        found: Seq,
    },
    /// An entry has no valid item, or work although it is not a request.
    #[error("{log}: entry {seq} does not belong to this log")]
    Entry {
        /// Which log.
        log: LogName,
        /// Which entry.
        seq: Seq,
    },
    /// An entry's image is not among those of the session, or has another length there.
    #[error("image {sha256} does not belong to the session")]
    Image {
        /// Which image.
        sha256: Digest,
    },
    /// A lifetime is of a path that is not there, or comes twice.
    #[error("the state cannot have a deadline at '{path}'")]
    Lifetime {
        /// Which path.
        path: StatePath,
    },
    /// A deadline belongs to no open question, or is repeated.
    #[error("question {question} cannot have a deadline")]
    Awaited {
        /// Which one.
        question: Seq,
    },
    /// Agents, checkpoints, keys or images that come twice, or more of them than there may be.
    #[error("too many {of}, or a repeated one")]
    Repeated {
        /// The kind of thing.
        of: &'static str,
    },
}
