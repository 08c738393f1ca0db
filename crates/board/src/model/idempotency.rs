//! Idempotency keys, with the responses repeated on a retry.

use std::sync::Arc;

use imbl::{OrdMap, Vector};
use serde::{Deserialize, Serialize};

use crate::{Digest, Json, Timestamp};

/// The maximum number of keys that a session retains.
pub(crate) const KEYS_MAX: usize = 10_000;

/// The maximum age of a retained key, in milliseconds.
pub(crate) const KEY_AGE_MS_MAX: i64 = 24 * 60 * 60 * 1000;

/// The maximum length of a key, in characters.
pub const KEY_CHARS_MAX: usize = 255;

/// An idempotency key and the fingerprint of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The key.
    pub key: Arc<str>,
    /// The hash of everything that a retry must have in common with the first request.
    pub fingerprint: Digest,
}

/// The record of a keyed write in its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The key and fingerprint of the request.
    pub key: Key,
    /// The answer, in the format of the interface that received the request.
    pub answer: Json,
    /// The number of oldest keys that this one evicts.
    pub forgotten: Forgotten,
}

/// A number of evicted keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Forgotten(pub usize);

/// A retained key's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The fingerprint of the request.
    pub fingerprint: Digest,
    /// The answer.
    pub answer: Json,
    /// The time of the write.
    pub at: Timestamp,
}

/// The key was already used for another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyReused;

/// The retained keys of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keys {
    by_key: OrdMap<Arc<str>, Remembered>,
    /// The keys from oldest to newest, each once.
    by_age: Vector<Arc<str>>,
    bytes: u64,
}

impl Keys {
    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_age.len()
    }

    /// Returns true if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }

    /// Returns the bytes of the answers and keys.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the earlier answer to this request, if any.
    ///
    /// # Errors
    ///
    /// [`KeyReused`] if another request had this key.
    pub fn recall(&self, key: &Key, now: Timestamp) -> Result<Option<&Json>, KeyReused> {
        match self.by_key.get(&key.key).filter(|first| !is_old(first.at, now)) {
            Some(first) if first.fingerprint == key.fingerprint => Ok(Some(&first.answer)),
            Some(_) => Err(KeyReused),
            None => Ok(None),
        }
    }

    /// Returns the number of oldest keys to evict before adding a key.
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
        // Only a commit that was decided elsewhere can repeat a retained key.
        if self.remove(key) {
            self.by_age.retain(|known| known != key);
        }
        let remembered = Remembered { fingerprint: *fingerprint, answer: kept.answer.clone(), at };
        self.bytes += weight(key, &remembered);
        self.by_key.insert(Arc::clone(key), remembered);
        self.by_age.push_back(Arc::clone(key));
    }

    /// Restores the next key in order of age. Returns `false` if the key is known, or if there are too many.
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

    /// Iterates over the keys and their records, oldest first.
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
