//! Shared scans of lists, for all who wait with the same query and rights.
//!
//! A look may pass over many sessions, and any commit may have changed what it finds. Those whose query and rights are
//! the same share each look, and none is made sooner than a while after the one before.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::auth::Caller;
use crate::http::response::problem::Problem;
use crate::service::Service;

/// How often a list that is waited for is looked at again, however often its sessions change.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// From this size on a page has no more, however much was asked for.
pub(crate) const PAGE_BYTES: usize = 1 << 20;

/// What a read lists of several sessions, and waits for.
pub(crate) trait Listed: Sync {
    /// Tells it from other lists: two of one name show the same to callers of the same rights.
    fn name(&self) -> String;

    /// Ticks when it may have changed.
    fn ticks(&self, service: &Service) -> watch::Receiver<u64>;

    /// The list as it is now for this caller; the last one where that is of the same version.
    fn text(
        &self,
        service: &Service,
        caller: &Caller,
        last: Option<&ListText>,
    ) -> impl Future<Output = Result<ListText, Problem>> + Send;
}

/// A list as the whole body of an answer.
#[derive(Clone, Debug)]
pub(crate) struct ListText {
    /// Equal for two texts that are equal, where a list has versions.
    pub(crate) version: Option<u64>,
    pub(crate) text: Arc<str>,
}

/// One look at a list.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    /// It shows all that was committed up to this tick.
    pub(crate) tick: u64,
    pub(crate) body: ListText,
    begun: Instant,
}

/// The lists that are waited for now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists(Arc<Mutex<HashMap<Key, Weak<Waited>>>>);

/// A list's name, and the token of those who wait for it.
type Key = (String, Option<[u8; 16]>);

/// A list that somebody waits for. It goes with the last who does.
#[derive(Debug)]
pub(crate) struct Waited {
    key: Key,
    lists: Lists,
    /// The last look that was made for all. Held while one is made: all others wait for the same.
    last: tokio::sync::Mutex<Option<Look>>,
}

impl Look {
    /// Looks at a list now, after a look that the same caller had.
    pub(crate) async fn at(
        listed: &impl Listed,
        service: &Service,
        caller: &Caller,
        ticks: &watch::Receiver<u64>,
        last: Option<&Self>,
    ) -> Result<Self, Problem> {
        // Before the look, so that what is committed meanwhile is looked for again.
        let (tick, begun) = (*ticks.borrow(), Instant::now());
        let body = listed.text(service, caller, last.map(|last| &last.body)).await?;
        Ok(Self { tick, body, begun })
    }
}

impl Lists {
    /// Joins those who wait for a list.
    pub(crate) fn wait_for(&self, listed: &impl Listed, caller: &Caller) -> Arc<Waited> {
        let token = caller.grant().map(|grant| grant.token().id.0.into_bytes());
        let key = (listed.name(), token);
        let mut lists = self.0.lock();
        let found = lists.get(&key).and_then(Weak::upgrade);
        found.unwrap_or_else(|| {
            let last = tokio::sync::Mutex::default();
            let waited = Arc::new(Waited { key: key.clone(), lists: self.clone(), last });
            lists.insert(key, Arc::downgrade(&waited));
            waited
        })
    }
}

impl Waited {
    /// The next look at the list, made by this or by another who waits, after something was committed since `seen`.
    pub(crate) async fn next(
        &self,
        seen: u64,
        look: impl Future<Output = Result<Look, Problem>>,
    ) -> Result<Look, Problem> {
        let mut last = self.last.lock().await;
        if let Some(last) = &*last {
            if last.tick > seen {
                return Ok(last.clone());
            }
            sleep_until(last.begun + LOOK_EVERY).await;
        }
        let look = look.await?;
        *last = Some(look.clone());
        Ok(look)
    }
}

impl Drop for Waited {
    fn drop(&mut self) {
        let mut lists = self.lists.0.lock();
        // Another one may have come to its place already.
        if let Entry::Occupied(found) = lists.entry(self.key.clone())
            && found.get().strong_count() == 0
        {
            found.remove();
        }
    }
}

#[cfg(test)]
mod tests;
