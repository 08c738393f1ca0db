//! Tests of idempotency: a repeated write returns the first response and adds nothing.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tempfile::TempDir;

use super::clock::*;
use super::service::*;
use crate::*;
use blackboard_board::{Edit, LogCommand, LogName, Rejected, Revision, Seq, SessionCommand};
use blackboard_child_test::{SHORT_FILES, child_dir, run_child};
use blackboard_clock::Clock;

/// Keeps the revision, which no later write has.
fn keep() -> Keep {
    Arc::new(|receipt| Some(json(&receipt.board.revision().to_string())))
}

/// What a keyed write came to: the revision it made, or the one it is said to have made.
#[derive(Debug, PartialEq)]
enum Came {
    Now(u64),
    Before(u64),
}

fn came(reply: Result<Reply, ServiceError>) -> Came {
    match reply.unwrap() {
        Reply::Now(receipt) => Came::Now(receipt.board.revision().0),
        Reply::Before(answer) => Came::Before(answer.text().parse().unwrap()),
    }
}

impl Service {
    async fn keyed(&self, write: &Write, key: &str) -> Result<Reply, ServiceError> {
        let write = keyed(write.clone(), key, &format!("{:?}", write.command));
        self.write(write, vec![], Some(keep())).await
    }
}

fn is_reused(reply: &Result<Reply, ServiceError>) -> bool {
    matches!(reply, Err(ServiceError::Rejected { rejected: Rejected::KeyReused, .. }))
}

