//! Archives: a session's whole history exported as lines, and imported under a free name.
//!
//! Neither direction holds more than the board and a few lines in memory.

mod cut;
mod export;
mod import;

pub use cut::Cut;
pub(super) use cut::Lacks;
pub use export::Export;
pub use import::{Import, Imported};

use super::limiter::WaitLimiter;

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
    imports: WaitLimiter,
    exports: WaitLimiter,
}

impl Archives {
    pub(super) fn new() -> Self {
        let turns = |count| WaitLimiter::held(count, WAITING_MAX);
        Self { imports: turns(IMPORTS_MAX), exports: turns(EXPORTS_MAX) }
    }
}

#[cfg(test)]
mod tests;
