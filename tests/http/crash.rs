//! Crashes: nothing acknowledged is lost by kill -9 at any moment or by SIGTERM under load.
//!
//! `BLACKBOARD_CRASH_ROUNDS=20` makes the full run of what is otherwise three rounds.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use uuid::Uuid;

use crate::crash_load::{Load, Written};
use crate::harness::{Server, finished};

pub(crate) fn rounds() -> u32 {
    match std::env::var("BLACKBOARD_CRASH_ROUNDS") {
        Ok(rounds) => rounds.parse().expect("BLACKBOARD_CRASH_ROUNDS is a number"),
        Err(_) => 3,
    }
}

/// A moment of a load: after some tens or hundreds of acknowledged writes.
pub(crate) fn moment() -> u32 {
    20 + u32::try_from(Uuid::new_v4().as_u128() % 400).expect("a small number")
}

pub(crate) fn check_is_sound(server: &Server) {
    let [flag, data] = server.place();
    if flag == "--store" {
        // PostgreSQL has checks of its own.
        return;
    }
    let check = finished(&["check", "--data", &data]);
    assert!(
        check.status.success(),
        "{}{}",
        String::from_utf8_lossy(&check.stdout),
        String::from_utf8_lossy(&check.stderr)
    );
}

/// Everything a session shows, to compare across restarts.
async fn shown(server: &Server, session: &str) -> (String, Vec<String>) {
    let board = server.board(session);
    (board.dictionary().await, board.lines("agents/A/memory").await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_loses_nothing_that_was_acknowledged() {
    is_all_there_after_kills(Server::start()).await;
}

/// Every board leaves memory as soon as it can, and is read again at the next request.
#[tokio::test(flavor = "multi_thread")]
async fn a_kill_loses_nothing_where_no_board_fits_in_memory() {
    is_all_there_after_kills(Server::start_with(&["--memory-budget", "1"])).await;
}

async fn is_all_there_after_kills(mut server: Server) {
    let mut kept: Vec<(Written, (String, Vec<String>))> = Vec::new();
    for round in 0..rounds() {
        let load = Load::start(&server, &format!("round {round}"));
        let moment = moment();
        load.acknowledged(moment).await;
        server.kill();
        let written = load.ended().await;
        check_is_sound(&server);
        server.start_again();
        written.judge(&server).await;
        for (earlier, before) in &kept {
            let now = shown(&server, earlier.session()).await;
            assert_eq!(&now, before, "round {round} changed {}", earlier.session());
        }
        let board = server.board(written.session());
        let count = board.get("trajectories").await.json()["count"].as_u64().unwrap();
        let next = board.post("trajectories", r#"{"w":9,"n":0}"#).await;
        assert_eq!(next.is(201).seqs(), [count + 1]);
        let now = shown(&server, written.session()).await;
        kept.push((written, now));
    }
    assert!(server.stop().success());
    check_is_sound(&server);
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_under_load_ends_well_and_loses_nothing() {
    let mut server = Server::start();
    let load = Load::start(&server, "s");
    load.acknowledged(200).await;
    let start = Instant::now();
    server.signal(Signal::TERM);
    let written = load.ended().await;
    let status = server.wait();
    assert!(status.success(), "{status}");
    assert!(start.elapsed() <= Duration::from_secs(10), "{:?}", start.elapsed());
    check_is_sound(&server);
    server.start_again();
    written.judge(&server).await;
}

#[tokio::test]
async fn sigterm_and_sigint_end_an_idle_server_at_once() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Server::start();
        let board = server.board("s");
        // The client keeps this connection open, and another says nothing at all.
        board.post("requests", "{}").await.is(201);
        let silent = crate::raw::connect(&server);
        let start = Instant::now();
        server.signal(signal);
        assert!(server.wait().success(), "{signal:?}");
        assert!(start.elapsed() <= Duration::from_secs(10), "{:?}", start.elapsed());
        drop(silent);
    }
}
