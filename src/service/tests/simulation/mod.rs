//! The service from a seed: one thread, an engine that fails on command, a clock that is moved by hand, and a scheduler that
//! takes any next step, a crash among them.
//!
//! Threads are held; the simulation takes the steps of the writer, the loader and the evictor. Each write carries a word
//! of its own, by which its commit is found among all that ever were durable.
//!
//! ```sh
//! BLACKBOARD_SIMULATION_SEEDS=100000 cargo test --lib simulation            # more seeds, from 0
//! BLACKBOARD_SIMULATION_SEED=17 cargo test --lib simulation                 # one
//! ```

mod engine;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::task::noop_waker;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

use super::clock::{Hand, json, keyed, path, ttl};
use super::service::*;
use crate::board::{
    Edit, Matches, Plan, QuestionCommand, RequestCommand, Revision, Seq, SessionId, Test,
    Transaction, Version,
};
use crate::service::deps::Deps;
use crate::service::sessions::replay::replay_to_head;
use crate::service::sessions::session::Shown;
use crate::service::threads::Threads;
use crate::service::writer::Writer;
use crate::service::*;
use crate::store::Store;
use engine::{Disk, Engine, Fault};

/// The seeds of a run that names no number.
const SEEDS: u64 = 300;

/// The steps of a seed.
const STEPS: usize = 120;

/// The writes under way at once.
const PENDING_MAX: usize = 8;

const SESSIONS: u64 = 3;

/// Numbers of a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mixed(self.0) % end
    }

    fn place(&mut self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).unwrap()
    }

    fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.place(of.len())].clone()
    }

    fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// The outcome of a write, as its client knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    UnderWay,
    /// Done; of this session and revision if it changed anything.
    Done(Option<Place>),
    /// Refused, for this reason.
    Refused(String),
    /// The client went away, the store failed, or the server crashed.
    InDoubt,
}

/// A commit. A repeat is told its revision alone.
type Place = (Option<SessionId>, Revision);

struct Op {
    /// In each of its commits, unless it has none.
    word: Option<String>,
    write: Write,
    fate: Fate,
    /// True if an earlier try may have been stored.
    was_in_doubt: bool,
}

type Answering = Pin<Box<dyn Future<Output = Result<Reply, ServiceError>>>>;

/// A service that runs, and the parts of which the simulation takes the steps.
struct Running {
    engine: Arc<Engine>,
    service: Service,
    writer: Writer,
    /// The writes under way, by their place among all.
    pending: Vec<(usize, Answering)>,
}

