//! Idempotency keys of forks: the source stores the key and the answer too.
//!
//! The source's commit is part of the same durable batch, so both are stored or neither.

use std::sync::Arc;

use super::Writer;
use super::batch::Batch;
use super::staging::recall;
use super::verdict::Verdict;
use crate::job::WriteJob;
use blackboard_board::{Command, Condition, Terms, Write};
use blackboard_clock::Reading;

impl Writer {
    /// Returns the first answer to a fork whose key the source has, or the key's conflict.
    pub(crate) fn recall_by_fork_key(
        &self,
        batch: &mut Batch,
        job: &WriteJob,
        reading: Reading,
    ) -> Option<Verdict> {
        let (session, key) = job.fork_key.as_ref()?;
        batch.links.link(job.session(), session);
        match recall(self.staging(batch, session, reading).board(), key, reading.due()) {
            Ok(answer) => answer.map(Verdict::Recalled),
            Err(error) => Some(Verdict::Failed(error)),
        }
    }

    /// Stores a fork's answer in its source, unless the source is deleted.
    pub(crate) fn keep_fork_key(
        &mut self,
        batch: &mut Batch,
        job: &WriteJob,
        verdict: &Verdict,
        reading: Reading,
    ) {
        let (Some((session, key)), Verdict::Done { receipt, .. }) = (&job.fork_key, verdict) else {
            return;
        };
        let Some(answer) = job.keep.as_ref().and_then(|keep| keep(receipt)) else { return };
        let staging = self.staging(batch, session, reading);
        if staging.is_closed() || staging.board().life().is_none() {
            return;
        }
        // The condition and the fence are those of the fork.
        let terms = Terms {
            condition: Condition::default(),
            fence: None,
            key: Some(key.clone()),
            ..job.write.terms.clone()
        };
        let write =
            Write { session: session.clone(), terms, command: Command::Transact(Box::default()) };
        let keep = Some(Arc::new(move |_: &_| Some(answer.clone())) as crate::Keep);
        let kept = self.stage(staging, &WriteJob { keep, ..WriteJob::of(write) }, reading, &[]);
        if let Verdict::Failed(error) = kept {
            let code = error.code().as_str();
            tracing::warn!(%session, code, "the answer to a keyed fork was not stored");
        }
    }
}
