//! The past of a session: its board at an earlier revision, and its commits.
//!
//! An earlier board is replayed from the nearest one that is at hand, two at a time; the last ones made
//! are at hand for a while.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::error::ServiceError;
use super::session::Published;
use super::watch::{COMMIT_BYTES_AT_ONCE_MAX, COMMITS_AT_ONCE_MAX};
use super::{Keep, Reply, Service};
use crate::board::stored::{self, BaseReader};
use crate::board::{
    Board, CheckpointName, Command, Commit, Frame, InvalidName, Rejected, Revision, SessionId,
    Terms, Write, apply,
};
use crate::store::{PageMax, Store};

/// How many boards are replayed at once.
const REPLAYS_MAX: usize = 2;

/// How often a replay begins again because the history was cut meanwhile.
const REPLAY_TRIES_MAX: usize = 8;

/// How many pages of commits are read at once.
const READS_MAX: usize = 4;

/// How many past boards are at hand.
const KEPT_BOARDS_MAX: usize = 16;

/// How many bytes past boards at hand may have together.
const KEPT_BYTES_MAX: u64 = 64 << 20;

/// What is read at once for a replay.
pub(super) const REPLAY_PAGE: PageMax = PageMax { commits: 1024, bytes: 4 << 20 };

/// What is read at once for a reader of commits.
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
            // A number that no revision can be names one that there is not.
            Err(_) if digits => Ok(Self::Revision(Revision(u64::MAX))),
            Ok(_) | Err(_) => text.parse().map(Self::Checkpoint),
        }
    }
}

/// What reading the past takes.
#[derive(Debug)]
pub(super) struct Past {
    replays: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    kept: Arc<Mutex<Kept>>,
}

impl Past {
    pub(super) fn new() -> Self {
        Self {
            replays: Arc::new(Semaphore::new(REPLAYS_MAX)),
            reads: Arc::new(Semaphore::new(READS_MAX)),
            kept: Arc::default(),
        }
    }
}

/// The past boards at hand, the one used last at the end.
#[derive(Debug, Default)]
struct Kept {
    boards: VecDeque<Arc<Board>>,
}

impl Kept {
    /// The nearest board up to a revision. One from before what is kept leads nowhere.
    fn nearest(
        &mut self,
        session: SessionId,
        oldest: Revision,
        revision: Revision,
    ) -> Option<Arc<Board>> {
        let fits = |board: &Board| {
            board.id() == session && (oldest..=revision).contains(&board.revision())
        };
        let found = self.boards.iter().enumerate().filter(|(_, board)| fits(board));
        let (index, _) = found.max_by_key(|(_, board)| board.revision())?;
        let board = self.boards.remove(index)?;
        self.boards.push_back(Arc::clone(&board));
        Some(board)
    }

    fn keep(&mut self, board: &Arc<Board>) {
        let same = |kept: &Board| kept.id() == board.id() && kept.revision() == board.revision();
        self.boards.retain(|kept| !same(kept));
        self.boards.push_back(Arc::clone(board));
        let bytes = |boards: &VecDeque<Arc<Board>>| boards.iter().map(|b| b.bytes()).sum::<u64>();
        while self.boards.len() > KEPT_BOARDS_MAX || bytes(&self.boards) > KEPT_BYTES_MAX {
            self.boards.pop_front();
        }
    }

    fn forget(&mut self, session: SessionId) {
        self.boards.retain(|board| board.id() != session);
    }
}

impl Service {
    /// The revision that a point in a session's history is.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Rejected`] with no such checkpoint or revision, [`ServiceError::Compacted`].
    pub fn revision_at(&self, now: &Board, at: &At) -> Result<Revision, ServiceError> {
        let refused =
            |rejected| ServiceError::Rejected { rejected, revision: Some(now.revision()) };
        let revision = match at {
            At::Revision(revision) => *revision,
            At::Checkpoint(name) => {
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

    /// The board of a session as it was.
    ///
    /// # Errors
    ///
    /// As [`revision_at`](Self::revision_at), or where the store cannot be read.
    pub async fn board_at(&self, now: &Published, at: &At) -> Result<Arc<Board>, ServiceError> {
        let revision = self.revision_at(&now.board, at)?;
        if revision == now.board.revision() {
            return Ok(Arc::clone(&now.board));
        }
        let Past { replays, kept, .. } = &self.inner.past;
        let _turn = replays.acquire().await.map_err(|_| ServiceError::Stopping)?;
        let (store, session) = (Arc::clone(&self.inner.store), now.board.id());
        let oldest = now.board.oldest();
        let start = kept.lock().nearest(session, oldest, revision);
        let replay = move || replay(&*store, session, start, oldest, revision);
        let board = Arc::new(blocking(replay).await?);
        kept.lock().keep(&board);
        Ok(board)
    }

    /// A page of a session's commits after a revision, at most 256 and about 1 MiB; empty at the end.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Compacted`], or where the store cannot be read.
    pub async fn history(
        &self,
        now: &Board,
        after: Revision,
    ) -> Result<Vec<Arc<Commit>>, ServiceError> {
        let oldest = now.oldest();
        if after < oldest {
            return Err(ServiceError::Compacted { oldest });
        }
        if after >= now.revision() {
            return Ok(Vec::new());
        }
        let _turn = self.inner.past.reads.acquire().await.map_err(|_| ServiceError::Stopping)?;
        let (store, session) = (Arc::clone(&self.inner.store), now.id());
        let commits = blocking(move || framed(&*store, session, after, HISTORY_PAGE)).await?;
        let commits = commits.into_iter().map(|(commit, _)| Arc::new(commit));
        // What was stored since is shown when it is published.
        Ok(commits.take_while(|commit| commit.revision <= now.revision()).collect())
    }

    /// Lets a session be as it was; `then` is one of its boards.
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
        self.write(Write { terms, command: Command::Restore { then } }, Vec::new(), keep).await
    }

    /// Nothing of a session's past is to be at hand any more.
    pub(super) fn forget_past(&self, session: SessionId) {
        self.inner.past.kept.lock().forget(session);
    }
}

/// Runs what reads the store on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
) -> Result<T, ServiceError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ServiceError::Fault)?
}

