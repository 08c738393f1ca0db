//! History of a session: boards at earlier revisions, and commits.
//!
//! A past board is replayed from the nearest cached one, at most two at a time.

pub(crate) mod deletion;
mod fork;
pub(crate) mod retention;
pub(crate) mod retention_schedule;
pub(crate) mod staged_history;
pub(crate) mod truncate;

use std::io;
use std::str::FromStr;
use std::sync::Arc;

use parking_lot::Mutex;

use super::deps::Deps;
use super::error::ServiceError;
use super::images::Images;
use super::job::JobQueue;
use super::sessions::Sessions;
use super::sessions::past_boards::PastBoards;
use super::sessions::recent_commits::{COMMIT_BYTES_AT_ONCE_MAX, COMMITS_AT_ONCE_MAX};
use super::sessions::replay::{framed, replay};
use super::sessions::session::Published;
use super::sessions::tombstones::Tombstones;
use super::work_turns::WorkTurns;
use super::{Keep, Reply, Service};
use crate::{Inner, SessionHandle};
use blackboard_board::{
    Board, CheckpointName, Command, Commit, Extent, InvalidName, Rejected, Revision,
    SessionCommand, SessionId, Terms,
};
use blackboard_fairness::{Share, SharedPlaces, with_files};
use blackboard_store::PageMax;
use deletion::Endings;
use retention::Retention;
use retention_schedule::RetentionSchedule;

/// The number of boards replayed at once.
const REPLAYS_MAX: u64 = 2;

/// The number of replays that may wait.
const REPLAYS_WAITING_MAX: usize = 64;

/// The number of pages of commits read at once.
const READS_MAX: u64 = 4;

/// The page read for a reader of commits.
const HISTORY_PAGE: PageMax =
    PageMax { commits: COMMITS_AT_ONCE_MAX, bytes: COMMIT_BYTES_AT_ONCE_MAX };

/// A point in a session's history, as a caller names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// By its revision.
    Revision(Revision),
    /// By a checkpoint.
    Checkpoint(CheckpointName),
}

impl FromStr for At {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(revision) if digits => Ok(Self::Revision(Revision(revision))),
            // A number too large for a revision names one that does not exist.
            Err(_) if digits => Ok(Self::Revision(Revision(u64::MAX))),
            Ok(_) | Err(_) => text.parse().map(Self::Checkpoint),
        }
    }
}

/// The number of forks and purges that may wait for their turn.
const BASES_WAITING_MAX: usize = 64;

/// The number of forks that link their images at once, and the number that may wait.
const LINKS_MAX: u64 = 4;
const LINKS_WAITING_MAX: usize = 64;

/// History of all sessions: reads of the past, forks, truncation and retention.
pub(super) struct History {
    replays: WorkTurns,
    reads: SharedPlaces,
    boards: Arc<PastBoards>,
    /// One base is stored at a time.
    bases: Arc<WorkTurns>,
    /// Limits forks that link their images.
    links: WorkTurns,
    pub(super) retentions: Arc<RetentionSchedule>,
    pub(super) tombstones: Arc<Tombstones>,
}

impl History {
    /// Starts the retention thread, with the schedule and the deleted sessions of the startup scan.
    pub(super) fn start(
        deps: &Deps,
        sessions: &Sessions,
        images: &Images,
        jobs: &JobQueue,
        retentions: RetentionSchedule,
        endings: Endings,
    ) -> io::Result<Self> {
        let tombstones = Tombstones::new(Arc::clone(&retentions.signal));
        endings.deleted.iter().for_each(|(name, at)| tombstones.add(name, *at));
        let history = Self {
            replays: WorkTurns::new(REPLAYS_MAX, REPLAYS_WAITING_MAX),
            reads: SharedPlaces::new(READS_MAX, usize::MAX, Share::All),
            boards: Arc::clone(&sessions.past_boards),
            bases: Arc::new(WorkTurns::new(1, BASES_WAITING_MAX)),
            links: WorkTurns::new(LINKS_MAX, LINKS_WAITING_MAX),
            retentions: Arc::new(retentions),
            tombstones: Arc::new(tombstones),
        };
        let retention = Retention {
            retentions: Arc::clone(&history.retentions),
            directory: Arc::clone(&sessions.directory),
            store: Arc::clone(&deps.store),
            clock: deps.clock.clone(),
            jobs: jobs.clone(),
            bases: Arc::clone(&history.bases),
            schedule: Arc::clone(&images.schedule),
            endings: Mutex::new(endings),
            tombstones: Arc::clone(&history.tombstones),
            memory: Arc::clone(&sessions.memory),
        };
        retention.start(deps)?;
        Ok(history)
    }
}

