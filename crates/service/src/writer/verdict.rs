//! Verdicts on the writes of a batch, answered once the batch is durable.

use crate::error::ServiceError;
use crate::job::{Pins, Unwritten, WriteJob};
use crate::{Receipt, Reply};
use blackboard_board::Json;
use blackboard_store::Outcome;

/// The outcome of a write, if its batch becomes durable.
pub(crate) enum Verdict {
    Done {
        receipt: Receipt,
        /// The bytes of the commit; 0 if there is none.
        bytes: usize,
    },
    /// A repeat, with the first answer.
    Recalled(Json),
    Failed(ServiceError),
    /// Undecided: a board is not in memory, or the large values were made for another one.
    Cold,
    /// Undecided: the images must be stored under the name's present session first.
    Moved,
}

/// A batch's writes of one session. Until the batch is durable each keeps its room in the queue, its images and its
/// boards, since it may be decided again.
pub(crate) type Verdicts = Vec<(Box<WriteJob>, Verdict)>;

impl Verdict {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Done { bytes, .. } => *bytes,
            Self::Recalled(_) | Self::Failed(_) | Self::Cold | Self::Moved => 0,
        }
    }

    /// Returns true if the write is part of what the batch stores; a repeat may be, by its first.
    fn writes(&self) -> bool {
        match self {
            Self::Done { bytes, .. } => *bytes > 0,
            Self::Recalled(_) => true,
            Self::Failed(_) | Self::Cold | Self::Moved => false,
        }
    }
}

/// Answers all writes of a session; `outcome` is that of its run, if it has one.
pub(crate) fn answer(verdicts: Verdicts, outcome: Option<Outcome>) {
    for (mut job, verdict) in verdicts {
        let Some(reply) = job.reply.take() else { continue };
        let writes = verdict.writes();
        let stored = outcome.map_or(Ok(()), |outcome| ServiceError::stored(outcome, writes));
        let stored = stored.map_err(Unwritten::Failed);
        // All that the write holds is released before its caller goes on.
        job.pins = Pins::default();
        let brings_images = job.images.is_some();
        // The images are stored again before the write is decided again.
        let is_undone = outcome == Some(Outcome::BlobsMissing) && writes;
        let verdict = match (is_undone, brings_images) {
            (true, true) => Verdict::Moved,
            (true, false) => Verdict::Cold,
            (false, _) => verdict,
        };
        if !matches!(verdict, Verdict::Cold) {
            (job.room, job.images) = (None, None);
        }
        let answer = match verdict {
            Verdict::Done { receipt, .. } => stored.map(|()| Reply::Now(receipt)),
            Verdict::Recalled(answer) => stored.map(|()| Reply::Before(answer)),
            Verdict::Failed(error) => stored.and(Err(error.into())),
            Verdict::Cold => Err(Unwritten::Cold(job)),
            Verdict::Moved => Err(Unwritten::Moved(job)),
        };
        if reply.send(answer).is_err() {
            tracing::trace!("a caller disconnected before its response; the write is stored");
        }
    }
}
