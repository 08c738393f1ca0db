//! Server with memory for one board: evicted boards come back unchanged.

use std::time::{Duration, Instant};

use reqwest::{Method, header::IF_NONE_MATCH};
use serde_json::json;
use tokio::time::sleep;

use crate::answer::ask;
use crate::claims::won;
use crate::harness::{Board, DEADLINE, Server};

/// What a reader may have kept of a session.
const READ: [&str; 9] = [
    "",
    "requests",
    "requests/1",
    "trajectories?keys=step",
    "agents/A/memory",
    "agents/A",
    "state",
    "prompt",
    "blackboard",
];

const OTHERS: usize = 3;

async fn filled(board: &Board) {
    board.post("requests", r#"[{"text":"one"},{"text":"two"}]"#).await.is(201);
    board.post("trajectories", r#"{"step":1,"note":"x"}"#).await.is(201);
    board.post("agents/A/memory", r#"{"step":1}"#).await.is(201);
    ask(board.json(Method::PUT, "agents/A", r#"{"status":"CONTINUE"}"#)).await.succeeded();
    board.put("state", r#"{"a":{"b":1}}"#).await.succeeded();
}

/// Others use theirs meanwhile, so that this one's board leaves memory.
async fn elsewhere(server: &Server) {
    for n in 0..OTHERS {
        server.board(&format!("other-{n}")).post("requests", r#"{"text":"x"}"#).await.is(201);
    }
}

#[tokio::test]
async fn who_comes_back_to_a_board_finds_the_same_tags_and_bytes() {
    let mut server = Server::start_with(&["--memory-budget", "1"]);
    filled(&server.board("s")).await;
    let mut kept = Vec::new();
    for tail in READ {
        let answer = server.board("s").get(tail).await;
        kept.push((tail, answer.is(200).etag(), answer.text().to_owned()));
    }
    for restarts in [false, false, true] {
        if restarts {
            assert!(server.stop().success());
            server.start_again();
        }
        for (tail, etag, text) in &kept {
            elsewhere(&server).await;
            let board = server.board("s");
            let known = board.to(Method::GET, tail).header(IF_NONE_MATCH, etag);
            ask(known).await.is(304);
            elsewhere(&server).await;
            let again = board.get(tail).await;
            assert_eq!((again.etag(), again.text()), (etag.clone(), text.as_str()), "{tail}");
        }
    }
}

#[tokio::test]
async fn a_claim_outlives_its_board_in_memory() {
    let mut server = Server::start_with(&["--memory-budget", "1"]);
    filled(&server.board("s")).await;
    let fence = won(&server.board("s"), "A", 1).await;
    elsewhere(&server).await;
    let board = server.board("s");
    let claim = |agent| board.by(agent, Method::PUT, "requests/1/claim", r#"{"ttl":"60s"}"#);
    ask(claim("B")).await.problem(409, "already-claimed");
    elsewhere(&server).await;
    ask(claim("A")).await.is(200);
    assert!(server.stop().success());
    server.start_again();
    elsewhere(&server).await;
    let board = server.board("s");
    let result = format!("{{\"fence\":{fence},\"result\":1}}");
    ask(board.by("A", Method::PUT, "requests/1/done", &result)).await.is(200);
    assert_eq!(board.get("requests/1").await.json()["done"]["result"], json!(1));
}

/// The inbox of requests of the session `s`, which does not bring its board to memory.
async fn inbox(server: &Server) -> Vec<u64> {
    server.get("/v1/requests?prefix=s").await.is(200).json()["requests"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|request| request["seq"].as_u64())
        .collect()
}

async fn until_inbox(server: &Server, expected: &[u64]) {
    let start = Instant::now();
    while inbox(server).await != expected {
        assert!(start.elapsed() < DEADLINE, "{:?}", inbox(server).await);
        sleep(Duration::from_millis(10)).await;
    }
}

async fn listed_revision(server: &Server) -> u64 {
    let sessions = server.get("/v1/sessions?prefix=s").await.is(200).json();
    sessions["sessions"][0]["revision"].as_u64().expect("a revision")
}

#[tokio::test]
async fn times_come_for_boards_that_are_not_in_memory() {
    let mut server = Server::start_with(&["--memory-budget", "1"]);
    let board = server.board("s");
    board.post("requests?not_before=1s", r#"{"text":"early"}"#).await.is(201);
    let posted = board.post("requests?deadline=1s&not_before=900ms", r#"{"text":"late"}"#).await;
    board.post("requests?not_before=1h", r#"{"text":"much later"}"#).await.is(201);
    elsewhere(&server).await;
    // Both times end the wait of a request, and the deadline ends one: nobody reads the session meanwhile.
    until_inbox(&server, &[1]).await;
    assert!(listed_revision(&server).await > posted.is(201).revision());
    assert_eq!(server.board("s").get("requests/2").await.json()["failed"]["reason"], "deadline");
    // What falls due while the server is down is committed when it starts.
    server.board("s").post("requests?not_before=300ms", r#"{"text":"later"}"#).await.is(201);
    assert!(server.stop().success());
    sleep(Duration::from_millis(300)).await;
    server.start_again();
    until_inbox(&server, &[1, 4]).await;
}
