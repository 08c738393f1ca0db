//! Lock by key: one holder for each key, others wait.

use std::collections::HashSet;
use std::hash::Hash;

use parking_lot::{Condvar, Mutex};

/// A set of held keys.
#[derive(Debug)]
pub(super) struct KeyedLock<K> {
    taken: Mutex<HashSet<K>>,
    ended: Condvar,
}

impl<K> Default for KeyedLock<K> {
    fn default() -> Self {
        Self { taken: Mutex::default(), ended: Condvar::new() }
    }
}

impl<K: Copy + Eq + Hash> KeyedLock<K> {
    /// Blocks until the key is free, and takes it.
    pub(super) fn take(&self, key: K) -> Turn<'_, K> {
        let mut taken = self.taken.lock();
        while !taken.insert(key) {
            self.ended.wait(&mut taken);
        }
        Turn { turns: self, key }
    }
}

/// A held key, released on drop, also after a panic.
#[derive(Debug)]
pub(super) struct Turn<'a, K: Copy + Eq + Hash> {
    turns: &'a KeyedLock<K>,
    key: K,
}

impl<K: Copy + Eq + Hash> Drop for Turn<'_, K> {
    fn drop(&mut self) {
        self.turns.taken.lock().remove(&self.key);
        self.turns.ended.notify_all();
    }
}
