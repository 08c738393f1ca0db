//! The writer: one thread that decides, stores, publishes and answers, batch by batch.
//!
//! Commands are decided against staged boards, then one durable append stores the whole batch. Nothing is published or
//! answered before that; rejections wait too, since a rejection may name a staged revision. A batch waits for no timer:
//! the next one gathers during a sync. Between batches the writer expires values. A write that finds the writer idle
//! takes its step itself ([`self::desk`]).

mod batch;
pub(crate) mod desk;
pub(crate) mod entrance;
mod expire;
pub(crate) mod expiry_retries;
mod foreign;
mod fork_key;
mod links;
pub(crate) mod patch;
pub(crate) mod patch_turns;
mod qa_session;
pub(crate) mod staging;
mod verdict;

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use super::deadlines::Deadlines;
use super::deps::Deps;
use super::error::ServiceError;
use super::history::History;
use super::history::retention_schedule::RetentionSchedule;
use super::images::Images;
use super::images::reaper::Orphans;
use super::job::{Job, JobQueue, JobReceiver, Rebase, WriteJob};
use super::maintenance::compaction::Activity;
use super::options::QaSession;
use super::search::{Progress, Searches, Touched};
use super::sessions::Sessions;
use super::sessions::directory::Directory;
use super::sessions::loader::Loader;
use super::sessions::memory_budget::MemoryBudget;
use super::sessions::past_boards::PastBoards;
use super::sessions::session::{Pin, Published, Session};
use super::sessions::tombstones::Tombstones;
use super::watch::Watches;
use super::watch::waker::{Channels, Notice, WakeUp, WakeUps, owner_of};
use batch::{Batch, Part, Written};
use blackboard_board::{
    Commit, Extent, Item, Moment, Nonce, Policy, Rejected, Revision, SessionId, SessionName,
    Timestamp,
};
use blackboard_clock::{Clock, Reading, WorkLaps};
use blackboard_fairness::{Client, Left};
use blackboard_metrics as metrics;
use blackboard_store::{EmbeddedStore, Outcome, Run, Store};
use entrance::Entrance;
use expire::Cold;
use expiry_retries::Retries;
use staging::Staging;
use verdict::{Verdict, Verdicts, answer};

/// The number of commands in one batch.
const BATCH_COMMANDS_MAX: usize = 1024;

/// The bytes of commits in one batch, unless the first commit alone has more.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// The processor time of one batch, unless the first command alone takes more. Most batches of small writes take
/// less.
const BATCH_WORK_MAX: Duration = Duration::from_millis(10);

/// The writer's longest rest while something will expire. Expiry is late by at most this, even after a jump of the
/// clock.
pub(super) const SWEEP_EVERY: Duration = Duration::from_millis(500);

/// The time without a write after which the store may do its own work.
const IDLE_AFTER: Duration = Duration::from_millis(20);

/// The state of the writer's thread.
pub(super) struct Writer {
    jobs: JobReceiver,
    directory: Arc<Directory>,
    store: Arc<dyn Store>,
    policy: Policy,
    clock: Clock,
    deadlines: Deadlines<Timestamp>,
    channels: Arc<Channels>,
    wake_ups: Arc<WakeUps>,
    /// The bytes of recent commits in memory, of all sessions.
    recent_bytes: Arc<AtomicUsize>,
    retentions: Arc<RetentionSchedule>,
    tombstones: Arc<Tombstones>,
    /// The session that gathers answered questions, if any.
    qa_session: Option<QaSession>,
    /// The end of the pause after a sweep that could store nothing.
    sweep_after: Option<Instant>,
    /// The sessions whose expiry could not be stored.
    retries: Retries,
    memory: Arc<MemoryBudget>,
    loader: Loader,
    past_boards: Arc<PastBoards>,
    orphans: Arc<Orphans>,
    /// Counter of appends, for the compaction.
    activity: Arc<Activity>,
    /// Told of new commits, unless there is no search.
    search: Option<Arc<Progress>>,
    /// The end of the last step that did anything.
    worked_at: Instant,
    /// The number of latest batches that had one write each, and none waiting after it.
    lone_steps: u32,
    /// The number of sessions that the batch creates.
    made: usize,
    /// The sessions whose boards are being loaded for their expiry.
    warming: HashMap<SessionName, Pin>,
}

