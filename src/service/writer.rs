//! The one thread that decides and writes: drain the queue, decide each command against staged
//! boards, one durable append for the whole batch, publish, answer.
//!
//! Nothing is published, and nothing answered, before its batch is durable; refusals wait too, since
//! a refusal may speak of a revision that is only staged. No batch waits for a timer: while one is being
//! synced, the next one gathers. Between batches it sweeps what has come to its end by time.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::clock::Clock;
use super::deadlines::Deadlines;
use super::directory::Directory;
use super::error::ServiceError;
use super::images::ImagesIn;
use super::session::{Published, Session};
use super::staging::{Staging, Verdict};
use super::{Keep, Reply};
use crate::board::{Moment, Nonce, Policy, SessionName, Timestamp, Write};
use crate::store::{Outcome, Run, Store};

/// How many commands one batch takes.
const BATCH_COMMANDS_MAX: usize = 1024;

/// How many bytes of commits one batch takes, unless its first commit alone has more.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// How many sessions are swept at once, with one commit each; then those who wait get their turn.
const SWEPT_AT_ONCE_MAX: usize = 64;

/// How long the writer rests at most while something will come to its end by time: by that much later
/// it is done, even where the clock jumped.
const SWEEP_EVERY: Duration = Duration::from_millis(500);

/// A write on its way to the writer.
pub(super) struct Job {
    pub(super) write: Write,
    /// The session under which its images were stored, where it has some.
    pub(super) images_in: Option<ImagesIn>,
    /// Makes of its receipt what is kept with its key.
    pub(super) keep: Option<Keep>,
    pub(super) reply: oneshot::Sender<Result<Reply, WriterError>>,
    /// Its share of the queue's bytes, given back when it is answered.
    pub(super) room: OwnedSemaphorePermit,
}

/// What the writer may answer instead of a receipt.
#[derive(Debug)]
pub(super) enum WriterError {
    /// The write's images do not lie under the session that this name belongs to now: that one is
    /// another than it was, or they were not stored at all. They are to be stored there first.
    Moved,
    /// Anything that goes to the caller.
    Service(ServiceError),
}

impl From<ServiceError> for WriterError {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

/// The writer's own: what the thread works on.
pub(super) struct Writer {
    pub(super) jobs: Receiver<Job>,
    pub(super) directory: Arc<Directory>,
    pub(super) store: Arc<dyn Store>,
    pub(super) policy: Policy,
    pub(super) clock: Clock,
    pub(super) deadlines: Deadlines,
    /// Until when nothing is swept, because it could not be stored.
    pub(super) sweep_after: Option<Instant>,
}

/// What is to be told to whom, once the batch is durable.
type Answers = Vec<(oneshot::Sender<Result<Reply, WriterError>>, Verdict, OwnedSemaphorePermit)>;

/// What the writer waits for.
enum Next {
    Job(Box<Job>),
    /// Something may have come to its end.
    Sweep,
    /// Nobody can send any more.
    End,
}

impl Writer {
    /// Works until every handle to the queue is gone and the queue is empty.
    pub(super) fn run(mut self) {
        let mut waiting: VecDeque<Job> = VecDeque::new();
        loop {
            self.sweep();
            let first = match waiting.pop_front() {
                Some(job) => job,
                None => match self.next() {
                    Next::Job(job) => *job,
                    Next::Sweep => continue,
                    Next::End => return,
                },
            };
            self.batch(first, &mut waiting);
        }
    }

