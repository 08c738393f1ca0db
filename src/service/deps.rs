//! Dependencies shared by the service's parts: store, clock, supervisor, stop token.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::threads::Supervisor;
use crate::store::Store;

/// Dependencies of a part, each a handle: a simulator supplies its own.
pub(super) struct Deps {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Clock,
    /// Starts the threads, and starts them again after a panic.
    pub(super) supervisor: Supervisor,
    /// Cancelled when the server is about to end.
    pub(super) stopping: CancellationToken,
}

impl Deps {
    pub(super) fn new(store: Arc<dyn Store>, clock: Clock) -> Self {
        let (supervisor, stopping) = (Supervisor::default(), CancellationToken::new());
        Self { store, clock, supervisor, stopping }
    }
}
