//! Archives: a session's whole history, exported as lines and imported under an unused name.
//!
//! Neither direction holds more than the board and a few lines in memory.

mod cut;
mod export;
mod import;

pub use cut::Cut;
pub(super) use cut::Lacks;
pub use export::Export;
pub use import::{Import, Imported};

use super::work_turns::WorkTurns;
use blackboard_store::Store;

/// The number of concurrent exports to one client. Each has a thread.
const EXPORTS_MAX: u64 = 4;

/// The same over a store that has few connections for them.
const SHARED_EXPORTS_MAX: u64 = 2;

/// The number of concurrent imports from one client.
const IMPORTS_MAX: u64 = 1;

/// The number of exports, and of imports, that may wait.
const WAITING_MAX: usize = 64;

/// Limits of exports and imports. An import may take long, so it does not count among the forks.
#[derive(Debug)]
pub(super) struct Archives {
    imports: WorkTurns,
    exports: WorkTurns,
}

impl Archives {
    pub(super) fn new(store: &dyn Store) -> Self {
        let turns = |count| WorkTurns::held(count, WAITING_MAX);
        let exports = if store.shared().is_some() { SHARED_EXPORTS_MAX } else { EXPORTS_MAX };
        Self { imports: turns(IMPORTS_MAX), exports: turns(exports) }
    }
}

#[cfg(test)]
mod tests;