    fn next(&self) -> Next {
        match self.jobs.try_recv() {
            Ok(job) => return Next::Job(Box::new(job)),
            Err(TryRecvError::Disconnected) => return Next::End,
            Err(TryRecvError::Empty) => {}
        }
        if self.store.idle() {
            return Next::Sweep;
        }
        let Some(deadline) = self.deadlines.next() else {
            return self.jobs.recv().map_or(Next::End, |job| Next::Job(Box::new(job)));
        };
        let left = u64::try_from(deadline.0.saturating_sub(self.clock.now().0)).unwrap_or(0);
        let failed = self.sweep_after.map(|after| after.saturating_duration_since(Instant::now()));
        let rest = Duration::from_millis(left).min(SWEEP_EVERY).max(failed.unwrap_or_default());
        match self.jobs.recv_timeout(rest) {
            Ok(job) => Next::Job(Box::new(job)),
            Err(RecvTimeoutError::Timeout) => Next::Sweep,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }

    /// Sweeps until nothing is due any more, or it cannot be stored.
    pub(super) fn sweep_all(&mut self) {
        while self.sweep() {}
    }

    /// Takes note of what has come to its end by time, in one batch; whether there may be more.
    fn sweep(&mut self) -> bool {
        if self.sweep_after.is_some_and(|after| after > Instant::now()) {
            return false;
        }
        self.sweep_after = None;
        if self.deadlines.next().is_none() {
            return false;
        }
        let now = self.clock.now();
        let due = self.deadlines.due(now, SWEPT_AT_ONCE_MAX);
        if due.is_empty() {
            return false;
        }
        let mut staged = HashMap::new();
        for name in due {
            let mut staging = Staging::of(self.directory.get(&name));
            if !expire(&mut staging, now, 1) {
                self.sweep_after = Some(Instant::now() + SWEEP_EVERY);
            } else if staging.is_idle() {
                // Nothing was due after all: it is not to be looked at again and again.
                self.deadlines.set(&name, staging.board().next_due());
            } else {
                staged.insert(name, staging);
            }
        }
        if !self.commit(staged, HashMap::new()) {
            self.sweep_after = Some(Instant::now() + SWEEP_EVERY);
        }
        self.sweep_after.is_none()
    }

    fn batch(&mut self, first: Job, waiting: &mut VecDeque<Job>) {
        let mut staged: HashMap<SessionName, Staging> = HashMap::new();
        let mut answers: HashMap<SessionName, Answers> = HashMap::new();
        let (mut next, mut count, mut bytes) = (Some(first), 0, 0);
        while let Some(job) = next.take() {
            let name = job.write.terms.session.clone();
            let staging = staged
                .entry(name.clone())
                .or_insert_with(|| Staging::of(self.directory.get(&name)));
            // One look at the clock for both, or something could end between the two.
            let now = self.clock.now();
            expire(staging, now, usize::MAX);
            if staging.is_closed() {
                // The session was deleted in this batch: what follows meets a new one, in the next.
                waiting.push_front(job);
                break;
            }
            let verdict = self.stage(staging, &job, now);
            count += 1;
            bytes += verdict.bytes();
            answers.entry(name).or_default().push((job.reply, verdict, job.room));
            if count < BATCH_COMMANDS_MAX && bytes < BATCH_BYTES_MAX {
                next = waiting.pop_front().or_else(|| self.jobs.try_recv().ok());
            }
        }
        self.commit(staged, answers);
    }

    /// A panic while deciding fails that command alone: nothing of it was staged.
    fn stage(&self, staging: &mut Staging, job: &Job, now: Timestamp) -> Verdict {
        let moment = Moment { now, nonce: nonce(), policy: &self.policy, qa_pairs: &[] };
        let staged = catch_unwind(AssertUnwindSafe(|| staging.stage(job, moment)));
        staged.unwrap_or_else(|_| Verdict::Failed(WriterError::Service(ServiceError::Fault)))
    }

    /// Stores what was staged, publishes it, and answers; whether all of it could be stored.
    fn commit(
        &mut self,
        staged: HashMap<SessionName, Staging>,
        mut answers: HashMap<SessionName, Answers>,
    ) -> bool {
        let (mut written, mut runs) = (Vec::new(), Vec::new());
        for (name, mut staging) in staged {
            match staging.take_run() {
                Some(run) => {
                    runs.push(run);
                    written.push((name, staging));
                }
                None => answer(answers.remove(&name), None),
            }
        }
        let outcomes = self.append(&runs);
        let mut stored = true;
        for ((name, staging), outcome) in written.into_iter().zip(outcomes) {
            if outcome == Outcome::Appended {
                self.publish(&name, &staging);
            }
            stored &= outcome == Outcome::Appended;
            answer(answers.remove(&name), Some(outcome));
        }
        stored
    }

    fn append(&self, runs: &[Run]) -> Vec<Outcome> {
        if runs.is_empty() { Vec::new() } else { self.store.append(runs) }
    }

    fn publish(&mut self, name: &SessionName, staging: &Staging) {
        self.deadlines.set(name, staging.board().next_due());
        let gone = staging.is_closed().then(|| staging.board().id());
        let published = Published {
            board: Arc::clone(staging.board()),
            history_bytes: if gone.is_some() { 0 } else { staging.history_bytes() },
        };
        match self.directory.get(name) {
            Some(session) => {
                session.publish(published);
                self.directory.list(name, gone.is_none());
            }
            None => {
                let session = Arc::new(Session::new(published));
                self.directory.insert(name.clone(), session, gone.is_none());
            }
        }
        if let Some(session) = gone
            && let Err(error) = self.store.remove_blobs(session)
        {
            tracing::warn!(%session, %error, "the images of a deleted session were left behind");
        }
    }
}

/// Answers everybody who waits for a session's part of the batch.
fn answer(answers: Option<Answers>, outcome: Option<Outcome>) {
    for (reply, verdict, room) in answers.into_iter().flatten() {
        let answer = match (verdict, outcome) {
            (verdict, None | Some(Outcome::Appended)) => verdict.into_answer(),
            (_, Some(Outcome::Full)) => Err(WriterError::Service(ServiceError::StoreFull)),
            (verdict, Some(Outcome::Unknown)) => {
                let outcome_unknown = verdict.writes();
                Err(WriterError::Service(ServiceError::Poisoned { outcome_unknown }))
            }
            (_, Some(Outcome::Conflict { head })) => {
                tracing::error!(%head, "the store has commits that this server did not write");
                Err(WriterError::Service(ServiceError::Fault))
            }
        };
        drop(room);
        if reply.send(answer).is_err() {
            tracing::trace!("a caller went away before its answer; the write stands all the same");
        }
    }
}

/// A panic takes nothing with it: what ended by time then ends later. Whether there was none.
fn expire(staging: &mut Staging, now: Timestamp, commits_max: usize) -> bool {
    let expired = catch_unwind(AssertUnwindSafe(|| staging.expire(now, nonce, commits_max)));
    matches!(expired, Ok(Ok(())))
}

/// Random enough to know one's own commit by: 64 of a version 4 UUID's random bits.
fn nonce() -> Nonce {
    Nonce(uuid::Uuid::new_v4().as_u64_pair().1)
}
