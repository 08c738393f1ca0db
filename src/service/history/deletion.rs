//! Deletion of a session. Its name and last revision are kept for 30 days.
//!
//! They are kept as a base, stored with the deletion. At startup, sessions deleted without a base get one.

use std::sync::Arc;

use crate::board::stored::Body;
use crate::board::{
    Board, Commit, Frame, Revision, SessionId, SessionName, Summary, Timestamp, admit, stored,
};
use crate::service::error::ServiceError;
use crate::service::sessions::replay::framed;
use crate::service::sessions::tombstones::TOMBSTONE_MS;
use crate::store::{End, PageMax, Run, Store, StoreError};

/// The number of sessions handled at once, before others have their turn.
pub(crate) const AT_ONCE_MAX: usize = 64;

/// Returns true if a deletion's tombstone has expired.
pub(crate) fn is_over(deleted_at: Timestamp, now: Timestamp) -> bool {
    deleted_at.0 < now.0.saturating_sub(TOMBSTONE_MS)
}

/// The base that remains of a session deleted by this commit. `None` if the commit does not follow it: the history then
/// stays complete.
pub(crate) fn end_before(
    session: SessionId,
    name: &SessionName,
    updated_at: Timestamp,
    commit: &Commit,
) -> Option<End> {
    let revision = Revision(commit.revision.0.checked_sub(1)?);
    let board = Board::ending(session, name.clone(), revision, updated_at);
    admit(&board, commit).ok()?;
    let framed = stored::base_parts(&board)
        .map(|part| Frame::encode(session, revision, &Body::plain(&part.ok()?)).ok());
    Some(End { revision, parts: framed.collect::<Option<_>>()? })
}

/// Pending work for deleted sessions.
#[derive(Debug, Default)]
pub(crate) struct Endings {
    /// Sessions whose remains are deleted.
    pub(crate) over: Vec<SessionId>,
    /// Sessions whose history is still complete.
    pub(crate) whole: Vec<Arc<Summary>>,
    /// Names whose sessions were deleted, and when.
    pub(crate) deleted: Vec<(SessionName, Timestamp)>,
    /// True if the store may have rows to delete.
    pub(crate) is_sweeping: bool,
}

impl Endings {
    /// Returns true if no work is left.
    pub(crate) fn are_done(&self) -> bool {
        self.over.is_empty() && self.whole.is_empty() && !self.is_sweeping
    }

    /// Does a part of the work. A full disk or a locked database is tried again; the next start tries the rest.
    pub(crate) fn tend(&mut self, store: &dyn Store) {
        if self.is_sweeping {
            // The writer may be asleep, and nobody else would delete what is forgotten.
            self.is_sweeping =
                store.embedded().is_some_and(|store| (0..AT_ONCE_MAX).all(|_| store.idle()));
        }
        for _ in 0..AT_ONCE_MAX {
            let done = if let Some(session) = self.over.last() {
                store.forget(&[*session]).map_err(ServiceError::from)
            } else if let Some(summary) = self.whole.last() {
                end(store, summary)
            } else {
                return;
            };
            self.is_sweeping = true;
            if matches!(
                done,
                Err(ServiceError::StoreFull
                    | ServiceError::Store(StoreError::Full)
                    | ServiceError::Busy)
            ) {
                return;
            }
            if let Err(error) = done {
                tracing::warn!(%error, "a deleted session's history could not be deleted; retrying at the next start");
            }
            if self.over.pop().is_none() {
                self.whole.pop();
            }
        }
    }
}

/// Replaces the history of a session that was deleted earlier with the base that remains of it.
fn end(store: &dyn Store, summary: &Summary) -> Result<(), ServiceError> {
    const ONE: PageMax = PageMax { commits: 1, bytes: 1 };
    let (session, expected) = (summary.extent.session, summary.extent.revision);
    let before = Revision(expected.0.saturating_sub(1));
    let last = framed(store, session, before, ONE)?;
    let Some((commit, _)) = last.first() else { return Err(ServiceError::Damaged) };
    let Some(end) = end_before(session, &summary.name, commit.at, commit) else { return Ok(()) };
    let run = Run {
        session,
        expected,
        ends: Some(end),
        frames: Vec::new(),
        claim: None,
        grows: false,
        adopts: false,
        group: None,
        row: None,
    };
    let outcome = store.append(&[run]).pop().ok_or(ServiceError::Fault)?;
    ServiceError::stored(outcome, false)
}

#[cfg(test)]
mod tests;
