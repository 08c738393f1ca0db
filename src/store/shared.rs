//! The part of an engine that several servers write to at the same time.

use super::{Outcome, Run, Store, StoreError};
use crate::board::{Revision, SessionId, Timestamp};

/// The session that a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The session; a deleted one has its name until it is forgotten.
    pub session: SessionId,
    /// Its last revision.
    pub revision: Revision,
}

/// An engine to which other servers append too, so that a run may meet commits that this server has not seen.
pub trait SharedStore: Store {
    /// Returns the session of each name, in order, as of a moment after the call began. One query answers for all.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn heads(&self, names: &[Vec<u8>]) -> Result<Vec<Option<Head>>, StoreError>;

    /// Returns the names of at most `max` sessions whose [next expiry](super::SessionRow::next_due) has come, the earliest
    /// first.
    ///
    /// # Errors
    /// If the engine cannot be reached.
    fn due(&self, now: Timestamp, max: usize) -> Result<Vec<Vec<u8>>, StoreError>;

    /// Returns true if this server is the leader: the one that expires what no client touches. There is at most one at
    /// a time; one that lost the lead without noticing does no harm, since all that it does is append by revision.
    fn lead(&self) -> bool;

    /// Appends the batch that `decide` makes, while no other server appends to the sessions of these names, nor
    /// claims the names. `decide` is called once, unless the engine cannot be reached.
    fn exclusively(&self, names: &[Vec<u8>], decide: &mut dyn FnMut() -> Vec<Run>) -> Vec<Outcome>;
}