struct Simulation {
    chance: Chance,
    disk: Arc<Mutex<Disk>>,
    hand: Hand,
    ms: i64,
    runtime: Runtime,
    ops: Vec<Op>,
    trace: Vec<String>,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        Self {
            chance: Chance(seed),
            disk: Arc::default(),
            hand: Hand::new(),
            ms: 0,
            runtime: Builder::new_current_thread().enable_time().build().unwrap(),
            ops: Vec::new(),
            trace: Vec::new(),
        }
    }

    fn told(&mut self, step: String) {
        self.trace.push(step);
    }

    /// Starts a service on what is durable.
    fn start(&mut self) -> Running {
        let engine = Arc::new(Engine::on(&self.disk));
        let store: Arc<dyn Store> = Arc::<Engine>::clone(&engine);
        let deps = Deps { threads: Threads::held(), ..Deps::new(store, self.hand.clock()) };
        let options = Options { thumbnails: None, ..Options::default() };
        let (service, writer) = Service::assemble(deps, POLICY, options).unwrap();
        let inner = Arc::downgrade(&service.inner);
        *engine.before.lock() = Some(Box::new(move |batch| {
            let Some(inner) = inner.upgrade() else { return };
            for run in batch {
                let extents = names().filter_map(|name| inner.sessions.directory.get(&name));
                let mut extents = extents.map(|session| session.extent());
                let shown = extents.find(|extent| extent.session == run.session);
                let shown = shown.map(|extent| extent.revision).unwrap_or_default();
                assert!(shown <= run.expected, "revision {shown} is shown before it is durable");
            }
        }));
        Running { engine, service, writer, pending: Vec::new() }
    }

    fn run(&mut self) {
        let mut running = self.start();
        for _ in 0..STEPS {
            match self.chance.below(100) {
                0..=29 if running.pending.len() < PENDING_MAX => self.begin(&mut running),
                0..=54 => {
                    let worked = running.writer.step();
                    self.told(format!("writer {worked}"));
                }
                55..=64 => {
                    let loaded = running.service.inner.sessions.loader.step();
                    self.told(format!("loader {loaded}"));
                }
                65..=79 => self.poll_one(&mut running),
                80..=84 => self.evict(&running),
                85..=89 => self.pass_time(),
                90..=93 => self.fail_next(&running),
                94..=95 => self.leave(&mut running),
                _ => {
                    running = self.crash(running);
                }
            }
            self.check_shown(&running);
        }
        self.crash(running);
        self.check_ops();
    }

    /// Begins a write, or repeats one with a key whose outcome is unknown.
    fn begin(&mut self, running: &mut Running) {
        let in_doubt: Vec<usize> = (0..self.ops.len())
            .filter(|op| {
                self.ops[*op].fate == Fate::InDoubt && self.ops[*op].write.terms.key.is_some()
            })
            .collect();
        let repeats = !in_doubt.is_empty() && self.chance.is(40);
        let op = if repeats {
            self.chance.one_of(&in_doubt)
        } else {
            let op = self.op(running);
            self.ops.push(op);
            self.ops.len() - 1
        };
        self.ops[op].was_in_doubt |= self.ops[op].fate == Fate::InDoubt;
        self.ops[op].fate = Fate::UnderWay;
        let (service, write) = (running.service.clone(), self.ops[op].write.clone());
        let keep: Option<Keep> = write.terms.key.is_some().then(|| -> Keep {
            Arc::new(|receipt| Some(json(&receipt.board.revision().to_string())))
        });
        // All are the same client's: turns among clients depend on the time that they took.
        let command = format!("{:?}", write.command);
        let answering = async move { service.write(write, vec![], keep).await };
        running.pending.push((op, Box::pin(answering)));
        self.told(format!("begin {op}{} {command}", if repeats { " again" } else { "" }));
        self.poll(running, running.pending.len() - 1);
    }

    fn op(&mut self, running: &Running) -> Op {
        let session = format!("s{}", self.chance.below(SESSIONS));
        // Long enough for no random bytes to have it.
        let word = format!("write-{:04}.", self.ops.len());
        let (command, has_word) = self.command(&word);
        let mut write = write_to(&session, command);
        if self.chance.is(30) {
            write = keyed(write, &word, &word);
        }
        if self.chance.is(40) {
            let agent = format!("a{}", self.chance.below(3));
            write.terms.author = Some(agent.parse().unwrap());
        }
        if self.chance.is(15) {
            let extent = running.service.extent(&name(&session)).unwrap();
            let version = extent.map_or(Matches::Any, |extent| {
                let before = self.chance.below(2);
                let changed = Revision(extent.revision.0.saturating_sub(before));
                Matches::Versions(vec![Version { session: extent.session, changed }])
            });
            write.terms.condition.matches = Some(version);
        }
        Op { word: has_word.then_some(word), write, fate: Fate::UnderWay, was_in_doubt: false }
    }

    /// A command, and true if its commits carry the word.
    fn command(&mut self, word: &str) -> (Command, bool) {
        let text = format!(r#"{{"word":"{word}"}}"#);
        let place = format!("k{}", self.chance.below(3));
        let seq = Seq(1 + self.chance.below(4));
        let log = self.chance.one_of(&LogName::BOARD[..3]);
        let put = |ttl| Edit::Put { value: json(&text), ttl };
        let append = || Command::Log(log.clone(), LogCommand::Append { items: vec![item(&text)] });
        match self.chance.below(20) {
            0..=4 => (append(), true),
            5..=6 => (Command::State(path(&place), put(None)), true),
            7..=8 => (Command::State(path(&place), put(Some(ttl("5s")))), true),
            9 => (Command::State(path("count"), Edit::Add(json("1"))), false),
            10 => {
                let test = Test::Absent(path(&place), self.chance.is(50));
                let then = vec![append(), Command::State(path(&place), put(None))];
                let otherwise = vec![Command::State(path(&place), Edit::Remove), append()];
                let transaction = Transaction { tests: vec![test], then, otherwise };
                (Command::Transact(Box::new(transaction)), true)
            }
            11 => {
                let default = self.chance.is(50).then(|| "none".to_owned());
                (Command::Ask { items: vec![item(&text)], ttl: ttl("3s"), default }, true)
            }
            12 => {
                let plan = Plan { after: Arc::from(vec![]), attempts: Some(2) };
                (Command::Plan { items: vec![item(&text)], plan }, true)
            }
            13..=14 => (Command::Request(seq, RequestCommand::Claim { ttl: ttl("4s") }), false),
            15 => {
                let result = Some(json(&text));
                (Command::Request(seq, RequestCommand::Finish { fence: None, result }), true)
            }
            16 => {
                (Command::Question(seq, QuestionCommand::Answer { answer: word.to_owned() }), true)
            }
            17 => (Command::Log(log, LogCommand::DeleteEntry { seq }), false),
            18 => (Command::Board(BoardCommand::Clear { state: self.chance.is(50) }), false),
            _ => (Command::Session(SessionCommand::Delete), false),
        }
    }

    fn poll_one(&mut self, running: &mut Running) {
        if !running.pending.is_empty() {
            let which = self.chance.place(running.pending.len());
            self.poll(running, which);
        }
    }

    /// Polls a write under way, and checks its answer.
    fn poll(&mut self, running: &mut Running, which: usize) {
        let waker = noop_waker();
        let entered = self.runtime.enter();
        let (op, answering) = &mut running.pending[which];
        let polled = answering.as_mut().poll(&mut Context::from_waker(&waker));
        drop(entered);
        let (op, Poll::Ready(reply)) = (*op, polled) else { return };
        drop(running.pending.swap_remove(which));
        let fate = match &reply {
            Ok(Reply::Now(receipt)) => {
                let board = &receipt.board;
                self.check_done(running, op, receipt);
                Fate::Done(receipt.committed.then(|| (Some(board.id()), board.revision())))
            }
            Ok(Reply::Before(answer)) => {
                Fate::Done(Some((None, Revision(answer.text().parse().unwrap()))))
            }
            Err(ServiceError::Poisoned { outcome_unknown: true }) => Fate::InDoubt,
            Err(ServiceError::Fault) => panic!("write {op} met a fault"),
            Err(refused) => Fate::Refused(format!("{:?}", refused.code())),
        };
        // Ids are others in another run.
        let told = match &fate {
            Fate::Done(place) => format!("done {:?}", place.map(|(_, revision)| revision)),
            other @ (Fate::Refused(_) | Fate::InDoubt | Fate::UnderWay) => format!("{other:?}"),
        };
        self.told(format!("{op} {told}"));
        self.ops[op].fate = fate;
    }

    /// A write is answered once it is durable and shown.
    fn check_done(&self, running: &Running, op: usize, receipt: &Receipt) {
        if !receipt.committed || running.engine.is_poisoned() {
            return;
        }
        let (board, op) = (&receipt.board, &self.ops[op]);
        let disk = self.disk.lock();
        let is_durable = |(session, revision, frame): &(_, _, Vec<u8>)| {
            let has_word = op.word.as_ref().is_none_or(|word| has(frame, word));
            *session == board.id() && *revision == board.revision() && has_word
        };
        let is_so =
            disk.ever.iter().any(is_durable) || is_deleted(&disk, board.id(), board.revision());
        assert!(is_so, "answered before it was durable: {:?}", op.write);
        let session = running.service.inner.sessions.directory.get(&op.write.terms.session);
        let shown = session.map(|session| session.extent()).filter(|at| at.session == board.id());
        if let Some(shown) = shown {
            assert!(shown.revision >= board.revision(), "answered before it was shown");
        }
    }

    fn evict(&mut self, running: &Running) {
        let session = name(&format!("s{}", self.chance.below(SESSIONS)));
        let sessions = &running.service.inner.sessions;
        let evicted = sessions.directory.get(&session).and_then(|one| sessions.memory.evict(&one));
        self.told(format!("evict {session} {}", evicted.is_some()));
    }

    fn pass_time(&mut self) {
        self.ms += self.chance.one_of(&[1, 900, 3_000, 20_000]);
        self.hand.set(self.ms);
        self.told(format!("time {}", self.ms));
    }

    fn fail_next(&mut self, running: &Running) {
        let faults = [Fault::Full, Fault::Busy, Fault::UnknownKept, Fault::UnknownLost];
        let fault = self.chance.one_of(&faults);
        *running.engine.fault.lock() = Some(fault);
        self.told(format!("next append {fault:?}"));
    }

    /// A client goes away.
    fn leave(&mut self, running: &mut Running) {
        if !running.pending.is_empty() {
            let which = self.chance.place(running.pending.len());
            let (op, answering) = running.pending.swap_remove(which);
            drop(answering);
            self.ops[op].fate = Fate::InDoubt;
            self.told(format!("leave {op}"));
        }
    }

    /// Ends the service as `kill -9` does, and starts one on what is durable.
    fn crash(&mut self, running: Running) -> Running {
        self.told("crash".to_owned());
        self.check_boards(&running);
        for (op, _) in &running.pending {
            self.ops[*op].fate = Fate::InDoubt;
        }
        let entered = self.runtime.enter();
        drop(running);
        drop(entered);
        let running = self.start();
        self.check_boards(&running);
        running
    }

    /// All that is shown is durable, and all that is durable is shown, unless the store has failed.
    fn check_shown(&self, running: &Running) {
        let disk = self.disk.lock();
        for n in names() {
            let session = running.service.inner.sessions.directory.get(&n);
            let Some(session) = session else { continue };
            assert!(!session.is_damaged(), "{n} is damaged");
            let shown = session.extent();
            let durable = disk.head(shown.session).unwrap_or_default();
            assert!(shown.revision <= durable, "{n} shows {shown:?}, durable is {durable}");
            if !running.engine.is_poisoned() {
                assert_eq!(shown.revision, durable, "{n}");
            }
        }
    }

    /// Each board is that of its commits.
    fn check_boards(&self, running: &Running) {
        self.check_shown(running);
        for n in names() {
            let session = running.service.inner.sessions.directory.get(&n);
            let Some(session) = session else { continue };
            let replayed = replay_to_head(&*running.engine, &session.summary()).unwrap();
            if let Shown::Hot(published) = session.shown() {
                assert_eq!(*published.board, replayed, "{n}");
            }
        }
    }

    /// Each write is there once, if it was done, and never if it was refused.
    fn check_ops(&self) {
        let disk = self.disk.lock();
        for (number, op) in self.ops.iter().enumerate() {
            let Some(word) = &op.word else { continue };
            let found = disk.ever.iter().filter(|(.., frame)| has(frame, word));
            let found: Vec<_> = found.map(|(session, at, _)| (*session, *at)).collect();
            let mut sessions: Vec<_> = found.iter().map(|(session, _)| *session).collect();
            sessions.dedup();
            // A session that was deleted has forgotten the key.
            let is_once = found.len() <= 1
                || op.was_in_doubt && sessions.len() == found.len()
                || is_question(&op.write.command);
            let is_so = match &op.fate {
                Fate::Done(None) => found.is_empty() || op.was_in_doubt,
                Fate::Done(Some((Some(session), revision))) => {
                    found.contains(&(*session, *revision)) || is_deleted(&disk, *session, *revision)
                }
                Fate::Done(Some((None, revision))) => {
                    found.iter().any(|(_, at)| at == revision)
                        || disk.ended.values().any(|before| before >= revision)
                }
                Fate::Refused(_) => found.is_empty() || op.was_in_doubt,
                Fate::InDoubt => true,
                Fate::UnderWay => false,
            };
            let is_so = is_so && is_once;
            assert!(is_so, "write {number} is {:?}, and in {found:?}: {:?}", op.fate, op.write);
        }
    }
}

