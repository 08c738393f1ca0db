//! A test clock moved by hand, and a writer that can be paused.

use std::time::{Duration, Instant};

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::cramped::start_uncompacted_at;
use super::service::*;
use crate::*;
use blackboard_board::{
    AgentName, Board, Commit, Condition, Digest, Edit, Frame, Key, RequestCommand, Revision, Seq,
    StatePath, Terms, Timestamp, Ttl, stored,
};
use blackboard_clock::Clock;
use blackboard_store::{EmbeddedStore as _, SqliteOptions, SqliteStore, SyncLevel};

/// When tests begin.
pub(crate) const BEGIN: i64 = 1_795_244_591_123;

pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LONG, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A clock that stands still until it is moved.
#[derive(Clone)]
pub(crate) struct Hand(Arc<AtomicI64>);

impl Hand {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicI64::new(BEGIN)))
    }

    pub(crate) fn clock(&self) -> Clock {
        let hand = self.clone();
        Clock::new(move || hand.now())
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    /// Moves it to so many milliseconds after the beginning.
    pub(crate) fn set(&self, ms: i64) {
        self.0.store(BEGIN + ms, Ordering::SeqCst);
    }
}

pub(crate) fn open(dir: &Path) -> SqliteStore {
    let options = SqliteOptions { sync: SyncLevel::Normal, free_bytes_min: 0, free_part: 1 };
    SqliteStore::open(dir, options).unwrap()
}

pub(crate) fn start_at(dir: &Path, hand: &Hand) -> Service {
    Service::start(Arc::new(open(dir)), POLICY, hand.clock()).unwrap()
}

/// A running service on a clock of its own.
pub(crate) fn started() -> (TempDir, Hand, Service) {
    let (dir, hand) = (TempDir::new().unwrap(), Hand::new());
    let service = start_at(dir.path(), &hand);
    (dir, hand, service)
}

/// The same, whose commits stay in the order in which they were made.
pub(crate) fn started_uncompacted() -> (TempDir, Hand, Service) {
    let (dir, hand) = (TempDir::new().unwrap(), Hand::new());
    let service = start_uncompacted_at(dir.path(), hand.clock());
    (dir, hand, service)
}

/// All commits that a store keeps, in order.
pub(crate) fn commits(dir: &Path) -> Vec<Commit> {
    let mut commits = Vec::new();
    let mut take = |stored: blackboard_store::Stored<'_>| {
        let blackboard_store::Stored::Commit(record) = stored else {
            return std::ops::ControlFlow::Continue(());
        };
        let body = Frame::decode(record.session, record.revision, record.frame).unwrap();
        commits.push(stored::decode_commit(&body).unwrap());
        std::ops::ControlFlow::Continue(())
    };
    open(dir).replay(&mut take).unwrap();
    commits
}

pub(crate) fn ttl(text: &str) -> Ttl {
    text.parse().unwrap()
}

pub(crate) fn json(text: &str) -> Json {
    Json::from_json(text, 128).unwrap()
}

pub(crate) fn path(text: &str) -> StatePath {
    StatePath::from_segments(text.split('/')).unwrap()
}

pub(crate) fn put(at: &str, value: &str, lives: Option<&str>) -> Command {
    let edit = Edit::Put { value: json(value), ttl: lives.map(ttl) };
    Command::State(path(at), edit)
}

pub(crate) fn add(at: &str, number: &str) -> Command {
    Command::State(path(at), Edit::Add(json(number)))
}

pub(crate) fn claim(lives: &str) -> Command {
    Command::Request(Seq(1), RequestCommand::Claim { ttl: ttl(lives) })
}

pub(crate) fn by(agent: &str, write: Write) -> Write {
    let author: AgentName = agent.parse().unwrap();
    Write { terms: Terms { author: Some(author), ..write.terms }, ..write }
}

/// The same with a key; what `request` says is what a repeat must say too.
pub(crate) fn keyed(write: Write, key: &str, request: &str) -> Write {
    let key = Key { key: key.into(), fingerprint: Digest::of(request.as_bytes()) };
    Write { terms: Terms { key: Some(key), ..write.terms }, ..write }
}

/// The text at a path of a board's state.
pub(crate) fn value(board: &Board, at: &str) -> Option<String> {
    let value = board.state().value(&path(at))?;
    let mut text = String::new();
    value.write(&mut text);
    Some(text)
}

impl Service {
    /// Carries out a command that has no key and no author.
    pub(crate) async fn carry_out(
        &self,
        session: &str,
        command: Command,
    ) -> Result<Receipt, ServiceError> {
        self.receipt(write_to(session, command), vec![]).await
    }

    /// Waits until that revision is published.
    pub(crate) async fn reaches(&self, session: &str, revision: u64) {
        self.reach(&name(session), Revision(revision), LONG).await.unwrap();
    }
}

/// A writer that is in the middle of a batch: what is queued meanwhile belongs to the same one.
pub(crate) struct BusyWriter {
    pub(crate) go_on: mpsc::Sender<()>,
    write: JoinHandle<()>,
}

impl BusyWriter {
    pub(crate) async fn new(service: &Service) -> Self {
        Self::at(service, request("held", "{}")).await
    }

    /// One that is at this write.
    pub(crate) async fn at(service: &Service, write: Write) -> Self {
        let (inside, mut begun) = tokio::sync::mpsc::unbounded_channel();
        let (go_on, wait) = mpsc::channel();
        let wait = Mutex::new(wait);
        let keep: Keep = Arc::new(move |_| {
            inside.send(()).ok();
            wait.lock().recv().ok();
            Some(json("null"))
        });
        let key = Uuid::new_v4().to_string();
        let (service, write) = (service.clone(), keyed(write, &key, ""));
        let write = tokio::spawn(async move {
            let reply = service.write(write, vec![], Some(keep)).await;
            assert!(matches!(reply, Ok(Reply::Now(_))), "{reply:?}");
        });
        begun.recv().await.unwrap();
        Self { go_on, write }
    }

    pub(crate) async fn release(self) {
        self.go_on.send(()).unwrap();
        self.write.await.unwrap();
    }
}

#[test]
fn a_hand_made_clock_stands_still() {
    let hand = Hand::new();
    let clock = hand.clock();
    assert_eq!(clock.now(), Timestamp(BEGIN));
    hand.set(5);
    assert_eq!((clock.now(), clock.clone().now()), (Timestamp(BEGIN + 5), hand.now()));
    assert_eq!(format!("{clock:?}"), "Clock(Timestamp(1795244591128))");
    assert_eq!(write_to("s", claim("1s")).terms.condition, Condition::default());
}
