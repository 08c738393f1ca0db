//! Tests of a jumping wall clock: nothing expires until the new time has lasted.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use super::clock::*;
use super::service::*;
use crate::*;
use blackboard_board::{
    Answer, Digest, History, LogCommand, Rejected, Revision, Seq, SessionCommand, Set,
    SettingsPatch, Timestamp, Work,
};
use blackboard_clock::Clock;

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const DAY: i64 = 24 * 60 * MINUTE;

/// A wall clock that a test moves, and the monotonic one beside it.
struct Clocks {
    wall: Hand,
    steady: Arc<AtomicI64>,
    looks: Arc<AtomicUsize>,
}

impl Clocks {
    fn new() -> Self {
        Self { wall: Hand::new(), steady: Arc::default(), looks: Arc::default() }
    }

    fn clock(&self) -> Clock {
        let (wall, steady) = (self.wall.clone(), Arc::clone(&self.steady));
        let looks = Arc::clone(&self.looks);
        let steady = move || {
            looks.fetch_add(1, Ordering::SeqCst);
            Duration::from_millis(u64::try_from(steady.load(Ordering::SeqCst)).unwrap())
        };
        Clock::watched(move || wall.now(), steady)
    }

    /// The time after the start by the monotonic clock, and the further offset of the wall clock, in milliseconds.
    async fn set(&self, ms: i64, jump: i64) {
        self.steady.store(ms, Ordering::SeqCst);
        self.wall.set(ms + jump);
        // The writer looks at the clock a few times for each sweep.
        let before = self.looks.load(Ordering::SeqCst);
        while self.looks.load(Ordering::SeqCst) < before + 6 {
            tokio::task::yield_now().await;
        }
    }

    /// A service that always looks at the clock, since something is due in a hundred years.
    async fn start(&self) -> (TempDir, Service) {
        let dir = TempDir::new().unwrap();
        let service = Service::start(Arc::new(open(dir.path())), POLICY, self.clock()).unwrap();
        service.carry_out("long", put("a", "1", Some("36500d"))).await.unwrap();
        (dir, service)
    }
}

fn lives(text: &str) -> Command {
    let patch = SettingsPatch { ttl: Set::To(ttl(text)), ..SettingsPatch::default() };
    Command::Session(SessionCommand::Put {
        settings: Set::To(patch),
        labels: Set::Keep,
        qa_pairs: vec![],
    })
}

async fn claimed(service: &Service, agent: &str, lives: &str) -> Result<Receipt, ServiceError> {
    service.receipt(by(agent, write_to("s", claim(lives))), vec![]).await
}

/// A session of an hour with a value of ten seconds and a claim of a minute, at revision 4.
async fn with_deadlines(service: &Service) {
    service.carry_out("s", lives("1h")).await.unwrap();
    service.receipt(request("s", "{}"), vec![]).await.unwrap();
    service.carry_out("s", put("a", "1", Some("10s"))).await.unwrap();
    claimed(service, "A", "60s").await.unwrap();
}

