//! Replay of stored history: a base, a snapshot or an earlier board, then commits.
//!
//! Every frame is decoded and every commit admitted before it is applied.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::ServiceError;
use blackboard_board::apply;
use blackboard_board::stored;
use blackboard_board::stored::BaseReader;
use blackboard_board::{
    Board, Commit, Extent, Frame, Rejected, Revision, Seal, SessionId, Summary, admit,
};
use blackboard_store::{PageMax, Store, StoreError};

/// The number of replays of a history that is truncated meanwhile.
const REPLAY_TRIES_MAX: usize = 8;

/// The page read for a replay.
pub(crate) const REPLAY_PAGE: PageMax = PageMax { commits: 1024, bytes: 4 << 20 };

/// A page of the next commit alone.
pub(crate) const ONE: PageMax = PageMax { commits: 1, bytes: 1 };

/// Returns the commits after a revision, each with the bytes of its uncompressed frame; at most the page's bytes of
/// these, unless the first alone has more. A gap means that commits were deleted meanwhile.
pub(crate) fn framed(
    store: &dyn Store,
    session: SessionId,
    after: Revision,
    max: PageMax,
) -> Result<Vec<(Commit, usize)>, ServiceError> {
    let commits = sealed(store, session, after, max)?.into_iter();
    Ok(commits.map(|(commit, bytes, _)| (commit, bytes)).collect())
}

/// Does the same, with the seal of each commit.
pub(crate) fn sealed(
    store: &dyn Store,
    session: SessionId,
    after: Revision,
    max: PageMax,
) -> Result<Vec<(Commit, usize, Option<Seal>)>, ServiceError> {
    let (mut commits, mut bytes) = (Vec::new(), 0);
    let mut last = after;
    for (revision, frame) in store.commits(session, after, max)? {
        if bytes >= max.bytes {
            break;
        }
        let (commit, of) = (decode(session, revision, &frame)?, Frame::bytes(&frame));
        if !commit.follows(last) {
            return Err(ServiceError::Compacted { oldest: Revision(revision.0.saturating_sub(1)) });
        }
        last = revision;
        bytes += of;
        commits.push((commit, of, Frame::seal(&frame)));
    }
    Ok(commits)
}

fn decode(session: SessionId, revision: Revision, frame: &[u8]) -> Result<Commit, ServiceError> {
    let body = Frame::decode(session, revision, frame).map_err(|error| {
        tracing::error!(%session, %revision, %error, "a stored commit is damaged");
        ServiceError::Damaged
    })?;
    stored::decode_commit(&body).map_err(|error| {
        tracing::error!(%session, %revision, %error, "a stored commit cannot be read");
        ServiceError::Damaged
    })
}

/// Returns the board at a revision, from an earlier board, a snapshot or the base. If the base moves meanwhile, the
/// replay begins again there.
pub(crate) fn replay(
    store: &dyn Store,
    session: SessionId,
    start: Option<Arc<Board>>,
    oldest: Revision,
    revision: Revision,
) -> Result<Board, ServiceError> {
    let mut start = start.map(|board| Board::clone(&board));
    if let Some(snapshot) = read_snapshot(store, session, oldest, revision)
        && start.as_ref().is_none_or(|start| start.revision() < snapshot.revision())
    {
        start = Some(snapshot);
    }
    for _ in 0..REPLAY_TRIES_MAX {
        let (first, is_cached) = match start.take() {
            Some(board) => (Ok(board), true),
            None => (beginning(store, session, oldest), false),
        };
        match first.and_then(|board| follow(store, session, board, revision)) {
            Err(ServiceError::Compacted { oldest }) if oldest <= revision => {}
            // A useless snapshot is no damage of the history.
            Err(_) if is_cached => {}
            replayed => return replayed,
        }
    }
    Err(ServiceError::Overloaded)
}

