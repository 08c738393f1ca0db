//! Tests of the writer's queue: order and shares of clients, prepared values.

use std::sync::atomic::Ordering;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use tempfile::TempDir;

use super::clock::*;
use super::cramped::Cramped;
use super::service::*;
use crate::*;
use blackboard_board::{Edit, Item, LogName, Revision};
use blackboard_clock::Clock;
use blackboard_fairness::Client;
use blackboard_store::Store;

const GREEDY: Client = Client::Token([1; 16]);
const VICTIM: Client = Client::Token([2; 16]);

fn large(bytes: usize) -> Item {
    item(&format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes)))
}

/// A write of a client that notes when it is decided. It is queued when it is polled first.
fn noted<'a>(
    service: &'a Service,
    client: Client,
    write: Write,
    as_: &'static str,
    decided: &Arc<Mutex<Vec<&'static str>>>,
) -> BoxFuture<'a, Result<Reply, ServiceError>> {
    let decided = Arc::clone(decided);
    let keep: Keep = Arc::new(move |_| {
        decided.lock().push(as_);
        Some(json("1"))
    });
    let write = keyed(write, &uuid::Uuid::new_v4().to_string(), "");
    let mut queued = client.scope(service.write(write, vec![], Some(keep))).boxed();
    assert!((&mut queued).now_or_never().is_none());
    queued
}

#[tokio::test]
async fn a_small_write_waits_for_one_large_foreign_write_at_most() {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(Cramped::uncompacted(dir.path()));
    let running: Arc<dyn Store> = Arc::<Cramped>::clone(&store);
    let service = Service::start(running, POLICY, Clock::system()).unwrap();
    let decided = Arc::default();
    let held = BusyWriter::new(&service).await;
    let write = |n| append(&format!("s{n}"), LogName::Requests, vec![large(512 << 10)]);
    let greedy = (0..12).map(|n| noted(&service, GREEDY, write(n), "large", &decided));
    let greedy: Vec<_> = greedy.collect();
    let small = noted(&service, VICTIM, request("v", "{}"), "small", &decided);
    let before = store.appends.load(Ordering::SeqCst);
    held.release().await;
    small.await.unwrap();
    let appends = store.appends.load(Ordering::SeqCst) - before;
    assert!(appends <= 3, "{appends}");
    assert!(join_all(greedy).await.iter().all(Result::is_ok));
    let at = decided.lock().iter().position(|write| *write == "small").unwrap();
    assert!(at <= 1, "{at}");
    stop(service).await;
}

#[tokio::test]
async fn a_client_of_many_small_writes_keeps_no_other_waiting() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let decided = Arc::default();
    let held = BusyWriter::new(&service).await;
    let many = (0..300).map(|_| noted(&service, GREEDY, request("s", "{}"), "many", &decided));
    let many: Vec<_> = many.collect();
    let one = noted(&service, VICTIM, request("v", "{}"), "one", &decided);
    held.release().await;
    one.await.unwrap();
    assert!(join_all(many).await.iter().all(Result::is_ok));
    let at = decided.lock().iter().position(|write| *write == "one").unwrap();
    assert!(at <= 1, "{at}");
    stop(service).await;
}

#[tokio::test]
async fn writes_of_one_client_are_decided_in_their_order() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let held = BusyWriter::new(&service).await;
    let mut waiting = Vec::new();
    for n in 0..40 {
        let bytes = if n % 3 == 0 { 300 << 10 } else { n };
        let write = append("s", LogName::Requests, vec![large(bytes)]);
        for (client, session) in [(GREEDY, "s"), (VICTIM, "v")] {
            let write = Write { session: name(session), ..write.clone() };
            let mut queued = client.scope(service.receipt(write, vec![])).boxed();
            assert!((&mut queued).now_or_never().is_none());
            waiting.push(queued);
        }
    }
    held.release().await;
    let receipts = join_all(waiting).await;
    for of in [0, 1] {
        let seqs = receipts.iter().skip(of).step_by(2);
        let seqs = seqs.map(|receipt| receipt.as_ref().unwrap().answer.first_added().unwrap().0);
        assert!(seqs.eq(1..=40));
    }
    stop(service).await;
}

