//! Disk use of a server under constant writes.

use std::fs;
use std::time::Instant;

use reqwest::Method;
use tokio::task::JoinSet;

use crate::answer::ask;
use crate::harness::{Board, DEADLINE, Server};

/// With these at once the server has no idle moment.
const WRITERS: usize = 8;

/// An item is a little shorter.
const ITEM_BYTES: usize = 1_000_000;

/// Writers that go on until they are dropped.
fn writers(server: &Server) -> JoinSet<()> {
    let write = |n| {
        let board = server.board(&format!("w{n}"));
        async move {
            loop {
                board.post("requests", "{}").await.is(201);
            }
        }
    };
    (0..WRITERS).map(write).collect()
}

/// Text that packing can hardly make shorter.
fn text(seed: usize) -> String {
    let mut state = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'0' + ((state >> 32) & 63) as u8).to_ascii_lowercase()
    };
    (0..ITEM_BYTES).map(|_| letter()).filter(char::is_ascii_alphanumeric).collect()
}

async fn fill(board: &Board, items: usize) {
    for seed in 0..items {
        let item = format!("{{\"x\":\"{}\"}}", text(seed));
        board.post("requests", &item).await.is(201);
    }
}

async fn until(is_so: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < DEADLINE, "it does not come to that");
        tokio::task::yield_now().await;
    }
}

async fn uncompacted_bytes(server: &Server) -> u64 {
    let answer = server.get("/metrics").await;
    let mut lines = answer.is(200).text().lines();
    let bytes = lines.find_map(|line| line.strip_prefix("blackboard_journal_uncompacted_bytes "));
    bytes.expect("the series").parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_journal_is_compacted_though_writes_never_pause() {
    let server = Server::start();
    let _writers = writers(&server);
    fill(&server.board("s"), 12).await;
    until(async || uncompacted_bytes(&server).await < 4 << 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_disk_comes_back_though_writes_never_pause() {
    let server = Server::start();
    let (board, _writers) = (server.board("s"), writers(&server));
    fill(&board, 60).await;
    let database = server.data().join("blackboard.db");
    let length = || fs::metadata(&database).expect("a file").len();
    assert!(length() > 24 << 20, "{}", length());
    board.delete("blackboard").await.is(200);
    ask(board.to(Method::POST, "purge")).await.is(200);
    until(async || length() < 18 << 20).await;
}
