//! The service from a seed: one thread, an engine that fails on command, a clock that is moved by hand, and a scheduler that
//! takes any next step, a crash among them.
//!
//! Threads are held; the simulation takes the steps of the writer, the loader, the reaper and the evictor, and blocking work
//! is done in steps of its own. Each write carries a word of its own, by which its commit is found among all that ever were
//! durable.
//!
//! ```sh
//! BLACKBOARD_SIMULATION_SEEDS=100000 cargo test --lib simulation            # more seeds, from 0
//! BLACKBOARD_SIMULATION_SEED=17 cargo test --lib simulation                 # one
//! ```

mod blocking;
mod checks;
mod disk;
mod engine;
mod requests;

use std::collections::HashSet;
use std::task::{Context, Poll};

use futures_util::task::noop_waker;
use parking_lot::Mutex;

use super::clock::{Hand, json, keyed, path, ttl, value};
use super::service::*;
use crate::deps::Deps;
use crate::images::reaper::Reaper;
use crate::threads::Threads;
use crate::writer::Writer;
use crate::*;
use blackboard_board::{Revision, SessionId};
use blackboard_store::Store;
use blocking::BlockingWork;
use checks::check_fork;
use disk::Disk;
use engine::{Engine, Fault};
use requests::{Answer, Answering, Fate, Op, Request};

/// The seeds of a run that names no number.
const SEEDS: u64 = 600;

/// The steps of a seed.
const STEPS: usize = 120;

/// The requests under way at once.
const PENDING_MAX: usize = 8;

/// How often in 100 the blocking work of a poll is done at once.
const WORKED_AT_ONCE: u64 = 70;

/// The times in a row that a request is polled at most.
const POLLS_MAX: u64 = 4;

const SESSIONS: u64 = 4;

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

/// A service that runs, and the parts of which the simulation takes the steps.
struct Running {
    engine: Arc<Engine>,
    service: Service,
    writer: Writer,
    reaper: Reaper,
    /// The requests under way, by their place among all.
    pending: Vec<(usize, Answering)>,
}

struct Simulation {
    chance: Chance,
    disk: Arc<Mutex<Disk>>,
    hand: Hand,
    ms: i64,
    blocking: BlockingWork,
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
            blocking: BlockingWork::new(),
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
        let images = &service.inner.images;
        let reaper = Reaper {
            orphans: Arc::clone(&images.orphans),
            store: Arc::<Engine>::clone(&engine),
            thumbnails: Arc::clone(&images.thumbnails),
            live: None,
        };
        Running { engine, service, writer, reaper, pending: Vec::new() }
    }

    fn run(&mut self) {
        let mut running = self.start();
        for _ in 0..STEPS {
            match self.chance.below(100) {
                0..=29 if running.pending.len() < PENDING_MAX => self.begin(&mut running),
                0..=54 => {
                    let worked = running.writer.step().is_ok();
                    self.told(format!("writer {worked}"));
                }
                55..=60 => {
                    let loaded = running.service.inner.sessions.loader.step();
                    self.told(format!("loader {loaded}"));
                }
                61..=64 => {
                    running.reaper.remove_waiting();
                    self.told("reaper".to_owned());
                }
                65..=77 => self.poll_one(&mut running),
                78..=81 => self.work(),
                82..=84 => self.evict(&running),
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

    /// Begins a request, or repeats one with a key whose outcome is unknown.
    fn begin(&mut self, running: &mut Running) {
        let is_in_doubt = |op: &Op| op.fate == Fate::InDoubt && op.request.key().is_some();
        let in_doubt: Vec<usize> =
            (0..self.ops.len()).filter(|op| is_in_doubt(&self.ops[*op])).collect();
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
        let request = self.ops[op].request.clone();
        self.told(format!("begin {op}{} {request}", if repeats { " again" } else { "" }));
        // All are the same client's: turns among clients depend on the time that they took.
        running.pending.push((op, request.send(running.service.clone())));
        self.poll(running, running.pending.len() - 1);
    }

    /// Polls a request under way, some times in a row.
    fn poll_one(&mut self, running: &mut Running) {
        if running.pending.is_empty() {
            return;
        }
        let which = self.chance.place(running.pending.len());
        for _ in 0..=self.chance.below(POLLS_MAX) {
            if !self.poll(running, which) {
                return;
            }
        }
    }

    /// Does the blocking work that waits.
    fn work(&mut self) {
        self.blocking.work();
        self.told("work".to_owned());
    }

    /// Polls a request under way, and checks its answer. Returns true if it is still under way.
    fn poll(&mut self, running: &mut Running, which: usize) -> bool {
        let waker = noop_waker();
        let entered = self.blocking.enter();
        let (op, answering) = &mut running.pending[which];
        let polled = answering.as_mut().poll(&mut Context::from_waker(&waker));
        drop(entered);
        if self.chance.is(WORKED_AT_ONCE) {
            self.work();
        }
        let (op, Poll::Ready(answer)) = (*op, polled) else { return true };
        drop(running.pending.swap_remove(which));
        let fate = match &answer {
            Ok(Answer::Written(reply)) => self.fate(running, op, reply),
            Ok(Answer::Forked { reply, source }) => {
                if let Reply::Now(receipt) = reply {
                    check_fork(&receipt.board, source);
                    self.check_source(op, receipt, source.id());
                }
                self.fate(running, op, reply)
            }
            Ok(Answer::Purged { session, id, oldest }) => {
                self.check_purged(running, session, *id, *oldest);
                Fate::Done(None)
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
        false
    }

    fn fate(&self, running: &Running, op: usize, reply: &Reply) -> Fate {
        match reply {
            Reply::Now(receipt) => {
                let board = &receipt.board;
                self.check_done(running, op, receipt);
                Fate::Done(receipt.committed.then(|| (Some(board.id()), board.revision())))
            }
            Reply::Before(answer) => {
                Fate::Done(Some((None, Revision(answer.text().parse().unwrap()))))
            }
        }
    }

    fn evict(&mut self, running: &Running) {
        let session = self.session();
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
        let malformed = Fault::Malformed(self.chance.place(PENDING_MAX));
        let faults = [Fault::Full, Fault::Busy, malformed, Fault::UnknownKept, Fault::UnknownLost];
        let fault = self.chance.one_of(&faults);
        *running.engine.fault.lock() = Some(fault);
        self.told(format!("next write {fault:?}"));
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
        running.engine.poison();
        let entered = self.blocking.enter();
        drop(running);
        drop(entered);
        self.blocking.work();
        let running = self.start();
        self.check_boards(&running);
        running
    }
}

fn names() -> impl Iterator<Item = SessionName> {
    (0..SESSIONS).map(|n| name(&format!("s{n}")))
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
