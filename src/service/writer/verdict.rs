//! Verdicts: the outcome of each command in a batch.

use crate::board::Json;
use crate::service::job::WriterError;
use crate::service::{Receipt, Reply};

/// The outcome of a command, once its batch is durable.
pub(crate) enum Verdict {
    /// It was carried out.
    Done {
        receipt: Receipt,
        /// The bytes of its commit; none where it changed nothing.
        bytes: usize,
    },
    /// It is a repeat with this first answer.
    Recalled(Json),
    /// It failed.
    Failed(WriterError),
    /// It is undecided: a board that it touches is not in memory, or its values were made for another one.
    Cold,
}

impl Verdict {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Done { bytes, .. } => *bytes,
            Self::Recalled(_) | Self::Failed(_) | Self::Cold => 0,
        }
    }

    /// Whether it is part of what its batch stores; of a repeat, whether its first may be.
    pub(crate) fn writes(&self) -> bool {
        match self {
            Self::Done { bytes, .. } => *bytes > 0,
            Self::Recalled(_) => true,
            Self::Failed(_) | Self::Cold => false,
        }
    }

    /// The answer once all is durable; `None` where it is undecided.
    pub(crate) fn into_answer(self) -> Option<Result<Reply, WriterError>> {
        match self {
            Self::Done { receipt, .. } => Some(Ok(Reply::Now(receipt))),
            Self::Recalled(answer) => Some(Ok(Reply::Before(answer))),
            Self::Failed(error) => Some(Err(error)),
            Self::Cold => None,
        }
    }
}
