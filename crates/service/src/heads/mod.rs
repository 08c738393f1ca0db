//! Head checks: what this server knows of a session is compared with the store before it is read.
//!
//! A check joins the next query, which begins after it came; one query answers for all that wait. A session that other
//! servers wrote to is brought up to date by the writer. The sessions that somebody watches are checked at each hint, and
//! each second. An embedded store has one server, and needs none of this.

mod leader;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout_at;

use super::Service;
use super::deps::Deps;
use super::error::ServiceError;
use super::images::Images;
use super::job::{Behind, Checked, Job, JobQueue};
use super::sessions::Sessions;
use super::sessions::directory::Directory;
use super::sessions::known::{Known, Standing};
use super::sessions::memory_budget::MemoryBudget;
use super::threads::signal::Signal;
use super::watch::Watches;
use super::watch::waker::{Channels, WakeUp, WakeUps};
use blackboard_board::SessionName;
use blackboard_store::{Head, Hint, SharedStore, Store};
use leader::{Leader, Round};

/// The number of checks that may wait for a query.
const WAITING_MAX: usize = 65_536;

/// The number of names in one query.
const NAMES_AT_ONCE_MAX: usize = 1024;

/// The longest wait for a check, with the commits that it finds.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// The time between two checks of the watched sessions.
const WATCHED_EVERY: Duration = Duration::from_secs(1);

/// Names to check, each with those that wait for it.
type Checks = HashMap<SessionName, Vec<Checked>>;

/// The checks that wait for the next query.
#[derive(Default)]
pub(super) struct HeadChecks {
    waiting: Mutex<Checks>,
    /// True once nobody answers any more. Changed under the lock above.
    is_over: AtomicBool,
    /// True if hints were lost.
    is_lost: AtomicBool,
    signal: Arc<Signal>,
}

/// The thread that asks the store.
struct Checker {
    checks: Arc<HeadChecks>,
    store: Arc<dyn Store>,
    directory: Arc<Directory>,
    memory: Arc<MemoryBudget>,
    channels: Arc<Channels>,
    wake_ups: Arc<WakeUps>,
    jobs: JobQueue,
}

impl HeadChecks {
    /// Starts the thread if other servers may write to the store.
    pub(super) fn start(
        deps: &Deps,
        Sessions { directory, memory, .. }: &Sessions,
        (watches, images, search): (&Watches, &Images, Option<Follow>),
        jobs: &JobQueue,
    ) -> io::Result<Arc<Self>> {
        let checks = Arc::new(Self::default());
        if let Some(store) = deps.store.shared() {
            let hinted = Hinted {
                checks: Arc::downgrade(&checks),
                store: Arc::downgrade(&deps.store),
                search,
                directory: Arc::clone(directory),
                channels: Arc::clone(&watches.channels),
            };
            store.on_hint(Box::new(move |hint| hinted.hear(hint)));
            let checker = Checker {
                checks: Arc::clone(&checks),
                store: Arc::clone(&deps.store),
                directory: Arc::clone(directory),
                memory: Arc::clone(memory),
                channels: Arc::clone(&watches.channels),
                wake_ups: Arc::clone(&watches.wake_ups),
                jobs: jobs.clone(),
            };
            let mut leader = Leader {
                directory: Arc::clone(directory),
                orphans: Arc::clone(&images.orphans),
                schedule: Arc::clone(&images.schedule),
                clock: deps.clock.clone(),
                swept: None,
                limited: Round::default(),
                collected: Round::default(),
                led: false,
            };
            let signal = Arc::clone(&checks.signal);
            deps.threads
                .start("checker", signal, move |signal| checker.run(&mut leader, signal))?;
        }
        Ok(checks)
    }

    /// Adds a check of a name to the next query.
    fn ask(
        &self,
        name: &SessionName,
    ) -> Result<oneshot::Receiver<Result<(), ServiceError>>, ServiceError> {
        let (checked, answer) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        if self.is_over.load(Ordering::Relaxed) {
            return Err(ServiceError::Stopping);
        }
        if waiting.len() >= WAITING_MAX {
            return Err(ServiceError::Overloaded);
        }
        let is_first = waiting.is_empty();
        waiting.entry(name.clone()).or_default().push(checked);
        drop(waiting);
        if is_first {
            self.signal.wake();
        }
        Ok(answer)
    }

