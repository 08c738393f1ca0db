//! Archives: a session's whole history on its way out as lines, and in again under a name that has none.
//!
//! Neither way holds more of it than the board and a few lines.

mod export;
mod import;

pub use export::Export;
pub use import::{Import, Imported};

use std::sync::Arc;

use tokio::sync::Semaphore;

/// How many archives go out at once; others wait. Each has a thread.
const EXPORTS_MAX: usize = 4;

/// How many archives are on their way. One that comes in may take long, so it is no turn of those who only
/// make a base.
#[derive(Debug)]
pub(super) struct Archives {
    imports: Arc<Semaphore>,
    exports: Arc<Semaphore>,
}

impl Archives {
    pub(super) fn new() -> Self {
        let turns = |count| Arc::new(Semaphore::new(count));
        Self { imports: turns(1), exports: turns(EXPORTS_MAX) }
    }
}

#[cfg(test)]
mod archive_tests;
#[cfg(test)]
mod hostile_tests;