fn names() -> impl Iterator<Item = SessionName> {
    (0..SESSIONS).map(|n| name(&format!("s{n}")))
}

/// True if a session was deleted after a revision. A deletion in the same batch leaves earlier commits out.
fn is_deleted(disk: &Disk, session: SessionId, revision: Revision) -> bool {
    disk.ended.get(&session).is_some_and(|before| *before >= revision)
}

/// True if a command appends questions: the commit that answers one has its text again.
fn is_question(command: &Command) -> bool {
    if let Command::Transact(transaction) = command {
        return transaction.then.iter().chain(&transaction.otherwise).any(is_question);
    }
    matches!(command, Command::Ask { .. } | Command::Log(LogName::Questions, _))
}

fn has(frame: &[u8], word: &str) -> bool {
    memchr::memmem::find(frame, word.as_bytes()).is_some()
}

/// A number from the environment.
fn asked(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().unwrap())
}

#[test]
fn no_order_of_steps_and_failures_breaks_a_promise() {
    let (first, count) =
        (asked("BLACKBOARD_SIMULATION_SEED"), asked("BLACKBOARD_SIMULATION_SEEDS"));
    let count = count.unwrap_or(if first.is_some() { 1 } else { SEEDS });
    let first = first.unwrap_or(0);
    for seed in first..first + count {
        let mut simulation = Simulation::new(seed);
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| simulation.run()));
        assert!(ran.is_ok(), "seed {seed}: {:#?}", simulation.trace);
    }
}

#[test]
fn a_seed_takes_the_same_steps_each_time() {
    let trace = |seed| {
        let mut simulation = Simulation::new(seed);
        simulation.run();
        simulation.trace
    };
    for seed in 0..20 {
        let (one, other) = (trace(seed), trace(seed));
        let differs = one.iter().zip(&other).position(|(one, other)| one != other);
        if let Some(at) = differs {
            panic!("seed {seed}: {:#?} is another time {:?}", &one[..=at], other[at]);
        }
        assert_eq!(one.len(), other.len());
    }
}
