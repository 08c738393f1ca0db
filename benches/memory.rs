//! Memory of boards: hot, and with their rendered prompt texts.
//!
//! `cargo bench --bench memory` makes boards by the service's own decisions, and reads the resident size of the
//! process. Figures are bytes per byte of the items' JSON; the aim is at most 2.4 with all texts rendered. It also
//! compares the service's estimates with the measured sizes.
#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark tells what it found"
)]

use std::fs;
use std::hint::black_box;

use blackboard::board::{
    Board, Command, Item, Log, LogCommand, LogName, Moment, Nonce, Policy, Revision, SessionId,
    Terms, Timestamp, Write, decide,
};
use blackboard::prompt::list_items;
use exact_json::python::Characters;
use tikv_jemallocator::Jemalloc;
use uuid::Uuid;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

static POLICY: Policy = Policy {
    auto_create: true,
    session_bytes_max: 1 << 30,
    session_blob_bytes_max: 1 << 30,
    session_items_max: 1 << 30,
    sessions_max: 1 << 30,
    qa_pairs: Vec::new(),
};

const WORDS: [&str; 16] = [
    "open", "the", "window", "of", "settings", "and", "click", "on", "display", "then", "wait",
    "until", "progress", "is", "complete", "at 100%",
];

/// A step as an agent reports it, of about 800 bytes.
fn step(board: usize, n: usize) -> String {
    let mut seed = board * 7_919 + n * 104_729 + 1;
    let mut words = |count: usize| {
        let word = |_| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            WORDS[(seed >> 33) % WORDS.len()]
        };
        (0..count).map(word).collect::<Vec<_>>().join(" ")
    };
    let (subtask, thought, comment) = (words(12), words(45), words(20 + n % 9));
    format!(
        "{{\"step\":{n},\"round\":{},\"agent\":\"AppAgent\",\"subtask\":\"{subtask}\",\"thought\":\"{thought}\",\
         \"action\":{{\"function\":\"click_input\",\"args\":{{\"button\":\"left\",\"double\":false,\"x\":{}.25,\"y\":{}}}}},\
         \"results\":[{{\"status\":\"CONTINUE\",\"error\":null}}],\"comment\":\"{comment}\\n\",\"cost\":0.{:04}}}",
        n / 10,
        n % 1_920,
        n % 1_080,
        n % 10_000,
    )
}

fn write(number: usize, n: usize) -> Write {
    let item = Item::from_json(&step(number, n)).unwrap();
    let log = if n.is_multiple_of(10) { LogName::Requests } else { LogName::Trajectories };
    let session = format!("session {number}").parse().unwrap();
    let author = Some("AppAgent".parse().unwrap());
    let terms = Terms { author, ..Terms::default() };
    Write { session, terms, command: Command::Log(log, LogCommand::Append { items: vec![item] }) }
}

/// The boards grow in turns, as sessions do.
fn boards(count: usize, items: usize) -> Vec<Board> {
    let absent = |n: usize| Board::absent(SessionId(Uuid::from_u128(n as u128)), Revision(0));
    let mut boards: Vec<_> = (0..count).map(absent).collect();
    for n in 0..items {
        for (number, board) in boards.iter_mut().enumerate() {
            let now = Timestamp(1_000 + i64::try_from(n).unwrap());
            let moment =
                Moment { now, nonce: Nonce(0), policy: &POLICY, qa_pairs: &[], sessions: 0 };
            *board = decide(board, &write(number, n), moment).unwrap().board;
        }
    }
    boards
}

fn render(board: &Board) {
    for run in board.logs().iter().flat_map(|log| log.runs(0..log.len())) {
        black_box(list_items(&run, &None, Characters::Escaped));
    }
}

fn resident() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1_024.0
}

fn measure(count: usize, items: usize) {
    let before = resident();
    let boards = boards(count, items);
    let hot = resident() - before;
    boards.iter().for_each(render);
    let rendered = resident() - before;
    let sum = |of: fn(&Board) -> usize| boards.iter().map(of).sum::<usize>() as f64;
    let json = boards.iter().flat_map(Board::logs).map(Log::bytes).sum::<u64>() as f64;
    let (estimate, texts) = (sum(Board::resident_bytes), sum(Board::rendered_bytes));
    let entries = (count * items) as f64;
    println!("{count} boards of {items} items of {:.0} B", json / entries);
    println!(
        "  hot: {:.3} a byte, {:.0} B an entry besides its text, {:.0} B a board",
        hot / json,
        (hot - json) / entries,
        hot / count as f64
    );
    println!(
        "  rendered once: {:.3} a byte; the texts alone {:.3}, estimated {:.3}",
        rendered / json,
        (rendered - hot) / json,
        texts / json
    );
    println!(
        "  estimated of hot: {:.3}; of all: {:.3}",
        estimate / hot,
        (estimate + texts) / rendered
    );
    println!("FIGURE resident_ratio_{count}x{items} {:.3} x", rendered / json);
    drop(boards);
}

fn main() {
    // As the server does.
    rustix::thread::disable_transparent_huge_pages(true).ok();
    let sizes = [(200, 1_000), (10_000, 20), (20_000, 1)];
    let only = std::env::args().nth(1).and_then(|n| n.parse::<usize>().ok());
    match only.and_then(|n| sizes.get(n)) {
        Some((count, items)) => measure(*count, *items),
        // A process each: what one gave back is not what the next one takes.
        None => (0..sizes.len()).for_each(|n| {
            let own = std::env::current_exe().unwrap();
            assert!(std::process::Command::new(own).arg(n.to_string()).status().unwrap().success());
        }),
    }
}
