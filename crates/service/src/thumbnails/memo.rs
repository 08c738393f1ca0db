//! Memoized thumbnails: work in progress shared by callers, and a bounded map of results.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OnceCell;

/// A cell, with the number of callers that share it.
type Shared<V> = (usize, Arc<OnceCell<V>>);

/// The work in progress by key, so that callers for the same thing share one cell.
pub(super) struct SharedWork<K, V> {
    shared: Mutex<HashMap<K, Shared<V>>>,
}

impl<K, V> Default for SharedWork<K, V> {
    fn default() -> Self {
        Self { shared: Mutex::default() }
    }
}

impl<K: Copy + Eq + Hash, V> SharedWork<K, V> {
    /// Joins the callers that wait for this key.
    pub(super) fn join(&self, key: K) -> Share<'_, K, V> {
        let mut shared = self.shared.lock();
        let (sharers, cell) = shared.entry(key).or_default();
        *sharers += 1;
        Share { work: self, key, cell: Arc::clone(cell) }
    }
}

/// A caller's share of a cell. The last one to be dropped removes the cell.
pub(super) struct Share<'a, K: Copy + Eq + Hash, V> {
    work: &'a SharedWork<K, V>,
    key: K,
    cell: Arc<OnceCell<V>>,
}

impl<K: Copy + Eq + Hash, V> Deref for Share<'_, K, V> {
    type Target = OnceCell<V>;

    fn deref(&self) -> &OnceCell<V> {
        &self.cell
    }
}

impl<K: Copy + Eq + Hash, V> Drop for Share<'_, K, V> {
    fn drop(&mut self) {
        let mut shared = self.work.shared.lock();
        if let Some((sharers, _)) = shared.get_mut(&self.key) {
            *sharers -= 1;
            if *sharers == 0 {
                shared.remove(&self.key);
            }
        }
    }
}

/// Bounded map that drops its oldest entries.
pub(super) struct BoundedMap<K, V> {
    known: HashMap<K, V>,
    order: VecDeque<K>,
    max: usize,
}

impl<K: Copy + Eq + Hash, V: Copy> BoundedMap<K, V> {
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