/// Returns the board at a session's head.
pub(crate) fn replay_to_head(store: &dyn Store, summary: &Summary) -> Result<Board, ServiceError> {
    let Extent { session, oldest, revision, .. } = summary.extent;
    // A deleted session's board shows nothing from before the deletion.
    let oldest = if summary.life.is_some() { oldest } else { oldest_stored(store, session)? };
    replay(store, session, None, oldest, revision)
}

/// Returns the revision before a session's first stored commit.
pub(crate) fn oldest_stored(
    store: &dyn Store,
    session: SessionId,
) -> Result<Revision, ServiceError> {
    if let Some(base) = store.base(session)? {
        return Ok(base);
    }
    let first = store.commits(session, Revision::default(), ONE)?;
    Ok(Revision(first.first().map_or(0, |(first, _)| first.0.saturating_sub(1))))
}

/// Returns the session's snapshot, if it is readable and within the retained history up to a revision.
fn read_snapshot(
    store: &dyn Store,
    session: SessionId,
    oldest: Revision,
    up_to: Revision,
) -> Option<Board> {
    let mut whole = Whole::of(session);
    let embedded = store.embedded()?;
    let found =
        embedded.read_snapshot(session, up_to, &mut |revision, frame| whole.take(revision, frame));
    let revision =
        found.inspect_err(|error| tracing::warn!(%session, %error, "no snapshot")).ok()??;
    let board = whole.finish().inspect_err(|error| {
        tracing::warn!(%session, %revision, error, "a snapshot cannot be read, and is not used");
    });
    let board = board.ok().filter(|board| board.revision() == revision && revision >= oldest)?;
    Some(board.beginning_at(oldest))
}

/// Returns the board at a revision, from an earlier one.
fn follow(
    store: &dyn Store,
    session: SessionId,
    mut board: Board,
    revision: Revision,
) -> Result<Board, ServiceError> {
    while board.revision() < revision {
        let commits = framed(store, session, board.revision(), REPLAY_PAGE)?;
        let before = board.revision();
        for (commit, _) in commits.iter().take_while(|(commit, _)| commit.revision <= revision) {
            go_on(&mut board, commit)?;
        }
        if board.revision() == before {
            break;
        }
    }
    if board.revision() == revision {
        return Ok(board);
    }
    // The revisions that an adoption skipped do not exist.
    let rejected = Rejected::NoRevision { revision };
    Err(ServiceError::Rejected { rejected, revision: None })
}

/// Returns the board that a session's whole stored history makes, and the bytes of its commits.
pub(crate) fn whole(store: &dyn Store, session: SessionId) -> Result<(Board, u64), ServiceError> {
    for _ in 0..REPLAY_TRIES_MAX {
        let begun = oldest_stored(store, session)
            .and_then(|oldest| beginning(store, session, oldest))
            .and_then(|board| to_the_end(store, board));
        match begun {
            // The history was truncated meanwhile.
            Err(ServiceError::Compacted { .. }) => {}
            whole => return whole,
        }
    }
    Err(ServiceError::Overloaded)
}

fn to_the_end(store: &dyn Store, mut board: Board) -> Result<(Board, u64), ServiceError> {
    let mut bytes = 0;
    loop {
        let page = framed(store, board.id(), board.revision(), REPLAY_PAGE)?;
        if page.is_empty() {
            return Ok((board, bytes));
        }
        for (commit, of) in page {
            go_on(&mut board, &commit)?;
            bytes += of as u64;
        }
    }
}

/// Returns the board of a damaged history's readable part.
pub(crate) fn sound_part(store: &dyn Store, session: SessionId) -> Result<Board, ServiceError> {
    let mut board = beginning(store, session, oldest_stored(store, session)?)?;
    let mut max = REPLAY_PAGE;
    loop {
        let page = match store.commits(session, board.revision(), max).map_err(ServiceError::from) {
            Ok(page) if page.is_empty() => return Ok(board),
            Ok(page) => page,
            // The commits before the damage can still be read one by one.
            Err(error) if is_damage(&error) && max != ONE => {
                max = ONE;
                continue;
            }
            Err(error) if is_damage(&error) => return Ok(board),
            Err(error) => return Err(error),
        };
        for (revision, frame) in page {
            let read = decode(session, revision, &frame);
            if read.and_then(|commit| go_on(&mut board, &commit)).is_err() {
                return Ok(board);
            }
        }
    }
}

