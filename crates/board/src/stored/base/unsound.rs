//! Inconsistencies that make a base invalid.

use super::VERSION;
use crate::state::StatePath;
use crate::{Digest, LogName, Seq};

/// The reason why well-formed parts do not make a board.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// The base has an unknown version, perhaps that of a later server.
    #[error("version {found} is not supported, only {VERSION} is")]
    Version {
        /// The version found.
        found: u32,
    },
    /// A part contains a line break.
    #[error("a part contains a line break")]
    LineBreak,
    /// A part is out of order, or a part before it is missing.
    #[error("a part is missing or out of order")]
    Order,
    /// The number of parts contradicts the end part.
    #[error("{found} parts were found instead of {declared}")]
    Parts {
        /// The number in the end part.
        declared: u64,
        /// The number of parts found.
        found: u64,
    },
    /// A revision is after the board's own, or a counter exceeds its limit.
    #[error("a counter is {found}; the limit is {max}")]
    Count {
        /// The counter found.
        found: u64,
        /// The limit.
        max: u64,
    },
    /// A timestamp is before 1970.
    #[error("a timestamp is before 1970")]
    Time,
    /// A session that does not exist has data other than keys.
    #[error("a deleted session has data besides its idempotency keys")]
    Lifeless,
    /// An agent's log is repeated, or has entries without being declared.
    #[error("{log} appears twice or was never declared")]
    Owned {
        /// The log.
        log: LogName,
    },
    /// The seqs of a log do not ascend, or exceed the log's last seq.
    #[error("{log}: the entry with seq {found} is out of order")]
    Seq {
        /// The log.
        log: LogName,
        /// The seq of the entry.
        found: Seq,
    },
    /// An entry has an invalid item, or a claim or result although it is not a request.
    #[error("{log}: entry {seq} does not belong to this log")]
    Entry {
        /// The log.
        log: LogName,
        /// The seq of the entry.
        seq: Seq,
    },
    /// An entry's image, or a blob, is not one of the session's images, or differs in length.
    #[error("image {sha256} does not belong to the session")]
    Image {
        /// The digest of the image.
        sha256: Digest,
    },
    /// A deadline in the state belongs to a missing path, or is repeated.
    #[error("the state cannot have a deadline at '{path}'")]
    Lifetime {
        /// The path.
        path: StatePath,
    },
    /// A deadline belongs to no open question, or is repeated.
    #[error("question {question} cannot have a deadline")]
    Awaited {
        /// The question.
        question: Seq,
    },
    /// Agents, checkpoints, keys, images or blobs are repeated or too many.
    #[error("there are too many {of}, or one is repeated")]
    Repeated {
        /// The kind of the repeated element.
        of: &'static str,
    },
}
