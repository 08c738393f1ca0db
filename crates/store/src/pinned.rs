//! Pinned histories: what a reader of a whole history holds.

use std::ops::ControlFlow;

use super::{PageMax, StoreError};
use blackboard_board::{Revision, SessionId};

/// A session's pinned history: its base and every commit after the base stay readable.
///
/// A pin expires after an hour. From then on, reads of forgotten history are [`StoreError::Forgotten`].
pub trait Pinned: Send {
    /// The session of the pinned history.
    fn session(&self) -> SessionId;

    /// The revision of the pinned base, if the history has one.
    fn base(&self) -> Option<Revision>;

    /// Returns the commits after a revision, as [`Store::commits`](super::Store::commits) does.
    ///
    /// # Errors
    /// As for [`Store::commits`](super::Store::commits).
    fn commits(
        &self,
        after: Revision,
        max: PageMax,
    ) -> Result<Vec<(Revision, Vec<u8>)>, StoreError>;

    /// Visits the frames of the base, as [`Store::read_base`](super::Store::read_base) does.
    ///
    /// # Errors
    /// As for [`Store::read_base`](super::Store::read_base).
    fn read_base(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), StoreError>;
}
