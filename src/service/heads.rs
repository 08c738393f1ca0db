//! Head checks: what this server knows of a session is compared with the store before it is read.
//!
//! A check joins the next query, which begins after it came; one query answers for all that wait. A session that other
//! servers wrote to is brought up to date by the writer. The sessions that somebody watches are checked each second.
//! An embedded store has one server, and needs none of this.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Service;
use super::clock::Clock;
use super::deps::Deps;
use super::error::ServiceError;
use super::job::{Behind, Checked, Job, JobQueue};
use super::sessions::directory::Directory;
use super::threads::signal::Signal;
use crate::board::SessionName;
use crate::store::{Head, SharedStore, Store};

/// The number of checks that may wait for a query.
const WAITING_MAX: usize = 65_536;

/// The number of names in one query.
const NAMES_AT_ONCE_MAX: usize = 1024;

/// The longest wait for a check, with the commits that it finds.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// The time between two checks of the watched sessions.
const WATCHED_EVERY: Duration = Duration::from_secs(1);

/// The checks that wait for the next query.
#[derive(Default)]
pub(super) struct HeadChecks {
    waiting: Mutex<HashMap<SessionName, Vec<Checked>>>,
    signal: Arc<Signal>,
}

/// The thread that asks the store.
struct Checker {
    checks: Arc<HeadChecks>,
    store: Arc<dyn Store>,
    directory: Arc<Directory>,
    clock: Clock,
    jobs: JobQueue,
}

impl HeadChecks {
    /// Starts the thread if other servers may write to the store.
    pub(super) fn start(
        deps: &Deps,
        directory: &Arc<Directory>,
        jobs: &JobQueue,
    ) -> io::Result<Arc<Self>> {
        let checks = Arc::new(Self::default());
        if deps.store.shared().is_some() {
            let checker = Checker {
                checks: Arc::clone(&checks),
                store: Arc::clone(&deps.store),
                directory: Arc::clone(directory),
                clock: deps.clock.clone(),
                jobs: jobs.clone(),
            };
            let signal = Arc::clone(&checks.signal);
            deps.threads.start("checker", signal, move |signal| checker.run(signal))?;
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

    fn take(&self) -> HashMap<SessionName, Vec<Checked>> {
        let mut waiting = self.waiting.lock();
        if waiting.len() <= NAMES_AT_ONCE_MAX {
            return std::mem::take(&mut waiting);
        }
        let some: Vec<_> = waiting.keys().take(NAMES_AT_ONCE_MAX).cloned().collect();
        some.into_iter().filter_map(|name| waiting.remove_entry(&name)).collect()
    }
}

impl Checker {
    fn run(&self, signal: &Signal) {
        let Some(store) = self.store.shared() else { return };
        let (mut rest, mut watched_at) = (WATCHED_EVERY, Instant::now());
        while signal.rest(rest) {
            let mut asked = self.checks.take();
            if watched_at.elapsed() >= WATCHED_EVERY {
                self.add_watched(&mut asked);
                self.add_due(store, &mut asked);
                watched_at = Instant::now();
            }
            self.check(store, asked);
            let is_asked = !self.checks.waiting.lock().is_empty();
            rest = if is_asked { Duration::ZERO } else { WATCHED_EVERY };
        }
        self.checks.waiting.lock().clear();
    }

    fn add_watched(&self, asked: &mut HashMap<SessionName, Vec<Checked>>) {
        self.directory.visit(|session| {
            if session.is_watched() {
                asked.entry(session.name().clone()).or_default();
            }
        });
    }

    /// Adds sessions in which something has expired, for the leader's writer: it knows only what it has read.
    fn add_due(&self, store: &dyn SharedStore, asked: &mut HashMap<SessionName, Vec<Checked>>) {
        if !store.lead() {
            return;
        }
        match store.due(self.clock.read().due(), NAMES_AT_ONCE_MAX) {
            Ok(names) => {
                let parsed = |name: Vec<u8>| std::str::from_utf8(&name).ok()?.parse().ok();
                for name in names.into_iter().filter_map(parsed) {
                    asked.entry(name).or_default();
                }
            }
            Err(error) => tracing::warn!(%error, "the sessions with expiries could not be read"),
        }
    }

    fn check(&self, store: &dyn SharedStore, asked: HashMap<SessionName, Vec<Checked>>) {
        let mut asked: Vec<_> = asked.into_iter().collect();
        while !asked.is_empty() {
            let some = asked.split_off(asked.len().saturating_sub(NAMES_AT_ONCE_MAX));
            let names: Vec<_> =
                some.iter().map(|(name, _)| name.as_str().as_bytes().to_vec()).collect();
            match store.heads(&names) {
                Ok(heads) => self.compare(some, heads),
                Err(error) => {
                    tracing::warn!(%error, "the heads of sessions could not be read");
                    for waiting in some.into_iter().flat_map(|(_, waiting)| waiting) {
                        // The asker may have gone away.
                        waiting.send(Err(ServiceError::Unreachable)).ok();
                    }
                }
            }
        }
    }

    fn compare(&self, asked: Vec<(SessionName, Vec<Checked>)>, heads: Vec<Option<Head>>) {
        let mut behind = Vec::new();
        for ((name, waiting), head) in asked.into_iter().zip(heads) {
            match head.filter(|head| self.is_behind(&name, *head)) {
                Some(head) => behind.push(Behind { name, head, waiting }),
                None => waiting.into_iter().for_each(|waiting| {
                    waiting.send(Ok(())).ok();
                }),
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
        let known = self.directory.get(name).map(|session| session.extent());
        known.is_none_or(|known| known.session != head.session || known.revision < head.revision)
    }
}

impl Service {
    /// Brings a session up to date with what other servers wrote before this call. Does nothing for an embedded store.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Unreachable`] if the store does not answer in time; or the reason why its commits cannot be
    /// taken in.
    pub async fn catch_up(&self, name: &SessionName) -> Result<(), ServiceError> {
        if self.inner.deps.store.shared().is_none() {
            return Ok(());
        }
        let checked = self.inner.heads.ask(name)?;
        match timeout(WAIT_MAX, checked).await {
            Ok(Ok(checked)) => checked,
            Ok(Err(_)) | Err(_) => Err(ServiceError::Unreachable),
        }
    }
}