/// What the writer's thread does without a job.
enum Rest {
    /// It looks again at this time, since the store is not idle yet.
    Pause(Instant),
    /// It rests until this time, if there is one.
    Idle(Option<Instant>),
    /// It goes on, with a further job or work of the store.
    Busy,
    /// It ends: the queue is closed and empty.
    End,
}

/// The other parts that the writer works with.
pub(super) struct Parts<'a> {
    pub(super) sessions: &'a Sessions,
    pub(super) history: &'a History,
    pub(super) watches: &'a Watches,
    pub(super) images: &'a Images,
    pub(super) activity: Arc<Activity>,
    pub(super) searches: &'a Searches,
}

impl Writer {
    /// A writer that has stored the expiries of the downtime, and its entrance.
    pub(super) fn new(
        deps: &Deps,
        queue: JobQueue,
        parts: Parts<'_>,
        policy: Policy,
        qa_session: Option<QaSession>,
        deadlines: Deadlines<Timestamp>,
    ) -> (Self, Entrance) {
        let entrance = Entrance::new(queue, qa_session.as_ref().map(|qa| qa.name.clone()));
        let Parts { sessions, history, watches, images, activity, searches } = parts;
        let mut writer = Self {
            jobs: JobReceiver(Arc::clone(&entrance.queue.jobs)),
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
            past_boards: Arc::clone(&sessions.past_boards),
            orphans: Arc::clone(&images.orphans),
            activity,
            search: searches.progress(),
            worked_at: Instant::now(),
            lone_steps: 0,
            made: 0,
            warming: HashMap::new(),
        };
        writer.sweep_all();
        (writer, entrance)
    }

    /// Takes a step: expires what is due, then does the next job if there is one.
    pub(super) fn step(&mut self) -> Result<(), Left> {
        self.sweep(Cold::Ask);
        let (client, job) = self.jobs.next()?;
        self.work(client, job);
        self.worked_at = Instant::now();
        Ok(())
    }

    fn work(&mut self, client: Client, job: Job) {
        match job {
            Job::Write(first) => self.batch(client, first),
            Job::Rebase(rebase) => {
                let begun = Instant::now();
                self.rebase(rebase);
                self.jobs.charge(client, begun.elapsed(), 0);
            }
            Job::CatchUp(behind) => self.catch_up_with(behind),
        }
    }

    /// Without a job, lets an idle store do its own work.
    fn rest(&mut self) -> Rest {
        let (now, left) = (Instant::now(), self.until_due());
        // Between two writes of a burst the store is not idle: its own work would delay the next write.
        let idle_at = self.worked_at + IDLE_AFTER;
        if now < idle_at {
            return Rest::Pause(left.map_or(idle_at, |left| idle_at.min(now + left)));
        }
        if self.store.embedded().is_some_and(EmbeddedStore::idle) {
            self.worked_at = Instant::now();
            return Rest::Busy;
        }
        Rest::Idle(left.map(|left| now + left.min(SWEEP_EVERY)))
    }

