//! The writer: one thread that decides, stores, publishes and answers, batch by batch.
//!
//! Commands are decided against staged boards, then one durable append stores the whole batch. Nothing is published or
//! answered before that; rejections wait too, since a rejection may name a staged revision. A batch waits for no timer:
//! the next one gathers during a sync. Between batches the writer expires values.

pub(crate) mod entrance;
mod expire;
mod fork_key;
pub(crate) mod patch;
mod qa_session;
pub(crate) mod receiver;
pub(crate) mod retry;
pub(crate) mod staging;
mod verdict;

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use super::clock::{Clock, Reading, worked};
use super::deadlines::Deadlines;
use super::deps::Deps;
use super::error::ServiceError;
use super::history::History;
use super::history::retention_schedule::RetentionSchedule;
use super::images::Images;
use super::images::reaper::Orphans;
use super::job::{Job, JobQueue, Rebase, WriteJob};
use super::maintenance::compaction::Activity;
use super::options::QaSession;
use super::sessions::Sessions;
use super::sessions::directory::Directory;
use super::sessions::loader::Loader;
use super::sessions::memory_budget::Memory;
use super::sessions::recent_commits::Weighed;
use super::sessions::session::{Pin, Published, Session};
use super::sessions::tombstones::Tombstones;
use super::watch::Watches;
use super::watch::waker::{Channels, Notice, WakeUp, WakeUps, memory_of};
use crate::board::{
    Item, Moment, Nonce, Policy, Rejected, Revision, SessionId, SessionName, Timestamp,
};
use crate::fairness::{Client, Left};
use crate::metrics;
use crate::store::{Outcome, Run, Store};
use entrance::Entrance;
use expire::Cold;
use receiver::JobReceiver;
use retry::Retries;
use staging::Staging;
use verdict::{Verdict, Verdicts, answer};

/// How many commands one batch takes.
const BATCH_COMMANDS_MAX: usize = 1024;

/// How many bytes of commits one batch takes, unless its first commit alone has more.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// How much processor time one batch takes, unless its first command alone takes more. Then those who wait for the batch
/// get their answers, and the others follow. Most batches of small writes take less.
const BATCH_WORK_MAX: Duration = Duration::from_millis(10);

/// How long the writer rests at most while something will come to its end by time: by that much later
/// it is done, even where the clock jumped.
pub(super) const SWEEP_EVERY: Duration = Duration::from_millis(500);

/// How long nothing is to be written before the store may use the moment for itself.
const IDLE_AFTER: Duration = Duration::from_millis(20);

/// The writer's own: what the thread works on.
pub(super) struct Writer {
    jobs: JobReceiver,
    directory: Arc<Directory>,
    store: Arc<dyn Store>,
    policy: Policy,
    clock: Clock,
    deadlines: Deadlines<Timestamp>,
    channels: Arc<Channels>,
    wake_ups: Arc<WakeUps>,
    /// The bytes of recent commits at hand, of all sessions.
    recent_bytes: Arc<AtomicUsize>,
    retentions: Arc<RetentionSchedule>,
    tombstones: Arc<Tombstones>,
    /// Where answered questions are gathered, if anywhere.
    qa_session: Option<QaSession>,
    /// Until when nothing is swept, because nothing could be stored.
    sweep_after: Option<Instant>,
    /// The sessions whose deadlines have come, and could not be stored.
    retries: Retries,
    memory: Arc<Memory>,
    loader: Loader,
    orphans: Arc<Orphans>,
    /// Counter of appends, for the compaction.
    activity: Arc<Activity>,
    /// How many sessions the batch that is being staged makes.
    made: usize,
    /// The sessions whose boards are being read, since something in them is due.
    warming: HashMap<SessionName, Pin>,
}

/// The writer's next step.
enum Next {
    Job(Client, Job),
    /// Something may have expired.
    Sweep,
    /// The queue is closed and empty.
    End,
}

/// The parts of the service that the writer works with.
pub(super) struct Parts<'a> {
    pub(super) sessions: &'a Sessions,
    pub(super) history: &'a History,
    pub(super) watches: &'a Watches,
    pub(super) images: &'a Images,
    pub(super) activity: Arc<Activity>,
}