/// The commits after a revision, each with the bytes of its frame. One that does not follow the one
/// before it was forgotten meanwhile.
pub(super) fn framed(
    store: &dyn Store,
    session: SessionId,
    after: Revision,
    max: PageMax,
) -> Result<Vec<(Commit, usize)>, ServiceError> {
    let mut commits = Vec::new();
    let mut last = after;
    for (revision, frame) in store.commits(session, after, max)? {
        let commit = decode(session, revision, &frame)?;
        if !commit.follows(last) {
            return Err(ServiceError::Compacted { oldest: Revision(revision.0.saturating_sub(1)) });
        }
        last = revision;
        commits.push((commit, frame.len()));
    }
    Ok(commits)
}

fn decode(session: SessionId, revision: Revision, frame: &[u8]) -> Result<Commit, ServiceError> {
    let body = Frame::decode(session, revision, frame).map_err(|error| {
        tracing::error!(%session, %revision, %error, "a stored commit is damaged");
        ServiceError::Damaged
    })?;
    stored::decode_commit(body).map_err(|error| {
        tracing::error!(%session, %revision, %error, "a stored commit cannot be read");
        ServiceError::Damaged
    })
}

/// The board at a revision, from an earlier one or from the beginning of what is kept. That may move while
/// it is read; as long as it stays below the revision, the replay begins again there.
fn replay(
    store: &dyn Store,
    session: SessionId,
    start: Option<Arc<Board>>,
    oldest: Revision,
    revision: Revision,
) -> Result<Board, ServiceError> {
    let mut start = start;
    for _ in 0..REPLAY_TRIES_MAX {
        let first = match start.take() {
            Some(board) => Ok(Board::clone(&board)),
            None => beginning(store, session, oldest),
        };
        match first.and_then(|board| follow(store, session, board, revision)) {
            Err(ServiceError::Compacted { oldest }) if oldest <= revision => {}
            replayed => return replayed,
        }
    }
    Err(ServiceError::Overloaded)
}

/// The board at a revision, after an earlier one.
fn follow(
    store: &dyn Store,
    session: SessionId,
    mut board: Board,
    revision: Revision,
) -> Result<Board, ServiceError> {
    while board.revision() < revision {
        let commits = framed(store, session, board.revision(), REPLAY_PAGE)?;
        let wanted = commits.iter().take_while(|(commit, _)| commit.revision <= revision);
        let before = board.revision();
        wanted.for_each(|(commit, _)| apply(&mut board, commit));
        if board.revision() == before {
            break;
        }
    }
    if board.revision() == revision {
        return Ok(board);
    }
    // The numbers between a history and the name that it came to were never revisions of it.
    let rejected = Rejected::NoRevision { revision };
    Err(ServiceError::Rejected { rejected, revision: None })
}

/// The board at the beginning of what is kept of a session.
pub(super) fn beginning(
    store: &dyn Store,
    session: SessionId,
    oldest: Revision,
) -> Result<Board, ServiceError> {
    let Some(base) = store.base(session) else { return Ok(Board::absent(session, oldest)) };
    read_base(store, session, base).map_err(|error| match store.base(session) {
        // Another base took its place while it was read.
        Some(now) if now != base => ServiceError::Compacted { oldest: now },
        Some(_) | None => error,
    })
}

fn read_base(store: &dyn Store, session: SessionId, base: Revision) -> Result<Board, ServiceError> {
    let mut reader = BaseReader::new(session);
    let mut damage = None;
    store.read_base(session, &mut |frame| {
        let part = Frame::decode(session, base, frame).map_err(|error| error.to_string());
        let read = part.and_then(|part| reader.take(part).map_err(|error| error.to_string()));
        match read {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                damage = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    let read = match damage {
        Some(error) => Err(error),
        None => reader.finish().map_err(|error| error.to_string()),
    };
    read.map_err(|error| {
        tracing::error!(%session, %base, %error, "a stored base cannot be read");
        ServiceError::Damaged
    })
}
