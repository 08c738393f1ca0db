//! Tests of how often a list is scanned while readers wait for a change.

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
    let refused = async { Err(Problem::new(crate::board::Code::Internal, "no look")) };
    assert!(waited.next(0, refused).await.is_err());
    let given_up = waited.next(0, std::future::pending());
    assert!(tokio::time::timeout(Duration::from_millis(1), given_up).await.is_err());
    assert!(waited.next(0, looked(&looks, 1)).await.is_ok());
}
