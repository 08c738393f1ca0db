//! Cooperation: long work yields after a bounded number of bytes.

use tokio::task::yield_now;

use crate::board::{Entry, Seq};
use crate::fairness::compute;
use crate::service::ServiceError;

/// After so many bytes others get their turn. What is longer in one piece is done where it may block.
pub(crate) const TURN_BYTES_MAX: usize = 64 << 10;

/// What a piece of work costs besides its text, in bytes of it.
const PIECE_OVERHEAD_BYTES: u64 = 256;

/// Counts what was worked on, and lets others have their turn.
#[derive(Default)]
pub(crate) struct Turns {
    bytes: u64,
    last: Option<Seq>,
}

impl Turns {
    /// Counts an entry that was examined.
    pub(crate) async fn examined(&mut self, entry: &Entry) {
        // For those that a walk passed over it looked at all that lies with them.
        let passed =
            self.last.replace(entry.seq).is_some_and(|last| last.0.abs_diff(entry.seq.0) > 1);
        let own = entry.bytes().saturating_add(PIECE_OVERHEAD_BYTES);
        self.worked(if passed { TURN_BYTES_MAX as u64 } else { own }).await;
    }

    /// Counts so many bytes that were worked on.
    pub(crate) async fn worked(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= TURN_BYTES_MAX as u64 {
            self.bytes = 0;
            yield_now().await;
        }
    }

    /// Makes something of so many bytes: here, if they are few.
    pub(crate) async fn make<T: Send + 'static>(
        &mut self,
        bytes: u64,
        make: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        if bytes > TURN_BYTES_MAX as u64 {
            return compute(make).await.map_err(|_| ServiceError::Fault);
        }
        let made = make();
        self.worked(bytes + PIECE_OVERHEAD_BYTES).await;
        Ok(made)
    }
}
