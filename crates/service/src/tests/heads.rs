//! Tests of head checks: a read sees what another server wrote before it, and watchers see each commit once.

use std::time::Duration;

use futures_util::future::join_all;
use tempfile::TempDir;

use super::clock::{LONG, add, put, value};
use super::common::two;
use super::service::*;
use crate::sessions::memory_budget::Evictor;
use crate::sessions::session::Pin;
use crate::*;
use blackboard_board::{Board, LogName, Revision, SessionCommand};
use blackboard_clock::Clock;
use blackboard_store::Store;

async fn caught_up(service: &Service, session: &str) -> Option<Arc<Board>> {
    service.catch_up(&name(session)).await.unwrap();
    Some(service.published(&name(session)).await.unwrap()?.board)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_read_sees_what_another_server_wrote_before() {
    let dir = TempDir::new().unwrap();
    let (_stores, services) = two(dir.path());
    for n in 1..=200_u64 {
        let (writer, reader) =
            (&services[usize::from(n % 3 == 0)], &services[usize::from(n % 3 != 0)]);
        writer.receipt(write_to("s", add("n", "1")), vec![]).await.unwrap();
        let board = caught_up(reader, "s").await.unwrap();
        assert_eq!(value(&board, "n").unwrap(), n.to_string());
    }
    assert!(caught_up(&services[0], "none").await.is_none());
    services[0]
        .receipt(write_to("s", Command::Session(SessionCommand::Delete)), vec![])
        .await
        .unwrap();
    assert!(caught_up(&services[1], "s").await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_checks_of_many_sessions_end() {
    let dir = TempDir::new().unwrap();
    let (_stores, [one, other]) = two(dir.path());
    for n in 0..50 {
        one.receipt(request(&format!("s{n}"), r#""r""#), vec![]).await.unwrap();
    }
    let check = |n: usize| {
        let other = other.clone();
        tokio::spawn(async move { caught_up(&other, &format!("s{}", n % 60)).await.is_some() })
    };
    let found = join_all((0..600).map(check)).await;
    assert_eq!(found.into_iter().filter(|found| *found.as_ref().unwrap()).count(), 500);
}

/// Watchers of both servers see every commit of both, once and in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn watchers_of_both_servers_see_each_commit_once() {
    const WRITES: u64 = 100;
    let dir = TempDir::new().unwrap();
    let (_stores, services) = two(dir.path());
    let watch = |service: &Service| {
        let mut watch = service.watch(&name("s")).unwrap();
        tokio::spawn(async move {
            let mut seen = Vec::new();
            while seen.last().is_none_or(|last: &Revision| last.0 < 2 * WRITES) {
                let after = seen.last().copied().unwrap_or_default();
                match watch.commits(after).await.unwrap() {
                    Commits::These(commits) if !commits.is_empty() => {
                        seen.extend(commits.iter().map(|commit| commit.revision));
                    }
                    Commits::These(_) => assert!(watch.changed().await),
                    Commits::Gap => panic!("a gap after {after}"),
                }
            }
            seen
        })
    };
    let watchers: Vec<_> = services.iter().map(watch).collect();
    let write = |service: &Service| {
        let service = service.clone();
        tokio::spawn(async move {
            for _ in 0..WRITES {
                service.receipt(request("s", r#""r""#), vec![]).await.unwrap();
            }
        })
    };
    join_all(services.iter().map(write)).await;
    let expected: Vec<_> = (1..=2 * WRITES).map(Revision).collect();
    for seen in join_all(watchers).await {
        assert_eq!(seen.unwrap(), expected);
    }
    let board = caught_up(&services[0], "s").await.unwrap();
    assert_eq!(board.log(&LogName::Requests).unwrap().len() as u64, 2 * WRITES);
    services[0].reach(&name("s"), Revision(1), Duration::ZERO).await.unwrap();
}

/// A value expires though the server that wrote it is gone, and the one that leads never read its session.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_leader_expires_what_another_server_wrote() {
    let dir = TempDir::new().unwrap();
    let (stores, [one, other]) = two(dir.path());
    one.receipt(write_to("s", put("x", "1", Some("1s"))), vec![]).await.unwrap();
    stop(one).await;
    stores[0].resign();
    while value(&caught_up(&other, "s").await.unwrap(), "x").is_some() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let board = caught_up(&other, "s").await.unwrap();
    assert_eq!(board.revision(), Revision(2));
}

/// The directory of a server is a cache of the sessions that it is asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unused_sessions_leave_the_directory_and_are_found_again() {
    let dir = TempDir::new().unwrap();
    let (stores, [one, other]) = two(dir.path());
    stop(other).await;
    let store: Arc<dyn Store> = Arc::clone(&stores[1]) as _;
    let options = Options { memory_budget: 1, ..Options::default() };
    let small = Service::start_with(Arc::clone(&store), POLICY, Clock::system(), options).unwrap();
    for n in 0..20 {
        one.receipt(request(&format!("s{n}"), r#""r""#), vec![]).await.unwrap();
        caught_up(&small, &format!("s{n}")).await.unwrap();
    }
    let sessions = &small.inner.sessions;
    let directory = &sessions.directory;
    let known = || {
        let mut known = Vec::new();
        directory.visit(|session| known.push((session.name().clone(), session.is_in_use())));
        known
    };
    let watch = small.watch(&name("s3")).unwrap();
    let evicted = async {
        while known().iter().filter(|(_, is_in_use)| *is_in_use).count() > 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, evicted).await.unwrap();
    assert_eq!(known().len(), 20);
    let pinned = Pin::new(&directory.get(&name("s5")).unwrap());
    let held = sessions.memory.held();
    let evictor = Evictor {
        memory: Arc::clone(&sessions.memory),
        past_boards: Arc::clone(&sessions.past_boards),
        directory: Arc::clone(directory),
        store,
    };
    evictor.release(u32::MAX);
    assert!(known().iter().all(|(_, is_in_use)| *is_in_use), "{:?}", known());
    assert!(directory.get(&name("s3")).is_some(), "a watched one stays");
    assert!(directory.get(&name("s5")).is_some(), "a pinned one too");
    assert!(sessions.memory.held() < held / 2);

    for n in 0..20 {
        let session = format!("s{n}");
        let receipt = small.receipt(request(&session, r#""r""#), vec![]).await.unwrap();
        assert_eq!(receipt.board.revision(), Revision(2));
        let board = caught_up(&one, &session).await.unwrap();
        assert_eq!(board.log(&LogName::Requests).unwrap().len(), 2);
    }
    drop((watch, pinned));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_check_after_the_end_is_refused() {
    let dir = TempDir::new().unwrap();
    let (_stores, [one, _other]) = two(dir.path());
    let check = move || {
        one.stop();
        one.inner.heads.check_here(&[name("s")])
    };
    let checked = tokio::task::spawn_blocking(check).await.unwrap();
    assert!(matches!(checked, Err(ServiceError::Stopping)), "{checked:?}");
}
