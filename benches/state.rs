//! Cost of setting one leaf of the state, by the number of leaves beside it.
//!
//! Each write starts from the board of the write before, which is still in use, as in the service. The last line is the
//! ratio of 100,000 leaves to 10 with the same leaf set each time; it must stay at most 3. With another leaf each time
//! the ratio is larger, since the processor's caches hold few of 100,000 leaves.
#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark tells what it found"
)]

use std::cell::RefCell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use blackboard::board::{
    Board, Command, Edit, Json, Moment, Nonce, Policy, Revision, SessionId, StatePath, Terms,
    Timestamp, Write, decide,
};
use divan::Bencher;
use uuid::Uuid;

const LEAVES: [usize; 3] = [10, 1_000, 100_000];

const ROUNDS: usize = 2_001;

/// So many writes are timed together, since one takes little longer than to look at the clock.
const WRITES_A_ROUND: usize = 32;

static POLICY: Policy = Policy {
    auto_create: true,
    session_bytes_max: 1 << 30,
    session_blob_bytes_max: 1 << 30,
    session_items_max: 1 << 30,
    sessions_max: 1 << 30,
    qa_pairs: Vec::new(),
};

/// Which leaf a write sets.
#[derive(Clone, Copy)]
enum Leaf {
    /// Always the same, in the middle.
    One,
    /// Another one each time, far from the last.
    Another,
}

/// A session's state with so many leaves in one object, and the writes to it.
struct Session {
    board: Board,
    leaves: usize,
    leaf: Leaf,
    written: usize,
}

impl Session {
    fn new(leaves: usize, leaf: Leaf) -> Self {
        let members: Vec<_> = (0..leaves).map(|i| format!("\"leaf {i}\":{i}")).collect();
        let document = format!("{{\"leaves\":{{{}}}}}", members.join(","));
        let id = SessionId(Uuid::from_u128(1));
        let absent = Board::absent(id, Revision(0));
        let mut session = Self { board: absent, leaves, leaf, written: 0 };
        session.decide(&put(StatePath::root(), &document));
        session
    }

    /// A write that gives a leaf a value that it did not have.
    fn next_write(&mut self) -> Write {
        self.written += 1;
        let leaf = match self.leaf {
            Leaf::One => self.leaves / 2,
            Leaf::Another => self.written * 7_919 % self.leaves,
        };
        let path = StatePath::from_segments(["leaves".to_owned(), format!("leaf {leaf}")]);
        put(path.unwrap(), &format!("-{}", self.written))
    }

    fn decide(&mut self, write: &Write) {
        let moment = Moment {
            now: Timestamp(1_000),
            nonce: Nonce(0),
            policy: &POLICY,
            qa_pairs: &[],
            sessions: 0,
        };
        let decision = decide(&self.board, black_box(write), moment).unwrap();
        assert!(decision.commit.is_some());
        self.board = decision.board;
    }

    /// How long one of these many writes takes.
    fn time(&mut self, writes: usize) -> Duration {
        let writes: Vec<Write> = (0..writes).map(|_| self.next_write()).collect();
        let begin = Instant::now();
        writes.iter().for_each(|write| self.decide(write));
        begin.elapsed() / u32::try_from(writes.len()).unwrap()
    }
}

fn put(path: StatePath, value: &str) -> Write {
    let edit = Edit::Put { value: Json::from_json(value, 128).unwrap(), ttl: None };
    let session = "bench".parse().unwrap();
    Write { session, terms: Terms::default(), command: Command::State(path, edit) }
}

fn bench(bencher: Bencher<'_, '_>, leaves: usize, leaf: Leaf) {
    let session = RefCell::new(Session::new(leaves, leaf));
    bencher
        .with_inputs(|| session.borrow_mut().next_write())
        .bench_local_refs(|write| session.borrow_mut().decide(write));
}

#[divan::bench(args = LEAVES)]
fn set_one_leaf(bencher: Bencher<'_, '_>, leaves: usize) {
    bench(bencher, leaves, Leaf::One);
}

#[divan::bench(args = LEAVES)]
fn set_another_leaf(bencher: Bencher<'_, '_>, leaves: usize) {
    bench(bencher, leaves, Leaf::Another);
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The sizes take turns, so that whatever else the machine does meets all of them.
fn print_ratio(what: &str, leaf: Leaf) {
    let mut sessions = LEAVES.map(|leaves| Session::new(leaves, leaf));
    let mut times = LEAVES.map(|_| Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        for (session, times) in sessions.iter_mut().zip(&mut times) {
            times.push(session.time(WRITES_A_ROUND));
        }
    }
    let [few, some, many] = times.map(median);
    let ratio = many.as_secs_f64() / few.as_secs_f64();
    println!(
        "{what} of 10, 1,000, 100,000: {few:?}, {some:?}, {many:?}; ratio 100,000 : 10 is {ratio:.2}"
    );
}

fn main() {
    divan::main();
    print_ratio("set another leaf", Leaf::Another);
    print_ratio("set one leaf", Leaf::One);
}