#[tokio::test]
async fn one_client_fills_the_queue_neither_by_number_nor_by_bytes() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let held = BusyWriter::new(&service).await;
    let running = service.clone();
    let wait = |client: Client, session: &str, items| {
        let write = append(session, LogName::Requests, items);
        let mut queued = client.scope(running.receipt(write, vec![])).boxed();
        (&mut queued).now_or_never().map_or(Ok(queued), |answer| Err(answer.unwrap_err()))
    };
    let small = vec![item("{}")];
    let many = (0..=QUEUE_WRITES_MAX).map(|_| wait(GREEDY, "s", small.clone()));
    let mut many: Vec<_> = many.map_while(Result::ok).collect();
    assert_eq!(many.len(), QUEUE_WRITES_MAX);
    let victim = wait(VICTIM, "v", small.clone());
    let mut waiting = vec![victim.unwrap_or_else(|error| panic!("{error}"))];
    waiting.append(&mut many);
    let bytes = 512 << 10;
    let other = Client::Token([3; 16]);
    let large = vec![large(bytes)];
    let many = (0..QUEUE_BYTES_MAX / bytes * 2).map(|_| wait(other, "t", large.clone()));
    let mut many: Vec<_> = many.map_while(Result::ok).collect();
    assert!(many.len() * bytes <= QUEUE_BYTES_MAX);
    waiting.append(&mut many);
    let victim = wait(VICTIM, "v", large.clone());
    waiting.push(victim.unwrap_or_else(|error| panic!("{error}")));
    held.release().await;
    assert!(join_all(waiting).await.iter().all(Result::is_ok));
    stop(service).await;
}

/// A state with so many members that it is prepared.
fn document(from: usize) -> String {
    let members: Vec<_> = (from..from + 3_000).map(|n| format!("\"k{n}\":{from}")).collect();
    format!("{{{}}}", members.join(","))
}

fn put_large(session: &str, at: &str, from: usize) -> Write {
    let edit = Edit::Put { value: json(&document(from)), ttl: None };
    write_to(session, Command::State(path(at), edit))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_prepared_for_an_old_board_is_prepared_again() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    service.receipt(put_large("s", "x", 0), vec![]).await.unwrap();
    // The writer is at this one while the other is prepared for the board before it.
    let held = BusyWriter::at(&service, put_large("s", "x", 1)).await;
    let other = service.clone();
    let other = tokio::spawn(async move { other.receipt(put_large("s", "x", 2), vec![]).await });
    while service.inner.writer.preparing.used() == 0 {
        tokio::task::yield_now().await;
    }
    held.release().await;
    let receipt = other.await.unwrap().unwrap();
    assert_eq!(receipt.board.revision(), Revision(3));
    assert_eq!(receipt.board.state().text(), format!("{{\"x\":{}}}", document(2)));
    let member = receipt.board.state().value(&path("x/k2000")).unwrap();
    assert_eq!(member.changed(), Revision(3));
    assert_eq!(service.inner.writer.preparing.used(), 0);
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_large_values_for_one_path_are_all_set() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let write = |n| {
        let (service, client) = (service.clone(), Client::Token([n; 16]));
        let write = put_large("s", "x", n.into());
        tokio::spawn(client.scope(async move { service.receipt(write, vec![]).await.unwrap() }))
    };
    let receipts = join_all((1..=8).map(write)).await;
    let mut revisions: Vec<_> =
        receipts.iter().map(|r| r.as_ref().unwrap().board.revision().0).collect();
    revisions.sort_unstable();
    assert!(revisions.into_iter().eq(1..=8));
    let last = board(&service, "s");
    stop(service).await;
    let service = start(dir.path());
    assert_eq!(*board(&service, "s"), *last);
    stop(service).await;
}
