//! Bounded map that drops its oldest entries.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// What is known by a key.
pub(super) struct Remembered<K, V> {
    known: HashMap<K, V>,
    order: VecDeque<K>,
    max: usize,
}

impl<K: Copy + Eq + Hash, V: Copy> Remembered<K, V> {
    pub(super) fn new(max: usize) -> Self {
        Self { known: HashMap::new(), order: VecDeque::new(), max }
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        self.known.get(key).copied()
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        if self.known.insert(key, value).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > self.max
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}