    /// Brings sessions up to date, from a thread that may block.
    pub(super) fn check_here(&self, names: &[SessionName]) -> Result<(), ServiceError> {
        let asked: Result<Vec<_>, _> = names.iter().map(|name| self.ask(name)).collect();
        let asked = asked?.into_iter();
        let mut answers =
            asked.map(|asked| asked.blocking_recv().map_err(|_| ServiceError::Unreachable)?);
        answers.try_for_each(|answer| answer)
    }

    fn take(&self) -> Checks {
        let mut waiting = self.waiting.lock();
        if waiting.len() <= NAMES_AT_ONCE_MAX {
            return std::mem::take(&mut waiting);
        }
        let some: Vec<_> = waiting.keys().take(NAMES_AT_ONCE_MAX).cloned().collect();
        some.into_iter().filter_map(|name| waiting.remove_entry(&name)).collect()
    }
}

/// Called with a session that has new commits.
pub(super) type Follow = Box<dyn Fn(&SessionName) + Send + Sync>;

/// Receiver of the hints. It does not keep the service alive.
struct Hinted {
    checks: Weak<HeadChecks>,
    store: Weak<dyn Store>,
    directory: Arc<Directory>,
    channels: Arc<Channels>,
    /// Told of all sessions if there is a search and this server leads.
    search: Option<Follow>,
}

impl Hinted {
    fn leads(&self) -> bool {
        self.store.upgrade().is_some_and(|store| store.shared().is_some_and(SharedStore::lead))
    }

    fn hear(&self, hint: Hint) {
        let Some(checks) = self.checks.upgrade() else { return };
        let names = match hint {
            Hint::Changed(names) => names,
            Hint::Lost => {
                checks.is_lost.store(true, Ordering::Release);
                checks.signal.wake();
                return;
            }
        };
        let names: Vec<SessionName> =
            names.iter().filter_map(|name| SessionName::from_bytes(name)).collect();
        if let Some(search) = &self.search
            && self.leads()
        {
            // The leader follows all sessions into the texts, at its own pace.
            names.iter().for_each(search);
        }
        let all = self.channels.are_noticed() || self.channels.are_listed();
        let names = names.into_iter();
        let is_watched = |name: &SessionName| {
            all || self.directory.get(name).is_some_and(|session| session.is_watched())
        };
        let mut is_any = false;
        let mut waiting = checks.waiting.lock();
        for name in names.filter(is_watched) {
            if waiting.len() >= WAITING_MAX {
                // The next regular look finds it.
                break;
            }
            waiting.entry(name).or_default();
            is_any = true;
        }
        drop(waiting);
        if is_any {
            checks.signal.wake();
        }
    }
}

impl Checker {
    fn run(&self, leader: &mut Leader, signal: &Signal) {
        let Some(store) = self.store.shared() else { return };
        let (mut watched, mut rest) = (Instant::now(), Duration::ZERO);
        while signal.rest(rest) {
            let mut asked = self.checks.take();
            let is_lost = self.checks.is_lost.swap(false, Ordering::AcqRel);
            if is_lost || watched.elapsed() >= WATCHED_EVERY {
                self.add_watched(&mut asked);
                self.wake_lists(is_lost);
                watched = Instant::now();
                if let Err(error) = leader.work(store, &mut asked) {
                    tracing::debug!(%error, "the regular tasks wait for the database");
                }
            }
            self.check(store, asked);
            let is_asked = !self.checks.waiting.lock().is_empty();
            rest = if is_asked { Duration::ZERO } else { WATCHED_EVERY };
        }
        let mut waiting = self.checks.waiting.lock();
        self.checks.is_over.store(true, Ordering::Relaxed);
        waiting.clear();
    }

    /// Wakes those who wait for lists and inboxes, and tells readers of notices that some were lost.
    fn wake_lists(&self, is_lost: bool) {
        if is_lost && self.channels.are_noticed() {
            self.wake_ups.add_gap();
        }
        if self.channels.are_listed() {
            let (session, notice) = (None, None);
            self.wake_ups.add(WakeUp { session, notice, asked: true, requested: true });
        }
    }

