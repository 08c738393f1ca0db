//! Idempotency keys: the answers of a session's last keyed writes, repeated on a retry.

use std::sync::Arc;

use imbl::{OrdMap, Vector};
use serde::{Deserialize, Serialize};

use crate::board::{Digest, Json, Timestamp};

/// The most keys that a session remembers.
pub(crate) const KEYS_MAX: usize = 10_000;

/// The time for which a key is remembered.
pub(crate) const KEY_AGE_MS_MAX: i64 = 24 * 60 * 60 * 1000;

/// The longest key, in characters.
pub const KEY_CHARS_MAX: usize = 255;

/// A key of a request, and what the request was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The key.
    pub key: Arc<str>,
    /// The hash of all that a repeat must have in common with its first.
    pub fingerprint: Digest,
}

/// The record of a keyed write in its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The key with what the request was.
    pub key: Key,
    /// The answer, in the form of the door that received the request.
    pub answer: Json,
    /// The number of oldest keys that it evicts.
    pub forgotten: Forgotten,
}

/// A number of evicted keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Forgotten(pub usize);

/// A key that is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The fingerprint of the request.
    pub fingerprint: Digest,
    /// The answer.
    pub answer: Json,
    /// When.
    pub at: Timestamp,
}

/// Another request had this key before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyReused;

/// The keys that a session remembers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keys {
    by_key: OrdMap<Arc<str>, Remembered>,
    /// The oldest first; each key that is remembered is here once.
    by_age: Vector<Arc<str>>,
    bytes: u64,
}

impl Keys {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_age.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }

    /// The bytes of the answers and keys.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The answer that this request got before, if it was made before.
    ///
    /// # Errors
    ///
    /// [`KeyReused`] where another request had this key.
    pub fn recall(&self, key: &Key, now: Timestamp) -> Result<Option<&Json>, KeyReused> {
        match self.by_key.get(&key.key).filter(|first| !is_old(first.at, now)) {
            Some(first) if first.fingerprint == key.fingerprint => Ok(Some(&first.answer)),
            Some(_) => Err(KeyReused),
            None => Ok(None),
        }
    }

    /// Returns the number of oldest keys to evict for another key.
    #[must_use]
    pub fn to_forget(&self, now: Timestamp) -> Forgotten {
        let old = |key: &Arc<str>| self.by_key.get(key).is_some_and(|first| is_old(first.at, now));
        let old = self.by_age.iter().take_while(|key| old(key)).count();
        Forgotten(old.max((self.len() + 1).saturating_sub(KEYS_MAX)))
    }

    pub(crate) fn remember(&mut self, kept: &Kept, at: Timestamp) {
        for _ in 0..kept.forgotten.0 {
            let Some(oldest) = self.by_age.pop_front() else { break };
            self.remove(&oldest);
        }
        let Key { key, fingerprint } = &kept.key;
        // Only a commit that was not decided here brings a key that is still remembered.
        if self.remove(key) {
            self.by_age.retain(|known| known != key);
        }
        let remembered = Remembered { fingerprint: *fingerprint, answer: kept.answer.clone(), at };
        self.bytes += weight(key, &remembered);
        self.by_key.insert(Arc::clone(key), remembered);
        self.by_age.push_back(Arc::clone(key));
    }

    /// Restores the next younger key. `false` if it is known, or exceeds the limit.
    pub(crate) fn restore(&mut self, key: Arc<str>, remembered: Remembered) -> bool {
        if self.len() >= KEYS_MAX || self.by_key.contains_key(&key) {
            return false;
        }
        self.bytes += weight(&key, &remembered);
        self.by_key.insert(Arc::clone(&key), remembered);
        self.by_age.push_back(key);
        true
    }

    fn remove(&mut self, key: &Arc<str>) -> bool {
        let removed = self.by_key.remove(key);
        self.bytes -= removed.as_ref().map_or(0, |removed| weight(key, removed));
        removed.is_some()
    }

    /// All of them, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Remembered)> {
        self.by_age.iter().filter_map(|key| Some((key, self.by_key.get(key)?)))
    }
}

fn weight(key: &Arc<str>, remembered: &Remembered) -> u64 {
    key.len() as u64 + remembered.answer.bytes()
}

fn is_old(at: Timestamp, now: Timestamp) -> bool {
    at.0 < now.0.saturating_sub(KEY_AGE_MS_MAX)
}