    fn batch(&mut self, client: Client, first: Box<WriteJob>) {
        let mut batch = Batch::default();
        let (mut next, mut clients, mut bytes) = (Some((client, first)), Vec::new(), 0);
        let (begun, mut laps, mut work) = (Instant::now(), WorkLaps::begin(), Duration::ZERO);
        self.made = 0;
        while let Some((client, mut job)) = next.take() {
            // One reading serves expiry and decision, or something could expire between them.
            let reading = self.clock.read();
            if self.staging(&mut batch, job.session(), reading).is_closed() {
                // The session was deleted in this batch; later writes meet a new one in the next batch.
                self.jobs.put_back(client, job);
                break;
            }
            let verdict = self.decide(&mut batch, &job, reading);
            self.memory.free_prepared(&mut job.prepared);
            clients.push(client);
            bytes += verdict.bytes();
            let lap = laps.lap();
            work += lap;
            self.jobs.charge(client, lap, verdict.bytes());
            self.add(&mut batch, job, verdict);
            let is_short = work < BATCH_WORK_MAX;
            if clients.len() < BATCH_COMMANDS_MAX && bytes < BATCH_BYTES_MAX && is_short {
                next = self.jobs.join(&clients);
            }
        }
        self.commit(batch);
        let is_lone = clients.len() == 1 && self.jobs.is_empty();
        self.lone_steps = if is_lone { self.lone_steps.saturating_add(1) } else { 0 };
        metrics::BATCH_WRITES.observe(clients.len());
        metrics::BATCH_TIMES.observe(begun.elapsed());
    }

    fn decide(&mut self, batch: &mut Batch, job: &WriteJob, reading: Reading) -> Verdict {
        if job.epoch.is_some_and(|epoch| epoch != self.store.epoch()) {
            return Verdict::Failed(ServiceError::FailedOver);
        }
        let name = job.session();
        if self.is_undecidable(batch, job, reading) {
            return Verdict::Cold;
        }
        let qa_pairs = self.qa_pairs(batch, name, reading);
        let verdict = self.recall_by_fork_key(batch, job, reading).unwrap_or_else(|| {
            let staging = self.staging(batch, name, reading);
            self.stage(staging, job, reading, &qa_pairs)
        });
        self.keep_fork_key(batch, job, &verdict, reading);
        self.echo(batch, &job.write, &verdict, reading);
        verdict
    }

    /// Returns true if a board that the write touches is not in memory, since the session was created while the write
    /// waited, so that no pin held it; or if the large values were made for another board.
    fn is_undecidable(&self, batch: &mut Batch, job: &WriteJob, reading: Reading) -> bool {
        let staging = self.staging(batch, job.session(), reading);
        if staging.is_cold() || !job.prepared.fits(staging.board()) {
            return true;
        }
        let source = job.fork_key.as_ref().map(|(name, _)| name);
        let mut linked = source.into_iter().chain(self.qa_session.as_ref().map(|qa| &qa.name));
        linked.any(|name| self.staging(batch, name, reading).is_cold())
    }

