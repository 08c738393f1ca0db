//! Steps of a write and of a prompt, measured alone, and a prompt beside `CPython`'s.
//!
//! `cargo bench --bench micro` measures all; `-- decide` only those with that in their name. At the end Python, if it
//! is installed, writes the same prompt as the original does, by `json.dumps` of the items and again of the parts;
//! `FIGURE prompt_vs_cpython` is how many times longer Python takes.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a benchmark tells what it found"
)]

use std::hint::black_box;
use std::mem;
use std::process::Command as Process;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use blackboard::auth::Caller;
use blackboard::board::stored::{Body, decode_commit, encode_commit};
use blackboard::board::{
    Board, BoardCommand, Command, Commit, Decision, Frame, Headings, Item, LogCommand, LogName,
    Moment, Nonce, Policy, PromptFormat, PromptPart, Revision, Run, SessionId, Terms, Timestamp,
    Write, apply, decide, json,
};
use blackboard::clock::Clock;
use blackboard::prompt::{
    LIST_COMMA, LIST_END, Syntax, heading, list_begin, list_item, list_items, opening,
};
use blackboard::service::Service;
use blackboard::store::{SqliteOptions, SqliteStore};
use bytes::Bytes;
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use exact_json::python::{self, Characters};
use futures_util::future::try_join_all;
use tempfile::TempDir;
use tikv_jemallocator::Jemalloc;
use tokio::runtime::Runtime;
use uuid::Uuid;

#[path = "scale/texts.rs"]
mod texts;

use texts::{Kind, Texts};

/// As in the server.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// The items of a prompt.
const ITEMS: usize = 1_000;

/// The items of a board, when something is appended to it.
const BOARDS: [usize; 2] = [0, 1_000_000];

/// How many items a commit brings while a board is filled.
const AT_ONCE: usize = 1_000;

/// The writes that wait together.
const WRITERS: usize = 64;

/// How often a prompt is written, for the comparison with Python.
const PROMPTS: u32 = 200;
const PYTHON_PROMPTS: u32 = 20;

static POLICY: Policy = Policy {
    auto_create: true,
    session_bytes_max: 8 << 30,
    session_blob_bytes_max: 1 << 30,
    session_items_max: 1 << 30,
    sessions_max: 1 << 30,
    qa_pairs: Vec::new(),
};

fn texts(count: usize) -> Vec<String> {
    let mut texts = Texts::of(Kind::Step);
    (0..count).map(|_| texts.next()).collect()
}

fn items(count: usize) -> Vec<Item> {
    texts(count).iter().map(|text| Item::from_json(text).unwrap()).collect()
}

fn append(items: Vec<Item>) -> Write {
    let command = Command::Log(LogName::Trajectories, LogCommand::Append { items });
    Write { session: "bench".parse().unwrap(), terms: Terms::default(), command }
}

fn decided(board: &Board, write: &Write) -> Decision {
    let moment = Moment {
        now: Timestamp(1_000),
        nonce: Nonce(0),
        policy: &POLICY,
        qa_pairs: &[],
        sessions: 0,
    };
    decide(board, write, moment).unwrap()
}

/// A board of so many items; the large one is made once.
fn board(count: usize) -> Board {
    static LARGE: OnceLock<Board> = OnceLock::new();
    let empty = || {
        let absent = Board::absent(SessionId(Uuid::from_u128(1)), Revision(0));
        let opened = decided(&absent, &append(items(1))).board;
        let command = Command::Board(BoardCommand::Clear { state: false });
        decided(&opened, &Write { command, ..append(Vec::new()) }).board
    };
    if count == 0 {
        return empty();
    }
    let filled = || {
        let mut texts = Texts::of(Kind::Step);
        (0..count / AT_ONCE).fold(empty(), |board, _| {
            let items = (0..AT_ONCE).map(|_| Item::from_json(&texts.next()).unwrap());
            decided(&board, &append(items.collect())).board
        })
    };
    LARGE.get_or_init(filled).clone()
}

fn a_commit() -> Commit {
    decided(&board(0), &append(items(1))).commit.unwrap()
}

