//! Tests of the bounds of a batch and of an expiry sweep.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tempfile::TempDir;

use super::clock::*;
use super::cold::evict;
use super::cramped::Cramped;
use super::service::*;
use crate::*;
use blackboard_board::Revision;
use blackboard_clock::Clock;
use blackboard_clock::worked;
use blackboard_store::Store;

#[tokio::test]
async fn a_batch_of_expensive_commands_is_answered_in_parts() {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(Cramped::uncompacted(dir.path()));
    let running: Arc<dyn Store> = Arc::<Cramped>::clone(&store);
    let service = Service::start(running, POLICY, Clock::system()).unwrap();
    // Each takes some milliseconds of the writer's time.
    let keep: Keep = Arc::new(|_| {
        let begun = worked();
        while worked() - begun < Duration::from_millis(4) {}
        Some(json("1"))
    });
    let held = BusyWriter::new(&service).await;
    let writes = (0..20).map(|n| {
        let write = keyed(request(&format!("s{n}"), "{}"), "key", "");
        let (service, keep) = (service.clone(), Arc::clone(&keep));
        Box::pin(async move { service.write(write, vec![], Some(keep)).await.unwrap() })
    });
    let mut writes: Vec<_> = writes.collect();
    for write in &mut writes {
        assert!(write.as_mut().now_or_never().is_none());
    }
    let before = store.appends.load(Ordering::SeqCst);
    held.release().await;
    join_all(writes).await;
    let batches = store.appends.load(Ordering::SeqCst) - before;
    assert!(batches >= 4, "{batches} batches");
    stop(service).await;
}

#[tokio::test]
async fn sessions_whose_expiry_fails_keep_no_other_from_it() {
    let (dir, hand) = (TempDir::new().unwrap(), Hand::new());
    let store = Arc::new(Cramped::in_dir(dir.path()));
    let running: Arc<dyn Store> = Arc::<Cramped>::clone(&store);
    let service = Service::start(running, POLICY, hand.clock()).unwrap();
    // More of them than one sweep takes, and all due before the others.
    for n in 0..70 {
        let full = service.carry_out(&format!("full{n}"), put("a", "1", Some("1s"))).await;
        store.no_room_for.lock().insert(full.unwrap().board.id());
    }
    for n in 0..70 {
        service.carry_out(&format!("s{n}"), put("a", "1", Some("2s"))).await.unwrap();
    }
    hand.set(2_000);
    for n in 0..70 {
        service.reaches(&format!("s{n}"), 2).await;
    }
    assert_eq!(board(&service, "full0").revision(), Revision(1));
    store.no_room_for.lock().clear();
    for n in 0..70 {
        service.reaches(&format!("full{n}"), 2).await;
    }
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_writer_reads_no_board_that_left_while_its_write_waited() {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(Cramped::uncompacted(dir.path()));
    let running: Arc<dyn Store> = Arc::<Cramped>::clone(&store);
    let service = Service::start(running, POLICY, Clock::system()).unwrap();
    // The first fills its batch; the second is of the next one, as is the third.
    let fills: Keep = Arc::new(|_| {
        let begun = worked();
        while worked() - begun < Duration::from_millis(12) {}
        Some(json("1"))
    });
    let at_hand = service.clone();
    let evicts: Keep = Arc::new(move |_| {
        evict(&at_hand, "s");
        Some(json("1"))
    });
    let held = BusyWriter::new(&service).await;
    let (s, t) = (keyed(request("s", "{}"), "key", ""), keyed(request("t", "{}"), "key", ""));
    let mut first = Box::pin(service.write(s, vec![], Some(fills)));
    let mut second = Box::pin(service.write(t, vec![], Some(evicts)));
    let mut third = Box::pin(service.receipt(request("s", "{}"), vec![]));
    // There is no session yet whose board would be kept in memory for the third.
    assert!(first.as_mut().now_or_never().is_none());
    assert!(second.as_mut().now_or_never().is_none());
    assert!(third.as_mut().now_or_never().is_none());
    held.release().await;
    first.await.unwrap();
    second.await.unwrap();
    assert_eq!(third.await.unwrap().board.revision(), Revision(2));
    let readers = store.readers.lock().clone();
    assert!(readers.contains("loader") && !readers.contains("writer"), "{readers:?}");
    stop(service).await;
}
