//! Linearizability: concurrent clients' answers have an order that explains them.
//!
//! Two checks judge what real clients recorded. `wgl` searches for an order, key by key, and believes no
//! revision. `revisions` takes the order from the revisions, so it can judge any number of calls: `BLACKBOARD_LINEAR_OPS`
//! is that of the history through kills, and `BLACKBOARD_LINEAR_SEED` is what its calls are drawn from.

pub(crate) mod choice;
mod history;
mod recorded;
mod revisions;
mod revisions_tests;
mod simulated;
mod tasks;
mod wgl;
mod wgl_tests;

use std::str::FromStr;
use std::time::Instant;

use tokio::sync::watch;

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
        board.clone().step(&calls[call].op, &calls[call].outcome)
    })
}

fn of_key(calls: &[Call], key: usize) -> Vec<Call> {
    calls.iter().filter(|call| call.op.key() == Some(key)).cloned().collect()
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

/// A server is killed after so many calls of the history through kills.
const CALLS_A_KILL: u32 = 1_000;

/// A number for the long form of a history.
fn number<N: FromStr>(variable: &str, otherwise: N) -> N {
    std::env::var(variable).map_or(otherwise, |text| {
        text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}"))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn each_key_of_a_session_is_linearizable() {
    let mix = Mix { seed: 1, keys: 3, crossing: false, tasks: false };
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
    let mix = Mix { seed: 2, keys: 4, crossing: true, tasks: false };
    let server = Server::start();
    let base = server.made("s").await.get("").await.revision();
    let calls = record(&server, "s", mix, CLIENTS, 60).await;
    assert_linearizable(mix.keys, &calls);
    assert_explained_by_revisions(mix.keys, base, &calls);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_stays_linearizable_through_a_kill() {
    let mix = Mix { seed: 3, keys: 3, crossing: false, tasks: false };
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
    let mix = Mix { seed: 4, keys: 6, crossing: true, tasks: true };
    let server = Server::start();
    let base = server.made("s").await.get("").await.revision();
    let calls = record(&server, "s", mix, CLIENTS, 1_250).await;
    assert_explained_by_revisions(mix.keys, base, &calls);
    assert_eq!(server.board("s").get("").await.revision(), base + commits(&calls));
}

fn commits(calls: &[Call]) -> u64 {
    calls.iter().filter(|call| call.outcome.committed()).count() as u64
}

/// Clients repeat a call without an answer with its key: all outcomes are known, whatever was killed meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn calls_through_kills_are_explained_by_their_revisions() {
    let seed = number("BLACKBOARD_LINEAR_SEED", 5);
    let mix = Mix { seed, keys: 6, crossing: true, tasks: true };
    let kills = number("BLACKBOARD_LINEAR_OPS", 3_000_u32).div_ceil(CALLS_A_KILL);
    let mut server = Server::start();
    let base = server.made("s").await.get("").await.revision();
    let boards = watch::Sender::new(Some(server.board("s")));
    let each = (kills * CALLS_A_KILL).div_ceil(CLIENTS);
    let clients = Clients::persistent(&boards.subscribe(), mix, CLIENTS, each, Instant::now());
    for kill in 0..kills {
        clients.answered(CALLS_A_KILL / 2).await;
        boards.send_replace(server.board_without(kill, "s"));
        server.replace(kill);
        boards.send_replace(Some(server.board("s")));
        clients.answered(CALLS_A_KILL / 2).await;
    }
    let calls = clients.ended().await;
    assert_explained_by_revisions(mix.keys, base, &calls);
    assert_eq!(server.board("s").get("").await.revision(), base + commits(&calls));
}
