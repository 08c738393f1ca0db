//! All running sessions by name: sharded, so that looking one up meets no other's lock.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::RwLock;

use super::session::Session;
use crate::board::SessionName;

const SHARDS: usize = 64;

type Shard = RwLock<HashMap<SessionName, Arc<Session>>>;

/// The sessions that this server runs, those deleted not long ago included.
#[derive(Debug)]
pub(super) struct Directory {
    shards: [Shard; SHARDS],
    hasher: RandomState,
    /// The names of the sessions that exist, in order, for lists.
    names: RwLock<BTreeSet<SessionName>>,
}

impl Directory {
    pub(super) fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| Shard::default()),
            hasher: RandomState::new(),
            names: RwLock::default(),
        }
    }

    fn shard(&self, name: &SessionName) -> Option<&Shard> {
        let hash = self.hasher.hash_one(name) % SHARDS as u64;
        self.shards.get(usize::try_from(hash).ok()?)
    }

    pub(super) fn get(&self, name: &SessionName) -> Option<Arc<Session>> {
        self.shard(name)?.read().get(name).cloned()
    }

    /// Adds a session, to be found by its name; one that exists is also listed.
    pub(super) fn insert(&self, name: SessionName, session: Arc<Session>, exists: bool) {
        self.list(&name, exists);
        if let Some(shard) = self.shard(&name) {
            shard.write().insert(name, session);
        }
    }

    /// Lists a name, or lists it no more.
    pub(super) fn list(&self, name: &SessionName, exists: bool) {
        let listed = self.names.read().contains(name);
        if exists && !listed {
            self.names.write().insert(name.clone());
        } else if !exists && listed {
            self.names.write().remove(name);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.names.read().len()
    }

    /// At most `limit` names with this prefix after this name, in order.
    pub(super) fn names(
        &self,
        after: Option<&SessionName>,
        prefix: &str,
        limit: usize,
    ) -> Vec<SessionName> {
        let start = match after {
            Some(after) if after.as_str() >= prefix => Bound::Excluded(after.as_str()),
            Some(_) | None => Bound::Included(prefix),
        };
        let names = self.names.read();
        let range = names.range::<str, _>((start, Bound::Unbounded));
        range.take_while(|name| name.as_str().starts_with(prefix)).take(limit).cloned().collect()
    }
}
