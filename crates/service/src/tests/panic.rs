//! Tests of panicking threads: the writer's ends the service, the others restart.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tempfile::TempDir;

use super::clock::*;
use super::cramped::Cramped;
use super::service::*;
use crate::*;
use blackboard_clock::Clock;
use blackboard_clock::worked;
use blackboard_store::{EmbeddedStore as _, Health, Store};

fn started(store: &Arc<Cramped>) -> Service {
    Service::start(Arc::clone(store) as Arc<dyn Store>, POLICY, Clock::system()).unwrap()
}

#[tokio::test]
async fn a_panic_of_the_writer_outside_a_decision_fails_the_service() {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(Cramped::uncompacted(dir.path()));
    let service = started(&store);
    service.receipt(request("s", "{}"), vec![]).await.unwrap();
    assert!(!service.failed().is_cancelled());
    store.append_panics.store(1, Ordering::SeqCst);
    let unknown = service.receipt(request("s", "{}"), vec![]).await.unwrap_err();
    assert!(matches!(unknown, ServiceError::Poisoned { outcome_unknown: true }), "{unknown:?}");
    service.failed().cancelled().await;
    assert_eq!(service.status().health, Health::Poisoned);
    assert!(service.status().threads.contains(&("writer", false)));
    stop(service).await;
    drop(store);
    let service = start(dir.path());
    assert_eq!(board(&service, "s").revision(), blackboard_board::Revision(1), "what was answered");
    stop(service).await;
}

#[tokio::test]
async fn whoever_waits_in_the_queue_when_the_writer_panics_is_told() {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(Cramped::uncompacted(dir.path()));
    let service = started(&store);
    store.append_panics.store(1, Ordering::SeqCst);
    // It fills its batch, so that the second one waits in the queue.
    let fills: Keep = Arc::new(|_| {
        let begun = worked();
        while worked() - begun < Duration::from_millis(12) {}
        Some(json("1"))
    });
    let first = service.write(keyed(request("s", "{}"), "key", ""), vec![], Some(fills));
    let second = service.receipt(request("t", "{}"), vec![]);
    let (first, second) = tokio::join!(first, second);
    assert!(matches!(first, Err(ServiceError::Poisoned { outcome_unknown: true })));
    assert!(matches!(second, Err(ServiceError::Poisoned { .. } | ServiceError::Stopping)));
    stop(service).await;
}

#[tokio::test]
async fn a_thread_that_panicked_works_again() {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(Cramped::in_dir(dir.path()));
    let service = started(&store);
    store.compact_panics.store(2, Ordering::SeqCst);
    service.receipt(request("s", "{}"), vec![]).await.unwrap();
    while store.uncompacted_bytes() > 0 || !service.status().threads.contains(&("compactor", true))
    {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.compact_panics.load(Ordering::SeqCst), 0);
    assert!(!service.failed().is_cancelled());
    let names: Vec<_> = service.status().threads.iter().map(|(name, _)| *name).collect();
    let tenders = ["evictor", "loader", "collector", "reaper", "retention"];
    assert_eq!(names, [&tenders[..], &["waker", "compactor", "writer"]].concat());
    stop(service).await;
}