#[tokio::test]
async fn repeats_in_one_batch_are_one_commit_and_answered_alike() {
    let (dir, _hand, service) = started();
    let (one, two) = (request("s", r#"{"n":1}"#), request("s", r#"{"n":2}"#));
    let held = BusyWriter::new(&service).await;
    let mut first = Box::pin(service.keyed(&one, "k"));
    let mut repeat = Box::pin(service.keyed(&one, "k"));
    let mut other = Box::pin(service.keyed(&two, "k"));
    let mut last = Box::pin(service.keyed(&one, "k"));
    for reply in [&mut first, &mut repeat, &mut other, &mut last] {
        assert!(reply.as_mut().now_or_never().is_none());
    }
    held.release().await;
    assert_eq!(came(first.await), Came::Now(1));
    assert_eq!(came(repeat.await), Came::Before(1));
    assert!(is_reused(&other.await));
    assert_eq!(came(last.await), Came::Before(1));
    let board = board(&service, "s");
    assert_eq!((board.revision(), board.keys().len()), (Revision(1), 1));
    assert_eq!(board.log(&LogName::Requests).unwrap().len(), 1);
    stop(service).await;
    assert_eq!(commits(dir.path()).iter().filter(|commit| commit.kept.is_some()).count(), 2);
}

#[tokio::test]
async fn a_repeat_of_what_was_refused_is_carried_out() {
    let (_dir, _hand, service) = started();
    service.carry_out("s", put("n", "1", None)).await.unwrap();
    let remove = Command::State(path("a"), Edit::Remove);
    let remove = write_to("s", remove);
    assert!(service.keyed(&remove, "k").await.is_err());
    assert!(board(&service, "s").keys().is_empty());
    // The same within one batch.
    let held = BusyWriter::new(&service).await;
    let mut refused = Box::pin(service.keyed(&remove, "k"));
    let mut made = Box::pin(service.carry_out("s", put("a", "1", None)));
    let mut removed = Box::pin(service.keyed(&remove, "k"));
    let mut again = Box::pin(service.keyed(&remove, "k"));
    assert!(refused.as_mut().now_or_never().is_none() && made.as_mut().now_or_never().is_none());
    assert!(removed.as_mut().now_or_never().is_none() && again.as_mut().now_or_never().is_none());
    held.release().await;
    assert!(refused.await.is_err());
    made.await.unwrap();
    assert_eq!(came(removed.await), Came::Now(3));
    assert_eq!(came(again.await), Came::Before(3));
    stop(service).await;
}

#[tokio::test]
async fn repeats_after_a_restart_add_nothing() {
    let (dir, hand, service) = started();
    service.receipt(request("s", "{}"), vec![]).await.unwrap();
    let writes = [
        write_to("s", add("n", "1")),
        by("A", write_to("s", claim("60s"))),
        request("s", r#"{"r":1}"#),
        // Nothing is changed by it, and it is kept all the same.
        write_to("s", Command::Log(LogName::Questions, LogCommand::Append { items: vec![] })),
        request("made", "{}"),
    ];
    let mut firsts = Vec::new();
    for (write, n) in writes.iter().zip('a'..) {
        firsts.push(came(service.keyed(write, &n.to_string()).await));
    }
    assert_eq!(firsts, [2, 3, 4, 5, 1].map(Came::Now));
    let before = (board(&service, "s"), board(&service, "made"));
    for _ in 0..2 {
        for ((write, n), first) in writes.iter().zip('a'..).zip([2, 3, 4, 5, 1]) {
            assert_eq!(came(service.keyed(write, &n.to_string()).await), Came::Before(first));
        }
        assert!(is_reused(&service.keyed(&writes[0], "b").await));
        assert_eq!((board(&service, "s"), board(&service, "made")), before);
    }
    stop(service).await;
    let service = start_at(dir.path(), &hand);
    assert_eq!((board(&service, "s"), board(&service, "made")), before);
    for ((write, n), first) in writes.iter().zip('a'..).zip([2, 3, 4, 5, 1]) {
        assert_eq!(came(service.keyed(write, &n.to_string()).await), Came::Before(first));
    }
    assert!(is_reused(&service.keyed(&writes[0], "b").await));
    assert_eq!((board(&service, "s"), board(&service, "made")), before);
    stop(service).await;
    assert_eq!(commits(dir.path()).len(), 6);
}

#[tokio::test]
async fn a_key_is_known_for_a_day() {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    let (dir, hand, service) = started();
    let write = write_to("s", add("n", "1"));
    assert_eq!(came(service.keyed(&write, "k").await), Came::Now(1));
    hand.set(DAY);
    assert_eq!(came(service.keyed(&write, "k").await), Came::Before(1));
    let other = write_to("s", add("n", "2"));
    assert!(is_reused(&service.keyed(&other, "k").await));
    hand.set(DAY + 1);
    assert_eq!(came(service.keyed(&other, "k").await), Came::Now(2));
    assert_eq!(came(service.keyed(&other, "k").await), Came::Before(2));
    assert!(is_reused(&service.keyed(&write, "k").await));
    let board_before = board(&service, "s");
    assert_eq!(value(&board_before, "n").unwrap(), "3");
    assert_eq!(board_before.keys().len(), 1, "the old one is forgotten");
    stop(service).await;
    let service = start_at(dir.path(), &hand);
    assert_eq!(board(&service, "s"), board_before);
    stop(service).await;
}

#[tokio::test]
async fn a_keyed_screenshot_stores_its_image_once() {
    let (dir, hand, service) = started();
    let shoot = |service: Service, bytes: &[u8]| {
        let (write, images) = screenshot("s", bytes.to_vec());
        async move { service.write(keyed(write, "k", "shot"), images, Some(keep())).await }
    };
    let blobs = |service: &Service| {
        let home = dir.path().join("blobs").join(board(service, "s").id().to_string());
        std::fs::read_dir(home).unwrap().count()
    };
    assert_eq!(came(shoot(service.clone(), b"one").await), Came::Now(1));
    assert_eq!(came(shoot(service.clone(), b"one").await), Came::Before(1));
    // It is known by its key before its image is looked at.
    assert_eq!(came(shoot(service.clone(), b"two").await), Came::Before(1));
    assert_eq!(blobs(&service), 1);
    stop(service).await;
    let service = start_at(dir.path(), &hand);
    assert_eq!(came(shoot(service.clone(), b"one").await), Came::Before(1));
    assert_eq!(blobs(&service), 1);
    let board = board(&service, "s");
    let log = board.log(&LogName::Screenshots).unwrap();
    assert_eq!((log.len(), board.revision()), (1, Revision(1)));
    let image = log.get(Seq(1)).unwrap().item.image().cloned().unwrap();
    assert_eq!(service.at("s").image(&board, &image).await.unwrap(), b"one");
    stop(service).await;
}

async fn patch(service: &Service, key: &str, patch: &Patch) -> Result<Reply, ServiceError> {
    let write = keyed(request("s", "{}"), key, &format!("{patch:?}"));
    service.at("s").patch_entry(write.terms, LogName::Requests, Seq(1), patch, Some(keep())).await
}

const COUNT_UP: &str =
    r#"[{"op":"test","path":"/n","value":0},{"op":"replace","path":"/n","value":1}]"#;

#[tokio::test]
async fn a_patch_is_repeated_though_its_entry_changed_or_went() {
    let (_dir, _hand, service) = started();
    service.receipt(request("s", r#"{"n":0}"#), vec![]).await.unwrap();
    let merge = Patch::Merge(r#"{"m":1}"#.to_owned());
    let count_up = Patch::Json(COUNT_UP.to_owned());
    assert_eq!(came(patch(&service, "m", &merge).await), Came::Now(2));
    assert_eq!(came(patch(&service, "j", &count_up).await), Came::Now(3));
    assert!(is_reused(&patch(&service, "m", &count_up).await));
    let item = item(r#"{"other":1}"#);
    let replace =
        Command::Log(LogName::Requests, LogCommand::PutEntry { seq: Seq(1), item, basis: None });
    let delete = Command::Log(LogName::Requests, LogCommand::DeleteEntry { seq: Seq(1) });
    for command in [replace, delete] {
        let after = service.carry_out("s", command).await.unwrap().board;
        assert_eq!(came(patch(&service, "m", &merge).await), Came::Before(2));
        assert_eq!(came(patch(&service, "j", &count_up).await), Came::Before(3));
        assert_eq!(board(&service, "s"), after);
    }
    assert!(patch(&service, "n", &merge).await.is_err());
    stop(service).await;
}

/// The repeat looks for its key before its first is done, and reads the entry after that.
#[tokio::test(flavor = "multi_thread")]
async fn a_patch_that_meets_its_first_under_way_is_answered_alike() {
    let (dir, hand) = (TempDir::new().unwrap(), Hand::new());
    let armed = Arc::new(AtomicBool::new(false));
    let (inside, mut looking) = tokio::sync::mpsc::unbounded_channel();
    let (go_on, wait) = mpsc::channel();
    let clock = {
        let (hand, armed, wait) = (hand.clone(), Arc::clone(&armed), Mutex::new(wait));
        Clock::new(move || {
            // The service's own threads read the clock too; the repeat is a task.
            let is_task = tokio::runtime::Handle::try_current().is_ok();
            if is_task && armed.swap(false, Ordering::SeqCst) {
                inside.send(()).ok();
                wait.lock().recv().ok();
            }
            hand.now()
        })
    };
    let service = Service::start(Arc::new(open(dir.path())), POLICY, clock).unwrap();
    service.receipt(request("s", r#"{"n":0}"#), vec![]).await.unwrap();
    let count_up = Patch::Json(COUNT_UP.to_owned());
    armed.store(true, Ordering::SeqCst);
    let repeat = tokio::spawn({
        let (service, count_up) = (service.clone(), count_up.clone());
        async move { patch(&service, "k", &count_up).await }
    });
    looking.recv().await.unwrap();
    assert_eq!(came(patch(&service, "k", &count_up).await), Came::Now(2));
    go_on.send(()).unwrap();
    assert_eq!(came(repeat.await.unwrap()), Came::Before(2));
    stop(service).await;
}

#[tokio::test]
async fn a_deletion_is_repeated_until_its_name_is_used_again() {
    let (dir, hand, service) = started();
    service.receipt(request("s", "{}"), vec![]).await.unwrap();
    let delete = write_to("s", Command::Session(SessionCommand::Delete));
    let post = request("s", "{}");
    assert_eq!(came(service.keyed(&post, "post").await), Came::Now(2));
    assert_eq!(came(service.keyed(&delete, "k").await), Came::Now(3));
    assert_eq!(came(service.keyed(&delete, "k").await), Came::Before(3));
    assert!(service.carry_out("s", Command::Session(SessionCommand::Delete)).await.is_err());
    assert!(service.keyed(&delete, "other").await.is_err());
    stop(service).await;
    let service = start_at(dir.path(), &hand);
    assert_eq!(came(service.keyed(&delete, "k").await), Came::Before(3));
    assert!(service.published_here(&name("s")).unwrap().is_none());
    // Its other keys went with it, and a new session may use any.
    assert_eq!(came(service.keyed(&post, "k").await), Came::Now(4));
    assert_eq!(came(service.keyed(&post, "post").await), Came::Now(5));
    assert_eq!(came(service.keyed(&delete, "d").await), Came::Now(6));
    stop(service).await;
}

#[tokio::test]
async fn what_keeps_no_answer_fails_that_write_only() {
    let (dir, hand, service) = started();
    let panics: Keep = Arc::new(|_| panic!("a shape that panics"));
    let fails: Keep = Arc::new(|_| None);
    let held = BusyWriter::new(&service).await;
    let mut before = Box::pin(service.receipt(request("s", "{}"), vec![]));
    assert!(before.as_mut().now_or_never().is_none());
    let shaped = [Some(panics), Some(fails), None].map(|keep| {
        // One that changes something, and one that makes a commit for its key alone.
        ["[]", "[{}]"].map(|items| {
            let items = if items == "[]" { vec![] } else { vec![item("{}")] };
            let write = append("s", LogName::Requests, items);
            let mut shaped = Box::pin(service.write(keyed(write, "k", ""), vec![], keep.clone()));
            assert!(shaped.as_mut().now_or_never().is_none());
            shaped
        })
    });
    let mut after = Box::pin(service.receipt(request("s", "{}"), vec![]));
    assert!(after.as_mut().now_or_never().is_none());
    held.release().await;
    for shaped in shaped.into_iter().flatten() {
        assert!(matches!(shaped.await, Err(ServiceError::Fault)));
    }
    assert_eq!(before.await.unwrap().board.revision(), Revision(1));
    assert_eq!(after.await.unwrap().board.revision(), Revision(2));
    assert_eq!(board(&service, "s").log(&LogName::Requests).unwrap().len(), 2);
    // Nothing was kept of them.
    let write = request("s", "{}");
    assert_eq!(came(service.keyed(&write, "k").await), Came::Now(3));
    stop(service).await;
    let service = start_at(dir.path(), &hand);
    assert_eq!(service.damage().len(), 0);
    assert_eq!(board(&service, "s").revision(), Revision(3));
    stop(service).await;
}

#[tokio::test]
async fn a_damaged_session_repeats_nothing() {
    let (dir, hand, service) = started_uncompacted();
    let write = request("s", "{}");
    assert_eq!(came(service.keyed(&write, "k").await), Came::Now(1));
    service.receipt(request("s", "{}"), vec![]).await.unwrap();
    stop(service).await;
    let database = rusqlite::Connection::open(dir.path().join("blackboard.db")).unwrap();
    database.execute("UPDATE journal SET frame = x'00' WHERE id = 2", []).unwrap();
    drop(database);
    let service = start_at(dir.path(), &hand);
    for request in [write, request("s", r#"{"other":1}"#)] {
        let refused = service.keyed(&request, "k").await;
        assert!(matches!(refused, Err(ServiceError::Damaged)), "{refused:?}");
    }
    let merge = Patch::Merge("{}".to_owned());
    assert!(matches!(patch(&service, "k", &merge).await, Err(ServiceError::Damaged)));
    stop(service).await;
}

#[test]
fn a_repeat_of_what_may_be_lost_may_be_lost_too() {
    if let Some(dir) = child_dir() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        return runtime.block_on(poison(&dir));
    }
    let dir = TempDir::new().unwrap();
    run_child(&SHORT_FILES, dir.path());
}

async fn poison(dir: &Path) {
    let service = start(dir);
    service.receipt(request("s", "{}"), vec![]).await.unwrap();
    let held = BusyWriter::new(&service).await;
    let too_much = append("s", LogName::Requests, noise(6));
    let too_much = keyed(too_much, "k", "");
    let mut first = Box::pin(service.write(too_much.clone(), vec![], Some(keep())));
    let mut repeat = Box::pin(service.write(too_much, vec![], Some(keep())));
    assert!(first.as_mut().now_or_never().is_none() && repeat.as_mut().now_or_never().is_none());
    held.go_on.send(()).unwrap();
    for reply in [first.await, repeat.await] {
        let unknown = matches!(reply, Err(ServiceError::Poisoned { outcome_unknown: true }));
        assert!(unknown, "{reply:?}");
    }
    tokio::task::spawn_blocking(move || service.stop()).await.unwrap();
}
