//! The fingerprint of a keyed request: the hash of its parts.

use sha2::{Digest as _, Sha256};

use blackboard_board::Digest;

/// The hash of the parts so far.
#[derive(Clone, Default)]
pub struct Fingerprint(Sha256);

impl Fingerprint {
    /// Adds a part with its length, so that no two sequences of parts have the same hash.
    pub fn say(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part);
    }

    /// Returns the hash of all parts.
    pub fn digest(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}