#[divan::bench(args = [Kind::Step, Kind::Noise])]
fn json_syntax_and_check(bencher: Bencher<'_, '_>, kind: Kind) {
    let text = Texts::of(kind).next();
    bencher.counter(BytesCount::of_str(&text)).bench(|| {
        let text = json::syntax(black_box(&text).as_bytes()).unwrap();
        Item::from_json(text).unwrap()
    });
}

#[divan::bench(args = [1, ITEMS])]
fn transcode_list(bencher: Bencher<'_, '_>, count: usize) {
    let texts = texts(count);
    let bytes: usize = texts.iter().map(String::len).sum();
    let mut out = String::new();
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        out.clear();
        python::dumps_list(texts.iter().map(String::as_str), &mut out);
        out.len()
    });
}

/// The texts of a prompt's items, that nobody asked for before.
#[divan::bench]
fn prompt_first(bencher: Bencher<'_, '_>) {
    let prompt = Prompt::of(ITEMS);
    let runs: Vec<Run> = prompt.runs().collect();
    bencher.bench(|| {
        let (mut literal, mut out) = (python::Literal::default(), String::new());
        let entries = runs.iter().flat_map(Run::entries);
        entries.for_each(|entry| list_item(&entry.item, &None, &mut literal, &mut out));
        out.len()
    });
}

/// A prompt again, as a body has it.
#[divan::bench]
fn prompt_segments(bencher: Bencher<'_, '_>) {
    let prompt = Prompt::of(ITEMS);
    bencher.bench(|| prompt.segments());
}

/// A prompt again, copied to one place.
#[divan::bench]
fn prompt_joined(bencher: Bencher<'_, '_>) {
    let mut prompt = Prompt::of(ITEMS);
    let bytes = prompt.joined();
    bencher.counter(BytesCount::new(bytes)).bench_local(|| prompt.joined());
}

/// What deciding takes, its result applied.
#[divan::bench(args = BOARDS)]
fn decide_append(bencher: Bencher<'_, '_>, count: usize) {
    let (board, write) = (board(count), append(items(1)));
    bencher.bench(|| decided(black_box(&board), &write));
}

/// What it takes to apply a commit to a board that others see.
#[divan::bench(args = BOARDS)]
fn apply_append(bencher: Bencher<'_, '_>, count: usize) {
    let board = board(count);
    let commit = decided(&board, &append(items(1))).commit.unwrap();
    bencher.with_inputs(|| board.clone()).bench_values(|mut board| {
        apply(&mut board, black_box(&commit));
        board
    });
}

#[divan::bench]
fn commit_encode_and_frame(bencher: Bencher<'_, '_>) {
    let (id, commit) = (SessionId(Uuid::from_u128(1)), a_commit());
    bencher.bench(|| {
        let body = encode_commit(black_box(&commit)).unwrap();
        Frame::encode(id, commit.revision, &Body::of(body.into())).unwrap()
    });
}

#[divan::bench]
fn frame_and_commit_decode(bencher: Bencher<'_, '_>) {
    let (id, commit) = (SessionId(Uuid::from_u128(1)), a_commit());
    let frame =
        Frame::encode(id, commit.revision, &Body::of(encode_commit(&commit).unwrap().into()))
            .unwrap();
    bencher.bench(|| {
        let body = Frame::decode(id, commit.revision, black_box(&frame)).unwrap();
        decode_commit(&body).unwrap()
    });
}

/// 64 durable writes that wait together, until all are answered.
#[divan::bench]
fn publish_64_writes(bencher: Bencher<'_, '_>) {
    let (dir, runtime) = (TempDir::new().unwrap(), Runtime::new().unwrap());
    let store = SqliteStore::open(dir.path(), SqliteOptions::default()).unwrap();
    let policy = Policy { qa_pairs: Vec::new(), ..POLICY };
    let service = Service::start(Arc::new(store), policy, Clock::system()).unwrap();
    let writes: Vec<Write> = items(WRITERS).into_iter().map(|item| append(vec![item])).collect();
    let session = "bench".parse().unwrap();
    let session = runtime.block_on(service.session(&Caller::owner(), &session)).unwrap();
    bencher.counter(ItemsCount::new(WRITERS)).bench_local(|| {
        let writes = writes.iter().map(|write| {
            let (session, Write { terms, command, .. }) = (session.clone(), write.clone());
            runtime.spawn(async move { session.write(terms, command, Vec::new(), None).await })
        });
        let writes: Vec<_> = writes.collect();
        runtime.block_on(try_join_all(writes)).unwrap()
    });
    service.stop();
}

