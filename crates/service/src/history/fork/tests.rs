//! Tests of forks: independent sessions, and cleanup after a rejected fork.

use futures_util::FutureExt as _;
use tempfile::TempDir;

use super::*;
use crate::tests::clock::{BusyWriter, LONG, keyed};
use crate::tests::cold::evict;
use crate::tests::cramped::Cramped;
use crate::tests::service::{
    POLICY, board, item, name, request, screenshot, start, stop, write_to,
};
use crate::{At, Published, Receipt};
use blackboard_board::{LogCommand, LogName, Revision, Seq, SessionCommand};
use blackboard_clock::Clock;

use blackboard_store::Store;

async fn fork(service: &Service, from: &str, at: u64, to: &str) -> Result<Receipt, ServiceError> {
    let published: Published = service.published_here(&name(from))?.unwrap();
    let then = service.at(from).board_at(&published, &At::Revision(Revision(at))).await?;
    match service.at(to).fork(Terms::default(), then, name(from), None).await? {
        Reply::Now(receipt) => Ok(receipt),
        Reply::Before(answer) => panic!("answered before: {answer:?}"),
    }
}

fn requests(board: &Board) -> Vec<String> {
    let log = board.log(&LogName::Requests).unwrap();
    log.iter().map(|entry| entry.item.text().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_survives_its_source_and_a_restart() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    for n in 1..=3 {
        service.receipt(request("s", &format!("{{\"n\":{n}}}")), Vec::new()).await.unwrap();
    }
    let (write, images) = screenshot("s", b"\x89PNG\r\n\x1a\nimage".to_vec());
    service.receipt(write, images).await.unwrap();
    assert_eq!(fork(&service, "s", 4, "f").await.unwrap().board.revision(), Revision(5));
    assert_eq!(fork(&service, "s", 2, "g").await.unwrap().board.revision(), Revision(3));
    service.receipt(request("f", "{\"n\":4}"), Vec::new()).await.unwrap();
    service
        .receipt(write_to("s", Command::Session(SessionCommand::Delete)), Vec::new())
        .await
        .unwrap();
    stop(service).await;

    let service = start(dir.path());
    assert_eq!(requests(&board(&service, "g")), ["{\"n\":1}", "{\"n\":2}"]);
    let forked = board(&service, "f");
    assert_eq!(requests(&forked), [1, 2, 3, 4].map(|n| format!("{{\"n\":{n}}}")));
    assert_eq!(forked.oldest(), Revision(4));
    let shot = forked.log(&LogName::Screenshots).unwrap().get(Seq(1)).unwrap();
    let image = shot.item.image().unwrap();
    assert_eq!(service.at("s").image(&forked, image).await.unwrap(), b"\x89PNG\r\n\x1a\nimage");
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_may_begin_where_the_history_does() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    for _ in 0..3 {
        service.receipt(request("s", "{}"), Vec::new()).await.unwrap();
    }
    let purged = service.at("s").purge(None).await.unwrap();
    assert_eq!(purged, Revision(3));
    assert_eq!(fork(&service, "s", 3, "f").await.unwrap().board.revision(), Revision(4));
    let before = fork(&service, "s", 2, "g").await.unwrap_err();
    assert!(matches!(before, ServiceError::Compacted { oldest: Revision(3) }), "{before:?}");
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_shares_the_items_of_its_source() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    service.receipt(request("s", "{}"), Vec::new()).await.unwrap();
    let forked = fork(&service, "s", 1, "f").await.unwrap().board;
    let text = |board: &Board| {
        let entry = board.log(&LogName::Requests).and_then(|log| log.get(Seq(1)).cloned());
        entry.unwrap().item.text().as_ptr()
    };
    assert_eq!(text(&forked), text(&board(&service, "s")));
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_to_a_name_that_is_taken_leaves_nothing_behind() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    for session in ["s", "taken"] {
        service.receipt(request(session, "{}"), Vec::new()).await.unwrap();
    }
    let refused = fork(&service, "s", 1, "taken").await.unwrap_err();
    assert!(matches!(
        refused,
        ServiceError::Rejected { rejected: Rejected::SessionExists { .. }, .. }
    ));
    assert_eq!(board(&service, "taken").revision(), Revision(1));
    stop(service).await;
    let service = start(dir.path());
    assert_eq!(service.status().sessions, 2);
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_forks_to_one_name_one_wins() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    service.receipt(request("s", "{}"), Vec::new()).await.unwrap();
    let forks = (0..8).map(|_| {
        let service = service.clone();
        tokio::spawn(async move { fork(&service, "s", 1, "f").await.is_ok() })
    });
    let mut won = 0;
    for fork in forks.collect::<Vec<_>>() {
        won += u32::from(fork.await.unwrap());
    }
    assert_eq!((won, service.status().sessions), (1, 2));
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failed_adoption_a_name_takes_the_next_write() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    for _ in 0..5 {
        service.receipt(request("s", "{}"), Vec::new()).await.unwrap();
    }
    let (source, hold) =
        (board(&service, "s"), service.inner.images.pins.session(new_session_id()));
    let (staged, forked) = service.stage_fork(source, name("s"), hold).await.unwrap();
    let (id, forked) = (staged.hand_over(), Arc::new(forked));
    let command =
        Command::Session(SessionCommand::Adopt { board: forked, fork_of: Some(name("s")) });
    // Its answer cannot be made.
    let write = keyed(write_to("f", command), "key", "fork");
    let job = WriteJob { keep: Some(Arc::new(|_| None)), ..WriteJob::of(write) };
    let held = BusyWriter::new(&service).await;
    let mut adopting = Box::pin(service.adopt(id, job));
    let mut writing = Box::pin(service.receipt(request("f", "{}"), Vec::new()));
    assert!(adopting.as_mut().now_or_never().is_none());
    assert!(writing.as_mut().now_or_never().is_none());
    held.release().await;
    assert!(matches!(adopting.await, Err(ServiceError::Fault)));
    assert_eq!(writing.await.unwrap().board.revision(), Revision(1));
    stop(service).await;
    let again = start(dir.path());
    assert_eq!(requests(&board(&again, "f")), ["{}"]);
    stop(again).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forks_and_purges_do_not_wait_for_the_images_of_another_fork() {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(Cramped::in_dir(dir.path()));
    let service = Service::start(Arc::clone(&store) as Arc<dyn Store>, POLICY, Clock::system());
    let service = service.unwrap();
    for session in ["s", "t"] {
        let (write, images) = screenshot(session, b"image".to_vec());
        service.receipt(write, images).await.unwrap();
    }
    service.receipt(request("u", "{}"), Vec::new()).await.unwrap();
    store.gate.set_closed(true);
    let mut came = store.gate.came.subscribe();
    let forking = {
        let service = service.clone();
        tokio::spawn(async move { fork(&service, "s", 1, "f").await })
    };
    tokio::time::timeout(LONG, came.changed()).await.expect("it links no images").unwrap();
    let purged = service.at("t").purge(None).await;
    let forked = fork(&service, "u", 1, "g").await;
    let is_waiting = !forking.is_finished();
    // Before anything fails here, or its thread would wait for ever.
    store.gate.set_closed(false);
    purged.unwrap();
    forked.unwrap();
    assert!(is_waiting);
    assert_eq!(forking.await.unwrap().unwrap().board.image_bytes(), 5);
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_goes_on_above_every_revision_that_its_name_ever_had() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    for _ in 0..9 {
        service.receipt(request("f", "{}"), Vec::new()).await.unwrap();
    }
    service
        .receipt(write_to("f", Command::Session(SessionCommand::Delete)), Vec::new())
        .await
        .unwrap();
    let items = vec![item("{}")];
    let command = Command::Log(LogName::Requests, LogCommand::Append { items });
    service.receipt(write_to("s", command), Vec::new()).await.unwrap();
    let forked = fork(&service, "s", 1, "f").await.unwrap().board;
    assert_eq!((forked.revision(), forked.oldest_cursor()), (Revision(11), Revision(11)));
    service.receipt(request("f", "{}"), Vec::new()).await.unwrap();
    let published = service.published_here(&name("f")).unwrap().unwrap();
    for (at, found) in [(1, true), (5, false), (10, false), (11, true), (12, true), (13, false)] {
        let then = service.at("f").board_at(&published, &At::Revision(Revision(at))).await;
        assert_eq!(then.is_ok(), found, "{at}");
    }
    stop(service).await;
    let again = start(dir.path());
    assert_eq!(board(&again, "f"), published.board);
    stop(again).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_takes_no_turn_while_its_board_is_read() {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(Cramped::uncompacted(dir.path()));
    let service = Service::start(Arc::clone(&store) as Arc<dyn Store>, POLICY, Clock::system());
    let service = service.unwrap();
    service.receipt(request("s", "{}"), vec![]).await.unwrap();
    evict(&service, "s");
    store.read_gate.set_closed(true);
    let mut came = store.read_gate.came.subscribe();
    let purging = {
        let service = service.clone();
        tokio::spawn(async move { service.at("s").purge(None).await })
    };
    tokio::time::timeout(LONG, came.changed()).await.expect("it reads no board").unwrap();
    let is_free = service.inner.history.bases.now().is_some();
    // Before anything fails here, or its thread would wait for ever.
    store.read_gate.set_closed(false);
    assert!(is_free, "others may have their bases made");
    assert_eq!(purging.await.unwrap().unwrap(), Revision(1));
    stop(service).await;
}