impl Writer {
    /// Stores what expired while the server was down, before anybody can ask; then starts the thread.
    pub(super) fn start(
        deps: &Deps,
        queue: JobQueue,
        parts: Parts<'_>,
        policy: Policy,
        qa_session: Option<QaSession>,
        deadlines: Deadlines<Timestamp>,
    ) -> io::Result<Entrance> {
        let entrance = Entrance::new(queue, qa_session.as_ref().map(|qa| qa.name.clone()));
        let jobs = Arc::clone(&entrance.queue.jobs);
        let Parts { sessions, history, watches, images, activity } = parts;
        let mut writer = Self {
            jobs: JobReceiver(Arc::clone(&jobs)),
            directory: Arc::clone(&sessions.directory),
            store: Arc::clone(&deps.store),
            policy,
            clock: deps.clock.clone(),
            deadlines,
            channels: Arc::clone(&watches.channels),
            wake_ups: Arc::clone(&watches.wake_ups),
            recent_bytes: Arc::clone(&sessions.recent_bytes),
            retentions: Arc::clone(&history.retentions),
            tombstones: Arc::clone(&history.tombstones),
            qa_session,
            sweep_after: None,
            retries: Retries::default(),
            memory: Arc::clone(&sessions.memory),
            loader: sessions.loader.clone(),
            orphans: Arc::clone(&images.orphans),
            activity,
            made: 0,
            warming: HashMap::new(),
        };
        writer.sweep_all();
        deps.threads.start_vital("writer", move || jobs.close(), || writer.run())?;
        Ok(entrance)
    }

    /// Works until the queue is closed and empty.
    fn run(mut self) {
        loop {
            self.sweep(Cold::Ask);
            match self.next() {
                Next::Job(client, Job::Write(first)) => self.batch(client, first),
                Next::Job(client, Job::Rebase(rebase)) => {
                    let begun = Instant::now();
                    self.rebase(rebase);
                    self.jobs.charge(client, begun.elapsed(), 0);
                }
                Next::Sweep => {}
                Next::End => return,
            }
        }
    }

    fn next(&self) -> Next {
        // Between two writes of a burst nobody is idle: what is done in such a moment keeps the next waiting.
        let (begun, left) = (Instant::now(), self.until_due());
        match self.jobs.next(Some(begun + left.unwrap_or(IDLE_AFTER).min(IDLE_AFTER))) {
            Ok((client, job)) => return Next::Job(client, job),
            Err(Left::Closed) => return Next::End,
            Err(Left::Nothing) => {}
        }
        if self.store.idle() {
            return Next::Sweep;
        }
        let rest = left.map(|left| left.saturating_sub(begun.elapsed()).min(SWEEP_EVERY));
        match self.jobs.next(rest.map(|rest| Instant::now() + rest)) {
            Ok((client, job)) => Next::Job(client, job),
            Err(Left::Nothing) => Next::Sweep,
            Err(Left::Closed) => Next::End,
        }
    }

    fn batch(&mut self, client: Client, first: Box<WriteJob>) {
        let mut staged: HashMap<SessionName, Staging> = HashMap::new();
        let mut verdicts: HashMap<SessionName, Verdicts> = HashMap::new();
        let (mut next, mut clients, mut bytes) = (Some((client, first)), Vec::new(), 0);
        let (begun, work_begun) = (Instant::now(), worked());
        let mut work_done = work_begun;
        self.made = 0;
        while let Some((client, mut job)) = next.take() {
            let name = job.session().clone();
            // One look at the clock for both, or something could end between the two.
            let reading = self.clock.read();
            let staging = self.staging(&mut staged, &name, reading);
            if staging.is_closed() {
                // The session was deleted in this batch: what follows meets a new one, in the next.
                self.jobs.put_back(client, job);
                break;
            }
            let verdict = self.decide(&mut staged, &job, reading);
            self.memory.free_prepared(&mut job.prepared);
            clients.push(client);
            bytes += verdict.bytes();
            let work_begins = std::mem::replace(&mut work_done, worked());
            self.jobs.charge(client, work_done.saturating_sub(work_begins), verdict.bytes());
            verdicts.entry(name).or_default().push((job, verdict));
            let is_short = work_done.saturating_sub(work_begun) < BATCH_WORK_MAX;
            if clients.len() < BATCH_COMMANDS_MAX && bytes < BATCH_BYTES_MAX && is_short {
                next = self.jobs.join(&clients);
            }
        }
        self.commit(staged, verdicts);
        metrics::BATCH_WRITES.observe(clients.len());
        metrics::BATCH_TIMES.observe(begun.elapsed());
    }

    fn decide(
        &mut self,
        staged: &mut HashMap<SessionName, Staging>,
        job: &WriteJob,
        reading: Reading,
    ) -> Verdict {
        let name = job.session();
        if self.is_cold(staged, job, reading)
            || !job.prepared.fits(self.staging(staged, name, reading).board())
        {
            return Verdict::Cold;
        }
        let qa_pairs = self.qa_pairs(staged, name, reading);
        let verdict = self.recall_by_fork_key(staged, job, reading).unwrap_or_else(|| {
            let staging = self.staging(staged, name, reading);
            self.stage(staging, job, reading, &qa_pairs)
        });
        self.keep_fork_key(staged, job, &verdict, reading);
        self.echo(staged, &job.write, &verdict, reading);
        verdict
    }