/// A board whose prompt is asked for again and again.
struct Prompt {
    board: Board,
    joined: Vec<u8>,
}

impl Prompt {
    fn of(count: usize) -> Self {
        Self { board: decided(&board(0), &append(items(count))).board, joined: Vec::new() }
    }

    fn runs(&self) -> impl Iterator<Item = Run> {
        let log = self.board.log(&LogName::Trajectories).unwrap();
        log.runs(0..log.len())
    }

    /// What its body is made of, the items' texts being there already.
    fn segments(&self) -> Vec<Bytes> {
        let (syntax, headings) = (Syntax::of(PromptFormat::Parts).unwrap(), Headings::default());
        let (begin, end) = (syntax.text_begin, syntax.text_end);
        let mut all = vec![Bytes::from(format!("[{begin}{}{end}", opening(&headings)))];
        for name in LogName::BOARD.into_iter().take(3) {
            let mut comma = LIST_COMMA.len();
            let heading = heading(&PromptPart::Log(name.clone()), &headings);
            all.push(Bytes::from(format!(", {begin}{}", list_begin(&heading))));
            let log = self.board.log(&name).unwrap();
            for run in log.runs(0..log.len()) {
                for piece in list_items(&run, &None, Characters::Escaped).whole() {
                    all.push(piece.slice(mem::take(&mut comma)..));
                }
            }
            all.push(Bytes::from(format!("{LIST_END}{end}")));
        }
        all.push(Bytes::from_static(b"]\n"));
        all
    }

    /// Writes all of it in one place, and gives its length.
    fn joined(&mut self) -> usize {
        let segments = self.segments();
        self.joined.clear();
        segments.iter().for_each(|segment| self.joined.extend_from_slice(segment));
        self.joined.len()
    }
}

const PYTHON: &str = r#"
import json, sys, time
items, times = json.load(open(sys.argv[1])), int(sys.argv[2])
begin = time.perf_counter()
for _ in range(times):
    parts = [{"type": "text", "text": "[Blackboard:]"}]
    for heading, items_of in ("Questions & Answers", []), ("Request History", []), ("Step Trajectories Completed Previously", items):
        parts.append({"type": "text", "text": "[" + heading + ":]\n " + json.dumps(items_of)})
    prompt = json.dumps(parts)
print((time.perf_counter() - begin) / times, len(prompt) + 1)
"#;

/// How many times longer Python takes for the same bytes.
fn print_prompt_vs_cpython() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("[{}]", texts(ITEMS).join(","))).unwrap();
    let times = PYTHON_PROMPTS.to_string();
    let python = Process::new("python3").args(["-c", PYTHON]).arg(file.path()).arg(times).output();
    let Ok(output) = python else {
        println!("there is no python3 to compare a prompt with");
        return;
    };
    let told = String::from_utf8(output.stdout).unwrap();
    let (seconds, length) = told.trim().split_once(' ').expect("Python tells both");
    let mut prompt = Prompt::of(ITEMS);
    assert_eq!(length.parse(), Ok(prompt.joined()), "both write the same prompt");
    let segments = timed(|| prompt.segments().len());
    let joined = timed(|| prompt.joined());
    let python: f64 = seconds.parse().unwrap();
    println!(
        "a prompt of {ITEMS} items, {length} bytes: {:.4} ms as segments, {:.4} ms in one place, in Python {:.3} ms",
        segments * 1e3,
        joined * 1e3,
        python * 1e3
    );
    println!("FIGURE prompt_vs_cpython {:.1} x", python / segments);
    println!("FIGURE prompt_joined_vs_cpython {:.1} x", python / joined);
}

/// How many seconds one takes, of some.
fn timed(mut make: impl FnMut() -> usize) -> f64 {
    let begin = Instant::now();
    for _ in 0..PROMPTS {
        black_box(make());
    }
    begin.elapsed().as_secs_f64() / f64::from(PROMPTS)
}

fn main() {
    divan::main();
    let asked = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    if asked.is_none_or(|asked| "prompt_vs_cpython".contains(&asked)) {
        print_prompt_vs_cpython();
    }
}
