//! Tests of export and import: the same history under any name.

use std::path::Path;

use tempfile::TempDir;

use crate::tests::clock::*;
use crate::tests::cramped::Cramped;
use crate::tests::service::*;
use crate::*;
use blackboard_board::*;
use blackboard_board::{
    AgentCommand, CheckpointCommand, LogCommand, QuestionCommand, RequestCommand, SessionCommand,
};
use blackboard_clock::Clock;
use blackboard_store::{Progress, Reached, Stage, Store};

/// A session's archive, whole.
pub(crate) async fn out(service: &Service, session: &str) -> String {
    let mut export = service.at("s").export(board(service, session)).await.unwrap();
    let mut archive = String::new();
    while let Some(lines) = export.next().await.unwrap() {
        archive.push_str(&lines);
    }
    archive
}

/// Takes an archive in, in pieces of this many bytes.
pub(crate) async fn bring_in(
    service: &Service,
    session: &str,
    archive: &[u8],
    piece: usize,
) -> Result<Arc<Board>, ServiceError> {
    let mut import = service.at(session).import().await?;
    for piece in archive.chunks(piece) {
        if !import.push(piece.to_vec()).await {
            break;
        }
    }
    let imported = import.finish().await?;
    match service.at(session).adopt_import(Terms::default(), imported, None).await? {
        Reply::Now(receipt) => Ok(receipt.board),
        Reply::Before(answer) => panic!("answered before: {answer:?}"),
    }
}

pub(crate) async fn delete(service: &Service, session: &str) {
    service.carry_out(session, Command::Session(SessionCommand::Delete)).await.unwrap();
}

fn edit(at: &str, edit: Edit) -> Command {
    Command::State(path(at), edit)
}

fn append_to(log: LogName, texts: &[&str]) -> Command {
    Command::Log(log, LogCommand::Append { items: texts.iter().map(|text| item(text)).collect() })
}

