//! Deletion of a session. Its name and last revision are kept for a time.
//!
//! They are kept as a base, stored with the deletion.

use crate::sessions::tombstones::TOMBSTONE_MS;
use blackboard_board::stored::Body;
use blackboard_board::{
    Board, Commit, Frame, Revision, SessionId, SessionName, Timestamp, admit, stored,
};
use blackboard_store::{End, Store, StoreError};

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
    /// Names whose sessions were deleted, and when.
    pub(crate) deleted: Vec<(SessionName, Timestamp)>,
    /// True if the store may have rows to delete.
    pub(crate) is_sweeping: bool,
}

impl Endings {
    /// Returns true if no work is left.
    pub(crate) fn are_done(&self) -> bool {
        self.over.is_empty() && !self.is_sweeping
    }

    /// Does a part of the work. A full disk or a locked database is tried again; the next start tries the rest.
    pub(crate) fn delete_some(&mut self, store: &dyn Store) {
        if self.is_sweeping {
            // The writer may be asleep, and nobody else would delete what is forgotten.
            self.is_sweeping =
                store.embedded().is_some_and(|store| (0..AT_ONCE_MAX).all(|_| store.idle()));
        }
        for _ in 0..AT_ONCE_MAX {
            let Some(session) = self.over.last() else { return };
            let done = store.forget(&[*session]);
            self.is_sweeping = true;
            if matches!(done, Err(StoreError::Full | StoreError::Busy)) {
                return;
            }
            if let Err(error) = done {
                tracing::warn!(%error, "a deleted session's history could not be deleted; retrying at the next start");
            }
            self.over.pop();
        }
    }
}

#[cfg(test)]
mod tests;
