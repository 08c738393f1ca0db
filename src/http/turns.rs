//! Turns: work on many entries stops now and then, so that a worker is not kept from all others.

use std::pin::pin;
use std::task::{Context, Poll};

use tokio::task::yield_now;

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
            yield_now().await;
        }
    }
}

/// Ends a poll whose task goes on at once. A task that wakes itself is only put behind the others that can run: those
/// that wait for a socket or a timer would wait for dozens of its polls more.
pub(super) fn end_turn<T>(cx: &mut Context<'_>) -> Poll<T> {
    match pin!(yield_now()).poll(cx) {
        Poll::Pending => {}
        // It did not want to wait.
        Poll::Ready(()) => cx.waker().wake_by_ref(),
    }
    Poll::Pending
}
