//! Tests of watching: no commit is missed, no unwatched name is kept.

use std::time::Duration;

use tempfile::TempDir;

use super::waker::Heard;
use super::*;
use crate::tests::service::{board, name, request, start, stop, write_to};
use blackboard_board::{Command, SessionCommand};

const DEADLINE: Duration = Duration::from_secs(30);

/// Follows a session until this revision, and tells the revisions that it saw.
async fn follow(watch: &mut Watch, after: u64, until: u64) -> Vec<u64> {
    let (mut seen, mut at) = (Vec::new(), Revision(after));
    let follow = async {
        while at < Revision(until) {
            let Commits::These(commits) = watch.commits(at).await.unwrap() else { panic!("a gap") };
            if let Some(last) = commits.last() {
                at = last.revision;
                seen.extend(commits.iter().map(|commit| commit.revision.0));
            } else {
                assert!(watch.changed().await);
            }
        }
    };
    tokio::time::timeout(DEADLINE, follow).await.unwrap();
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_without_a_session_is_watched_from_its_first_commit_on() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let mut watch = service.watch(&name("s")).unwrap();
    let writer = service.clone();
    let writing = tokio::spawn(async move {
        for _ in 0..300 {
            writer.receipt(request("s", "{}"), Vec::new()).await.unwrap();
        }
    });
    assert_eq!(follow(&mut watch, 0, 300).await, (1..=300).collect::<Vec<_>>());
    writing.await.unwrap();
    assert_eq!(service.status().sessions, 1);
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_over_a_deletion() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    service.receipt(request("s", "{}"), Vec::new()).await.unwrap();
    let mut watch = service.watch(&name("s")).unwrap();
    assert_eq!(follow(&mut watch, 0, 1).await, [1]);
    for command in [Command::Session(SessionCommand::Delete), request("s", "{}").command] {
        service.receipt(write_to("s", command), Vec::new()).await.unwrap();
    }
    assert_eq!(follow(&mut watch, 1, 3).await, [2, 3]);
    // A later watcher finds nothing of what was deleted, as long as another one holds it and after that.
    for earlier in [Some(watch), None] {
        let mut late = service.watch(&name("s")).unwrap();
        assert!(matches!(late.commits(Revision(1)).await, Ok(Commits::Gap)));
        assert!(matches!(late.commits(Revision(9)).await, Ok(Commits::Gap)));
        drop(earlier);
    }
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_nobody_watches_is_forgotten() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let known = |service: &Service| service.inner.sessions.directory.get(&name("s")).is_some();
    let watches = [(); 3].map(|()| service.watch(&name("s")).unwrap());
    assert!(known(&service) && service.status().sessions == 0);
    drop(watches);
    assert!(!known(&service));
    let watch = service.watch(&name("s")).unwrap();
    service.receipt(request("s", "{}"), Vec::new()).await.unwrap();
    drop(watch);
    assert_eq!(board(&service, "s").revision(), Revision(1));
    stop(service).await;
}

/// What the memory counts once all that it counts was weighed.
fn held(service: &Service) -> usize {
    let Sessions { directory, memory, .. } = &service.inner.sessions;
    directory.visit(|session| memory.weigh(session));
    memory.held()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_nobody_watches_any_more_counts_for_no_memory() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let before = held(&service);
    for n in 0..100 {
        let watch = service.watch(&name(&format!("s{n}"))).unwrap();
        assert!(held(&service) > before, "while it is watched it counts");
        let session = Arc::clone(&watch.session);
        drop(watch);
        // The thread that weighs what was used may come late.
        service.inner.sessions.memory.weigh(&session);
    }
    assert_eq!(held(&service), before);
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_name_counts_for_as_much_as_after_a_restart() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    for n in 0..10 {
        let session = format!("s{n}");
        service.receipt(request(&session, "{}"), Vec::new()).await.unwrap();
        let deletion = write_to(&session, Command::Session(SessionCommand::Delete));
        service.receipt(deletion, Vec::new()).await.unwrap();
    }
    let before = held(&service);
    stop(service).await;
    let service = start(dir.path());
    assert_eq!(before, held(&service));
    // The names are as good as new ones, and their revisions go on.
    let written = service.receipt(request("s0", "{}"), Vec::new()).await.unwrap();
    assert_eq!(written.board.revision(), Revision(3));
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_every_wait() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let mut watch = service.watch(&name("s")).unwrap();
    let waiting = tokio::spawn(async move { watch.changed().await });
    service.stopping().cancel();
    assert!(!tokio::time::timeout(DEADLINE, waiting).await.unwrap().unwrap());
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_follows_all_sessions_is_told_what_happened_where() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let (mut notices, mut lists) = (service.channels().notices(), service.channels().lists());
    service.receipt(request("s", "{}"), Vec::new()).await.unwrap();
    let heard = tokio::time::timeout(DEADLINE, notices.recv()).await.unwrap().unwrap();
    let Heard::Notice(notice) = heard else { panic!("{heard:?}") };
    assert_eq!((notice.session, notice.revision), (name("s"), Revision(1)));
    assert_eq!(*notice.kinds, [("appended", None), ("created", None)]);
    tokio::time::timeout(DEADLINE, lists.changed()).await.unwrap().unwrap();
    stop(service).await;
}
