//! Tests of the service: many writers, a restart, errors.

use std::time::Duration;

use std::collections::BTreeSet;
use std::path::Path;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tempfile::TempDir;

use super::clock::BusyWriter;
use crate::*;
use blackboard_auth::Caller;
use blackboard_board::{
    Answer, Board, Edit, Item, Json, Policy, Rejected, Revision, Screenshot, Seq, Terms,
};
pub(crate) use blackboard_board::{BoardCommand, Command, LogCommand, LogName, SessionCommand};
use blackboard_clock::Clock;
use blackboard_store::{PageMax, SqliteOptions, SqliteStore, SyncLevel};

pub(crate) const POLICY: Policy = Policy {
    auto_create: true,
    session_bytes_max: 1 << 30,
    session_blob_bytes_max: 1 << 30,
    session_items_max: 1 << 30,
    sessions_max: 1 << 30,
    qa_pairs: Vec::new(),
};

pub(crate) fn start(dir: &Path) -> Service {
    let options = SqliteOptions { sync: SyncLevel::Normal, free_bytes_min: 0, free_part: 1 };
    let store = SqliteStore::open(dir, options).unwrap();
    Service::start(Arc::new(store), POLICY, Clock::system()).unwrap()
}

pub(crate) fn name(text: &str) -> SessionName {
    text.parse().unwrap()
}

pub(crate) fn item(text: &str) -> Item {
    Item::from_json(text).unwrap()
}

pub(crate) fn write_to(session: &str, command: Command) -> Write {
    Write { session: name(session), terms: Terms::default(), command }
}

impl Service {
    /// Returns the owner's handle of a session.
    pub(crate) fn at(&self, session: &str) -> SessionHandle {
        SessionHandle { service: self.clone(), caller: Caller::owner(), name: name(session) }
    }

    /// Returns the published board, loaded on this thread if it was evicted.
    pub(crate) fn published_here(
        &self,
        name: &SessionName,
    ) -> Result<Option<Published>, ServiceError> {
        let Some(session) = self.existing(name)? else { return Ok(None) };
        let published = self.inner.sessions.loader.published_here(&session)?;
        Ok(Some(published).filter(|published| published.board.life().is_some()))
    }

    /// Waits until a session has reached a revision, at most this long.
    pub(crate) async fn reach(
        &self,
        name: &SessionName,
        wanted: Revision,
        wait_max: Duration,
    ) -> Result<(), ServiceError> {
        if self.inner.sessions.directory.get(name).is_none() {
            return Ok(());
        }
        let mut watch = self.watch(name)?;
        let reached = async {
            while watch.extent().revision < wanted {
                if !watch.changed().await {
                    break;
                }
            }
        };
        // Late or not, what counts is where it is.
        tokio::time::timeout(wait_max, reached).await.ok();
        let head = watch.extent().revision;
        if head >= wanted { Ok(()) } else { Err(ServiceError::RevisionNotReached { head, wanted }) }
    }

    /// Carries out a write that has no key.
    pub(crate) async fn receipt(
        &self,
        write: Write,
        images: Vec<ImageBytes>,
    ) -> Result<Receipt, ServiceError> {
        match self.write(write, images, None).await? {
            Reply::Now(receipt) => Ok(receipt),
            Reply::Before(answer) => panic!("answered before: {answer:?}"),
        }
    }
}

pub(crate) fn append(session: &str, log: LogName, items: Vec<Item>) -> Write {
    write_to(session, Command::Log(log, LogCommand::Append { items }))
}

pub(crate) fn request(session: &str, text: &str) -> Write {
    append(session, LogName::Requests, vec![item(text)])
}