    fn add_watched(&self, asked: &mut Checks) {
        self.directory.visit(|session| {
            if session.is_watched() {
                asked.entry(session.name().clone()).or_default();
            }
        });
    }

    fn check(&self, store: &dyn SharedStore, asked: Checks) {
        let mut asked: Vec<_> = asked.into_iter().collect();
        while !asked.is_empty() {
            let some = asked.split_off(asked.len().saturating_sub(NAMES_AT_ONCE_MAX));
            let known: Vec<_> = some.iter().map(|(name, _)| self.known(name)).collect();
            let names = some.iter().map(|(name, _)| name.as_str().as_bytes().to_vec());
            let asked: Vec<_> =
                names.zip(&known).map(|(name, known)| (name, known.revision)).collect();
            match store.heads(&asked) {
                Ok(heads) => self.compare(some, known, heads),
                Err(error) => {
                    tracing::debug!(%error, "the heads of sessions could not be read");
                    for waiting in some.into_iter().flat_map(|(_, waiting)| waiting) {
                        // The asker may have gone away.
                        waiting.send(Err(ServiceError::Unreachable)).ok();
                    }
                }
            }
        }
    }

    /// Returns what is known of a name's session, which is used by that: it stays until the asker has looked for it.
    fn known(&self, name: &SessionName) -> Known {
        let Some(session) = self.directory.get(name) else { return Known::NOTHING };
        self.memory.note_use(&session);
        session.known()
    }

    /// Hands the sessions that other servers wrote to, or whose commits the store lost, over to the writer. `known` is
    /// from before the query.
    fn compare(
        &self,
        asked: Vec<(SessionName, Vec<Checked>)>,
        known: Vec<Known>,
        heads: Vec<Option<Head>>,
    ) {
        let mut behind = Vec::new();
        for (((name, waiting), known), head) in asked.into_iter().zip(known).zip(heads) {
            let has = known.standing(head.as_ref()) == Standing::Has;
            if !has || head.is_some_and(|head| self.is_behind(&name, head)) {
                behind.push(Behind { name, head, known, waiting });
                continue;
            }
            if let Some(session) = self.directory.get(&name) {
                session.confirm(&known, self.store.epoch());
            }
            for waiting in waiting {
                waiting.send(Ok(())).ok();
            }
        }
        if !behind.is_empty()
            && let Err(error) = self.jobs.send(Job::CatchUp(behind))
        {
            // Their askers see the closed channels.
            tracing::debug!(%error, "sessions are not brought up to date");
        }
    }

    fn is_behind(&self, name: &SessionName, head: Head) -> bool {
        let Some(session) = self.directory.get(name) else { return true };
        let known = session.extent();
        let is_truncated = || head.base.is_some_and(|base| base > known.oldest);
        let is_miscounted =
            || known.revision == head.revision && session.history_bytes() != head.history_bytes;
        known.session != head.session
            || known.revision < head.revision
            || session.exists() && (is_truncated() || is_miscounted())
    }
}

impl Service {
    /// Returns true if other servers may write to the store.
    #[must_use]
    pub fn has_replicas(&self) -> bool {
        self.inner.deps.store.shared().is_some()
    }

    /// Brings a session up to date with what other servers wrote before this call. Does nothing for an embedded store.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Unreachable`] if the store does not answer in time; or the reason why its commits cannot be
    /// taken in.
    pub(crate) async fn catch_up(&self, name: &SessionName) -> Result<(), ServiceError> {
        self.catch_up_all([name]).await
    }

    /// Brings sessions up to date, with one query for all.
    ///
    /// # Errors
    ///
    /// See [`Service::catch_up`].
    pub(super) async fn catch_up_all<'a>(
        &self,
        names: impl IntoIterator<Item = &'a SessionName> + Send,
    ) -> Result<(), ServiceError> {
        if !self.has_replicas() {
            return Ok(());
        }
        let asked: Result<Vec<_>, _> =
            names.into_iter().map(|name| self.inner.heads.ask(name)).collect();
        let deadline = Instant::now() + WAIT_MAX;
        for checked in asked? {
            match timeout_at(deadline.into(), checked).await {
                Ok(Ok(checked)) => checked?,
                Ok(Err(_)) | Err(_) => return Err(ServiceError::Unreachable),
            }
        }
        Ok(())
    }
}
