//! Tests of conflicts: commits of another server between a decision and its append.

use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use tempfile::TempDir;

use super::clock::{add, by, claim, keyed, put, value};
use super::common::{Common, serve, two};
use super::service::*;
use crate::sessions::replay::whole;
use crate::*;
use blackboard_board::{Board, stored::Body};
use blackboard_board::{
    Condition, Frame, LogName, Matches, Moment, Nonce, Rejected, Revision, SessionCommand,
    Timestamp, decide, stored,
};
use blackboard_store::{Run, SharedStore as _, SqliteStore, Store as _};

/// The board that the store has of a session.
fn stored_board(store: &Common, session: &str) -> Board {
    let head = store.heads(&[(session.as_bytes().to_vec(), Revision(0))]).unwrap()[0].unwrap();
    whole(store, head.session).unwrap().0
}

/// Appends a commit that another server decides on the head of a run's session.
fn come_between(store: &SqliteStore, run: &Run, write: &Write) {
    let (board, _) = whole(store, run.session).unwrap();
    let nonce = Nonce(board.revision().0);
    let moment = Moment { now: Timestamp(0), nonce, policy: &POLICY, qa_pairs: &[], sessions: 0 };
    let commit = decide(&board, write, moment).unwrap().commit.unwrap();
    let body = stored::encode_commit(&commit).unwrap();
    let frames = vec![Frame::encode(run.session, commit.revision, &Body::plain(&body)).unwrap()];
    let expected = board.revision();
    let foreign = Run { expected, frames, claim: None, group: None, ends: None, ..run.clone() };
    assert_eq!(store.append(&[foreign]), [blackboard_store::Outcome::Appended]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_of_two_servers_lose_nothing() {
    let dir = TempDir::new().unwrap();
    let (stores, services) = two(dir.path());
    let writer = |number: usize| {
        let service = services[number % 2].clone();
        tokio::spawn(async move {
            for _ in 0..25 {
                let counted = write_to("s", add("n", "1"));
                service.receipt(counted, vec![]).await.unwrap();
                service.receipt(request("s", r#""r""#), vec![]).await.unwrap();
            }
        })
    };
    for ended in join_all((0..8).map(writer)).await {
        ended.unwrap();
    }
    let board = stored_board(&stores[0], "s");
    assert_eq!(value(&board, "n").unwrap(), "200");
    assert_eq!(board.log(&LogName::Requests).unwrap().len(), 200);
    assert!(stores.iter().any(|store| store.conflicts.load(Ordering::SeqCst) > 0), "no conflict");
    for service in services {
        stop(service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_created_once_by_two_servers() {
    let dir = TempDir::new().unwrap();
    let (_stores, services) = two(dir.path());
    for n in 0..20 {
        let session = format!("s{n}");
        let create = |service: &Service| {
            let (service, session) = (service.clone(), session.clone());
            tokio::spawn(
                async move { service.receipt(request(&session, r#""made""#), vec![]).await },
            )
        };
        let made = join_all(services.iter().map(create)).await;
        let made: Vec<_> = made.into_iter().map(|made| made.unwrap().unwrap().board).collect();
        assert_eq!(made[0].id(), made[1].id());
        assert_ne!(made[0].revision(), made[1].revision());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_claimed_by_one_of_two_servers() {
    let dir = TempDir::new().unwrap();
    let (_stores, services) = two(dir.path());
    for service in &services {
        service.receipt(request("s", r#""one""#), vec![]).await.unwrap();
    }
    let claims = services.iter().zip(["A", "B"]).map(|(service, agent)| {
        let (service, agent) = (service.clone(), agent);
        tokio::spawn(async move {
            service.receipt(by(agent, write_to("s", claim("60s"))), vec![]).await
        })
    });
    let claimed = join_all(claims).await.into_iter().map(Result::unwrap);
    let (won, lost): (Vec<_>, Vec<_>) = claimed.partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 1));
    let Some(Err(ServiceError::Rejected { rejected, .. })) = lost.into_iter().next() else {
        panic!("no refusal by a rule")
    };
    assert!(matches!(rejected, Rejected::AlreadyClaimed { .. }), "{rejected}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_deleted_elsewhere_has_a_new_session_with_higher_revisions() {
    let dir = TempDir::new().unwrap();
    let (_stores, [one, other]) = two(dir.path());
    let first = one.receipt(request("s", r#""1""#), vec![]).await.unwrap();
    other.receipt(request("s", r#""2""#), vec![]).await.unwrap();
    let delete = write_to("s", Command::Session(SessionCommand::Delete));
    let deleted = other.receipt(delete, vec![]).await.unwrap();
    let next = one.receipt(request("s", r#""3""#), vec![]).await.unwrap();
    assert_ne!(next.board.id(), first.board.id());
    assert!(next.board.revision() > deleted.board.revision());
    assert_eq!(next.board.log(&LogName::Requests).unwrap().len(), 1);
    let again = other.receipt(request("s", r#""4""#), vec![]).await.unwrap();
    assert_eq!(again.board.id(), next.board.id());
}

/// A repeat through another server, a condition, and a value that only the other knows.
#[tokio::test(flavor = "multi_thread")]
async fn writes_are_judged_by_what_the_other_server_stored() {
    let dir = TempDir::new().unwrap();
    let (_stores, [one, other]) = two(dir.path());
    let seen = one.receipt(write_to("s", put("x", "1", None)), vec![]).await.unwrap();
    other.receipt(write_to("s", put("x", "2", None)), vec![]).await.unwrap();
    let mut guarded = write_to("s", put("x", "3", None));
    let seen = Matches::Versions(vec![seen.board.version()]);
    guarded.terms.condition = Condition { matches: Some(seen), absent: false };
    let refused = one.receipt(guarded, vec![]).await;
    assert!(matches!(refused, Err(ServiceError::Rejected { .. })), "{refused:?}");
    let keep = || Some(Arc::new(|_: &Receipt| Some(super::clock::json("7"))) as Keep);
    let add = || keyed(write_to("s", add("n", "1")), "key", "request");
    assert!(matches!(one.write(add(), vec![], keep()).await.unwrap(), Reply::Now(_)));
    assert!(matches!(other.write(add(), vec![], keep()).await.unwrap(), Reply::Before(_)));
}

/// Each append meets a commit of another server, until the write is decided alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_conflicts_again_and_again_is_decided_alone() {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(Common::in_dir(dir.path()));
    let service = serve(&store);
    service.receipt(write_to("s", add("n", "1")), vec![]).await.unwrap();
    *store.between.lock() = Some(Box::new(|store, batch| {
        batch.iter().for_each(|run| come_between(store, run, &write_to("s", add("n", "10"))));
    }));
    let receipt = service.receipt(write_to("s", add("n", "1")), vec![]).await.unwrap();
    assert_eq!(value(&receipt.board, "n").unwrap(), "22");
    assert_eq!(store.exclusive.load(Ordering::SeqCst), 1);
    *store.between.lock() = None;
    assert_eq!(stored_board(&store, "s").revision(), Revision(4));
    assert_eq!(board(&service, "s").revision(), Revision(4));
}

/// The source's part of a keyed fork conflicts, so its new session is not made either until both are.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_and_its_key_are_stored_together() {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(Common::in_dir(dir.path()));
    let service = serve(&store);
    service.receipt(request("source", r#""1""#), vec![]).await.unwrap();
    let mut left = 1;
    *store.between.lock() = Some(Box::new(move |store, batch| {
        let source = batch.iter().find(|run| run.claim.is_none() && left > 0);
        if let Some(run) = source {
            left -= 1;
            come_between(store, run, &request("source", r#""between""#));
        }
    }));
    let keep = || Some(Arc::new(|_: &Receipt| Some(super::clock::json("7"))) as Keep);
    let terms = || keyed(request("fork", r#""f""#), "key", "fork").terms;
    let forked =
        service.at("fork").fork(terms(), board(&service, "source"), name("source"), keep()).await;
    assert!(matches!(forked.unwrap(), Reply::Now(_)));
    assert!(store.conflicts.load(Ordering::SeqCst) >= 2, "both parts conflict");
    let again =
        service.at("fork").fork(terms(), board(&service, "source"), name("source"), keep()).await;
    assert!(matches!(again.unwrap(), Reply::Before(_)));
    assert_eq!(stored_board(&store, "source").log(&LogName::Requests).unwrap().len(), 2);
    assert_eq!(stored_board(&store, "fork").log(&LogName::Requests).unwrap().len(), 1);
    assert_eq!(store.embedded_store().append(&[]), []);
}
