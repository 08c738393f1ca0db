//! Quotas of all clients together: sessions, items, open streams.

use futures_util::future::join_all;
use reqwest::{Method, Response};
use tokio::time::timeout;

use crate::answer::{Answer, ask};
use crate::harness::{DEADLINE, Server};

/// Refused for want of room, by a problem that names the flag.
#[track_caller]
fn is_full(answer: &Answer, code: &str, flag: &str) {
    let problem = answer.problem(507, code);
    assert!(problem["detail"].as_str().unwrap().contains(flag), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_makes_no_more_sessions_than_there_may_be() {
    let server = Server::start_with(&["--sessions-max", "3"]);
    let made = join_all((0..40).map(async |n| {
        let board = server.board(&format!("s{n}"));
        board.post("requests", "{}").await
    }));
    let (made, refused): (Vec<_>, Vec<_>) =
        made.await.into_iter().partition(|answer| answer.status() == 201);
    assert_eq!(made.len(), 3);
    for answer in refused {
        is_full(&answer, "store-full", "--sessions-max");
    }
    let list = server.get("/v1/sessions").await.json();
    assert_eq!(list["sessions"].as_array().unwrap().len(), 3, "{list}");
}

#[tokio::test]
async fn sessions_that_exist_go_on_and_one_that_is_deleted_makes_room() {
    let server = Server::start_with(&["--sessions-max", "2"]);
    let (first, second, third) =
        (server.made("a").await, server.made("b").await, server.board("c"));
    is_full(&third.put("", "{}").await, "store-full", "--sessions-max");
    is_full(&third.put("state/x", "1").await, "store-full", "--sessions-max");
    first.post("requests", "{}").await.is(201);
    second.put("", "{}").await.is(200);
    first.delete("").await.succeeded();
    third.put("state/x", "1").await.is(201);
    is_full(&first.post("requests", "{}").await, "store-full", "--sessions-max");
}

#[tokio::test]
async fn forks_and_archives_are_sessions_too() {
    let server = Server::start_with(&["--sessions-max", "2"]);
    let board = server.made("a").await;
    let archive = board.get("archive").await.is(200).body().to_vec();
    let restore = async |session: &str| {
        let there = server.board(session);
        ask(there.typed(Method::PUT, "archive", "application/x-ndjson", archive.clone())).await
    };
    board.post("fork", r#"{"to":"b"}"#).await.is(201);
    is_full(&board.post("fork", r#"{"to":"c"}"#).await, "store-full", "--sessions-max");
    is_full(&restore("c").await, "store-full", "--sessions-max");
    server.board("b").delete("").await.succeeded();
    restore("c").await.is(201);
    is_full(&board.post("fork", r#"{"to":"b"}"#).await, "store-full", "--sessions-max");
}

#[tokio::test]
async fn a_session_has_so_many_items_in_all_its_logs_together() {
    let server = Server::start_with(&["--session-items-max", "5"]);
    let board = server.board("s");
    board.post("questions", "[{},{}]").await.is(201);
    board.post("agents/A/memory", "[{},{}]").await.is(201);
    let full = |answer: &Answer| is_full(answer, "session-full", "--session-items-max");
    full(&board.post("requests", "[{},{}]").await);
    full(&board.put("blackboard", r#"{"requests":[{},{},{},{}]}"#).await);
    let two = r#"{"append":"requests","item":{}},{"append":"agents/A/memory","item":{}}"#;
    full(&board.post("transactions", &format!(r#"{{"then":[{two}]}}"#)).await);
    board.post("requests", "{}").await.is(201);
    full(&board.post("trajectories", "{}").await);
    board.put("requests/1", r#"{"changed":true}"#).await.is(200);
    board.put("state/x", "1").await.is(201);
    board.delete("agents/A/memory?keep=1").await.is(200);
    board.post("trajectories", "{}").await.is(201);
    full(&board.post("trajectories", "{}").await);
    server.board("other").post("requests", "[{},{},{},{},{}]").await.is(201);
}

#[tokio::test]
async fn what_a_setting_lets_go_counts_no_more() {
    let server = Server::start_with(&["--session-items-max", "3"]);
    let board = server.board("s");
    board.put("", r#"{"settings":{"max_items":2}}"#).await.is(201);
    for _ in 0..3 {
        board.post("requests", "[{},{}]").await.is(201);
    }
    board.post("questions", "{}").await.is(201);
    is_full(&board.post("questions", "{}").await, "session-full", "--session-items-max");
}

async fn open(server: &Server, path: &str) -> Response {
    let request = server.to(Method::GET, path).header("accept", "text/event-stream");
    request.send().await.unwrap()
}

#[tokio::test]
async fn a_place_among_the_streams_is_given_back_with_the_stream() {
    let server = Server::start_with(&["--streams-max", "2"]);
    let board = server.made("s").await;
    let paths = ["/v1/sessions/s/events", "/v1/events"];
    let mut streams = Vec::new();
    for path in paths {
        let stream = open(&server, path).await;
        assert_eq!(stream.status(), 200, "{path}");
        streams.push(stream);
    }
    for path in paths {
        let refused = ask(server.to(Method::GET, path).header("accept", "text/event-stream")).await;
        let problem = refused.problem(503, "overloaded");
        assert!(problem["detail"].as_str().unwrap().contains("--streams-max"), "{problem}");
        assert_eq!(refused.header("retry-after"), "1");
    }
    // Polls are no streams, and no one else is held up.
    ask(board.to(Method::GET, "events?after=0").header("accept", "application/json")).await.is(200);
    board.post("requests", "{}").await.is(201);
    streams.pop();
    // The server sees that the client is gone when it writes to it.
    let again = async {
        loop {
            board.post("requests", "{}").await.is(201);
            let stream = open(&server, paths[0]).await;
            if stream.status() == 200 {
                return stream;
            }
        }
    };
    let stream = timeout(DEADLINE, again).await.expect("a place is given back");
    assert_eq!(stream.status(), 200);
}
