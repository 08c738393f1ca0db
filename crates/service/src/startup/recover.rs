//! Recovery of scanned sessions: commits applied on several threads, session by session.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;

use super::damage::{Damage, DamageCause, Loading};
use crate::error::ServiceError;
use crate::sessions::replay::{REPLAY_PAGE, beginning, is_damage, oldest_stored, replay_to_head};
use blackboard_board::{Board, Revision, SessionId, SessionName, Summary};
use blackboard_store::{JournalId, Record, Store, StoreError};

/// Maximum number of threads.
const THREADS_MAX: usize = 8;

/// State of a session during the scan.
pub(crate) enum Slot {
    /// Nothing but the name was read; the history is compacted up to this revision.
    Unread { name: Option<SessionName>, compacted: Revision },
    /// Read up to the summary's revision, now or before the last stop.
    Cold { summary: Arc<Summary>, stored: Revision },
    /// Its board is in memory.
    Open { loading: Box<Loading>, stored: Revision },
}

/// Commits of many sessions, a part of those not compacted.
#[derive(Default)]
pub(crate) struct Piece {
    pub(crate) frames: Vec<u8>,
    pub(crate) records: HashMap<SessionId, Vec<PieceCommit>>,
}

/// A commit of a piece.
pub(crate) struct PieceCommit {
    journal_id: Option<JournalId>,
    revision: Revision,
    /// Range of the frame.
    place: Range<usize>,
}

impl Piece {
    /// Adds a commit, and returns the bytes so far.
    pub(crate) fn add(&mut self, record: &Record<'_>) -> usize {
        let place = self.frames.len()..self.frames.len() + record.frame.len();
        self.frames.extend_from_slice(record.frame);
        let Record { journal_id, revision, .. } = *record;
        let commit = PieceCommit { journal_id, revision, place };
        self.records.entry(record.session).or_default().push(commit);
        self.frames.len()
    }
}

impl Slot {
    /// Replaces a sound board that has a name with its summary; returns true if it did.
    pub(crate) fn cool(&mut self) -> bool {
        let Self::Open { loading, stored } = self else { return false };
        let Some(summary) = loading.summary().filter(|_| !loading.damaged) else { return false };
        *self = Self::Cold { summary: Arc::new(summary), stored: *stored };
        true
    }

    /// Returns the head read so far, unless the session is damaged.
    pub(crate) fn sound_head(&self) -> Option<Revision> {
        match self {
            Self::Cold { summary, .. } => Some(summary.extent.revision),
            Self::Open { loading, .. } if !loading.damaged => Some(loading.board.revision()),
            Self::Open { .. } | Self::Unread { .. } => None,
        }
    }

    /// True if the session was set aside.
    pub(crate) fn is_damaged(&self) -> bool {
        match self {
            Self::Open { loading, .. } => loading.damaged,
            Self::Cold { .. } | Self::Unread { .. } => false,
        }
    }

    /// Returns the session's name, if it is known.
    pub(crate) fn name(&self) -> Option<&SessionName> {
        match self {
            Self::Unread { name, .. } => name.as_ref(),
            Self::Cold { summary, .. } => Some(&summary.name),
            Self::Open { loading, .. } => loading.name.as_ref(),
        }
    }

    /// Marks the session as damaged.
    pub(crate) fn mark_damaged(
        &mut self,
        session: SessionId,
        revision: Revision,
        cause: DamageCause,
    ) -> Damage {
        let (name, known) = match self {
            Self::Unread { name, .. } => (name.clone(), None),
            Self::Cold { summary, .. } => (Some(summary.name.clone()), Some(Arc::clone(summary))),
            Self::Open { loading, .. } => return loading.damage(None, revision, cause),
        };
        let mut loading = Box::new(Loading::of(Board::absent(session, revision), name, 0));
        loading.known = known;
        let damage = loading.damage(None, revision, cause);
        *self = Self::Open { loading, stored: Revision::default() };
        damage
    }
}

