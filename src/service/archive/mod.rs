//! Archives: a session's whole history on its way out as lines, and in again under a name that has none.
//!
//! Neither way holds more of it than the board and a few lines.

mod cut;
mod export;
mod import;

pub use cut::Cut;
pub(super) use cut::Lacks;
pub use export::Export;
pub use import::{Import, Imported};

use super::limiter::Turns;

/// How many archives go out at once to one client; others wait. Each has a thread.
const EXPORTS_MAX: u64 = 4;

/// How many archives come in at once from one client.
const IMPORTS_MAX: u64 = 1;

/// How many archives may wait each way.
const WAITING_MAX: usize = 64;

/// How many archives are on their way. One that comes in may take long, so it is no turn of those who only
/// make a base.
#[derive(Debug)]
pub(super) struct Archives {
    imports: Turns,
    exports: Turns,
}

impl Archives {
    pub(super) fn new() -> Self {
        let turns = |count| Turns::held(count, WAITING_MAX);
        Self { imports: turns(IMPORTS_MAX), exports: turns(EXPORTS_MAX) }
    }
}

#[cfg(test)]
mod tests;