    /// Whether a board that a write touches is not in memory: its session was made while the write waited, so that
    /// nothing kept it there.
    fn is_cold(
        &self,
        staged: &mut HashMap<SessionName, Staging>,
        job: &WriteJob,
        reading: Reading,
    ) -> bool {
        let source = job.fork_key.as_ref().map(|(name, _)| name);
        let qa_session = self.qa_session.as_ref().map(|qa| &qa.name);
        let names = [Some(job.session()), source, qa_session];
        names.into_iter().flatten().any(|name| self.staging(staged, name, reading).is_cold())
    }

    /// A session's part of the batch, without what has come to its end by now.
    pub(super) fn staging<'a>(
        &self,
        staged: &'a mut HashMap<SessionName, Staging>,
        name: &SessionName,
        reading: Reading,
    ) -> &'a mut Staging {
        let begin = || Staging::of(self.directory.get(name).as_ref(), &self.loader);
        let staging = staged.entry(name.clone()).or_insert_with(begin);
        expire(staging, reading.due(), usize::MAX);
        staging
    }

    /// A panic while deciding fails that command alone: nothing of it was staged.
    pub(super) fn stage(
        &mut self,
        staging: &mut Staging,
        job: &WriteJob,
        reading: Reading,
        qa_pairs: &[Item],
    ) -> Verdict {
        // What the batch deletes gives its room to the next one.
        let sessions = self.directory.len() + self.made;
        let (now, policy) = (reading.now, &self.policy);
        let moment = Moment { now, nonce: nonce(), policy, qa_pairs, sessions };
        let existed = staging.board().life().is_some();
        let staged = catch_unwind(AssertUnwindSafe(|| staging.stage(job, moment, reading.due())));
        self.made += usize::from(!existed && staging.board().life().is_some());
        staged.unwrap_or_else(|_| Verdict::Failed(ServiceError::Fault))
    }

    /// Lets a session's history begin with another base.
    fn rebase(&mut self, rebase: Rebase) {
        let Rebase { name, session, base, dropped_bytes, reply } = rebase;
        let found = self.directory.get(&name).filter(|found| {
            found.extent().session == session && found.exists() && !found.is_damaged()
        });
        let answer = match found {
            None => {
                let rejected = Rejected::NoSession { session: name };
                Err(ServiceError::Rejected { rejected, revision: None })
            }
            Some(found) => self.set_base(&found, base, dropped_bytes),
        };
        if reply.send(answer).is_err() {
            tracing::trace!("the caller of a truncation went away");
        }
    }

    fn set_base(
        &self,
        session: &Arc<Session>,
        base: Revision,
        dropped_bytes: u64,
    ) -> Result<(), ServiceError> {
        let id = session.extent().session;
        ServiceError::stored(self.store.set_base(id, base), true)?;
        session.rebase(base, dropped_bytes, &self.recent_bytes);
        self.directory.identities().outdate(id);
        self.wake_ups.add(WakeUp {
            session: Some(Arc::clone(session)),
            notice: None,
            asked: false,
        });
        Ok(())
    }

    /// Stores what was staged, publishes it, and answers; the sessions whose part could not be stored.
    pub(super) fn commit(
        &mut self,
        staged: HashMap<SessionName, Staging>,
        mut verdicts: HashMap<SessionName, Verdicts>,
    ) -> Vec<SessionName> {
        let (mut written, mut runs, mut idle) = (Vec::new(), Vec::new(), Vec::new());
        for (name, mut staging) in staged {
            match staging.take_run() {
                Some(run) => {
                    runs.push(run);
                    written.push((name, staging));
                }
                None => idle.push(name),
            }
        }
        let outcomes = self.append(&runs);
        // All of it is to be seen by whoever is answered: a write may have touched two sessions.
        for ((name, staging), outcome) in written.iter_mut().zip(&outcomes) {
            if *outcome == Outcome::Appended {
                self.publish(name, staging);
            }
        }
        let mut refused = Vec::new();
        for ((name, staging), outcome) in written.iter().zip(&outcomes) {
            let verdicts = verdicts.remove(name).unwrap_or_default();
            if *outcome == Outcome::Full && staging.may_shrink() && !verdicts.is_empty() {
                refused.push((name.clone(), verdicts));
            } else {
                answer(verdicts, Some(*outcome));
            }
        }
        // They may have met what another session's part of the batch staged.
        idle.iter().for_each(|name| answer(verdicts.remove(name).unwrap_or_default(), None));
        if !refused.is_empty() {
            self.decide_again(refused);
        }
        let failed = written.into_iter().zip(&outcomes);
        let failed = failed.filter(|(_, outcome)| **outcome != Outcome::Appended);
        failed.map(|((name, _), _)| name).collect()
    }

    /// Decides the writes of sessions that found no room once more, without those that grow: what a session removes does
    /// not wait for what it adds.
    fn decide_again(&mut self, refused: Vec<(SessionName, Verdicts)>) {
        let (mut staged, mut verdicts) = (HashMap::new(), HashMap::new());
        let reading = self.clock.read();
        for (name, jobs) in refused {
            let mut staging = Staging::cramped(self.directory.get(&name).as_ref(), &self.loader);
            expire(&mut staging, reading.due(), usize::MAX);
            let mut decided = Verdicts::new();
            for (job, _) in jobs {
                // The session may have expired meanwhile.
                let verdict = if staging.is_closed() {
                    Verdict::Failed(ServiceError::StoreFull)
                } else {
                    self.stage(&mut staging, &job, reading, &[])
                };
                decided.push((job, verdict));
            }
            verdicts.insert(name.clone(), decided);
            staged.insert(name, staging);
        }
        self.commit(staged, verdicts);
    }

    fn append(&self, runs: &[Run]) -> Vec<Outcome> {
        if runs.is_empty() {
            return Vec::new();
        }
        self.activity.note();
        self.store.append(runs)
    }

    fn publish(&mut self, name: &SessionName, staging: &mut Staging) {
        self.retries.forget(name);
        self.deadlines.set(name, staging.board().next_due());
        let board = Arc::clone(staging.board());
        let gone = staging.is_closed().then(|| staging.board().id());
        let published = Published {
            board: Arc::clone(&board),
            history_bytes: if gone.is_some() { 0 } else { staging.history_bytes() },
        };
        let commits = staging.take_commits();
        let brought = commits.iter().map(|(_, bytes)| *bytes as u64).sum();
        if let Some(history) = staging.board().life().and_then(|life| life.settings.history) {
            self.retentions.note_commit(name, history);
        }
        let notice = self.channels.are_noticed().then(|| notice(name, &commits));
        let asked = commits.iter().any(|(commit, _)| commit.touches_questions());
        let session = self.directory.publish(name, published, commits, &self.recent_bytes);
        self.memory.weigh_published(&session, &board);
        self.note_tombstone(name, staging);
        self.memory.free_former(staging.take_former(), &board, brought);
        let session = session.is_watched().then_some(session);
        let notice = notice.flatten();
        if session.is_some() || notice.is_some() || self.channels.are_listed() {
            self.wake_ups.add(WakeUp { session, notice, asked });
        }
        if let Some(damaged) = staging.replaced() {
            self.forget(damaged);
        }
        if let Some(session) = gone {
            self.orphans.add(session);
        }
    }
}