/// The recovery of one session.
pub(crate) struct Task {
    pub(crate) session: SessionId,
    pub(crate) slot: Slot,
    pub(crate) records: Vec<PieceCommit>,
}

type Done = Result<(SessionId, Slot, Option<Damage>), StoreError>;

impl Task {
    /// Reads the session's compacted history, unless it was read, and applies its commits.
    pub(crate) fn work(self, store: &dyn Store, frames: &[u8]) -> Done {
        let Self { session, mut slot, records } = self;
        let first = records.first().map(|commit| commit.revision);
        if let Err(error) = slot.open(store, session, first) {
            if !is_damage(&error) {
                return Err(store_error(error));
            }
            let revision = first.unwrap_or_default();
            let damage = slot.mark_damaged(session, revision, DamageCause::Before);
            return Ok((session, slot, Some(damage)));
        }
        let Slot::Open { loading, .. } = &mut slot else { return Ok((session, slot, None)) };
        for PieceCommit { journal_id, revision, place } in records {
            if loading.damaged {
                break;
            }
            let frame = frames.get(place).unwrap_or_default();
            let record = Record { journal_id, session, revision, frame };
            if let Err(cause) = loading.follow(&record) {
                let damage = loading.damage(journal_id, revision, cause);
                return Ok((session, slot, Some(damage)));
            }
        }
        Ok((session, slot, None))
    }
}

/// The store's error; other errors are in the log already.
fn store_error(error: ServiceError) -> StoreError {
    if let ServiceError::Store(error) = error { error } else { StoreError::Closed }
}

impl Slot {
    /// Returns the board of the compacted history, or of the history read before.
    fn open(
        &mut self,
        store: &dyn Store,
        session: SessionId,
        first: Option<Revision>,
    ) -> Result<(), ServiceError> {
        let (loading, stored) = match self {
            Self::Open { .. } => return Ok(()),
            Self::Cold { summary, stored } => {
                let board = replay_to_head(store, summary)?;
                let name = Some(summary.name.clone());
                let mut loading = Loading::of(board, name, summary.history_bytes);
                loading.snapshot_bytes = summary.snapshot_bytes;
                (loading, *stored)
            }
            Self::Unread { compacted: Revision(0), .. } => {
                let before = first.map_or(0, |first| first.0.saturating_sub(1));
                (Loading::new(session, Revision(before)), Revision::default())
            }
            Self::Unread { compacted, .. } => {
                (read_compacted(store, session, *compacted)?, Revision::default())
            }
        };
        *self = Self::Open { loading: Box::new(loading), stored };
        Ok(())
    }
}

/// Reads a session's compacted history from its beginning.
fn read_compacted(
    store: &dyn Store,
    session: SessionId,
    compacted: Revision,
) -> Result<Loading, ServiceError> {
    let board = beginning(store, session, oldest_stored(store, session)?)?;
    let name = board.life().map(|life| life.name.clone());
    let mut loading = Loading::of(board, name, 0);
    while loading.board.revision() < compacted {
        let page = store.commits(session, loading.board.revision(), REPLAY_PAGE)?;
        if page.is_empty() {
            return Err(ServiceError::Damaged);
        }
        for (revision, frame) in page.iter().take_while(|(revision, _)| *revision <= compacted) {
            let record = Record { journal_id: None, session, revision: *revision, frame };
            loading.follow(&record).map_err(|error| {
                tracing::error!(%session, %revision, %error, "a stored commit cannot be used");
                ServiceError::Damaged
            })?;
        }
    }
    Ok(loading)
}

/// Does these tasks on several threads.
pub(crate) fn spread(tasks: Vec<Task>, work: impl Fn(Task) -> Done + Sync) -> Vec<Done> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    if threads.min(tasks.len()) < 2 {
        return tasks.into_iter().map(work).collect();
    }
    let (tasks, done) = (Mutex::new(tasks.into_iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        let work = || {
            let mut own = Vec::new();
            loop {
                let task = tasks.lock().next();
                let Some(task) = task else { break };
                own.push(work(task));
            }
            done.lock().extend(own);
        };
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    done.into_inner()
}
