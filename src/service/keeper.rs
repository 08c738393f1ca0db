//! Keeping only a part of a session's history, where its settings say so: a thread looks after those
//! sessions, and lets go what is older by storing a base in its place.
//!
//! A base costs as much as the board, so it is made when enough can go, and not too often; what is
//! kept meanwhile is more than was asked for, never less.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::clock::Clock;
use super::directory::Directory;
use super::error::ServiceError;
use super::job::Job;
use super::looks::Looks;
use super::rebase::{put_base, rebase};
use super::replay::{REPLAY_PAGE, beginning, framed, go_on};
use super::signal::Signal;
use super::supervisor::{Supervised, Supervisor};
use super::turns::Turns;
use crate::board::{
    Board, Commit, Extent, History, Revision, SessionName, Summary, Timestamp, Ttl,
};
use crate::store::{PageMax, Store};

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How long a session is left alone after its history was cut.
const REST: Duration = Duration::from_secs(10);

/// A history is cut when by this part of it there is too much.
const EXCESS_PART: u64 = 8;

/// How long a session is left alone at most where nothing was too much.
const IDLE_REST_MAX: Duration = Duration::from_secs(60);

/// What the thread works on.
pub(super) struct Keeper {
    pub(super) limited: Arc<Mutex<HashSet<SessionName>>>,
    pub(super) directory: Arc<Directory>,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Clock,
    pub(super) jobs: SyncSender<Job>,
    /// Whose turn it is to make a base.
    pub(super) bases: Arc<Turns>,
    pub(super) looks: Arc<Looks>,
    /// When each session may be looked at again.
    pub(super) rests: HashMap<SessionName, Instant>,
}

impl Keeper {
    pub(super) fn start(mut self, supervisor: &Supervisor) -> io::Result<Supervised> {
        supervisor.start("keeper", Arc::default(), move |signal| self.run(signal))
    }

    fn run(&mut self, signal: &Signal) {
        while signal.rest(LOOK_EVERY) {
            self.look();
        }
    }

    /// Looks after every session that keeps a part of its history, once.
    fn look(&mut self) {
        self.rests.retain(|_, until| *until > Instant::now());
        let rests = |name: &&SessionName| self.rests.contains_key(*name);
        let names: Vec<SessionName> =
            self.limited.lock().iter().filter(|name| !rests(name)).cloned().collect();
        for name in names {
            let Some(summary) = self.summary(&name) else {
                self.limited.lock().remove(&name);
                continue;
            };
            match self.cut(&name, &summary) {
                Ok(rest) => _ = rest.map(|rest| self.rests.insert(name, Instant::now() + rest)),
                Err(error) => {
                    tracing::warn!(session = %name, %error, "the history could not be cut");
                    self.rests.insert(name, Instant::now() + REST);
                }
            }
        }
    }

    /// What is known of a session that keeps a part of its history; its board is not needed.
    fn summary(&self, name: &SessionName) -> Option<Arc<Summary>> {
        let session = self.directory.get(name).filter(|session| !session.is_damaged())?;
        let summary = session.summary();
        let limited = summary.life.as_ref()?.settings.history.is_some();
        limited.then_some(summary)
    }

    /// Lets go what is too much; how long the session is to be left alone then.
    fn cut(&self, name: &SessionName, now: &Summary) -> Result<Option<Duration>, ServiceError> {
        let Some(history) = now.life.as_ref().and_then(|life| life.settings.history) else {
            return Ok(None);
        };
        let limit = Limit::of(history, now, self.clock.read().due());
        if !limit.is_worthwhile(now) {
            return Ok(None);
        }
        let idle_rest = limit.idle_rest();
        let Extent { session, oldest: from, .. } = now.extent;
        // To look at one commit is cheaper than to read the base.
        let oldest = framed(&*self.store, session, from, PageMax { commits: 1, bytes: 1 })?;
        if !oldest.iter().all(|(commit, bytes)| limit.lets_go(commit, *bytes as u64)) {
            return Ok(Some(idle_rest));
        }
        // Of two bases only the last one put could be set: a purge or a fork comes first.
        let Some(_turn) = self.bases.now() else { return Ok(None) };
        let (board, dropped_bytes) = self.board_at_limit(now.extent, &limit)?;
        if board.revision() == from {
            return Ok(Some(idle_rest));
        }
        put_base(&*self.store, &board)?;
        let (rebase, answer) = rebase(name, &board, dropped_bytes);
        self.jobs.send(Job::Rebase(rebase)).map_err(|_| ServiceError::Stopping)?;
        answer.blocking_recv().map_err(|_| ServiceError::Stopping)??;
        self.looks.after_cut(name);
        tracing::debug!(session = %name, oldest = %board.revision(), "cut the history");
        Ok(Some(REST))
    }

    /// The board at the revision where the history may begin, and the bytes of the commits up to it.
    fn board_at_limit(&self, now: Extent, limit: &Limit) -> Result<(Board, u64), ServiceError> {
        let mut board = beginning(&*self.store, now.session, now.oldest)?;
        let mut dropped = 0;
        loop {
            let page = framed(&*self.store, now.session, board.revision(), REPLAY_PAGE)?;
            if page.is_empty() {
                return Ok((board, dropped));
            }
            for (commit, bytes) in page {
                let bytes = bytes as u64;
                if commit.revision > now.revision || !limit.lets_go(&commit, dropped + bytes) {
                    return Ok((board, dropped));
                }
                go_on(&mut board, &commit)?;
                dropped += bytes;
            }
        }
    }
}

/// Up to where history may go.
enum Limit {
    /// Up to this revision.
    Revision(Revision),
    /// So many bytes of commits.
    Bytes(u64),
    /// What is older than this; the age that it comes from.
    Before(Timestamp, Ttl),
}

impl Limit {
    fn of(history: History, summary: &Summary, now: Timestamp) -> Self {
        match history {
            History::Revisions(kept) => {
                Self::Revision(Revision(summary.extent.revision.0.saturating_sub(kept)))
            }
            History::Bytes(kept) => Self::Bytes(summary.history_bytes.saturating_sub(kept)),
            History::Age(ttl) => Self::Before(Timestamp(now.0.saturating_sub(ttl.ms())), ttl),
        }
    }

    /// How long nothing can become too much, roughly.
    fn idle_rest(&self) -> Duration {
        match self {
            Self::Revision(_) | Self::Bytes(_) => LOOK_EVERY,
            Self::Before(_, age) => {
                let ms = u64::try_from(age.ms()).unwrap_or(u64::MAX);
                Duration::from_millis(ms / EXCESS_PART).min(IDLE_REST_MAX)
            }
        }
    }

    /// Whether enough may go; of an age the commits themselves tell.
    fn is_worthwhile(&self, summary: &Summary) -> bool {
        let Extent { oldest, revision, .. } = summary.extent;
        let (excess, all) = match self {
            Self::Revision(target) => {
                (target.0.saturating_sub(oldest.0), revision.0.saturating_sub(oldest.0))
            }
            Self::Bytes(excess) => (*excess, summary.history_bytes),
            Self::Before(..) => (1, 1),
        };
        excess > 0 && excess >= all / EXCESS_PART && oldest < revision
    }

    fn lets_go(&self, commit: &Commit, dropped_bytes: u64) -> bool {
        match self {
            Self::Revision(target) => commit.revision <= *target,
            Self::Bytes(excess) => dropped_bytes <= *excess,
            Self::Before(moment, _) => commit.at < *moment,
        }
    }
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
