//! Signing key of a store: random, made once, absent from archives and backups.

use std::fmt;

use hmac::{Hmac, Mac as _};
use rusqlite::Connection;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::StoreError;

/// The length of a signature, in bytes.
pub const SIGNATURE_BYTES: usize = 32;

/// Signs and verifies what the store's server issues (HMAC-SHA256).
#[derive(Clone)]
pub struct SigningKey(Hmac<Sha256>);

impl SigningKey {
    /// Creates a key that is not stored, for a store that signs nothing.
    pub fn ephemeral() -> Result<Self, StoreError> {
        Self::of(&random())
    }

    pub(crate) fn of(key: &[u8]) -> Result<Self, StoreError> {
        // HMAC takes keys of any length.
        Hmac::new_from_slice(key).map(Self).map_err(|_| StoreError::DamagedMeta)
    }

    /// Returns the key of a database, creating it if absent. Needs a connection that syncs fully.
    pub(crate) fn keep(connection: &Connection) -> Result<Self, StoreError> {
        let stored: Option<Vec<u8>> =
            connection
                .query_one("SELECT signing_key FROM meta WHERE id = 1", [], |row| row.get(0))?;
        let stored = stored.map(<[u8; 32]>::try_from).transpose();
        let key = match stored.map_err(|_| StoreError::DamagedMeta)? {
            Some(key) => key,
            None => {
                let key = random();
                connection.execute("UPDATE meta SET signing_key = ?1 WHERE id = 1", [&key[..]])?;
                key
            }
        };
        Self::of(&key)
    }

    /// Returns the bytes of a new key.
    #[cfg(feature = "postgres")]
    pub(crate) fn random_bytes() -> [u8; 32] {
        random()
    }

    /// Signs a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        let mut mac = self.0.clone();
        mac.update(message);
        mac.finalize().into_bytes().into()
    }

    /// Returns true if this is the message's signature, in constant time.
    #[must_use]
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let mut mac = self.0.clone();
        mac.update(message);
        mac.verify_slice(signature).is_ok()
    }
}

/// Returns 256 random bits: each id has 122 from the system.
fn random() -> [u8; 32] {
    let ids = [Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4()];
    let bits = ids.iter().fold(Sha256::new(), |bits, id| bits.chain_update(id.as_bytes()));
    bits.finalize().into()
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey")
    }
}
