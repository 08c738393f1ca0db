//! Signatures and the server's time; the signing key stays in the store.

use super::Service;
use crate::board::Timestamp;
use crate::store::SIGNATURE_BYTES;

impl Service {
    /// The time of the server's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.deps.clock.now()
    }

    /// This store's signature of a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.inner.deps.store.signing_key().sign(message)
    }

    /// Whether this is this store's signature of the message; how long that takes tells nothing of it.
    #[must_use]
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        self.inner.deps.store.signing_key().has_signed(message, signature)
    }
}