impl At {
    /// Returns the revision of the point in a session's history.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Rejected`] with no such checkpoint or revision, [`ServiceError::Compacted`].
    pub fn revision(&self, now: &Board) -> Result<Revision, ServiceError> {
        let refused =
            |rejected| ServiceError::Rejected { rejected, revision: Some(now.revision()) };
        let revision = match self {
            Self::Revision(revision) => *revision,
            Self::Checkpoint(name) => {
                let checkpoint = now.checkpoints().get(name);
                let none = || refused(Rejected::NoCheckpoint { checkpoint: name.clone() });
                checkpoint.ok_or_else(none)?.revision
            }
        };
        if revision > now.revision() {
            return Err(refused(Rejected::NoRevision { revision }));
        }
        let oldest = now.oldest();
        if revision < oldest { Err(ServiceError::Compacted { oldest }) } else { Ok(revision) }
    }
}

impl SessionHandle {
    /// Returns the session's board at a point in its history.
    ///
    /// # Errors
    ///
    /// As for [`At::revision`], or where the store cannot be read.
    pub async fn board_at(&self, now: &Published, at: &At) -> Result<Arc<Board>, ServiceError> {
        let revision = at.revision(&now.board)?;
        if revision == now.board.revision() {
            return Ok(Arc::clone(&now.board));
        }
        let Inner { deps, history: History { replays, boards, .. }, .. } = &*self.service.inner;
        let turn = replays.wait().await?;
        let (store, session) = (Arc::clone(&deps.store), now.board.id());
        let oldest = now.board.oldest();
        let start = boards.nearest(session, oldest, revision);
        // The permit goes with the work, since the caller may leave.
        let replay = move || {
            let _held = turn;
            replay(&*store, session, start, oldest, revision)
        };
        let board = Arc::new(blocking(replay).await?);
        boards.keep(&board);
        Ok(board)
    }

    /// Restores the session to `then`, one of its past boards.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write).
    pub async fn restore(
        &self,
        terms: Terms,
        then: Arc<Board>,
        keep: Option<Keep>,
    ) -> Result<Reply, ServiceError> {
        let command = Command::Session(SessionCommand::Restore { then });
        self.write(terms, command, Vec::new(), keep).await
    }
}

impl SessionHandle {
    /// Returns a page of the session's commits after a revision, at most 256 and about 1 MiB; empty at the end.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Compacted`], or where the store cannot be read.
    pub async fn history(
        &self,
        now: Extent,
        after: Revision,
    ) -> Result<Vec<Arc<Commit>>, ServiceError> {
        self.service.history(now, after).await
    }
}

impl Service {
    /// Returns a page of a session's commits after a revision, at most 256 and about 1 MiB; empty at the end.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Compacted`], or where the store cannot be read.
    pub(crate) async fn history(
        &self,
        now: Extent,
        after: Revision,
    ) -> Result<Vec<Arc<Commit>>, ServiceError> {
        let Extent { session, oldest, revision, .. } = now;
        if after < oldest {
            return Err(ServiceError::Compacted { oldest });
        }
        if after >= revision {
            return Ok(Vec::new());
        }
        // The waiting readers are bounded by the number of streams and connections.
        let turn = self.inner.history.reads.turn(1).map_err(|_| ServiceError::Overloaded)?;
        let turn = turn.await.map_err(|_| ServiceError::Overloaded)?;
        let store = Arc::clone(&self.inner.deps.store);
        let read = move || {
            let _held = turn;
            framed(&*store, session, after, HISTORY_PAGE)
        };
        let commits = blocking(read).await?;
        let commits = commits.into_iter().map(|(commit, _)| Arc::new(commit));
        // Commits stored since are shown once they are published.
        Ok(commits.take_while(|commit| commit.revision <= revision).collect())
    }

    /// Returns the bytes of memory that past boards take.
    pub(super) fn past_bytes(&self) -> usize {
        self.inner.history.boards.bytes()
    }

    /// Drops a session's past boards from memory.
    pub(super) fn forget_past(&self, session: SessionId) {
        self.inner.history.boards.forget(session);
    }
}

/// Runs work that reads the store on a blocking thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
) -> Result<T, ServiceError> {
    with_files(work).await.map_err(|_| ServiceError::Fault)?
}
