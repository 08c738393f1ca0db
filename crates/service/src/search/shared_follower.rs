//! The leader's thread that brings the texts of a shared store up to date with the commits.
//!
//! It does what the indexer does with its file, and knows where it is from the store alone: the next leader goes on.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::indexer::Indexer;
use super::progress::Progress;
use super::steps::{Failed, Steps, Target};
use crate::deps::Deps;
use crate::error::ServiceError;
use crate::heads::HeadChecks;
use crate::threads::signal::Signal;
use blackboard_board::{SessionId, SessionName};
use blackboard_error_chain::Chain;
use blackboard_search::{WORDS_VERSION, Words};
use blackboard_store::SharedStore;

/// The longest time between two looks for sessions whose texts are behind. Hints come sooner.
const BEHIND_EVERY: Duration = Duration::from_secs(10);

/// The number of sessions in one round.
const SESSIONS_MAX: usize = 256;

/// The pause in which commits gather, so that many are followed at once.
const GATHERS: Duration = Duration::from_millis(300);

/// The rest of a server that does not lead, and after a failure.
const REST: Duration = Duration::from_secs(1);

/// The thread.
pub(super) struct Follower {
    pub(super) indexer: Indexer,
    pub(super) progress: Arc<Progress>,
    pub(super) heads: Arc<HeadChecks>,
}

impl Follower {
    pub(super) fn start(self, deps: &Deps) -> io::Result<()> {
        deps.threads.start("indexer", self.progress.signal(), move |signal| self.run(signal))
    }

    fn run(&self, signal: &Signal) {
        let Some(store) = self.indexer.store.shared() else { return };
        let mut looked: Option<Instant> = None;
        while !signal.is_stopped() {
            if !store.lead() {
                self.progress.take();
                looked = None;
                if !signal.pause(REST) {
                    return;
                }
                continue;
            }
            let is_due = looked.is_none_or(|looked| looked.elapsed() >= BEHIND_EVERY);
            match self.round(store, is_due, signal) {
                Ok(more) => {
                    if is_due {
                        looked = if more { None } else { Some(Instant::now()) };
                    }
                    let goes_on = more || signal.rest(BEHIND_EVERY) && signal.pause(GATHERS);
                    if !goes_on {
                        return;
                    }
                }
                Err(Failed::Stopping) => return,
                Err(error) => {
                    tracing::warn!(error = %Chain(&error), "the texts of the store cannot follow the commits");
                    looked = None;
                    if !signal.pause(REST) {
                        return;
                    }
                }
            }
        }
    }

    /// Follows some sessions. Returns true if there may be more.
    fn round(&self, store: &dyn SharedStore, looks: bool, signal: &Signal) -> Result<bool, Failed> {
        let mut names: Vec<SessionName> = self.progress.take().into_keys().collect();
        let later = names.split_off(names.len().min(SESSIONS_MAX));
        let mut more = !later.is_empty();
        self.progress.give_back(later);
        if looks {
            let behind = store.texts().texts_behind(WORDS_VERSION, SESSIONS_MAX);
            let behind = behind.map_err(ServiceError::from)?;
            more |= behind.len() == SESSIONS_MAX;
            names.extend(behind.iter().filter_map(|name| SessionName::from_bytes(name)));
        }
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Ok(more);
        }
        self.heads.check_here(&names)?;
        let known = names.iter().filter_map(|name| self.indexer.directory.get(name));
        let known: Vec<_> =
            known.map(|session| (session.name().clone(), session.extent().session)).collect();
        let ids: Vec<SessionId> = known.iter().map(|(_, id)| *id).collect();
        let reached = store.texts().texts_at(WORDS_VERSION, &ids).map_err(ServiceError::from)?;
        let at = known.into_iter().map(|(name, id)| (name, id, reached.get(&id).copied()));
        self.progress.begin_round(at.collect());
        let words = Words::new()?;
        let target = Target::Store(store.texts(), &words);
        let mut steps = Steps::new(target, &self.progress, signal);
        for name in &names {
            if signal.is_stopped() {
                return Err(Failed::Stopping);
            }
            self.indexer.follow(name, None, &mut steps)?;
        }
        steps.carry_out()?;
        Ok(more)
    }
}
