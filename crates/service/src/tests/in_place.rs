//! Tests of writes that take the writer's step themselves.

use std::sync::atomic::Ordering;
use std::thread;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tempfile::TempDir;

use super::clock::*;
use super::cramped::Cramped;
use super::service::*;
use crate::writer::desk::LONE_STEPS;
use crate::*;
use blackboard_board::Revision;
use blackboard_clock::Clock;
use blackboard_store::{Health, Store};

/// A write that notes the name of the thread that decides it.
async fn decided_on(service: &Service) -> Option<String> {
    let decider: Arc<Mutex<Option<String>>> = Arc::default();
    let noted = Arc::clone(&decider);
    let keep: Keep = Arc::new(move |_| {
        *noted.lock() = thread::current().name().map(ToOwned::to_owned);
        Some(json("1"))
    });
    let write = keyed(request("s", "{}"), &uuid::Uuid::new_v4().to_string(), "");
    service.write(write, vec![], Some(keep)).await.unwrap();
    decider.lock().take()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_write_is_decided_by_its_own_task() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    // A write is a lone one after others, and the thread may be at the desk.
    while decided_on(&service).await.as_deref() == Some("writer") {}
    stop(service).await;
}

#[tokio::test]
async fn no_task_blocks_the_only_thread_of_a_runtime() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    for _ in 0..20 {
        assert_eq!(decided_on(&service).await.as_deref(), Some("writer"));
    }
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_come_during_one_in_place_are_all_done() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    for round in 0..50 {
        let held = BusyWriter::new(&service).await;
        let writes = (0..8).map(|_| service.receipt(request("s", "{}"), vec![]));
        let (receipts, ()) = tokio::join!(join_all(writes), held.release());
        assert!(receipts.iter().all(Result::is_ok));
        assert_eq!(board(&service, "s").revision(), Revision(8 * (round + 1)));
    }
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_come_together_are_left_to_the_thread() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    while decided_on(&service).await.as_deref() == Some("writer") {}
    let held = BusyWriter::new(&service).await;
    let writes = (0..8).map(|_| service.receipt(request("s", "{}"), vec![]));
    tokio::join!(join_all(writes), held.release());
    for _ in 0..LONE_STEPS {
        assert_eq!(decided_on(&service).await.as_deref(), Some("writer"));
    }
    while decided_on(&service).await.as_deref() == Some("writer") {}
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_of_a_write_in_place_fails_the_service() {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(Cramped::uncompacted(dir.path()));
    let running: Arc<dyn Store> = Arc::<Cramped>::clone(&store);
    let service = Service::start(running, POLICY, Clock::system()).unwrap();
    while decided_on(&service).await.as_deref() == Some("writer") {}
    store.append_panics.store(1, Ordering::SeqCst);
    let unknown = service.receipt(request("s", "{}"), vec![]).await.unwrap_err();
    assert!(matches!(unknown, ServiceError::Poisoned { outcome_unknown: true }), "{unknown:?}");
    service.failed().cancelled().await;
    assert_eq!(service.status().health, Health::Poisoned);
    assert!(service.status().threads.contains(&("writer", false)));
    let later = service.receipt(request("s", "{}"), vec![]).await.unwrap_err();
    assert!(matches!(later, ServiceError::Poisoned { .. } | ServiceError::Stopping), "{later:?}");
    stop(service).await;
}
