//! Length of the write-ahead log, and the connection that checkpoints it.
//!
//! The writer checkpoints a short log. A log that readers have kept long is left to a separate connection, so that no
//! append pays for it.

/// The maximum length of a log that the writer always checkpoints itself: 40 ms.
const SHORT_BYTES_MAX: u64 = 16 << 20;

/// The maximum bytes written between checkpoints of a long log: beyond that, runs that grow are refused.
const UNMOVED_BYTES_MAX: u64 = 256 << 20;

/// The length of the log, roughly, and the result of the last checkpoint.
#[derive(Debug)]
pub(crate) struct Log {
    /// Bytes written since the last attempt to checkpoint.
    unmoved_bytes: u64,
    /// Bytes that it left, because of a reader or a full disk.
    left_bytes: u64,
    /// True if the attempt failed: the next is due after each write.
    is_stuck: bool,
    /// True if a long log is checkpointed on a separate connection.
    has_mover: bool,
}

impl Log {
    /// Creates a log of this length, none of it in the database.
    pub(crate) fn of(bytes: u64) -> Self {
        Self { unmoved_bytes: bytes, left_bytes: 0, is_stuck: false, has_mover: false }
    }

    pub(crate) fn grow(&mut self, bytes: u64) {
        self.unmoved_bytes = self.unmoved_bytes.saturating_add(bytes);
    }

    /// Returns the bytes that are not in the database.
    pub(crate) fn bytes(&self) -> u64 {
        self.unmoved_bytes.saturating_add(self.left_bytes)
    }

    /// Returns true if the writer should checkpoint, given the unmoved bytes from which that is worthwhile.
    pub(crate) fn is_due(&self, from: u64) -> bool {
        !self.is_left_to_mover() && (self.is_stuck || self.unmoved_bytes >= from)
    }

    /// Returns true if the log is too long for the writer to checkpoint.
    pub(crate) fn is_long(&self) -> bool {
        self.bytes() > SHORT_BYTES_MAX
    }

    pub(crate) fn is_left_to_mover(&self) -> bool {
        self.has_mover && self.is_long()
    }

    /// Returns true if checkpoints are so late that the log must not grow further.
    pub(crate) fn is_full(&self) -> bool {
        self.is_left_to_mover() && self.unmoved_bytes > UNMOVED_BYTES_MAX
    }

    /// Records that a long log is checkpointed on a separate connection.
    pub(crate) fn note_mover(&mut self) {
        self.has_mover = true;
    }

    /// Returns the bytes written since the last attempt, to pass to `note_tried` after one that begins now.
    pub(crate) fn unmoved_bytes(&self) -> u64 {
        self.unmoved_bytes
    }

    /// Records an attempt that began at this many unmoved bytes, and the bytes it left, if known. Whatever is left,
    /// the next attempt is due after the same growth as before: a reader may keep the log for a while.
    pub(crate) fn note_tried(&mut self, unmoved_bytes: u64, left_bytes: Option<u64>) {
        let left_before = self.left_bytes.saturating_add(unmoved_bytes);
        self.unmoved_bytes = self.unmoved_bytes.saturating_sub(unmoved_bytes);
        (self.left_bytes, self.is_stuck) = (left_bytes.unwrap_or(left_before), false);
    }

    /// Records a failed checkpoint.
    pub(crate) fn note_stuck(&mut self) {
        (self.left_bytes, self.unmoved_bytes, self.is_stuck) = (self.bytes(), 0, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_left_to_who_moves_it_however_late_that_is() {
        let mut log = Log::of(SHORT_BYTES_MAX);
        assert!(log.is_due(1 << 20), "who writes moves a short one");
        log.grow(1);
        assert!(log.is_due(1 << 20), "and a long one where nobody else does");
        log.note_mover();
        assert!(!log.is_due(1) && !log.is_full());
        log.note_stuck();
        assert!(!log.is_due(1), "it would all be moved by one append once there is room");
        log.note_tried(log.unmoved_bytes(), Some(1));
        assert!(!log.is_due(1), "it is not stuck any more");
        assert_eq!(log.bytes(), 1);
    }

    #[test]
    fn what_came_while_it_was_moved_is_still_to_be_moved() {
        let mut log = Log::of(SHORT_BYTES_MAX);
        let unmoved_bytes = log.unmoved_bytes();
        log.grow(7);
        log.note_tried(unmoved_bytes, Some(2));
        assert_eq!((log.unmoved_bytes(), log.bytes()), (7, 9));
        log.note_tried(7, None);
        assert_eq!((log.unmoved_bytes(), log.bytes()), (0, 9), "another one is at it");
    }
}