/// Makes a session with some of everything, by all kinds of commits.
pub(crate) async fn rich(service: &Service, session: &str) {
    let labels = Set::To([("k".to_owned(), Some("v".to_owned()))].into());
    let Set::To(labels) = labels else { return };
    let settings = SettingsPatch { history_keys: Set::To(vec!["a".into()]), ..Default::default() };
    let settings = Set::To(settings);
    let labels = Set::To(labels);
    let put_session = Command::Session(SessionCommand::Put {
        settings,
        labels,
        qa_pairs: vec![item("{\"q\":1}")],
    });
    let questions = vec![item(r#"{"question":"?"}"#), item(r#"{"text" : "é"}"#)];
    let profile = item(r#"{"type":"AppAgent","status":"CONTINUE"}"#);
    let commands = [
        put_session,
        append_to(LogName::Requests, &["{}", "{\"n\":1E5}", "{}"]),
        Command::Ask { items: questions, ttl: ttl("1h"), default: Some("none".to_owned()) },
        Command::Question(Seq(2), QuestionCommand::Answer { answer: "yes".to_owned() }),
        append_to(LogName::Trajectories, &["{\"step\":1}", "{\"step\":2}", "{\"step\":3}"]),
        append_to(LogName::Memory("日本".parse().unwrap()), &["{\"cost\":1.50}"]),
        Command::Agent("A".parse().unwrap(), AgentCommand::Put { profile }),
        put("a/b", "{\"n\":1.50,\"l\":[1]}", Some("30d")),
        edit("a/b/l", Edit::Append(vec![json("{\"x\" : []}")])),
        edit("a", Edit::Merge(json("{\"m\":null,\"z\":2}"))),
        add("a/b/n", "1"),
        put("gone", "1", None),
        edit("gone", Edit::Remove),
        claim("1h"),
        Command::Checkpoint("early".parse().unwrap(), CheckpointCommand::Put),
        Command::Request(
            Seq(2),
            RequestCommand::Finish { fence: None, result: Some(json("[1, 2]")) },
        ),
        Command::Log(LogName::Trajectories, LogCommand::DeleteEntry { seq: Seq(2) }),
    ];
    for command in commands {
        service.receipt(by("A", write_to(session, command)), vec![]).await.unwrap();
    }
    for bytes in [&b"one"[..], b"two", b"one"] {
        let (write, images) = screenshot(session, bytes.to_vec());
        service.receipt(write, images).await.unwrap();
    }
    let keep: Keep = Arc::new(|_| Some(json("{\"status\" : 200}")));
    let write = keyed(request(session, "{\"keyed\":1}"), "key", "body");
    service.write(write, vec![], Some(keep)).await.unwrap();
    let now = service.published_here(&name(session)).unwrap().unwrap();
    let then = At::Checkpoint("early".parse().unwrap());
    let then = service.at(session).board_at(&now, &then).await.unwrap();
    service.carry_out(session, Command::Session(SessionCommand::Restore { then })).await.unwrap();
    service.carry_out(session, append_to(LogName::Requests, &["{}"])).await.unwrap();
    service.receipt(by("B", write_to(session, claim("2h"))), vec![]).await.unwrap();
}

/// What a reader of a board sees of it, whatever its name and its revision.
pub(crate) fn contents(board: &Board) -> Vec<String> {
    let logs = LogName::BOARD.into_iter().chain([LogName::Memory("日本".parse().unwrap())]);
    let shown = logs.filter_map(|log| {
        let entries = board.log(&log)?.iter();
        let shown = entries.map(|e| format!("{} {} {:?} {}", e.seq, e.at, e.agent, e.item.text()));
        Some(shown.collect::<Vec<_>>().join("\n"))
    });
    let agents = format!("{:?}", board.agents());
    shown.chain([board.state().text(), agents]).collect()
}

/// How many rows are left of histories, and how many images there are.
pub(crate) fn left(store: &dyn Store, dir: &Path) -> (i64, i64, i64, usize) {
    while store.embedded().unwrap().idle() {}
    let database = rusqlite::Connection::open(dir.join("blackboard.db")).unwrap();
    let count = |table: &str| {
        let select = format!("SELECT count(*) FROM {table}");
        database.query_row(&select, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let mut images = 0;
    let mut visit = |_| {
        images += 1;
        std::ops::ControlFlow::Continue(())
    };
    store.blobs(&mut visit).unwrap();
    (count("journal"), count("base"), count("history"), images)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_out_in_and_out_again_is_the_same_to_the_byte() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    rich(&service, "s").await;
    let archive = out(&service, "s").await;
    assert_eq!(archive.matches("{\"image\":").count(), 2, "each image once");
    for (piece, to) in [(1, "one"), (7, "seven"), (usize::MAX, "all")] {
        let board = bring_in(&service, to, archive.as_bytes(), piece).await.unwrap();
        assert_eq!(contents(&board), contents(&board_of(&service, "s")));
        assert_eq!(out(&service, to).await, archive, "{to}");
    }
    assert_eq!(service.status().sessions, 4);
    let now = board_of(&service, "one");
    let life = now.life().unwrap();
    assert_eq!((life.name.as_str(), &*life.labels["k"]), ("one", "v"));
    assert_eq!(now.checkpoints(), board_of(&service, "s").checkpoints());
    let shot = now.log(&LogName::Screenshots).unwrap().get(Seq(1)).cloned();
    if let Some(image) = shot.as_ref().and_then(|shot| shot.item.image()) {
        assert_eq!(service.at("s").image(&now, image).await.unwrap(), b"one");
    }
    stop(service).await;

    let service = start(dir.path());
    assert!(service.damage().is_empty());
    assert_eq!(board_of(&service, "one"), now, "a restart gives an equal board");
    assert_eq!(out(&service, "one").await, archive);
    // What is written after it is part of the history, and so is how it came here.
    service.receipt(request("one", "{}"), vec![]).await.unwrap();
    let longer = out(&service, "one").await;
    assert!(longer.contains("\"adopted\""));
    bring_in(&service, "two", longer.as_bytes(), 100).await.unwrap();
    assert_eq!(out(&service, "two").await, longer);
    stop(service).await;
    let store = open(dir.path());
    let progress = Progress::default();
    let soundness = check_counted(&store, &progress).unwrap();
    let images = u64::try_from(soundness.images).unwrap();
    let end = Reached { stage: Stage::Images, done: images, total: images };
    assert_eq!(progress.reached(), end);
    assert!(soundness.is_sound(), "{soundness:?}");
}

pub(crate) fn board_of(service: &Service, session: &str) -> Arc<Board> {
    board(service, session)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purged_session_and_a_fork_have_archives_too() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    rich(&service, "s").await;
    let fork = async |to: &str| {
        let board = board_of(&service, "s");
        service.at(to).fork(Terms::default(), board, name("s"), None).await.unwrap();
    };
    fork("f").await;
    service.at("s").purge(None).await.unwrap();
    let purged = out(&service, "s").await;
    assert!(!purged.contains("{\"commit\":") && purged.contains("{\"part\":{\"head\""));
    service.receipt(request("s", "{\"after\":1}"), vec![]).await.unwrap();
    service.receipt(request("f", "{\"after\":1}"), vec![]).await.unwrap();
    fork("g").await;
    for session in ["s", "f", "g"] {
        let archive = out(&service, session).await;
        let to = format!("{session}2");
        let board = bring_in(&service, &to, archive.as_bytes(), 1000).await.unwrap();
        assert_eq!(contents(&board), contents(&board_of(&service, session)), "{session}");
        assert_eq!(out(&service, &to).await, archive, "{session}");
        // A second round, purged in between.
        service.at(&to).purge(None).await.unwrap();
        let archive = out(&service, &to).await;
        delete(&service, session).await;
        bring_in(&service, session, archive.as_bytes(), 1000).await.unwrap();
        assert_eq!(out(&service, session).await, archive, "{session}");
    }
    stop(service).await;
    let soundness = check(&open(dir.path())).unwrap();
    assert!(soundness.is_sound(), "{soundness:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_archive_goes_on_above_all_that_its_name_ever_had() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    rich(&service, "s").await;
    let (before, archive) = (board_of(&service, "s"), out(&service, "s").await);
    let claim_of = |board: &Board| board.work(Seq(1)).and_then(Work::claim).cloned();
    let fence = claim_of(&before).unwrap().fence;
    for _ in 0..5 {
        service.receipt(request("s", "{}"), vec![]).await.unwrap();
    }
    delete(&service, "s").await;
    let last = before.revision().0 + 6;
    let board = bring_in(&service, "s", archive.as_bytes(), 64).await.unwrap();
    assert_eq!(board.revision(), Revision(last + 1));
    assert_ne!(board.id(), before.id(), "no tag of before is one of now");
    assert_eq!(board.oldest_cursor(), board.revision(), "no cursor of before is one of now");
    assert_eq!((claim_of(&board), board.keys().len()), (None, 0));
    let mut late = by("B", request("s", "{}"));
    late.terms.fence = Some(Fence { request: Seq(1), fence });
    let late = service.receipt(late, vec![]).await;
    let is_stale = |error: &ServiceError| {
        matches!(error, ServiceError::Rejected { rejected: Rejected::StaleFence { .. }, .. })
    };
    assert!(late.as_ref().is_err_and(is_stale), "{late:?}");
    // The numbers that are left out stay left out.
    assert_eq!(out(&service, "s").await, archive);
    service.receipt(request("s", "{}"), vec![]).await.unwrap();
    let longer = out(&service, "s").await;
    let again = bring_in(&service, "t", longer.as_bytes(), 64).await.unwrap();
    assert_eq!(again.revision(), Revision(last + 3));
    assert_eq!(out(&service, "t").await, longer);
    stop(service).await;
    let service = start(dir.path());
    assert!(service.damage().is_empty());
    assert_eq!(out(&service, "t").await, longer);
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_made_again_under_a_deleted_name_has_an_archive() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    service.receipt(request("s", "{}"), vec![]).await.unwrap();
    delete(&service, "s").await;
    service.receipt(request("s", "{\"n\":2}"), vec![]).await.unwrap();
    let archive = out(&service, "s").await;
    assert!(archive.contains("\"oldest_revision\":2,\"revision\":3,"), "{archive}");
    let board = bring_in(&service, "t", archive.as_bytes(), 9).await.unwrap();
    assert_eq!((board.oldest(), board.revision()), (Revision(2), Revision(4)));
    assert_eq!(out(&service, "t").await, archive);
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_is_of_one_moment_though_writes_go_on() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    for n in 0..400 {
        let text = format!("{{\"n\":{n},\"text\":\"{}\"}}", "x".repeat(2000));
        service.receipt(request("s", &text), vec![]).await.unwrap();
    }
    let shown = board_of(&service, "s");
    let mut export = service.at("s").export(Arc::clone(&shown)).await.unwrap();
    let mut archive = export.next().await.unwrap().unwrap();
    for _ in 0..20 {
        service.receipt(request("s", "{\"late\":1}"), vec![]).await.unwrap();
    }
    while let Some(lines) = export.next().await.unwrap() {
        archive += &lines;
    }
    assert!(!archive.contains("late"));
    let board = bring_in(&service, "t", archive.as_bytes(), 1 << 16).await.unwrap();
    assert_eq!(contents(&board), contents(&shown));
    // What is forgotten meanwhile is in it.
    let whole = out(&service, "t").await;
    let mut export = service.at("s").export(board).await.unwrap();
    let mut archive = export.next().await.unwrap().unwrap();
    service.at("t").purge(None).await.unwrap();
    while let Some(lines) = export.next().await.unwrap() {
        archive += &lines;
    }
    assert!(archive == whole, "an archive lost what was forgotten while it went out");
    assert_ne!(out(&service, "t").await, whole);
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_is_whole_though_its_base_is_replaced() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let text = format!("{{\"text\":\"{}\"}}", "x".repeat(20_000));
    for _ in 0..20 {
        service.receipt(request("s", &text), vec![]).await.unwrap();
    }
    service.at("s").purge(None).await.unwrap();
    for _ in 0..60 {
        service.receipt(request("s", &text), vec![]).await.unwrap();
    }
    let shown = board_of(&service, "s");
    let whole = out(&service, "s").await;
    let mut export = service.at("s").export(Arc::clone(&shown)).await.unwrap();
    let mut archive = String::new();
    while let Some(lines) = export.next().await.unwrap() {
        archive += &lines;
        // Each takes the base, and what was deleted of the one before goes at once.
        service.receipt(request("s", "{\"late\":1}"), vec![]).await.unwrap();
        service.at("s").purge(None).await.unwrap();
        let store = Arc::clone(&service.inner.deps.store);
        tokio::task::spawn_blocking(move || while store.embedded().unwrap().idle() {})
            .await
            .unwrap();
    }
    assert!(archive == whole, "an archive is not what it was when it began");
    let old = service.at("s").export(shown).await;
    assert!(matches!(old, Err(ServiceError::Compacted { .. })), "its beginning is gone");
    drop(export);
    // Besides its base, an archive of it has a first and a last line.
    let parts = out(&service, "s").await.lines().count() - 2;
    let store = Arc::clone(&service.inner.deps.store);
    let (rows, left, ..) =
        tokio::task::spawn_blocking(move || left(&*store, dir.path())).await.unwrap();
    assert_eq!((rows, left), (0, i64::try_from(parts).unwrap()), "what no archive holds is left");
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_stops_leaves_nothing_and_lets_the_next_one_in() {
    let dir = TempDir::new().unwrap();
    // Commits that are compacted meanwhile would be missing where they are counted.
    let store: Arc<dyn Store> = Arc::new(Cramped::uncompacted(dir.path()));
    let service = Service::start(Arc::clone(&store), POLICY, Clock::system()).unwrap();
    rich(&service, "s").await;
    let archive = out(&service, "s").await;
    let before = left(&*store, dir.path());
    for end in [0, 10, archive.len() / 2, archive.len()] {
        let mut import = service.at("t").import().await.unwrap();
        import.push(archive.as_bytes()[..end].to_vec()).await;
        drop(import);
    }
    let mut import = service.at("t").import().await.unwrap();
    import.push(archive.clone().into_bytes()).await;
    drop(import.finish().await.unwrap());
    // The next one waits for those before it.
    let waits = service.at("t").import().await.unwrap();
    assert!(waits.finish().await.is_err());
    let deadline = std::time::Instant::now() + LONG;
    while left(&*store, dir.path()) != before {
        assert!(std::time::Instant::now() < deadline, "something is left");
        tokio::task::yield_now().await;
    }
    // A name that gets its session meanwhile stays that session's.
    let mut import = service.at("t").import().await.unwrap();
    import.push(archive.into_bytes()).await;
    service.receipt(request("t", "{}"), vec![]).await.unwrap();
    let imported = import.finish().await.unwrap();
    let late = service.at("t").adopt_import(Terms::default(), imported, None).await;
    assert!(matches!(
        late,
        Err(ServiceError::Rejected { rejected: Rejected::SessionExists { .. }, .. })
    ));
    let (journal, bases, histories, images) = before;
    assert_eq!(left(&*store, dir.path()), (journal + 1, bases, histories, images));
    assert_eq!(board_of(&service, "t").revision(), Revision(1));
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bounds_of_a_session_hold_for_what_comes_in() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    rich(&service, "s").await;
    let archive = out(&service, "s").await;
    stop(service).await;
    for (policy, is_images) in [
        (Policy { session_bytes_max: 50, ..POLICY }, false),
        (Policy { session_blob_bytes_max: 5, ..POLICY }, true),
    ] {
        let dir = TempDir::new().unwrap();
        let store: Arc<dyn Store> = Arc::new(open(dir.path()));
        let service = Service::start(Arc::clone(&store), policy, Clock::system()).unwrap();
        let refused = bring_in(&service, "s", archive.as_bytes(), 100).await.unwrap_err();
        assert_eq!(refused.code(), Code::SessionFull);
        assert_eq!(refused.to_string().contains("images"), is_images, "{refused}");
        assert_eq!((left(&*store, dir.path()), service.status().sessions), ((0, 0, 0, 0), 0));
        stop(service).await;
    }
}
