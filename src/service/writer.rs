//! The one thread that decides and writes: drain the queue, decide each command against staged
//! boards, one durable append for the whole batch, publish, answer.
//!
//! Nothing is published, and nothing answered, before its batch is durable; refusals wait too, since
//! a refusal may speak of a revision that is only staged. There is no timer: while one batch is being
//! synced, the next one gathers.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::Receipt;
use super::directory::Directory;
use super::error::ServiceError;
use super::images::ImagesIn;
use super::session::{Published, Session};
use super::staging::{Staging, Verdict};
use crate::board::{Moment, Nonce, Policy, SessionName, Timestamp, Write};
use crate::store::{Outcome, Run, Store};

/// How many commands one batch takes.
const BATCH_COMMANDS_MAX: usize = 1024;

/// How many bytes of commits one batch takes, unless its first commit alone has more.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// A write on its way to the writer.
pub(super) struct Job {
    pub(super) write: Write,
    /// The session under which its images were stored, where it has some.
    pub(super) images_in: Option<ImagesIn>,
    pub(super) reply: oneshot::Sender<Result<Receipt, WriterError>>,
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
    pub(super) jobs: mpsc::Receiver<Job>,
    pub(super) directory: Arc<Directory>,
    pub(super) store: Arc<dyn Store>,
    pub(super) policy: Policy,
}

/// What is to be told to whom, once the batch is durable.
type Answers = Vec<(oneshot::Sender<Result<Receipt, WriterError>>, Verdict, OwnedSemaphorePermit)>;

impl Writer {
    /// Works until every handle to the queue is gone and the queue is empty.
    pub(super) fn run(mut self) {
        let mut waiting: VecDeque<Job> = VecDeque::new();
        loop {
            let first = match waiting.pop_front() {
                Some(job) => job,
                None => match self.next_job() {
                    Some(job) => job,
                    None => return,
                },
            };
            self.batch(first, &mut waiting);
        }
    }

    fn next_job(&mut self) -> Option<Job> {
        if let Ok(job) = self.jobs.try_recv() {
            return Some(job);
        }
        self.store.idle();
        self.jobs.blocking_recv()
    }

    fn batch(&mut self, first: Job, waiting: &mut VecDeque<Job>) {
        let mut staged: HashMap<SessionName, Staging> = HashMap::new();
        let mut answers: HashMap<SessionName, Answers> = HashMap::new();
        let (mut next, mut count, mut bytes) = (Some(first), 0, 0);
        while let Some(job) = next.take() {
            let name = job.write.session.clone();
            let staging = staged
                .entry(name.clone())
                .or_insert_with(|| Staging::of(self.directory.get(&name)));
            if staging.is_closed() {
                // The session was deleted in this batch: what follows meets a new one, in the next.
                waiting.push_front(job);
                break;
            }
            let verdict = self.stage(staging, &job);
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
    fn stage(&self, staging: &mut Staging, job: &Job) -> Verdict {
        let moment = Moment { now: now(), nonce: Nonce(rand_u64()), policy: &self.policy };
        let staged = catch_unwind(AssertUnwindSafe(|| staging.stage(job, moment)));
        staged.unwrap_or_else(|_| Verdict::Failed(WriterError::Service(ServiceError::Fault)))
    }

    fn commit(
        &self,
        staged: HashMap<SessionName, Staging>,
        mut answers: HashMap<SessionName, Answers>,
    ) {
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
        for ((name, staging), outcome) in written.into_iter().zip(outcomes) {
            if outcome == Outcome::Appended {
                self.publish(&name, &staging);
            }
            answer(answers.remove(&name), Some(outcome));
        }
    }

    fn append(&self, runs: &[Run]) -> Vec<Outcome> {
        if runs.is_empty() { Vec::new() } else { self.store.append(runs) }
    }

    fn publish(&self, name: &SessionName, staging: &Staging) {
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

pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Random enough to know one's own commit by: 64 of a version 4 UUID's random bits.
fn rand_u64() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().1
}
