//! Snapshots: stored boards that shorten the replay of a long history. A cache.

use super::session::{Published, Session};
use crate::error::ServiceError;
use blackboard_board::stored::Body;
use blackboard_board::{Board, Frame, stored};
use blackboard_store::{EmbeddedStore, StoreError};

/// A snapshot is due when the commits since the last one have more bytes than this multiple of the board's.
const TIMES: u64 = 4;

/// The least bytes of commits between two snapshots.
const BYTES_MIN: u64 = 1 << 20;

/// Returns true if the replay is long enough to be worth a snapshot.
fn is_due(session: &Session, published: &Published) -> bool {
    let Published { board, history_bytes } = published;
    let since = history_bytes.saturating_sub(session.snapshot_bytes());
    board.life().is_some() && since > BYTES_MIN && since > board.bytes().saturating_mul(TIMES)
}

/// Stores a session's board as its snapshot, if one is due.
pub(crate) fn put_snapshot_if_due(
    store: &dyn EmbeddedStore,
    session: &Session,
    published: &Published,
) {
    if !is_due(session, published) {
        return;
    }
    match put_snapshot(store, &published.board) {
        Ok(()) => session.note_snapshot(published.history_bytes),
        // A snapshot is a cache: without it the history is read.
        Err(error) => {
            tracing::debug!(session = %session.name(), %error, "a snapshot could not be stored");
        }
    }
}

fn put_snapshot(store: &dyn EmbeddedStore, board: &Board) -> Result<(), ServiceError> {
    let (session, revision) = (board.id(), board.revision());
    put_parts(board, |parts| store.put_snapshot(session, revision, parts))
}

/// Passes the framed parts of a board to `put`.
pub(crate) fn put_parts(
    board: &Board,
    put: impl FnOnce(&mut dyn Iterator<Item = Vec<u8>>) -> Result<(), StoreError>,
) -> Result<(), ServiceError> {
    let (session, revision) = (board.id(), board.revision());
    let mut fault = None;
    let mut parts = stored::base_parts(board).map_while(|part| {
        let framed = part.map_err(|error| error.to_string()).and_then(|part| {
            Frame::encode(session, revision, &Body::plain(&part)).map_err(|error| error.to_string())
        });
        framed.map_err(|error| fault = Some(error)).ok()
    });
    put(&mut parts)?;
    drop(parts);
    match fault {
        None => Ok(()),
        Some(error) => {
            tracing::error!(%session, error, "a board could not be written");
            Err(ServiceError::Fault)
        }
    }
}
