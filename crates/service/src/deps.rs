//! Dependencies of the service's parts: store, clock, threads, stop token.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::threads::Threads;
use blackboard_clock::Clock;
use blackboard_store::Store;

/// Dependencies of a part, each a handle: a simulator supplies its own.
pub(super) struct Deps {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Clock,
    /// Starts the threads, and restarts them after a panic.
    pub(super) threads: Threads,
    /// Cancelled when the server is about to end.
    pub(super) stopping: CancellationToken,
}

impl Deps {
    pub(super) fn new(store: Arc<dyn Store>, clock: Clock) -> Self {
        Self { store, clock, threads: Threads::default(), stopping: CancellationToken::new() }
    }
}
