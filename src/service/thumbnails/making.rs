//! Work in progress, shared: callers who ask for the same wait for one of them.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OnceCell;

/// A cell, and how many share it.
type Shared<V> = (usize, Arc<OnceCell<V>>);

/// The cells that somebody waits for.
pub(super) struct Makings<K, V> {
    shared: Mutex<HashMap<K, Shared<V>>>,
}

impl<K, V> Default for Makings<K, V> {
    fn default() -> Self {
        Self { shared: Mutex::default() }
    }
}

impl<K: Copy + Eq + Hash, V> Makings<K, V> {
    /// Joins those who ask for it.
    pub(super) fn join(&self, key: K) -> Making<'_, K, V> {
        let mut shared = self.shared.lock();
        let (sharers, cell) = shared.entry(key).or_default();
        *sharers += 1;
        Making { makings: self, key, cell: Arc::clone(cell) }
    }
}

/// One who asks, until it is dropped; the last one takes the cell along.
pub(super) struct Making<'a, K: Copy + Eq + Hash, V> {
    makings: &'a Makings<K, V>,
    key: K,
    cell: Arc<OnceCell<V>>,
}

impl<K: Copy + Eq + Hash, V> Deref for Making<'_, K, V> {
    type Target = OnceCell<V>;

    fn deref(&self) -> &OnceCell<V> {
        &self.cell
    }
}

impl<K: Copy + Eq + Hash, V> Drop for Making<'_, K, V> {
    fn drop(&mut self) {
        let mut shared = self.makings.shared.lock();
        if let Some((sharers, _)) = shared.get_mut(&self.key) {
            *sharers -= 1;
            if *sharers == 0 {
                shared.remove(&self.key);
            }
        }
    }
}
