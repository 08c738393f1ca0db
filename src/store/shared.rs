//! The part of an engine that several servers write to at the same time.

use super::{Outcome, Run, Store, StoreError};
use crate::board::{Revision, SessionId};

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

    /// Appends the batch that `decide` makes, while no other server appends to the sessions of these names, nor
    /// claims the names. `decide` is called once, unless the engine cannot be reached.
    fn exclusively(&self, names: &[Vec<u8>], decide: &mut dyn FnMut() -> Vec<Run>) -> Vec<Outcome>;
}
