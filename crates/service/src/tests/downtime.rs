//! Tests of deadlines that pass while the server is down or cannot write.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use tokio::sync::watch;

use super::clock::*;
use super::cramped::{Cramped, start_uncompacted_at};
use super::service::*;
use crate::*;
use blackboard_board::{
    Change, Due, LogName, Revision, Seq, SessionCommand, Set, SettingsPatch, Work,
};
use blackboard_child_test::{SHORT_FILES, child_dir, run_child};
use blackboard_clock::Clock;
use blackboard_store::{EmbeddedStore as _, SqliteOptions, SqliteStore, Store, Stored};

#[tokio::test]
async fn expiries_while_down_are_committed_before_serving() {
    let (dir, hand, service) = started_uncompacted();
    service.carry_out("path", put("a", "1", Some("10s"))).await.unwrap();
    service.carry_out("path", put("b", "1", Some("20s"))).await.unwrap();
    service.receipt(request("claim", "{}"), vec![]).await.unwrap();
    service.receipt(by("A", write_to("claim", claim("10s"))), vec![]).await.unwrap();
    let (write, images) = screenshot("session", b"image".to_vec());
    service.receipt(write, images).await.unwrap();
    let patch = SettingsPatch { ttl: Set::To(ttl("10s")), ..SettingsPatch::default() };
    let settings = Set::To(patch);
    let lives =
        Command::Session(SessionCommand::Put { settings, labels: Set::Keep, qa_pairs: vec![] });
    service.carry_out("session", lives).await.unwrap();
    service.carry_out("later", put("a", "1", Some("11s"))).await.unwrap();
    stop(service).await;

    hand.set(10_000);
    let service = start_uncompacted_at(dir.path(), hand.clock());
    let path = board(&service, "path");
    assert_eq!((path.revision(), path.state().text()), (Revision(3), r#"{"b":1}"#.to_owned()));
    let claim = board(&service, "claim");
    let entry = claim.log(&LogName::Requests).unwrap().get(Seq(1)).unwrap();
    assert_eq!(entry.work.as_deref(), Some(&Work::Lapsed { fence: Revision(2) }));
    assert_eq!(claim.revision(), Revision(3));
    assert!(service.published_here(&name("session")).unwrap().is_none());
    let homes = || std::fs::read_dir(dir.path().join("blobs")).unwrap().count();
    until("its images stay", || homes() == 0).await;
    assert_eq!(board(&service, "later").revision(), Revision(1));
    assert_eq!(service.status().sessions, 3);
    let before = all_published(&service);
    stop(service).await;

    let stored = commits(dir.path());
    assert_eq!(stored.len(), 5 + 3, "two went with the session that ended");
    assert!(stored[5..].iter().all(|commit| commit.is_system() && commit.at == hand.now()));
    let service = start_uncompacted_at(dir.path(), hand.clock());
    for ((_, before), (name, after)) in before.iter().zip(&all_published(&service)) {
        assert_eq!(before.board, after.board, "{name}");
    }
    let again = service.receipt(request("session", "{}"), vec![]).await.unwrap();
    assert_eq!(again.board.revision(), Revision(4), "its name goes on");
    stop(service).await;
    assert_eq!(commits(dir.path()).len(), 5 + 3 + 1, "a second start finds nothing to do");
}

/// More sessions than one batch takes.
#[tokio::test]
async fn two_thousand_sessions_are_swept_before_the_start_is_over() {
    let (dir, hand, service) = started();
    let names: Vec<String> = (0..2_000).map(|n| format!("s{n}")).collect();
    let puts = names.iter().map(|name| service.carry_out(name, put("a", "1", Some("1d"))));
    for made in futures_util::future::join_all(puts).await {
        made.unwrap();
    }
    stop(service).await;
    hand.set(24 * 60 * 60 * 1000);
    let service = start_at(dir.path(), &hand);
    let all = service.list(&Listing::all(""), None, usize::MAX).unwrap();
    assert!(all.iter().all(|listed| listed.summary.extent.revision == Revision(2)));
    assert_eq!(all.len(), 2_000);
    stop(service).await;
}

#[tokio::test]
async fn a_damaged_session_is_left_alone_and_the_others_go_on() {
    let (dir, hand, service) = started_uncompacted();
    for session in ["well", "hurt"] {
        service.carry_out(session, put("a", "1", Some("10s"))).await.unwrap();
        service.carry_out(session, put("b", "1", Some("20s"))).await.unwrap();
    }
    stop(service).await;
    let database = rusqlite::Connection::open(dir.path().join("blackboard.db")).unwrap();
    let change = "UPDATE journal SET frame = substr(frame, 1, length(frame) - 1) WHERE id = 4";
    assert_eq!(database.execute(change, []).unwrap(), 1);
    drop(database);

    hand.set(10_000);
    let service = start_at(dir.path(), &hand);
    assert_eq!(service.damage().len(), 1);
    assert_eq!(board(&service, "well").revision(), Revision(3));
    assert!(matches!(service.published_here(&name("hurt")), Err(ServiceError::Damaged)));
    hand.set(20_000);
    service.reaches("well", 4).await;
    let refused = service.carry_out("hurt", put("a", "2", None)).await;
    assert!(matches!(refused, Err(ServiceError::Damaged)));
    stop(service).await;
    let mut rows = 0;
    let mut count = |_: Stored<'_>| {
        rows += 1;
        ControlFlow::Continue(())
    };
    open(dir.path()).replay(&mut count).unwrap();
    assert_eq!(rows, 4 + 2, "nothing follows what cannot be read");
}

#[tokio::test]
async fn a_deadline_uses_the_room_that_is_kept_for_deletions() {
    let (dir, hand, service) = started();
    service.carry_out("s", put("a", "1", Some("10s"))).await.unwrap();
    service.carry_out("s", put("b", "1", Some("20s"))).await.unwrap();
    stop(service).await;
    // All of the disk is kept.
    let options =
        SqliteOptions { free_bytes_min: 1 << 60, free_part: 1, ..SqliteOptions::default() };
    let store = SqliteStore::open(dir.path(), options).unwrap();
    hand.set(10_000);
    let service = Service::start(Arc::new(store), POLICY, hand.clock()).unwrap();
    assert_eq!(board(&service, "s").state().text(), r#"{"b":1}"#);
    let refused = service.carry_out("s", put("c", "1", None)).await;
    assert!(matches!(refused, Err(ServiceError::StoreFull)));
    hand.set(20_000);
    // What ended and what came after it stand or fall together.
    let refused = service.carry_out("s", put("c", "1", None)).await;
    assert!(matches!(refused, Err(ServiceError::StoreFull)));
    service.reaches("s", 4).await;
    assert_eq!(board(&service, "s").state().text(), "{}");
    stop(service).await;
}

#[tokio::test]
async fn an_expiry_without_room_is_retried_without_spinning() {
    let (dir, hand, looks) = (TempDir::new().unwrap(), Hand::new(), Arc::new(AtomicUsize::new(0)));
    let store = Arc::new(Cramped::in_dir(dir.path()));
    let mut times = store.refused.subscribe();
    let clock = {
        let (hand, looks) = (hand.clone(), Arc::clone(&looks));
        Clock::new(move || {
            looks.fetch_add(1, Ordering::SeqCst);
            hand.now()
        })
    };
    let running: Arc<dyn Store> = Arc::<Cramped>::clone(&store);
    let service = Service::start(running, POLICY, clock).unwrap();
    let made = service.carry_out("s", put("a", "1", Some("10s"))).await.unwrap();
    store.no_room_for.lock().insert(made.board.id());
    hand.set(10_000);
    times.wait_for(|times| *times >= 1).await.unwrap();
    let before = (*times.borrow(), looks.load(Ordering::SeqCst));
    times.wait_for(|times| *times >= 3).await.unwrap();
    let looked = looks.load(Ordering::SeqCst) - before.1;
    let tried = *times.borrow() - before.0;
    assert!(looked <= 2 * tried + 2, "it woke up {looked} times to try {tried} times");

    // Writes of others go through, and do not make it try more often.
    let before = *times.borrow();
    for _ in 0..200 {
        service.receipt(request("other", "{}"), vec![]).await.unwrap();
    }
    let tried = *times.borrow() - before;
    assert!(tried < 100, "{tried}");
    let late = service.carry_out("s", put("b", "1", None)).await;
    assert!(matches!(late, Err(ServiceError::StoreFull)));
    assert_eq!(board(&service, "s"), made.board, "it is seen until it is gone");

    store.no_room_for.lock().clear();
    service.reaches("s", 2).await;
    assert_eq!(board(&service, "s").state().text(), "{}");
    stop(service).await;
    drop(store);
    let stored = commits(dir.path());
    let expiries = stored.iter().filter(|commit| commit.is_system());
    let changes: Vec<_> = expiries.flat_map(|commit| &commit.changes).collect();
    assert_eq!(changes, [&Change::Expired(Due::State(path("a")))]);
}

#[test]
fn a_poisoned_store_keeps_what_is_due_until_the_next_start() {
    if let Some(dir) = child_dir() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        return runtime.block_on(poison(&dir));
    }
    let dir = TempDir::new().unwrap();
    run_child(&SHORT_FILES, dir.path());
    let hand = Hand::new();
    hand.set(10_000);
    let service = start_at(dir.path(), &hand);
    let board = board(&service, "s");
    assert_eq!((board.revision(), board.state().text()), (Revision(2), "{}".to_owned()));
    service.stop();
}

async fn poison(dir: &Path) {
    let (hand, looks) = (Hand::new(), watch::Sender::new(0));
    let clock = {
        let (hand, looks) = (hand.clone(), looks.clone());
        Clock::new(move || {
            looks.send_modify(|times| *times += 1);
            hand.now()
        })
    };
    let service = Service::start(Arc::new(open(dir)), POLICY, clock).unwrap();
    service.carry_out("s", put("a", "1", Some("10s"))).await.unwrap();
    let too_much = append("t", LogName::Requests, noise(12));
    let lost = service.receipt(too_much, vec![]).await;
    assert!(matches!(lost, Err(ServiceError::Poisoned { outcome_unknown: true })), "{lost:?}");
    hand.set(10_000);
    // The writer has looked, tried, and looked again.
    let seen = *looks.borrow();
    looks.subscribe().wait_for(|times| *times >= seen + 4).await.unwrap();
    assert_eq!(value(&board(&service, "s"), "a").unwrap(), "1");
    assert_eq!(board(&service, "s").revision(), Revision(1));
    tokio::task::spawn_blocking(move || service.stop()).await.unwrap();
}
