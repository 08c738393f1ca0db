//! Cooperative yielding after a bounded number of bytes.

use tokio::task::yield_now;

use blackboard_board::{Entry, Seq};
use blackboard_fairness::compute;
use blackboard_service::ServiceError;

/// The number of bytes after which a task yields. A longer piece of work runs on a blocking thread.
pub const TURN_BYTES_MAX: usize = 64 << 10;

/// The cost of a piece of work besides its text, in bytes.
const PIECE_OVERHEAD_BYTES: u64 = 256;

/// Counts the bytes of a task's work, and yields.
#[derive(Default)]
pub struct Turns {
    bytes: u64,
    last: Option<Seq>,
}

impl Turns {
    /// Counts an entry that was examined.
    pub(crate) async fn examined(&mut self, entry: &Entry) {
        // To skip entries, a walk examines all that are stored with them.
        let passed =
            self.last.replace(entry.seq).is_some_and(|last| last.0.abs_diff(entry.seq.0) > 1);
        let own = entry.bytes().saturating_add(PIECE_OVERHEAD_BYTES);
        self.worked(if passed { TURN_BYTES_MAX as u64 } else { own }).await;
    }

    /// Counts bytes of work.
    pub(crate) async fn worked(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= TURN_BYTES_MAX as u64 {
            self.bytes = 0;
            yield_now().await;
        }
    }

    /// Runs work on this number of bytes: in place if small, else on a blocking thread.
    pub async fn make<T: Send + 'static>(
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
