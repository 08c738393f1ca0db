//! Turns: work on many entries stops now and then, so that a worker is not kept from all others.

use crate::board::Entry;

/// After so many bytes of examined entries, others get their turn.
const EXAMINED_BYTES_AT_ONCE: u64 = 64 << 10;

/// What an entry costs to examine besides its text, in bytes of it.
const ENTRY_BYTES: u64 = 256;

/// Counts what was examined, and lets others have their turn.
#[derive(Default)]
pub(super) struct Turns {
    bytes: u64,
}

impl Turns {
    /// Counts an entry that was examined.
    pub(super) async fn examined(&mut self, entry: &Entry) {
        self.bytes += entry.bytes() + ENTRY_BYTES;
        if self.bytes >= EXAMINED_BYTES_AT_ONCE {
            self.bytes = 0;
            tokio::task::yield_now().await;
        }
    }
}
