//! Faults of a base that keep it from being a board.

use super::VERSION;
use crate::board::state::StatePath;
use crate::board::{AgentName, Digest, LogName, Seq};

/// Why parts that are of the stored form make no board.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// A later server wrote it.
    #[error("version {found} is not known here, only {VERSION} is")]
    Version {
        /// The version it names.
        found: u32,
    },
    /// A part is longer than its line.
    #[error("a part has a line break")]
    LineBreak,
    /// A part stands where it may not, or another one is missing before it.
    #[error("a part is missing or out of order")]
    Order,
    /// It has another number of parts than its end says.
    #[error("{declared} parts were written, {found} are there")]
    Parts {
        /// How many its end says.
        declared: u64,
        /// How many there are.
        found: u64,
    },
    /// A revision is after the board's own, or a counter is beyond its bound.
    #[error("a counter stands at {found}, beyond {max}")]
    Count {
        /// Where it stands.
        found: u64,
        /// How far it may.
        max: u64,
    },
    /// Something happened before 1970.
    #[error("a moment is before 1970")]
    Time,
    /// A session that does not exist has something.
    #[error("a session that does not exist has more than its keys")]
    Lifeless,
    /// An agent's memory comes twice, or has entries and is not named before.
    #[error("the memory of '{agent}' comes twice or was not announced")]
    Memory {
        /// Whose.
        agent: AgentName,
    },
    /// The seqs of a log do not ascend to the last that it gave.
    #[error("{log}: an entry has seq {found} out of order")]
    Seq {
        /// Which log.
        log: LogName,
        /// The seq of the entry.
        found: Seq,
    },
    /// An entry holds no item, or what belongs to requests and is none.
    #[error("{log}: entry {seq} is not one of this log")]
    Entry {
        /// Which log.
        log: LogName,
        /// Which entry.
        seq: Seq,
    },
    /// An entry's image is not among those of the session, or has another length there.
    #[error("the image {sha256} is not one of the session's")]
    Image {
        /// Which image.
        sha256: Digest,
    },
    /// A lifetime is of a path that is not there, or comes twice.
    #[error("the state has no lifetime to give to '{path}'")]
    Lifetime {
        /// Which path.
        path: StatePath,
    },
    /// What waits for an answer is no open question, or comes twice.
    #[error("question {question} cannot wait for an answer")]
    Awaited {
        /// Which one.
        question: Seq,
    },
    /// Agents, checkpoints, keys or images that come twice, or more of them than there may be.
    #[error("there are too many {of}, or one of them comes twice")]
    Repeated {
        /// What they are.
        of: &'static str,
    },
}