/// The steps of the states of `SplitMix64`, by Steele, Lea and Flood.
pub(crate) const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number that `SplitMix64` makes of a state.
pub(crate) fn mixed(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Items of half a MiB that hardly get shorter by compression.
pub(crate) fn noise(count: u64) -> Vec<Item> {
    const WORDS: u64 = (1 << 19) / 16;
    let word = |n: u64| format!("{:016x}", mixed(n.wrapping_mul(GAMMA)));
    let text = |n: u64| (n * WORDS..(n + 1) * WORDS).map(word).collect::<String>();
    (1..=count).map(|n| item(&format!(r#"{{"a":"{}"}}"#, text(n)))).collect()
}

/// A post of one screenshot with these bytes.
pub(crate) fn screenshot(session: &str, bytes: Vec<u8>) -> (Write, Vec<ImageBytes>) {
    let screenshot = Screenshot::from_bytes("image/png", bytes, None, "").unwrap();
    let (item, images) = ImageBytes::split(screenshot);
    (append(session, LogName::Screenshots, vec![item]), images)
}

/// The board of a session that exists.
pub(crate) fn board(service: &Service, session: &str) -> Arc<Board> {
    service.published_here(&name(session)).unwrap().unwrap().board
}

/// All sessions by name.
pub(crate) fn all_published(service: &Service) -> Vec<(SessionName, Published)> {
    let published = |summary: &Arc<Summary>| {
        let published = service.published_here(&summary.name).unwrap().unwrap();
        (summary.name.clone(), published)
    };
    service
        .list(&Listing::all(""), None, usize::MAX)
        .unwrap()
        .iter()
        .map(|listed| published(&listed.summary))
        .collect()
}

pub(crate) async fn stop(service: Service) {
    tokio::task::spawn_blocking(move || service.stop()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_on_many_sessions_lose_nothing() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let writer = |writer: u32| {
        let service = service.clone();
        tokio::spawn(async move {
            let mut seqs = Vec::new();
            for n in 0..25 {
                let session = format!("s{}", (writer + n) % 5);
                let text = format!(r#"{{"by":{writer},"n":{n}}}"#);
                let receipt = service.receipt(request(&session, &text), vec![]).await.unwrap();
                let Answer::Added { first, count: 1, dropped: 0 } = receipt.answer else {
                    panic!("{receipt:?}")
                };
                let entry = receipt.board.log(&LogName::Requests).unwrap().get(first).cloned();
                assert_eq!(entry.unwrap().item.text(), text, "a write reads itself");
                let seen = board(&service, &session).revision();
                assert!(seen >= receipt.board.revision(), "and so does everybody after it");
                seqs.push((session, first));
            }
            seqs
        })
    };
    let mut given = BTreeSet::new();
    for seqs in join_all((0..16).map(writer)).await {
        for seq in seqs.unwrap() {
            assert!(given.insert(seq), "a seq was given twice");
        }
    }
    assert_eq!(given.len(), 16 * 25);
    for session in (0..5).map(|i| format!("s{i}")) {
        let board = board(&service, &session);
        let log = board.log(&LogName::Requests).unwrap();
        assert!(log.iter().map(|entry| entry.seq.0).eq(1..=80), "{session}");
        assert_eq!(board.revision(), Revision(80));
    }
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_gives_equal_boards() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    for session in ["a", "b", "gone", "again"] {
        service.receipt(request(session, r#"{"n":1E5}"#), vec![]).await.unwrap();
        let (write, images) = screenshot(session, session.as_bytes().to_vec());
        service.receipt(write, images).await.unwrap();
        let memory = LogName::Memory("A".parse().unwrap());
        service.receipt(append(session, memory, vec![item("{}")]), vec![]).await.unwrap();
    }
    for session in ["gone", "again"] {
        service
            .receipt(write_to(session, Command::Session(SessionCommand::Delete)), vec![])
            .await
            .unwrap();
    }
    service.receipt(request("again", "{}"), vec![]).await.unwrap();
    let before = all_published(&service);
    stop(service).await;

    let service = start(dir.path());
    let after = all_published(&service);
    let names: Vec<_> = after.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "again", "b"]);
    for ((_, before), (name, after)) in before.iter().zip(&after) {
        assert_eq!(before.board, after.board, "{name}");
        assert_eq!(before.history_bytes, after.history_bytes, "{name}");
    }
    assert_eq!(board(&service, "again").revision(), Revision(5), "a name goes on");
    let gone = service.receipt(request("gone", "{}"), vec![]).await.unwrap();
    assert_eq!(gone.board.revision(), Revision(5));
    let shots = board(&service, "a");
    let entry = shots.log(&LogName::Screenshots).unwrap().get(Seq(1)).unwrap();
    let image = service.at("s").image(&shots, entry.item.image().unwrap()).await.unwrap();
    assert_eq!(image, b"a");
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_values_are_stored_compressed_and_read_back_whole() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let value = |turn: usize| {
        let members = (0..100_000).map(|n| format!(r#""m{n}":{}"#, n + turn));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    };
    for turn in 0..4 {
        let value = Json::from_json(&value(turn), 8).unwrap();
        let put = Edit::Put { value, ttl: None };
        let write = write_to("s", Command::State("large".parse().unwrap(), put));
        service.receipt(write, vec![]).await.unwrap();
    }
    let text = format!(r#"{{"text":"{}"}}"#, "many words ".repeat(50_000));
    service.receipt(request("s", &text), vec![]).await.unwrap();
    let before = all_published(&service);
    let session = service.inner.sessions.directory.get(&name("s")).unwrap();
    let (now, max) = (session.extent(), PageMax { commits: 9, bytes: usize::MAX });
    let frames = service.inner.deps.store.commits(now.session, Revision::default(), max).unwrap();
    let stored: usize = frames.iter().map(|(_, frame)| frame.len()).sum();
    let (_, published) = &before[0];
    assert!(published.history_bytes > 5_000_000 && stored < 2_500_000, "{stored}");
    // Each page of the history is bounded by what its commits take uncompressed.
    let mut at = Revision::default();
    for revision in 1..=5 {
        let page = service.history(now, at).await.unwrap();
        assert_eq!(page.iter().map(|commit| commit.revision.0).collect::<Vec<_>>(), [revision]);
        at = Revision(revision);
    }
    stop(service).await;

    let service = start(dir.path());
    let after = all_published(&service);
    assert_eq!(after[0].1.board, published.board);
    assert_eq!(after[0].1.history_bytes, published.history_bytes);
    stop(service).await;
}

#[tokio::test]
async fn a_full_queue_is_told_at_once() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let large = item(&format!(r#"{{"a":"{}"}}"#, "x".repeat(1 << 19)));
    let write = append("s", LogName::Requests, vec![large; 80]);
    let mut first = Box::pin(service.receipt(write.clone(), vec![]));
    assert!(first.as_mut().now_or_never().is_none(), "it waits for the disk");
    let second = service.receipt(write.clone(), vec![]).now_or_never();
    assert!(matches!(second, Some(Err(ServiceError::Overloaded))));
    first.await.unwrap();
    service.receipt(write, vec![]).await.unwrap();
    assert_eq!(board(&service, "s").revision(), Revision(2));
    stop(service).await;
}

#[tokio::test]
async fn more_writes_than_may_wait_are_refused_and_the_others_stand() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let held = BusyWriter::new(&service).await;
    let mut waiting = Vec::new();
    for _ in 0..QUEUE_WRITES_MAX + 100 {
        let mut small = Box::pin(service.receipt(request("s", "{}"), vec![]));
        match small.as_mut().now_or_never() {
            None => waiting.push(small),
            Some(refused) => assert!(matches!(refused, Err(ServiceError::Overloaded))),
        }
    }
    assert_eq!(waiting.len(), QUEUE_WRITES_MAX);
    held.release().await;
    for result in join_all(waiting).await {
        result.unwrap();
    }
    let requests = board(&service, "s").log(&LogName::Requests).unwrap().len();
    assert_eq!(requests, QUEUE_WRITES_MAX);
    stop(service).await;
}

#[tokio::test]
async fn a_stopped_service_writes_no_more_and_what_waited_is_done() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let held = BusyWriter::new(&service).await;
    let mut waiting = Box::pin(service.receipt(request("s", "{}"), vec![]));
    assert!(waiting.as_mut().now_or_never().is_none());
    let stopping = tokio::spawn(stop(service.clone()));
    held.release().await;
    stopping.await.unwrap();
    waiting.await.unwrap();
    let late = service.receipt(request("s", "{}"), vec![]).await;
    assert!(matches!(late, Err(ServiceError::Stopping)));
    assert_eq!(board(&service, "s").revision(), Revision(1), "reads go on");
    drop(service);
    let service = start(dir.path());
    assert_eq!(board(&service, "s").revision(), Revision(1));
    stop(service).await;
}

#[tokio::test]
async fn a_reader_waits_for_a_revision_that_comes() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    service.receipt(request("s", "{}"), vec![]).await.unwrap();
    let session = name("s");
    let mut reach = Box::pin(service.reach(&session, Revision(2), Duration::from_secs(60)));
    assert!(reach.as_mut().now_or_never().is_none());
    service.receipt(request("s", "{}"), vec![]).await.unwrap();
    reach.await.unwrap();
    let late = service.reach(&session, Revision(3), Duration::ZERO).await;
    let (head, wanted) = (Revision(2), Revision(3));
    assert!(
        matches!(late, Err(ServiceError::RevisionNotReached { head: h, wanted: w }) if (h, w) == (head, wanted))
    );
    stop(service).await;
}

#[tokio::test]
async fn a_list_goes_on_after_a_name_within_a_prefix() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    for session in ["b1", "a1", "b3", "b2", "c", "b20"] {
        service.receipt(request(session, "{}"), vec![]).await.unwrap();
    }
    service
        .receipt(write_to("b3", Command::Session(SessionCommand::Delete)), vec![])
        .await
        .unwrap();
    let list = |after: Option<&str>, prefix, limit| {
        let found = service.list(&Listing::all(prefix), after.map(name).as_ref(), limit).unwrap();
        found.iter().map(|listed| listed.summary.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(list(None, "", 9), ["a1", "b1", "b2", "b20", "c"]);
    assert_eq!(list(None, "b", 2), ["b1", "b2"]);
    assert_eq!(list(Some("b2"), "b", 2), ["b20"]);
    assert_eq!(list(Some("a"), "b", 1), ["b1"]);
    assert_eq!(list(Some("c"), "b", 1), [""; 0]);
    assert_eq!(list(None, "", 0), [""; 0]);
    assert_eq!(service.status().sessions, 5);
    stop(service).await;
}

#[tokio::test]
async fn a_refusal_makes_nothing() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    let refused = service
        .receipt(write_to("s", Command::Board(BoardCommand::Clear { state: false })), vec![])
        .await
        .unwrap_err();
    let ServiceError::Rejected { rejected: Rejected::NoSession { .. }, revision: None } = refused
    else {
        panic!("{refused:?}")
    };
    let nothing = service.receipt(append("s", LogName::Requests, vec![]), vec![]).await.unwrap();
    assert!(!nothing.committed);
    assert!(service.published_here(&name("s")).unwrap().is_none());
    assert_eq!(service.status().sessions, 0);
    stop(service).await;
}
