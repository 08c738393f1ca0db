//! Linearizability: concurrent clients' answers have an order that explains them.
//!
//! Two checks judge what real clients recorded. `wgl` searches for an order, key by key, and believes no
//! revision. `revisions` takes the order from the revisions, so it can judge any number of calls:
//! `BLACKBOARD_LINEAR_OPS=100000` makes the full run of what is otherwise ten thousand.

mod choice;
mod history;
mod recorded;
mod revisions;
mod revisions_tests;
mod simulated;
mod wgl;
mod wgl_tests;

use std::time::Instant;

use crate::harness::Server;
use choice::Mix;
use history::{Board, Call};
use recorded::{Clients, record};
use wgl::{Span, Stuck, linearize};

const CLIENTS: u32 = 8;

fn linearize_calls(keys: usize, calls: &[Call]) -> Result<Vec<usize>, Stuck> {
    let spans: Vec<Span> =
        calls.iter().map(|call| Span { began: call.began, ended: call.ended }).collect();
    linearize(Board::empty(keys), &spans, |board, call| {
        board.step(&calls[call].op, &calls[call].outcome)
    })
}

fn of_key(calls: &[Call], key: usize) -> Vec<Call> {
    calls.iter().filter(|call| call.op.key() == key).cloned().collect()
}

#[track_caller]
fn assert_linearizable(keys: usize, calls: &[Call]) {
    if let Err(Stuck { placed, blocked }) = linearize_calls(keys, calls) {
        let shown = |of: &[usize]| of.iter().map(|&call| format!("{:?}\n", calls[call])).collect();
        let before: String = shown(&placed[placed.len().saturating_sub(20)..]);
        let next: String = shown(&blocked);
        panic!(
            "no order explains these calls; the longest ends with\n{before}then none of\n{next}"
        );
    }
}

#[track_caller]
fn assert_explained_by_revisions(keys: usize, base: u64, calls: &[Call]) {
    if let Err(fault) = revisions::check(keys, base, calls) {
        let shown: Vec<&Call> = fault.calls().into_iter().map(|call| &calls[call]).collect();
        panic!("{fault:?}, among {} calls: {shown:#?}", calls.len());
    }
}

/// How many calls the long history has.
fn long() -> u32 {
    match std::env::var("BLACKBOARD_LINEAR_OPS") {
        Ok(count) => count.parse().expect("BLACKBOARD_LINEAR_OPS is a number"),
        Err(_) => 10_000,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_key_of_a_session_is_linearizable() {
    let mix = Mix { seed: 1, keys: 3, crossing: false };
    let server = Server::start();
    let base = server.made("s").await.get("").await.revision();
    let calls = record(&server, "s", mix, CLIENTS, 150).await;
    for key in 0..mix.keys {
        let own = of_key(&calls, key);
        assert_eq!(own.len(), 400);
        assert_linearizable(mix.keys, &own);
    }
    assert_explained_by_revisions(mix.keys, base, &calls);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_linearizable_as_a_whole() {
    let mix = Mix { seed: 2, keys: 4, crossing: true };
    let server = Server::start();
    let base = server.made("s").await.get("").await.revision();
    let calls = record(&server, "s", mix, CLIENTS, 60).await;
    assert_linearizable(mix.keys, &calls);
    assert_explained_by_revisions(mix.keys, base, &calls);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_stays_linearizable_through_a_kill() {
    let mix = Mix { seed: 3, keys: 3, crossing: false };
    let mut server = Server::start();
    server.made("s").await;
    let start = Instant::now();
    let clients = Clients::start(&server, "s", mix, 0..CLIENTS, 75, start);
    clients.answered(300).await;
    server.kill();
    let mut calls = clients.ended().await;
    server.start_again();
    let more = Clients::start(&server, "s", mix, CLIENTS..2 * CLIENTS, 75, start);
    calls.extend(more.ended().await);
    for key in 0..mix.keys {
        assert_linearizable(mix.keys, &of_key(&calls, key));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_calls_are_explained_by_their_revisions() {
    let mix = Mix { seed: 4, keys: 6, crossing: true };
    let server = Server::start();
    let base = server.made("s").await.get("").await.revision();
    let calls = record(&server, "s", mix, CLIENTS, long().div_ceil(CLIENTS)).await;
    assert_explained_by_revisions(mix.keys, base, &calls);
    let shown = server.board("s").get("").await.revision();
    let commits = calls.iter().filter(|call| call.outcome.committed()).count() as u64;
    assert_eq!(shown, base + commits);
}
