//! Tests of expiry: a commit of its own, before any later command.

use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tempfile::TempDir;

use super::clock::*;
use super::service::*;
use crate::*;
use blackboard_board::{
    Answer, BoardCommand, Change, Due, Edit, Fence, LogName, Rejected, Revision, Seq,
    SessionCommand, Set, SettingsPatch, Terms, Timestamp, Transaction, Work,
};
use blackboard_clock::Clock;

fn lives(text: &str) -> Command {
    let patch = SettingsPatch { ttl: Set::To(ttl(text)), ..SettingsPatch::default() };
    Command::Session(SessionCommand::Put {
        settings: Set::To(patch),
        labels: Set::Keep,
        qa_pairs: vec![],
    })
}

#[tokio::test]
async fn a_path_goes_by_itself_and_is_seen_until_then() {
    let (dir, hand, service) = started_uncompacted();
    service.carry_out("s", put("a/b", "1", Some("10s"))).await.unwrap();
    service.carry_out("s", put("a/c", "2", None)).await.unwrap();
    hand.set(9_999);
    let before = service.receipt(by("A", request("s", "{}")), vec![]).await.unwrap();
    assert_eq!(value(&before.board, "a").unwrap(), r#"{"b":1,"c":2}"#);
    assert_eq!(before.board.revision(), Revision(3));

    let held = BusyWriter::new(&service).await;
    hand.set(30_000);
    assert_eq!(value(&board(&service, "s"), "a/b").unwrap(), "1", "it is there until its commit");
    held.release().await;
    service.reaches("s", 4).await;
    let after = board(&service, "s");
    assert_eq!(value(&after, "a").unwrap(), r#"{"c":2}"#);
    assert_eq!((after.revision(), after.updated_at()), (Revision(4), hand.now()));
    assert_eq!(after.next_due(), None);
    stop(service).await;

    let commits = commits(dir.path());
    let last = commits.last().unwrap();
    assert_eq!(last.changes, [Change::Expired(Due::State(path("a/b")))]);
    assert_eq!((&last.agent, &last.kept), (&None, &None), "nobody wrote it");
}

#[tokio::test]
async fn a_path_that_is_put_again_lives_on() {
    let (_dir, hand, service) = started();
    service.carry_out("s", put("a", "1", Some("10s"))).await.unwrap();
    service.carry_out("s", put("b", "1", Some("10s"))).await.unwrap();
    hand.set(5_000);
    let same = service.carry_out("s", put("a", "1", Some("10s"))).await.unwrap();
    assert!(same.committed, "its deadline moved");
    assert_eq!(same.board.state().value(&path("a")).unwrap().changed(), Revision(1));
    service.carry_out("s", add("b", "1")).await.unwrap();
    hand.set(10_000);
    service.reaches("s", 5).await;
    assert_eq!(board(&service, "s").state().text(), r#"{"a":1}"#);
    service.carry_out("s", put("a", "1", None)).await.unwrap();
    hand.set(1_000_000);
    service.carry_out("s", put("b", "3", Some("1ms"))).await.unwrap();
    hand.set(1_000_001);
    service.reaches("s", 8).await;
    assert_eq!(board(&service, "s").state().text(), r#"{"a":1}"#, "it lives for ever now");
    stop(service).await;
}

async fn claimed(service: &Service, agent: &str) -> Result<Receipt, ServiceError> {
    service.receipt(by(agent, write_to("s", claim("60s"))), vec![]).await
}

async fn write_under(service: &Service, fence: u64) -> Result<Receipt, ServiceError> {
    let Write { session, terms, command } = append("s", LogName::Trajectories, vec![item("{}")]);
    let fence = Some(Fence { request: Seq(1), fence: Revision(fence) });
    service.receipt(Write { session, terms: Terms { fence, ..terms }, command }, vec![]).await
}

fn work(service: &Service) -> Option<Work> {
    let board = board(service, "s");
    let entry = board.log(&LogName::Requests).unwrap().get(Seq(1)).unwrap();
    entry.work.as_deref().cloned()
}

#[tokio::test]
async fn a_claim_lapses_and_another_agent_wins_with_a_new_fence() {
    let (_dir, hand, service) = started();
    service.receipt(request("s", "{}"), vec![]).await.unwrap();
    let won = claimed(&service, "A").await.unwrap();
    let Answer::Claimed { claim, won: true } = &won.answer else { panic!("{won:?}") };
    assert_eq!(claim.fence, Revision(2));
    hand.set(59_999);
    let refused = claimed(&service, "B").await.unwrap_err();
    assert!(matches!(
        refused,
        ServiceError::Rejected { rejected: Rejected::AlreadyClaimed { .. }, .. }
    ));
    hand.set(60_000);
    service.reaches("s", 3).await;
    assert_eq!(work(&service), Some(Work::Lapsed { fence: Revision(2) }));
    write_under(&service, 2).await.expect("nobody has won it since");

    let won = claimed(&service, "B").await.unwrap();
    let Answer::Claimed { claim, won: true } = &won.answer else { panic!("{won:?}") };
    assert_eq!(claim.fence, Revision(5));
    let refused = write_under(&service, 2).await.unwrap_err();
    assert!(matches!(
        refused,
        ServiceError::Rejected { rejected: Rejected::StaleFence { .. }, .. }
    ));
    write_under(&service, 5).await.unwrap();
    // A renewal counts from when it is made, and keeps the fence.
    hand.set(119_999);
    let renewed = claimed(&service, "B").await.unwrap();
    let Answer::Claimed { claim, won: false } = &renewed.answer else { panic!("{renewed:?}") };
    assert_eq!((claim.fence, claim.expires_at), (Revision(5), Timestamp(BEGIN + 179_999)));
    hand.set(120_000);
    assert!(claimed(&service, "A").await.is_err());
    hand.set(180_000);
    let won = claimed(&service, "A").await.unwrap();
    let Answer::Claimed { claim, won: true } = &won.answer else { panic!("{won:?}") };
    assert_eq!(claim.fence, Revision(9), "revision 8 is the end of the claim");
    stop(service).await;
}

#[tokio::test]
async fn a_session_expires_and_its_name_keeps_its_revisions() {
    let (dir, hand, service) = started();
    let (write, images) = screenshot("s", b"image".to_vec());
    let made = service.receipt(write, images).await.unwrap();
    service.carry_out("s", lives("10s")).await.unwrap();
    hand.set(4_000);
    service.carry_out("s", put("a", "1", Some("2s"))).await.unwrap();
    hand.set(6_000);
    service.reaches("s", 4).await;
    assert_eq!(value(&board(&service, "s"), "a"), None, "nobody's write makes it live longer");
    hand.set(13_999);
    let still =
        service.carry_out("s", Command::Board(BoardCommand::Clear { state: true })).await.unwrap();
    assert_eq!(still.board.revision(), Revision(5));
    hand.set(23_999);
    service.reaches("s", 6).await;
    assert!(service.published_here(&name("s")).unwrap().is_none());
    service.receipt(request("other", "{}"), vec![]).await.unwrap();
    assert_eq!(
        (service.status().sessions, service.list(&Listing::all("s"), None, 9).unwrap().len()),
        (1, 0)
    );
    let images = dir.path().join("blobs").join(made.board.id().to_string());
    until("its images stay", || !images.exists()).await;

    let again = service.receipt(request("s", "{}"), vec![]).await.unwrap();
    assert_eq!(again.board.revision(), Revision(7));
    assert_eq!(again.answer.first_added(), Some(Seq(1)));
    assert_ne!(again.board.id(), made.board.id());
    hand.set(1_000_000);
    service.carry_out("s", put("a", "1", None)).await.expect("it has no such setting any more");
    stop(service).await;
    let commits = commits(dir.path());
    let end = commits.iter().find(|commit| commit.ends_session()).unwrap();
    assert_eq!((end.revision, &end.agent), (Revision(6), &None));
    assert_eq!(end.changes, [Change::Expired(Due::Session)]);
}

#[tokio::test]
async fn an_expiry_comes_before_the_command_that_is_next() {
    let (_dir, hand, service) = started();
    service.carry_out("s", put("n", "41", Some("10s"))).await.unwrap();
    let held = BusyWriter::new(&service).await;
    hand.set(10_000);
    let mut next = Box::pin(service.carry_out("s", add("n", "1")));
    let mut later = Box::pin(service.carry_out("s", add("n", "1")));
    assert!(next.as_mut().now_or_never().is_none() && later.as_mut().now_or_never().is_none());
    assert_eq!(value(&board(&service, "s"), "n").unwrap(), "41");
    held.release().await;
    let (next, later) = (next.await.unwrap(), later.await.unwrap());
    assert_eq!((next.board.revision(), next.existed), (Revision(3), false));
    assert_eq!(value(&next.board, "n").unwrap(), "1", "it began anew");
    assert_eq!((later.board.revision(), later.existed), (Revision(4), true));
    assert_eq!(value(&later.board, "n").unwrap(), "2");
    stop(service).await;
}

#[tokio::test]
async fn a_refused_command_leaves_the_expiry_before_it() {
    let (dir, hand, service) = started();
    service.carry_out("s", put("a", "1", Some("10s"))).await.unwrap();
    hand.set(10_000);
    let remove = Command::State(path("a"), Edit::Remove);
    let refused = service.carry_out("s", remove).await.unwrap_err();
    let ServiceError::Rejected { rejected: Rejected::NoPath { .. }, revision } = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(revision, Some(Revision(2)));
    assert_eq!(board(&service, "s").revision(), Revision(2), "what it speaks of is published");
    stop(service).await;
    assert_eq!(commits(dir.path()).len(), 2);
}

#[tokio::test]
async fn a_session_that_ends_in_a_batch_is_made_again_by_what_follows() {
    let (dir, hand, service) = started();
    let (write, images) = screenshot("s", b"old".to_vec());
    let old = service.receipt(write, images).await.unwrap();
    service.carry_out("s", lives("10s")).await.unwrap();
    let held = BusyWriter::new(&service).await;
    hand.set(10_000);
    // Its image lies under the identity that is about to end.
    let (write, images) = screenshot("s", b"new".to_vec());
    let shoot = tokio::spawn({
        let service = service.clone();
        async move { service.receipt(write, images).await.unwrap() }
    });
    let used = service.inner.writer.queue.waiting_bytes();
    while service.inner.writer.queue.waiting_bytes() == used {
        tokio::task::yield_now().await;
    }
    let mut post = Box::pin(service.receipt(request("s", "{}"), vec![]));
    let mut other = Box::pin(service.receipt(request("other", "{}"), vec![]));
    assert!(post.as_mut().now_or_never().is_none() && other.as_mut().now_or_never().is_none());
    held.release().await;
    let (post, other, shot) = (post.await.unwrap(), other.await.unwrap(), shoot.await.unwrap());
    assert_eq!((post.board.revision(), other.board.revision()), (Revision(4), Revision(1)));
    assert_eq!(post.answer.first_added(), Some(Seq(1)));
    assert_eq!(shot.board.revision(), Revision(5));
    assert_eq!(shot.board.id(), post.board.id());
    assert_ne!(shot.board.id(), old.board.id());
    let entry = shot.board.log(&LogName::Screenshots).unwrap().get(Seq(1)).unwrap();
    let image = service.at("s").image(&shot.board, entry.item.image().unwrap()).await.unwrap();
    assert_eq!(image, b"new");
    stop(service).await;
    let commits = commits(dir.path());
    let expiries: Vec<_> = commits.iter().filter(|commit| commit.is_system()).collect();
    assert_eq!((expiries.len(), expiries[0].revision), (1, Revision(3)));
    assert_eq!(expiries[0].changes, [Change::Expired(Due::Session)]);
    let homes = std::fs::read_dir(dir.path().join("blobs")).unwrap().count();
    assert_eq!(homes, 1, "the old one's images are gone");
}

/// A transaction that puts so many paths that live for ten seconds.
fn puts(count: usize) -> Command {
    let then = (0..count).map(|n| put(&format!("p/{n}"), "1", Some("10s"))).collect();
    Command::Transact(Box::new(Transaction { then, ..Transaction::default() }))
}

#[tokio::test]
async fn three_thousand_due_paths_are_one_commit_per_session() {
    let (_dir, hand, service) = started();
    let sessions: Vec<String> = (0..50).map(|n| format!("s{n}")).collect();
    let made = sessions.iter().map(|session| service.carry_out(session, puts(60)));
    for receipt in join_all(made).await {
        assert_eq!(receipt.unwrap().board.next_due(), Some(Timestamp(BEGIN + 10_000)));
    }
    // A commit takes note of a thousand of them, and others get their turn in between.
    service.carry_out("many", puts(10_001)).await.unwrap();
    hand.set(10_000);
    for session in &sessions {
        service.reaches(session, 2).await;
        let board = board(&service, session);
        assert_eq!((board.revision(), board.next_due()), (Revision(2), None));
        assert_eq!(board.state().text(), r#"{"p":{}}"#);
    }
    service.reaches("many", 12).await;
    let board = board(&service, "many");
    assert_eq!((board.revision(), board.state().text()), (Revision(12), r#"{"p":{}}"#.to_owned()));
    stop(service).await;
}

#[tokio::test]
async fn a_clock_that_jumps_back_expires_nothing_early() {
    let (dir, hand, service) = started();
    hand.set(1_000_000);
    service.carry_out("s", put("a", "1", Some("10s"))).await.unwrap();
    hand.set(-500_000);
    let later = service.carry_out("s", put("b", "1", Some("5s"))).await.unwrap();
    let at = Timestamp(BEGIN + 1_000_000);
    assert_eq!(later.board.updated_at(), at, "no commit is before the one before it");
    assert_eq!(later.board.next_due(), Some(Timestamp(BEGIN - 495_000)), "from the moment on");
    hand.set(-495_001);
    let still = service.carry_out("s", put("c", "1", None)).await.unwrap();
    assert_eq!(still.board.state().text(), r#"{"a":1,"b":1,"c":1}"#);
    hand.set(-495_000);
    service.reaches("s", 4).await;
    assert_eq!(board(&service, "s").state().text(), r#"{"a":1,"c":1}"#);
    assert_eq!(board(&service, "s").updated_at(), at);
    // Far ahead and back again: what ended then has ended.
    hand.set(9_000_000);
    service.reaches("s", 5).await;
    hand.set(0);
    let back = service.carry_out("s", put("d", "1", Some("1s"))).await.unwrap();
    assert_eq!(back.board.state().text(), r#"{"c":1,"d":1}"#);
    assert_eq!(back.board.updated_at(), Timestamp(BEGIN + 9_000_000));
    stop(service).await;
    let service = start_at(dir.path(), &hand);
    assert_eq!(board(&service, "s"), back.board);
    stop(service).await;
}

#[tokio::test]
async fn no_commit_leaves_what_was_over_when_it_was_made() {
    let ticks = Arc::new(AtomicI64::new(BEGIN));
    // It goes on with every look at it.
    let clock = Clock::new(move || Timestamp(ticks.fetch_add(1, Ordering::SeqCst)));
    let dir = TempDir::new().unwrap();
    let service = Service::start(Arc::new(open(dir.path())), POLICY, clock).unwrap();
    for n in 0..200 {
        let command = if n % 2 == 0 {
            put("a", "1", Some(&format!("{}ms", 1 + n % 7)))
        } else {
            add("b", "1")
        };
        let board = service.carry_out("s", command).await.unwrap().board;
        let due = board.next_due();
        assert!(due.is_none_or(|due| due > board.updated_at()), "{due:?} {:?}", board.updated_at());
    }
    stop(service).await;
}
