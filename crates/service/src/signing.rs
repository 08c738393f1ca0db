//! Signing of URLs with the key that the store keeps.

use super::Service;
use blackboard_board::Timestamp;
use blackboard_store::SIGNATURE_BYTES;

impl Service {
    /// Returns the time of the server's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.deps.clock.now()
    }

    /// Returns the store's signature of a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.inner.deps.store.signing_key().sign(message)
    }

    /// Returns true if this is the store's signature of the message. Compares in constant time.
    #[must_use]
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        self.inner.deps.store.signing_key().has_signed(message, signature)
    }
}