    /// Returns a session's part of the batch, with expired values removed.
    pub(super) fn staging<'a>(
        &self,
        batch: &'a mut Batch,
        name: &SessionName,
        reading: Reading,
    ) -> &'a mut Staging {
        let staging = &mut batch.part(name, || self.published(name)).staging;
        expire(staging, reading.due(), usize::MAX);
        staging
    }

    /// Returns a session's part of a batch that begins.
    fn published(&self, name: &SessionName) -> Staging {
        Staging::of(self.directory.get(name).as_ref(), &self.loader)
    }

    /// Adds a decided write to its batch.
    pub(super) fn add(&self, batch: &mut Batch, job: Box<WriteJob>, verdict: Verdict) {
        let name = job.session().clone();
        batch.add(job, verdict, || self.published(&name));
    }

    /// Decides and stages a write. A panic fails this write alone, since nothing of it was staged.
    pub(super) fn stage(
        &mut self,
        staging: &mut Staging,
        job: &WriteJob,
        reading: Reading,
        qa_pairs: &[Item],
    ) -> Verdict {
        // A session deleted in the batch makes room only for the next batch.
        let sessions = self.directory.len() + self.made;
        let (now, policy) = (reading.now, &self.policy);
        let moment = Moment { now, nonce: nonce(), policy, qa_pairs, sessions };
        let existed = staging.board().life().is_some();
        let staged = catch_unwind(AssertUnwindSafe(|| staging.stage(job, moment, reading.due())));
        self.made += usize::from(!existed && staging.board().life().is_some());
        staged.unwrap_or_else(|_| Verdict::Failed(ServiceError::Fault))
    }

    /// Puts a stored base in force as the beginning of a session's history.
    fn rebase(&mut self, rebase: Rebase) {
        let Rebase { name, session, base, dropped_bytes, losses, reply } = rebase;
        let caught_up = self.is_still_stored(&name, losses);
        let found = self.directory.get(&name).filter(|found| {
            found.extent().session == session && found.exists() && !found.is_damaged()
        });
        let answer = match found {
            None => {
                let rejected = Rejected::NoSession { session: name };
                Err(ServiceError::Rejected { rejected, revision: None })
            }
            Some(found) => caught_up.and_then(|()| self.set_base(&found, base, dropped_bytes)),
        };
        if reply.send(answer).is_err() {
            tracing::trace!("the caller of a truncation disconnected");
        }
    }

    fn set_base(
        &self,
        session: &Arc<Session>,
        base: Revision,
        dropped_bytes: u64,
    ) -> Result<(), ServiceError> {
        let Extent { session: id, oldest, .. } = session.extent();
        let outcome = self.store.set_base(id, base);
        if matches!(outcome, Outcome::Conflict { .. }) {
            // Another server put a base in its place.
            return Err(ServiceError::Compacted { oldest });
        }
        ServiceError::stored(outcome, true)?;
        let left = session.history_bytes().saturating_sub(dropped_bytes);
        self.begin_at(session, base, left);
        Ok(())
    }

    /// Publishes that a history begins later, unless it does already.
    fn begin_at(&self, session: &Arc<Session>, base: Revision, history_bytes: u64) {
        if session.extent().oldest < base {
            self.publish_beginning(session, base, history_bytes);
        }
    }

    /// Publishes where a history begins and the bytes of its commits, and wakes those who wait for the session.
    fn publish_beginning(&self, session: &Arc<Session>, oldest: Revision, history_bytes: u64) {
        session.rebase(oldest, history_bytes, &self.recent_bytes);
        self.directory.identities().outdate(session.extent().session);
        let session = Some(Arc::clone(session));
        self.wake_ups.add(WakeUp { session, notice: None, asked: false, requested: false });
    }

    /// Stores the staged commits, publishes and answers. Returns the sessions whose part could not be stored.
    pub(super) fn commit(&mut self, batch: Batch) -> Vec<SessionName> {
        let mut written = self.runs(batch);
        let outcomes = self.append(&written.runs);
        written.outcomes = outcomes;
        self.conclude(written, 0)
    }

    /// Takes the runs out of a batch.
    pub(super) fn runs(&self, batch: Batch) -> Written {
        let (parts, links) = batch.into_parts();
        let mut written = Written { links, ..Written::default() };
        let is_shared = self.store.shared().is_some();
        for mut part in parts {
            match part.staging.take_run() {
                Some(mut run) => {
                    run.row =
                        if is_shared { part.staging.row(&part.name).map(Box::new) } else { None };
                    written.runs.push(run);
                    written.parts.push(part);
                }
                None => written.idle.push(part),
            }
        }
        if !written.links.are_none() {
            written.group();
        }
        written
    }

    /// Publishes and answers once the outcome of each run is known. `tries` counts the conflicts of its writes so far.
    pub(super) fn conclude(&mut self, mut written: Written, tries: usize) -> Vec<SessionName> {
        // All is published before the first answer, since a write may touch two sessions.
        for (part, outcome) in written.parts.iter_mut().zip(&written.outcomes) {
            if *outcome == Outcome::Appended {
                self.publish(&part.name, &mut part.staging);
            }
        }
        let void = written.take_conflicts();
        let Written { parts, idle, outcomes, .. } = written;
        let (mut refused, mut failed) = (Vec::new(), Vec::new());
        for (Part { name, staging, verdicts }, outcome) in parts.into_iter().zip(outcomes) {
            if outcome != Outcome::Appended {
                failed.push(name.clone());
            }
            if outcome == Outcome::Full && staging.may_shrink() && !verdicts.is_empty() {
                refused.push((name, verdicts));
            } else {
                answer(verdicts, Some(outcome));
            }
        }
        // They may depend on another session's part of the batch.
        idle.into_iter().for_each(|part| answer(part.verdicts, None));
        if !refused.is_empty() {
            self.decide_again(refused);
        }
        if !void.is_empty() {
            failed.extend(self.decide_on_new_heads(void, tries));
        }
        failed
    }

    /// Decides the writes of sessions that found no room once more, without those that grow: what a session removes does
    /// not wait for what it adds.
    fn decide_again(&mut self, refused: Vec<(SessionName, Verdicts)>) {
        let mut batch = Batch::default();
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
            batch.push(Part { name, staging, verdicts: decided });
        }
        self.commit(batch);
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
        let noted = commits.iter().map(|(commit, _)| &**commit);
        let touched = self.search.as_ref().and_then(|_| Touched::of(board.id(), noted));
        if let Some(history) = staging.board().life().and_then(|life| life.settings.history) {
            self.retentions.note_commit(name, history);
        }
        let loaded = staging.take_loaded();
        let is_loaded = loaded.is_some();
        let last = loaded.flatten();
        let shown = commits.iter().map(|(commit, _)| commit).chain(&last);
        let notice = self.channels.are_noticed().then(|| notice(name, shown));
        let touches = |test: fn(&Commit) -> bool| commits.iter().any(|(commit, _)| test(commit));
        let asked = is_loaded || touches(Commit::touches_questions);
        let requested = is_loaded || touches(Commit::touches_requests);
        let known = staging.known(self.store.epoch());
        let session = self.directory.publish(name, published, commits, known, &self.recent_bytes);
        self.memory.note_use(&session);
        self.memory.weigh_published(&session, &board);
        self.note_tombstone(name, staging);
        self.memory.free_former(staging.take_former(), &board, brought);
        if let Some(search) = &self.search {
            search.note(name, touched);
        }
        let session = session.is_watched().then_some(session);
        let notice = notice.flatten();
        if session.is_some() || notice.is_some() || self.channels.are_listed() {
            self.wake_ups.add(WakeUp { session, notice, asked, requested });
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
    /// Notes that a name's session was deleted, or replaced after a deletion.
    fn note_tombstone(&self, name: &SessionName, staging: &Staging) {
        let at = staging.board().updated_at();
        if staging.is_closed() {
            self.tombstones.add(name, at);
        } else if let Some(deleted) = staging.succeeds() {
            self.tombstones.replace(name, deleted, at);
        }
    }

    /// Deletes a damaged session that was replaced. After a failure the next start deletes it.
    fn forget(&self, damaged: SessionId) {
        let identities = self.directory.identities().remove(damaged);
        if let Err(error) = self.store.forget(&identities) {
            tracing::warn!(session = %damaged, %error, "a damaged session could not be deleted");
        }
        self.orphans.add(damaged);
    }
}

/// Stages the due expiries; returns false after an error or a panic, and they are tried again later.
pub(super) fn expire(staging: &mut Staging, due: Timestamp, commits_max: usize) -> bool {
    let expired = catch_unwind(AssertUnwindSafe(|| staging.expire(due, nonce, commits_max)));
    matches!(expired, Ok(Ok(())))
}

/// A nonce by which the writer knows its own commit: a hash with random keys, which takes no system call.
fn nonce() -> Nonce {
    Nonce(RandomState::new().hash_one(()))
}

/// Returns the notice of these commits for subscribers of all sessions.
fn notice<'a>(
    session: &SessionName,
    commits: impl Iterator<Item = &'a Arc<Commit>> + Clone,
) -> Option<Notice> {
    let last = commits.clone().last()?;
    let changes = commits.flat_map(|commit| &commit.changes);
    let kinds: BTreeSet<_> = changes.map(|change| (change.kind(), owner_of(change))).collect();
    let kinds = kinds.into_iter().map(|(kind, agent)| (kind, agent.cloned())).collect();
    let session = session.clone();
    Some(Notice { session, revision: last.revision, kinds })
}
