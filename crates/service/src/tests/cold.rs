//! Tests of evicted boards: each is reloaded unchanged, only when needed.

use futures_util::future::join_all;
use proptest::collection::vec;
use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;

use super::clock::{LONG, open, put, start_at, started, started_uncompacted};
use super::cramped::Cramped;
use super::service::*;
use crate::*;
use blackboard_board::{LogCommand, LogName, Revision, SessionCommand, Which};
use blackboard_clock::Clock;

/// Takes a session's board out of memory.
pub(crate) fn evict(service: &Service, session: &str) {
    let session = service.inner.sessions.directory.get(&name(session)).unwrap();
    service.inner.sessions.memory.evict(&session);
    assert!(!session.is_hot());
}

fn is_hot(service: &Service, session: &str) -> bool {
    service.inner.sessions.directory.get(&name(session)).unwrap().is_hot()
}

async fn fill(service: &Service, session: &str, count: usize) {
    for n in 0..count {
        service.receipt(request(session, &format!("{{\"n\":{n}}}")), vec![]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_board_that_left_comes_back_as_it_was_when_it_is_asked_for() {
    let (dir, hand, service) = started();
    fill(&service, "s", 5).await;
    let (write, images) = screenshot("s", b"x".to_vec());
    service.receipt(write, images).await.unwrap();
    let before = service.published(&name("s")).await.unwrap().unwrap();
    evict(&service, "s");
    assert_eq!(service.extent(&name("s")).unwrap(), Some(before.board.extent()));
    assert!(!is_hot(&service, "s"), "to know where it is needs no board");
    let after = service.published(&name("s")).await.unwrap().unwrap();
    assert_eq!((after.board, after.history_bytes), (before.board, before.history_bytes));
    assert!(is_hot(&service, "s"));

    evict(&service, "s");
    let written = service.receipt(request("s", "{}"), vec![]).await.unwrap();
    assert_eq!(written.board.revision(), Revision(7));
    service.at("s").purge(None).await.unwrap();
    let before = service.published(&name("s")).await.unwrap().unwrap();
    evict(&service, "s");
    let after = service.published(&name("s")).await.unwrap().unwrap();
    assert_eq!(after.board, before.board);
    stop(service).await;
    drop(hand);
    drop(dir);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_ask_for_a_board_at_once_one_lets_it_be_read() {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(Cramped::in_dir(dir.path()));
    let service = Service::start(Arc::clone(&store) as _, POLICY, Clock::system()).unwrap();
    fill(&service, "s", 50).await;
    evict(&service, "s");
    let before = store.pages_read();
    let ask = |_| {
        let service = service.clone();
        tokio::spawn(async move { service.published(&name("s")).await.unwrap().unwrap().board })
    };
    for board in join_all((0..64).map(ask)).await {
        assert_eq!(board.unwrap().revision(), Revision(50));
    }
    assert_eq!(store.pages_read() - before, 1);
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_the_inbox_read_boards_for_large_questions_only() {
    let (_dir, _hand, service) = started();
    let question = |text: &str| vec![item(&format!("{{\"question\":\"{text}\"}}"))];
    let long = "?".repeat(20_000);
    for (session, text) in [("a", "short?"), ("b", long.as_str())] {
        let write = append(session, LogName::Questions, question(text));
        service.receipt(write, vec![]).await.unwrap();
    }
    fill(&service, "c", 1).await;
    let before = service.list(&Listing::all(""), None, 9).unwrap();
    for session in ["a", "b", "c"] {
        evict(&service, session);
    }
    assert_eq!(service.list(&Listing::all(""), None, 9).unwrap(), before);
    let all_of = |prefix: &str| Arc::new(Listing::all(prefix));
    let of_a = service.inbox(Inbox::Questions, &all_of("a"), None, 9).await.unwrap();
    assert_eq!(of_a.len(), 1);
    assert!(["a", "b", "c"].iter().all(|session| !is_hot(&service, session)));
    let all = service.inbox(Inbox::Questions, &all_of(""), None, 9).await.unwrap();
    let sessions: Vec<_> = all.iter().map(|asking| asking.session.as_str()).collect();
    assert_eq!(sessions, ["a", "b"]);
    assert!(["a", "c"].iter().all(|session| !is_hot(&service, session)));
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_requests_and_bytes_of_images_count_without_a_board() {
    let (_dir, _hand, service) = started();
    fill(&service, "pending", 1).await;
    let images = [("s", 3), ("t", 4)].map(|(session, bytes)| screenshot(session, vec![7; bytes]));
    for (write, images) in images {
        service.receipt(write, images).await.unwrap();
    }
    let all = Arc::new(Listing::all(""));
    for evicted in [false, true] {
        if evicted {
            ["pending", "s", "t"].iter().for_each(|session| evict(&service, session));
            assert_eq!((service.stats().hot, service.stats().cold), (0, 3));
        }
        assert_eq!(service.stats().image_bytes, 7, "evicted: {evicted}");
        let pending = service.inbox(Inbox::Requests, &all, None, 9).await.unwrap();
        let sessions: Vec<_> = pending.iter().map(|one| one.session.as_str()).collect();
        assert_eq!(sessions, ["pending"], "evicted: {evicted}");
    }
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_due_in_a_session_without_its_board_ends_in_time() {
    let (_dir, hand, service) = started();
    service.carry_out("due", put("a", "1", Some("1m"))).await.unwrap();
    service.carry_out("later", put("a", "1", Some("1h"))).await.unwrap();
    for session in ["due", "later"] {
        evict(&service, session);
    }
    hand.set(60_000);
    service.reaches("due", 2).await;
    assert_eq!(board(&service, "due").state().text(), "{}");
    assert!(!is_hot(&service, "later"));
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_see_every_commit_though_the_board_is_evicted() {
    let (_dir, _hand, service) = started();
    fill(&service, "s", 3).await;
    evict(&service, "s");
    let mut watch = service.watch(&name("s")).unwrap();
    let (mut seen, mut at) = (Vec::new(), Revision(0));
    for round in 0..4 {
        let Commits::These(commits) = watch.commits(at).await.unwrap() else { panic!("a gap") };
        at = commits.last().map_or(at, |commit| commit.revision);
        seen.extend(commits.iter().map(|commit| commit.revision.0));
        evict(&service, "s");
        assert!(!is_hot(&service, "s") || round > 0, "to watch needs no board");
        fill(&service, "s", 2).await;
        evict(&service, "s");
        assert!(watch.changed().await);
    }
    assert_eq!(seen, (1..=9).collect::<Vec<u64>>());
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writes_that_meet_evictions_lose_nothing() {
    let (dir, hand, service) = started();
    let writer = |session: usize| {
        let service = service.clone();
        tokio::spawn(async move { fill(&service, &format!("s{}", session % 2), 50).await })
    };
    let writers: Vec<_> = (0..4).map(writer).collect();
    while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        service
            .inner
            .sessions
            .directory
            .visit(|session| drop(service.inner.sessions.memory.evict(session)));
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    for session in ["s0", "s1"] {
        let board = board(&service, session);
        assert_eq!(
            (board.revision(), board.log(&LogName::Requests).unwrap().len()),
            (Revision(100), 100)
        );
    }
    stop(service).await;
    let service = start_at(dir.path(), &hand);
    assert_eq!(board(&service, "s0").revision(), Revision(100));
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_kept_by_what_was_used_longest_ago() {
    let dir = TempDir::new().unwrap();
    let options = Options { memory_budget: 1, ..Options::default() };
    let store = Arc::new(open(dir.path()));
    let service = Service::start_with(store, POLICY, Clock::system(), options).unwrap();
    let sessions: Vec<String> = (0..20).map(|n| format!("s{n}")).collect();
    for session in &sessions {
        fill(&service, session, 3).await;
    }
    // The one that was used last stays, however small the budget is.
    let others_left = async {
        while sessions.iter().filter(|session| is_hot(&service, session)).count() > 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, others_left).await.unwrap();
    for session in &sessions {
        assert_eq!(board(&service, session).revision(), Revision(3));
    }
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_boards_leave_than_the_budget_asks_for() {
    let dir = TempDir::new().unwrap();
    let options = Options { memory_budget: 8 << 20, ..Options::default() };
    let store = Arc::new(open(dir.path()));
    let service = Service::start_with(store, POLICY, Clock::system(), options).unwrap();
    let item = format!("{{\"text\":\"{}\"}}", "open the window ".repeat(1 << 14));
    for n in 0..60 {
        service.receipt(request(&format!("s{n}"), &item), vec![]).await.unwrap();
    }
    service
        .receipt(write_to("s59", Command::Session(SessionCommand::Delete)), vec![])
        .await
        .unwrap();
    let evicted = async {
        while service.inner.sessions.memory.is_over() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, evicted).await.unwrap();
    let stats = service.stats();
    assert_eq!((stats.hot + stats.cold, stats.budget_bytes), (59, 8 << 20));
    assert!(stats.cold > 0 && stats.hot > 1, "{stats:?}");
    assert!(stats.resident_bytes > 4 << 20, "{stats:?}");
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_shrink_after_compaction_without_further_writes() {
    let dir = TempDir::new().unwrap();
    let service = Service::start(Arc::new(open(dir.path())), POLICY, Clock::system()).unwrap();
    let text = "open the window ".repeat(30_000);
    for n in 0..40 {
        let item = format!("{{\"n\":{n},\"text\":\"{text}\"}}");
        service.receipt(request("s", &item), vec![]).await.unwrap();
    }
    let bytes = |file: &str| dir.path().join(file).metadata().map_or(0, |file| file.len());
    let shrunk = async {
        while bytes("blackboard.db") + bytes("blackboard.db-wal") > 4 << 20 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, shrunk).await.unwrap();
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_after_a_clean_stop_reads_no_board() {
    let (dir, hand, service) = started();
    for session in ["a", "b", "gone", "again"] {
        fill(&service, session, 3).await;
    }
    for session in ["gone", "again"] {
        service
            .receipt(write_to(session, Command::Session(SessionCommand::Delete)), vec![])
            .await
            .unwrap();
    }
    fill(&service, "again", 2).await;
    let before = all_published(&service);
    stop(service).await;
    let service = start_at(dir.path(), &hand);
    assert!(["a", "b", "gone", "again"].iter().all(|session| !is_hot(&service, session)));
    for ((_, before), (name, after)) in before.iter().zip(&all_published(&service)) {
        assert_eq!(before.board, after.board, "{name}");
        assert_eq!(before.history_bytes, after.history_bytes, "{name}");
    }
    let gone = service.receipt(request("gone", "{}"), vec![]).await.unwrap();
    assert_eq!(gone.board.revision(), Revision(5), "a name goes on");
    stop(service).await;
    assert!(check(&open(dir.path())).unwrap().is_sound());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_deleted_before_a_kill_leaves_nothing_to_its_name() {
    let (dir, hand, service) = started_uncompacted();
    fill(&service, "s", 3).await;
    service.carry_out("s", Command::Session(SessionCommand::Delete)).await.unwrap();
    stop(service).await;
    for revision in [5, 6] {
        let service = start_at(dir.path(), &hand);
        let summary = service.inner.sessions.directory.get(&name("s")).unwrap().summary();
        assert_eq!(summary.history_bytes == 0, summary.life.is_none());
        let written = service.receipt(request("s", "{}"), vec![]).await.unwrap();
        assert_eq!(written.board.revision(), Revision(revision));
        stop(service).await;
        assert!(check(&open(dir.path())).unwrap().is_sound());
    }
}

/// Changes the last byte of a column in every row.
pub(crate) fn corrupt(dir: &std::path::Path, table: &str, column: &str) {
    let connection = Connection::open(dir.join("blackboard.db")).unwrap();
    let sql = format!(
        "UPDATE {table} SET {column} = CAST(substr({column}, 1, length({column}) - 1) || x'00' AS BLOB)"
    );
    assert!(connection.execute(&sql, []).unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_summary_is_found_and_the_history_read_instead() {
    let (dir, hand, service) = started();
    fill(&service, "s", 3).await;
    let before = board(&service, "s");
    stop(service).await;
    corrupt(dir.path(), "session", "frame");
    assert!(!check(&open(dir.path())).unwrap().is_sound());
    let service = start_at(dir.path(), &hand);
    assert!(service.damage().is_empty());
    assert_eq!(board(&service, "s"), before);
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_a_damaged_segment_is_set_aside_when_read() {
    let (dir, hand, service) = started();
    fill(&service, "hurt", 3).await;
    stop(service).await;
    corrupt(dir.path(), "segment", "body");
    let service = start_at(dir.path(), &hand);
    fill(&service, "well", 3).await;
    assert_eq!(service.list(&Listing::all(""), None, 9).unwrap().len(), 2, "nothing was read yet");
    for _ in 0..2 {
        let read = service.published(&name("hurt")).await;
        assert!(matches!(read, Err(ServiceError::Damaged)));
        let written = service.receipt(request("hurt", "{}"), vec![]).await;
        assert!(matches!(written, Err(ServiceError::Damaged)));
    }
    fill(&service, "well", 1).await;
    assert_eq!(board(&service, "well").revision(), Revision(4));
    stop(service).await;
    assert!(!check(&open(dir.path())).unwrap().is_sound());
}

/// What happens to a session.
#[derive(Clone, Debug)]
enum Step {
    Write(Box<Command>),
    Evict,
    Purge,
    Restart,
}

fn written(command: Command) -> Step {
    Step::Write(Box::new(command))
}

fn step() -> impl Strategy<Value = Step> {
    let log = prop_oneof![Just(LogName::Requests), Just(LogName::Questions)];
    let appended = (log, 1_usize..3).prop_map(|(log, count)| {
        Command::Log(log, LogCommand::Append { items: vec![item(r#"{"question":"?"}"#); count] })
    });
    let remove =
        Command::Log(LogName::Requests, LogCommand::Remove { which: Which::AllButNewest(1) });
    prop_oneof![
        6 => appended.prop_map(written),
        2 => Just(written(put("a/b", "1", Some("1h")))),
        1 => Just(written(remove)),
        1 => Just(written(Command::Session(SessionCommand::Delete))),
        5 => Just(Step::Evict),
        1 => Just(Step::Purge),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_session_is_the_same_however_often_its_board_leaves(steps in vec(step(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (dir, hand, mut service) = started();
            service.receipt(request("s", "{}"), vec![]).await.unwrap();
            for step in steps {
                let session = service.inner.sessions.directory.get(&name("s")).unwrap();
                let before = service.inner.sessions.loader.published(&session).await.unwrap();
                match step {
                    Step::Write(command) => {
                        evict(&service, "s");
                        service.receipt(write_to("s", *command), vec![]).await.ok();
                    }
                    Step::Evict => evict(&service, "s"),
                    Step::Purge => drop(service.at("s").purge(None).await.ok()),
                    Step::Restart => {
                        stop(service).await;
                        service = start_at(dir.path(), &hand);
                    }
                }
                let session = service.inner.sessions.directory.get(&name("s")).unwrap();
                let after = service.inner.sessions.loader.published(&session).await.unwrap();
                if after.board.revision() == before.board.revision() {
                    let oldest = after.board.oldest();
                    assert_eq!(*after.board, before.board.beginning_at(oldest));
                }
                assert_eq!(session.summary().extent, after.board.extent());
            }
            stop(service).await;
            assert!(check(&open(dir.path())).unwrap().is_sound());
        });
    }
}