#[tokio::test]
async fn a_jump_that_is_taken_back_ends_nothing() {
    for jump in [DAY, -DAY] {
        let clocks = Clocks::new();
        let (_dir, service) = clocks.start().await;
        with_deadlines(&service).await;
        clocks.set(SECOND, jump).await;
        assert_eq!(board(&service, "s").revision(), Revision(4));
        // No command meets the end of anything either, though it comes after each deadline.
        let other = claimed(&service, "B", "60s").await.unwrap_err();
        let ServiceError::Rejected { rejected: Rejected::AlreadyClaimed { .. }, .. } = other else {
            panic!("{other:?}")
        };
        let met = service.carry_out("s", put("b", "1", None)).await.unwrap();
        assert_eq!(met.board.state().text(), r#"{"a":1,"b":1}"#);
        assert!(service.stats().is_clock_held);
        clocks.set(2200, 0).await;
        assert!(!service.stats().is_clock_held);
        assert_eq!(board(&service, "s").revision(), Revision(5), "it is all still there");
        clocks.set(10 * SECOND, 0).await;
        service.reaches("s", 6).await;
        assert_eq!(board(&service, "s").state().text(), r#"{"b":1}"#);
        stop(service).await;
    }
}

#[tokio::test]
async fn a_deadline_counts_from_the_decision_not_the_sessions_time() {
    let clocks = Clocks::new();
    let (_dir, service) = clocks.start().await;
    service.receipt(request("s", "{}"), vec![]).await.unwrap();
    clocks.set(SECOND, DAY).await;
    service.carry_out("s", put("b", "1", None)).await.unwrap();
    clocks.set(2 * SECOND, 0).await;
    let won = claimed(&service, "A", "1s").await.unwrap();
    let Answer::Claimed { claim, won: true } = &won.answer else { panic!("{won:?}") };
    assert_eq!(won.board.updated_at(), Timestamp(BEGIN + SECOND + DAY), "no time goes back");
    assert_eq!(claim.expires_at, Timestamp(BEGIN + 3 * SECOND));
    let put = service.carry_out("s", put("c", "1", Some("1s"))).await.unwrap();
    assert_eq!(put.board.next_due(), Some(Timestamp(BEGIN + 3 * SECOND)));
    clocks.set(3 * SECOND, 0).await;
    service.reaches("s", 5).await;
    let after = board(&service, "s");
    let entry = after.log(&LogName::Requests).unwrap().get(Seq(1)).unwrap();
    assert!(matches!(entry.work.as_deref(), Some(Work::Lapsed { .. })));
    assert_eq!(after.state().text(), r#"{"b":1}"#);
    stop(service).await;
}

#[tokio::test]
async fn a_jump_that_stays_for_ten_minutes_ends_what_is_due() {
    let clocks = Clocks::new();
    let (_dir, service) = clocks.start().await;
    with_deadlines(&service).await;
    clocks.set(SECOND, DAY).await;
    clocks.set(10 * MINUTE + 999, DAY).await;
    assert_eq!(board(&service, "s").revision(), Revision(4));
    clocks.set(10 * MINUTE + SECOND, DAY).await;
    service.reaches("s", 5).await;
    assert!(service.published_here(&name("s")).unwrap().is_none());
    stop(service).await;
}

#[tokio::test]
async fn a_key_is_remembered_through_a_jump() {
    let clocks = Clocks::new();
    let (_dir, service) = clocks.start().await;
    let write = async |key: &str| {
        let keep: Keep = Arc::new(|_| Some(json("1")));
        service.write(keyed(request("s", "{}"), key, ""), vec![], Some(keep)).await.unwrap()
    };
    assert!(matches!(write("first").await, Reply::Now(_)));
    clocks.set(SECOND, 2 * DAY).await;
    assert!(matches!(write("first").await, Reply::Before(_)));
    assert!(matches!(write("second").await, Reply::Now(_)));
    clocks.set(2 * SECOND, 0).await;
    assert!(matches!(write("third").await, Reply::Now(_)));
    for key in ["first", "second", "third"] {
        assert!(matches!(write(key).await, Reply::Before(_)), "{key}");
    }
    stop(service).await;
}

#[tokio::test]
async fn a_jump_is_seen_though_nothing_was_written_before_it() {
    let (clocks, dir) = (Clocks::new(), TempDir::new().unwrap());
    let clock = clocks.clock();
    let service = Service::start(Arc::new(open(dir.path())), POLICY, clock).unwrap();
    clocks.wall.set(DAY);
    assert!(service.stats().is_clock_held);
    clocks.wall.set(0);
    assert!(!service.stats().is_clock_held);
    stop(service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_image_and_no_history_goes_while_the_clock_is_held() {
    let (clocks, dir) = (Clocks::new(), TempDir::new().unwrap());
    let (at_once, every) = (Duration::ZERO, Duration::from_millis(1));
    let collection = Collection { age: at_once, rest: at_once, every };
    let options = Options { collection, ..Options::default() };
    let store = Arc::new(open(dir.path()));
    let service = Service::start_with(store, POLICY, clocks.clock(), options).unwrap();
    service.carry_out("long", put("a", "1", Some("36500d"))).await.unwrap();
    let keeps = async |session: &str, history| {
        let patch = SettingsPatch { history: Set::To(history), ..SettingsPatch::default() };
        let (settings, labels) = (Set::To(patch), Set::Keep);
        let command = Command::Session(SessionCommand::Put { settings, labels, qa_pairs: vec![] });
        service.carry_out(session, command).await.unwrap();
    };
    let oldest = |session: &str| board(&service, session).oldest();
    let (write, images) = screenshot("shown", b"image".to_vec());
    let shown = service.receipt(write, images).await.unwrap().board.id();
    let is_there = || service.inner.deps.store.blob(shown, Digest::of(b"image")).is_ok();
    keeps("aged", History::Age(ttl("1h"))).await;

    clocks.set(SECOND, DAY).await;
    let command = Command::Log(LogName::Screenshots, LogCommand::DeleteEntry { seq: Seq(1) });
    service.carry_out("shown", command).await.unwrap();
    service.at("shown").purge(None).await.unwrap();
    service.receipt(request("aged", "{}"), vec![]).await.unwrap();
    // It is looked at after the aged one, and by no clock.
    keeps("cut", History::Revisions(1)).await;
    service.receipt(request("cut", "{}"), vec![]).await.unwrap();
    until("nothing is cut", || oldest("cut") > Revision(0)).await;
    clocks.set(2 * SECOND, DAY).await;
    clocks.set(3 * SECOND, DAY).await;
    assert!(service.stats().is_clock_held);
    assert!(is_there() && oldest("aged") == Revision(0));

    clocks.set(11 * MINUTE, DAY).await;
    until("its image stays", || !is_there()).await;
    until("it is not cut", || oldest("aged") > Revision(0)).await;
    stop(service).await;
}
