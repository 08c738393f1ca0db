//! Signing key of a store: random, made once, in no archive or backup.

use std::fmt;

use hmac::{Hmac, Mac as _};
use rusqlite::Connection;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::store::StoreError;

/// How long a signature is, in bytes.
pub const SIGNATURE_BYTES: usize = 32;

/// Signs what the store's server gives out, and knows it again (HMAC-SHA256).
#[derive(Clone)]
pub struct SigningKey(Hmac<Sha256>);

impl SigningKey {
    /// A key that is kept nowhere, for who signs nothing.
    pub(crate) fn ephemeral() -> Result<Self, StoreError> {
        Self::of(&random())
    }

    fn of(key: &[u8]) -> Result<Self, StoreError> {
        // HMAC takes keys of any length.
        Hmac::new_from_slice(key).map(Self).map_err(|_| StoreError::DamagedMeta)
    }

    /// The key of a database, which is made where there is none yet. Needs a connection that syncs fully.
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

    /// The signature of a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        let mut mac = self.0.clone();
        mac.update(message);
        mac.finalize().into_bytes().into()
    }

    /// Whether this is the signature of the message; how long that takes tells nothing of it.
    #[must_use]
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let mut mac = self.0.clone();
        mac.update(message);
        mac.verify_slice(signature).is_ok()
    }
}

/// 256 random bits: each id has 122 of the system's.
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