/// Applies a stored commit, if it is admitted.
pub(crate) fn go_on(board: &mut Board, commit: &Commit) -> Result<(), ServiceError> {
    if let Err(error) = admit(board, commit) {
        let (session, revision) = (board.id(), commit.revision);
        tracing::error!(%session, %revision, %error, "a stored commit does not follow its predecessor");
        return Err(ServiceError::Damaged);
    }
    apply(board, commit);
    Ok(())
}

/// Returns true if an error means that stored data is damaged. A history that ends before its known head is damaged
/// too.
pub(crate) fn is_damage(error: &ServiceError) -> bool {
    matches!(
        error,
        ServiceError::Damaged
            | ServiceError::Rejected { rejected: Rejected::NoRevision { .. }, .. }
            | ServiceError::Compacted { .. }
            | ServiceError::Store(
                StoreError::DamagedRow { .. }
                    | StoreError::DamagedSegment { .. }
                    | StoreError::DamagedHistory
                    | StoreError::DamagedBase { .. }
                    | StoreError::DamagedFile(_)
                    | StoreError::NoHistory { .. }
            )
    )
}

/// Returns the board at the beginning of a session's retained history.
pub(crate) fn beginning(
    store: &dyn Store,
    session: SessionId,
    oldest: Revision,
) -> Result<Board, ServiceError> {
    let Some(base) = store.base(session)? else { return Ok(Board::absent(session, oldest)) };
    read_base(store, session, base).map_err(|error| match store.base(session).ok().flatten() {
        // Another base replaced it meanwhile.
        Some(now) if now != base => ServiceError::Compacted { oldest: now },
        Some(_) | None => error.told(session, base),
    })
}

/// The reason why a base was not read.
enum Unread {
    Damaged(String),
    Service(ServiceError),
}

impl Unread {
    fn told(self, session: SessionId, base: Revision) -> ServiceError {
        match self {
            Self::Damaged(error) => {
                tracing::error!(%session, %base, error, "a stored base cannot be read");
                ServiceError::Damaged
            }
            Self::Service(error) => error,
        }
    }
}

fn read_base(store: &dyn Store, session: SessionId, base: Revision) -> Result<Board, Unread> {
    let mut whole = Whole::of(session);
    let read = store.read_base(session, &mut |frame| whole.take(base, frame));
    read.map_err(|error| Unread::Service(error.into()))?;
    whole.finish().map_err(|error| Unread::Damaged(error.to_string()))
}

/// Builder of a board from its stored parts, up to the first unreadable one.
pub(crate) struct Whole {
    session: SessionId,
    reader: BaseReader,
    unreadable: Option<String>,
}

impl Whole {
    pub(crate) fn of(session: SessionId) -> Self {
        Self { session, reader: BaseReader::new(session), unreadable: None }
    }

    /// Takes the next part; returns true if more are of use.
    pub(crate) fn take(&mut self, revision: Revision, frame: &[u8]) -> ControlFlow<()> {
        let part = Frame::decode(self.session, revision, frame).map_err(|error| error.to_string());
        let taken =
            part.and_then(|part| self.reader.take(&part).map_err(|error| error.to_string()));
        self.unreadable = taken.err();
        if self.unreadable.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Returns the board, or the reason why there is none.
    pub(crate) fn finish(self) -> Result<Board, String> {
        match self.unreadable {
            Some(error) => Err(error),
            None => self.reader.finish().map_err(|error| error.to_string()),
        }
    }
}
