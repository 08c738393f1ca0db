//! Shared scans of lists for waiting readers.
//!
//! A scan of a list may visit many sessions, and any commit may change its result. So readers with the same query and
//! rights share each scan, and scans are at least `LOOK_EVERY` apart.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::response::problem::Problem;
use blackboard_auth::Caller;
use blackboard_service::Service;

/// The minimum interval between two looks at an awaited list.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A list that covers several sessions, and can be awaited.
pub(crate) trait Listed: Sync {
    /// Returns the list's name. Two lists of one name show the same to callers with the same rights.
    fn name(&self) -> String;

    /// Returns a counter that ticks when the list may have changed.
    fn ticks(&self, service: &Service) -> watch::Receiver<u64>;

    /// Renders the list as it is now for this caller; returns `last` if its version is the same.
    fn text(
        &self,
        service: &Service,
        caller: &Caller,
        last: Option<&ListText>,
    ) -> impl Future<Output = Result<ListText, Problem>> + Send;
}

/// A list as the body of an answer.
#[derive(Clone, Debug)]
pub(crate) struct ListText {
    /// The version, if the list has versions. Texts of equal versions are equal.
    pub(crate) version: Option<u64>,
    pub(crate) text: Arc<str>,
}

/// The result of one look at a list.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    /// The tick up to which all commits are included.
    pub(crate) tick: u64,
    pub(crate) body: ListText,
    begun: Instant,
}

/// The lists that are awaited now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists(Arc<Mutex<HashMap<Key, Weak<Waited>>>>);

/// The name of a list, and the token of its readers.
type Key = (String, Option<[u8; 16]>);

/// An awaited list, dropped with its last reader.
#[derive(Debug)]
pub(crate) struct Waited {
    key: Key,
    lists: Lists,
    /// The last shared look. Locked during a look, so that all other readers wait for its result.
    last: tokio::sync::Mutex<Option<Look>>,
}

impl Look {
    /// Looks at a list now; `last` is an earlier look by the same caller.
    pub(crate) async fn at(
        listed: &impl Listed,
        service: &Service,
        caller: &Caller,
        ticks: &watch::Receiver<u64>,
        last: Option<&Self>,
    ) -> Result<Self, Problem> {
        // Read before the look, so that commits during the look cause another one.
        let (tick, begun) = (*ticks.borrow(), Instant::now());
        let body = listed.text(service, caller, last.map(|last| &last.body)).await?;
        Ok(Self { tick, body, begun })
    }
}

impl Lists {
    /// Joins the readers that wait for a list.
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
    /// Returns a look after the tick `seen`, made by this reader or by another. Called once there was a later tick.
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
        // A new entry may have replaced this one already.
        if let Entry::Occupied(found) = lists.entry(self.key.clone())
            && found.get().strong_count() == 0
        {
            found.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures_util::future::join_all;

    use super::*;

    /// Returns a list without readers.
    fn waited() -> Arc<Waited> {
        let key = ("sessions".to_owned(), None);
        Arc::new(Waited { key, lists: Lists::default(), last: tokio::sync::Mutex::default() })
    }

    async fn looked(looks: &AtomicU64, tick: u64) -> Result<Look, Problem> {
        looks.fetch_add(1, Ordering::Relaxed);
        let body = ListText { version: None, text: "[]".into() };
        Ok(Look { tick, body, begun: Instant::now() })
    }

    #[tokio::test]
    async fn of_all_who_wait_for_the_same_one_looks() {
        let (waited, looks) = (waited(), AtomicU64::new(0));
        for tick in 1..=3 {
            // Each reader has seen the previous tick.
            let all = (0..8).map(|_| waited.next(tick - 1, looked(&looks, tick)));
            let found = join_all(all).await;
            assert!(found.iter().all(|look| look.as_ref().is_ok_and(|look| look.tick == tick)));
            assert_eq!(looks.load(Ordering::Relaxed), tick);
        }
    }

    #[tokio::test]
    async fn a_failed_or_abandoned_look_passes_to_another_waiter() {
        let (waited, looks) = (waited(), AtomicU64::new(0));
        let refused = async { Err(Problem::new(blackboard_board::Code::Internal, "no look")) };
        assert!(waited.next(0, refused).await.is_err());
        let given_up = waited.next(0, std::future::pending());
        assert!(tokio::time::timeout(Duration::from_millis(1), given_up).await.is_err());
        assert!(waited.next(0, looked(&looks, 1)).await.is_ok());
    }
}
