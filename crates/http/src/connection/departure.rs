//! The client's departure during a request.
//!
//! hyper does not read while a request is under way, so that a client that has closed its sending half still gets its
//! answer. A request that would give something away watches for the end of the stream by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// The departure of a connection's client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Departure(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_watched: AtomicBool,
    departed: CancellationToken,
}

impl Departure {
    /// Watches from now on. The token is cancelled when the client has closed its sending half.
    pub(crate) fn watch(&self) -> &CancellationToken {
        self.0.is_watched.store(true, Ordering::Relaxed);
        &self.0.departed
    }

    /// Returns true if the stream should look for its end.
    pub(super) fn is_awaited(&self) -> bool {
        self.0.is_watched.load(Ordering::Relaxed) && !self.0.departed.is_cancelled()
    }

    /// Records the end of the stream.
    pub(super) fn departed(&self) {
        self.0.departed.cancel();
    }
}
