//! Answers to the writes of a batch, sent once it is durable.

use super::verdict::Verdict;
use crate::service::Reply;
use crate::service::error::ServiceError;
use crate::service::job::{Answered, WriteJob, WriterError};
use crate::store::Outcome;

/// What is to be told to whom, once the batch is durable. Until then a write keeps its room in the queue, its
/// images and its board, since it may be decided again.
pub(crate) type Answers = Vec<(WriteJob, Verdict)>;

/// Answers everybody who waits for a session's part of the batch.
pub(crate) fn answer(answers: Option<Answers>, outcome: Option<Outcome>) {
    if let Some(Outcome::Conflict { head }) = outcome {
        tracing::error!(%head, "the store has commits that this server did not write");
    }
    for (job, verdict) in answers.into_iter().flatten() {
        let WriteJob { reply, room, order, pins, weight: _ } = job;
        let answered = match told(verdict, outcome) {
            Some(answer) => {
                drop((room, order.hold));
                Answered::Decided(answer)
            }
            None => Answered::Cold(Box::new(order), room),
        };
        drop(pins);
        if reply.send(answered).is_err() {
            tracing::trace!("a caller went away before its answer; the write is stored");
        }
    }
}

/// The answer to a write that came to this, where its session's part of the batch came to that. `None` for an undecided
/// one.
fn told(verdict: Verdict, outcome: Option<Outcome>) -> Option<Result<Reply, WriterError>> {
    let stored = outcome.map_or(Ok(()), |outcome| ServiceError::stored(outcome, verdict.writes()));
    match (verdict, stored) {
        (verdict, Ok(())) => verdict.into_answer(),
        (Verdict::Cold, Err(_)) => None,
        (_, Err(error)) => Some(Err(error.into())),
    }
}