impl Writer {
    /// Notes that a name's session was deleted, or that it has another one after such.
    fn note_tombstone(&self, name: &SessionName, staging: &Staging) {
        let at = staging.board().updated_at();
        if staging.is_closed() {
            self.tombstones.add(name, at);
        } else if let Some(deleted) = staging.succeeds() {
            self.tombstones.replace(name, deleted, at);
        }
    }

    /// Forgets a damaged session, whose name has another history by now. Where that fails the next start does it.
    fn forget(&self, damaged: SessionId) {
        let identities = self.directory.identities().remove(damaged);
        if let Err(error) = self.store.forget(&identities) {
            tracing::warn!(session = %damaged, %error, "a damaged session could not be deleted");
        }
        self.orphans.add(damaged);
    }
}

/// A panic takes nothing with it: what ended by time then ends later. Whether there was none.
pub(super) fn expire(staging: &mut Staging, due: Timestamp, commits_max: usize) -> bool {
    let expired = catch_unwind(AssertUnwindSafe(|| staging.expire(due, nonce, commits_max)));
    matches!(expired, Ok(Ok(())))
}

/// Random enough to know one's own commit by: a keyed hash whose keys are drawn once a thread and differ
/// each time. Asking the system for each is a call into the kernel a commit.
fn nonce() -> Nonce {
    Nonce(RandomState::new().hash_one(()))
}

/// Notice of these commits for subscribers of all sessions.
fn notice(session: &SessionName, commits: &[Weighed]) -> Option<Notice> {
    let (last, _) = commits.last()?;
    let changes = commits.iter().flat_map(|(commit, _)| &commit.changes);
    let kinds: BTreeSet<_> = changes.map(|change| (change.kind(), memory_of(change))).collect();
    let kinds = kinds.into_iter().map(|(kind, agent)| (kind, agent.cloned())).collect();
    let session = session.clone();
    Some(Notice { session, revision: last.revision, kinds })
}
