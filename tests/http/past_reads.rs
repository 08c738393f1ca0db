//! Reads of the past: the same bodies as reads made at that time, with tags of their own.

use reqwest::Method;

use crate::answer::ask;
use crate::harness::{Board, Server};

const READS: [&str; 11] = [
    "blackboard?include=state",
    "prompt",
    "requests",
    "requests?limit=1",
    "requests/1",
    "agents",
    "agents/A",
    "agents/A/memory",
    "agents/A/memory/cost",
    "state",
    "state/a",
];

fn then(tail: &str, at: impl std::fmt::Display) -> String {
    format!("{tail}{}at={at}", if tail.contains('?') { '&' } else { '?' })
}

async fn write(board: &Board, n: u64) -> u64 {
    let item = format!(r#"{{"n":{n},"cost":{n}}}"#);
    board.post("requests", &item).await.is(201);
    board.put("requests/1", &item).await.is(200);
    board.post("agents/A/memory", &item).await.is(201);
    board.put("agents/A", &format!(r#"{{"platform":"{n}"}}"#)).await.is(200);
    board.put("state/a", &item).await.succeeded();
    board.put("state/b", &n.to_string()).await.succeeded().revision()
}

#[tokio::test]
async fn a_read_shows_what_it_showed_then() {
    let server = Server::start();
    let board = server.board("s");
    let revision = write(&board, 1).await;
    let mut shown = Vec::new();
    for tail in READS {
        shown.push(board.get(tail).await.is(200).text().to_owned());
    }
    for n in 2..5 {
        write(&board, n).await;
    }
    for (tail, shown) in READS.into_iter().zip(shown) {
        let past = board.get(&then(tail, revision)).await;
        assert_eq!(past.is(200).text(), shown, "{tail}");
        assert_eq!(past.revision(), revision, "{tail}");
        let now = board.get(tail).await;
        assert_ne!(past.etag(), now.etag(), "{tail}");
        assert_ne!(now.text(), shown, "{tail}");
        let known = board.to(Method::GET, &then(tail, revision));
        ask(known.header("if-none-match", past.etag())).await.is(304);
    }
}

#[tokio::test]
async fn a_checkpoint_names_a_revision() {
    let server = Server::start();
    let board = server.board("s");
    write(&board, 1).await;
    let shown = board.get("requests").await.text().to_owned();
    board.post("checkpoints", r#"{"name":"before"}"#).await.is(201);
    write(&board, 2).await;
    assert_eq!(board.get(&then("requests", "before")).await.is(200).text(), shown);
    for tail in READS {
        board.get(&then(tail, "none")).await.problem(404, "checkpoint-not-found");
    }
}

#[tokio::test]
async fn what_was_not_there_is_not_found() {
    let server = Server::start();
    let board = server.board("s");
    let head = write(&board, 1).await;
    for tail in READS {
        for at in [(head + 1).to_string(), "99999999999999999999".to_owned()] {
            board.get(&then(tail, at)).await.problem(404, "revision-not-found");
        }
        board.get(&then(tail, "")).await.problem(400, "invalid-parameter");
        board.get(&then(tail, "a%2Fb")).await.problem(400, "invalid-parameter");
    }
    let gone = board.get(&then("state/a", 1)).await;
    gone.problem(404, "path-not-found");
    assert_eq!(gone.revision(), 1);
    board.get(&then("agents/A", 1)).await.problem(404, "agent-not-found");
    assert_eq!(board.get(&then("agents/A/memory", 1)).await.json()["count"], 0);
    server.board("none").get(&then("requests", 1)).await.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_past_that_is_to_come_is_waited_for() {
    let server = Server::start();
    let board = server.board("s");
    let head = write(&board, 1).await;
    let tail = format!("requests?at={head}&min_revision={}", head + 1);
    let reader = tokio::spawn({
        let board = board.clone();
        async move { board.get(&tail).await }
    });
    write(&board, 2).await;
    assert_eq!(reader.await.unwrap().is(200).revision(), head);
}
