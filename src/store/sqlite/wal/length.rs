//! Length of the write-ahead log: when it is checkpointed, and by whom.
//!
//! The writer checkpoints a short log. A long one, kept by readers, is left to a connection beside the writer, so that no
//! append pays for it.

/// A log that is not longer than this is moved by who writes, whatever it takes: 40 ms.
const SHORT_BYTES_MAX: u64 = 16 << 20;

/// How much may be written before a long log is tried to be moved: then nothing grows until it was.
const UNMOVED_BYTES_MAX: u64 = 256 << 20;

/// How long the log is, roughly, and what became of moving it.
#[derive(Debug)]
pub(crate) struct Log {
    /// What was written since it was last tried to move the log.
    unmoved_bytes: u64,
    /// What was left of it then, since somebody read or there was no room.
    left_bytes: u64,
    /// Whether there was no room: it is tried again after each write.
    is_stuck: bool,
    /// Whether somebody moves a long log beside the writer.
    has_mover: bool,
}

impl Log {
    /// One of this length, of which nothing is in the database.
    pub(crate) fn of(bytes: u64) -> Self {
        Self { unmoved_bytes: bytes, left_bytes: 0, is_stuck: false, has_mover: false }
    }

    pub(crate) fn grow(&mut self, bytes: u64) {
        self.unmoved_bytes = self.unmoved_bytes.saturating_add(bytes);
    }

    /// How much of it is not in the database.
    pub(crate) fn bytes(&self) -> u64 {
        self.unmoved_bytes.saturating_add(self.left_bytes)
    }

    /// Whether who writes is to move it, where that is worth while from so many bytes on.
    pub(crate) fn is_due(&self, from: u64) -> bool {
        !self.is_left_to_mover() && (self.is_stuck || self.unmoved_bytes >= from)
    }

    /// Whether it is longer than who writes is to move.
    pub(crate) fn is_long(&self) -> bool {
        self.bytes() > SHORT_BYTES_MAX
    }

    pub(crate) fn is_left_to_mover(&self) -> bool {
        self.has_mover && self.is_long()
    }

    /// Whether so much was written that who would move it must be late: more of it has to wait.
    pub(crate) fn is_full(&self) -> bool {
        self.is_left_to_mover() && self.unmoved_bytes > UNMOVED_BYTES_MAX
    }

    /// Somebody moves it where it is long.
    pub(crate) fn note_mover(&mut self) {
        self.has_mover = true;
    }

    /// What was written since the last try, to be told when one that begins now has ended.
    pub(crate) fn unmoved_bytes(&self) -> u64 {
        self.unmoved_bytes
    }

    /// A try ended that began when so much was unmoved. It left so many bytes, or did not tell. Whatever is left, the
    /// next try is due after as much again as before: a reader may keep it for a while.
    pub(crate) fn note_tried(&mut self, unmoved_bytes: u64, left_bytes: Option<u64>) {
        let left_before = self.left_bytes.saturating_add(unmoved_bytes);
        self.unmoved_bytes = self.unmoved_bytes.saturating_sub(unmoved_bytes);
        (self.left_bytes, self.is_stuck) = (left_bytes.unwrap_or(left_before), false);
    }

    /// It could not be moved.
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
