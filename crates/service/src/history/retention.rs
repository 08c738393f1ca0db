//! Retention: a thread that truncates histories as their settings demand.
//!
//! A base costs as much as the board, so a history is truncated only when enough can go, and not too often. More than the
//! setting is kept meanwhile, never less.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::deletion::{AT_ONCE_MAX, Endings};
use super::retention_schedule::{LOOK_AFTER, REST, RetentionSchedule};
use super::truncate::{put_base, rebase};
use crate::deps::Deps;
use crate::error::ServiceError;
use crate::images::gc_schedule::GcSchedule;
use crate::job::{Job, JobQueue};
use crate::sessions::directory::{Directory, InUse};
use crate::sessions::memory_budget::MemoryBudget;
use crate::sessions::replay::{REPLAY_PAGE, beginning, framed, go_on};
use crate::sessions::tombstones::Tombstones;
use crate::threads::signal::Signal;
use crate::work_turns::WorkTurns;
use blackboard_board::{
    Board, Commit, Extent, History, Revision, SessionName, Summary, Timestamp, Ttl,
};
use blackboard_clock::Clock;
use blackboard_store::{PageMax, Store};

/// A history is truncated once its excess is this fraction of it.
const EXCESS_PART: u64 = 8;

/// The longest time to the next check while commits age. The wall clock may be set meanwhile.
const AGING_MAX: Duration = Duration::from_secs(60 * 60);

/// The time to the next check while another base is being stored.
const TURN_REST: Duration = Duration::from_millis(500);

/// The retention thread.
pub(crate) struct Retention {
    pub(crate) retentions: Arc<RetentionSchedule>,
    pub(crate) directory: Arc<Directory>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) jobs: JobQueue,
    /// Limits bases to one at a time.
    pub(crate) bases: Arc<WorkTurns>,
    pub(crate) schedule: Arc<GcSchedule>,
    /// Pending work for deleted sessions.
    pub(crate) endings: Mutex<Endings>,
    pub(crate) tombstones: Arc<Tombstones>,
    pub(crate) memory: Arc<MemoryBudget>,
}

impl Retention {
    pub(crate) fn start(self, deps: &Deps) -> io::Result<()> {
        let signal = Arc::clone(&self.retentions.signal);
        deps.threads.start("retention", signal, move |signal| self.run(signal))
    }

    fn run(&self, signal: &Signal) {
        while signal.rest(self.until_next()) {
            self.forget_deleted();
            self.endings.lock().delete_some(&*self.store);
            while !signal.is_stopped()
                && let Some(name) = self.retentions.take_due()
            {
                self.look(&name);
            }
        }
    }

    /// Time until the next work.
    fn until_next(&self) -> Duration {
        let over = self.tombstones.until_next(self.clock.read().now).max(LOOK_AFTER);
        let left = self.retentions.until_next().min(over);
        if self.endings.lock().are_done() { left } else { left.min(LOOK_AFTER) }
    }

    /// Forgets some names with expired tombstones. Their rows are deleted by the endings.
    fn forget_deleted(&self) {
        let (mut endings, due) = (self.endings.lock(), self.clock.read().due());
        let replaced = (0..AT_ONCE_MAX).map_while(|_| self.tombstones.take_replaced(due));
        endings.over.extend(replaced);
        for _ in 0..AT_ONCE_MAX {
            let Some(name) = self.tombstones.take_over(due) else { return };
            let session = self.directory.get(&name).filter(|session| !session.exists());
            let Some(session) = session else { continue };
            match self.directory.forget_deleted(&name, &session) {
                Ok(id) => {
                    self.memory.forget(&session);
                    endings.over.push(id);
                }
                Err(InUse) => self.tombstones.keep(&name, due),
            }
        }
    }

    /// Truncates the history of a session that is due.
    fn look(&self, name: &SessionName) {
        let Some(summary) = self.summary(name) else {
            self.retentions.forget(name);
            return;
        };
        let again = self.cut(name, &summary).unwrap_or_else(|error| {
            if matches!(error, ServiceError::Compacted { .. }) {
                tracing::debug!(session = %name, "another server truncated the history");
            } else {
                tracing::warn!(session = %name, %error, "the history could not be truncated");
            }
            Some(REST)
        });
        if let Some(again) = again {
            self.retentions.look_again(name, again);
        }
    }

    /// Summary of a session with a retention setting; its board is not needed.
    fn summary(&self, name: &SessionName) -> Option<Arc<Summary>> {
        let session = self.directory.get(name).filter(|session| !session.is_damaged())?;
        let summary = session.summary();
        let limited = summary.life.as_ref()?.settings.history.is_some();
        limited.then_some(summary)
    }

    /// Truncates the excess. Returns the time to the next check, or `None` to wait for the next commit.
    fn cut(&self, name: &SessionName, now: &Summary) -> Result<Option<Duration>, ServiceError> {
        let Some(history) = now.life.as_ref().and_then(|life| life.settings.history) else {
            return Ok(None);
        };
        let reading = self.clock.read();
        let limit = Limit::of(history, now, reading.due());
        if !limit.is_worthwhile(now) {
            return Ok(None);
        }
        let Extent { session, oldest: from, .. } = now.extent;
        // Reading one commit is cheaper than reading the base.
        let oldest = framed(&*self.store, session, from, PageMax { commits: 1, bytes: 1 })?;
        if let Some((kept, _)) =
            oldest.iter().find(|(commit, bytes)| !limit.lets_go(commit, *bytes as u64))
        {
            return Ok(limit.grows_too_old(kept.at, reading.now));
        }
        // Only the base stored last can be put in force, so a purge or a fork goes first.
        let Some(_turn) = self.bases.now() else { return Ok(Some(TURN_REST)) };
        let (board, dropped_bytes) = self.board_at_limit(now.extent, &limit)?;
        if board.revision() == from {
            return Ok(limit.grows_too_old(now.updated_at, reading.now));
        }
        put_base(&*self.store, &board, dropped_bytes)?;
        let (rebase, answer) = rebase(name, &board, dropped_bytes, None);
        self.jobs.send(Job::Rebase(rebase))?;
        answer.blocking_recv().map_err(|_| ServiceError::Stopping)??;
        self.schedule.after_cut(name);
        tracing::debug!(session = %name, oldest = %board.revision(), "truncated the history");
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

/// The part of a history that may be deleted.
enum Limit {
    /// Up to this revision.
    Revision(Revision),
    /// The oldest commits, up to this size in bytes.
    Bytes(u64),
    /// Commits before this time; the setting's age.
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

    /// Returns the time until a commit is too old; `None` if the limit is no age.
    fn grows_too_old(&self, at: Timestamp, now: Timestamp) -> Option<Duration> {
        let Self::Before(_, age) = self else { return None };
        let ms = at.after(*age).0.saturating_sub(now.0);
        let left = Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        Some(left.clamp(LOOK_AFTER, AGING_MAX))
    }

    /// Returns true if enough can be deleted. For an age the commits themselves decide.
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
mod tests;
