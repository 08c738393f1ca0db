//! What comes to its end by time does so by a commit, like everything else.

use crate::board::commit::{Change, Commit};
use crate::board::{Board, Nonce, Timestamp};

/// How much one commit takes note of; the rest is the next one's.
const EXPIRIES_MAX: usize = 1_000;

/// The commit that takes note of what has come to its end, if anything has.
#[must_use]
pub fn expire(board: &Board, now: Timestamp, nonce: Nonce) -> Option<Commit> {
    if board.next_due().is_none_or(|next| next > now) {
        return None;
    }
    let due = board.due(now, EXPIRIES_MAX);
    let changes: Vec<Change> = due.into_iter().map(Change::Expired).collect();
    (!changes.is_empty()).then(|| Commit {
        revision: board.revision.next(),
        at: now.max(board.updated_at),
        agent: None,
        nonce,
        kept: None,
        changes,
    })
}
