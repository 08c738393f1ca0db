//! Waits: answered by news, by timeout, or by the server's end.

use std::io::{Read as _, Write as _};

use reqwest::Method;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::answer::{Answer, ask};
use crate::harness::{Board, DEADLINE, Server};
use crate::raw::{answer, connect};

/// What can be read of a session, with a query where there is one.
const READS: [&str; 12] = [
    "",
    "blackboard",
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

/// Longer than any of these tests may take: whoever is answered was woken.
pub(crate) const LONG: &str = "wait=60s";

pub(crate) async fn filled(server: &Server) -> Board {
    let board = server.board("s");
    board.post("requests", r#"{"n":1}"#).await.is(201);
    board.post("agents/A/memory", r#"{"cost":1}"#).await.is(201);
    board.put("state/a", "1").await.is(201);
    board
}

pub(crate) fn with(tail: &str, query: &str) -> String {
    format!("{tail}{}{query}", if tail.contains('?') { '&' } else { '?' })
}

pub(crate) async fn unless_known(board: &Board, tail: &str, tag: &str) -> Answer {
    ask(board.to(Method::GET, tail).header("if-none-match", tag)).await
}

/// Reads while the test goes on.
pub(crate) fn waiting(board: &Board, tail: &str) -> JoinHandle<Answer> {
    let (board, tail) = (board.clone(), tail.to_owned());
    tokio::spawn(async move { board.get(&tail).await })
}

fn waiting_with(board: &Board, tail: &str, tag: String) -> JoinHandle<Answer> {
    let (board, tail) = (board.clone(), tail.to_owned());
    tokio::spawn(async move { unless_known(&board, &tail, &tag).await })
}

pub(crate) async fn woken(reader: JoinHandle<Answer>) -> Answer {
    timeout(DEADLINE, reader).await.expect("it is woken").expect("it is answered")
}

#[tokio::test]
async fn a_wait_for_nothing_is_refused() {
    let server = Server::start();
    let board = filled(&server).await;
    for tail in READS.into_iter().chain(["requests?latest=1", "requests?before=5"]) {
        let problem = board.get(&with(tail, "wait=1s")).await.problem(400, "invalid-parameter");
        assert!(problem["detail"].as_str().unwrap().contains("If-None-Match"), "{problem}");
    }
    for path in ["/v1/sessions?wait=1s", "/v1/questions?wait=1s"] {
        server.get(path).await.problem(400, "invalid-parameter");
    }
    for path in ["/healthz?wait=1s", "/openapi.json?wait=1s"] {
        server.get(path).await.problem(400, "unknown-parameter");
    }
    board.get("requests?until=exists").await.problem(400, "unknown-parameter");
    board.get("?until=exists&at=1").await.problem(400, "unknown-parameter");
}

#[tokio::test]
async fn a_wait_has_a_unit_and_at_most_a_minute() {
    let server = Server::start();
    let board = filled(&server).await;
    for wrong in ["", "1", "0", "-1s", "1.5s", "61s", "60001ms", "2m", "1h", "1d", "1w"] {
        let tail = format!("requests?after=0&wait={wrong}");
        board.get(&tail).await.problem(400, "invalid-parameter");
    }
    // There is an entry already.
    for right in ["60s", "60000ms", "1m", "0s", "0d", "007s"] {
        assert_eq!(board.get(&format!("requests?after=0&wait={right}")).await.seqs(), [1]);
    }
    board.get("requests?after=0&wait=1s&at=1").await.problem(400, "invalid-parameter");
    board.get("state/a?until=exists&at=1").await.problem(400, "invalid-parameter");
}

#[tokio::test]
async fn a_tag_that_stays_is_304_in_the_end() {
    let server = Server::start();
    let board = filled(&server).await;
    for tail in READS {
        let tag = board.get(tail).await.is(200).etag();
        for wait in ["wait=0s", "wait=20ms", "min_revision=1&wait=20ms"] {
            let answer = unless_known(&board, &with(tail, wait), &tag).await;
            assert_eq!(answer.is(304).etag(), tag, "{tail}");
        }
        let other = unless_known(&board, &with(tail, LONG), r#""another""#).await;
        assert_eq!(other.is(200).etag(), tag, "{tail}: waiting shows nothing else");
    }
}

#[tokio::test]
async fn a_change_of_the_tag_ends_the_wait() {
    let server = Server::start();
    let board = filled(&server).await;
    for round in 2..6_u64 {
        let mut readers = Vec::new();
        for tail in READS {
            let tag = board.get(tail).await.etag();
            readers.push((tail, tag.clone(), waiting_with(&board, &with(tail, LONG), tag)));
        }
        board.put("requests/1", &format!(r#"{{"n":{round}}}"#)).await.is(200);
        board.put("agents/A", &format!(r#"{{"platform":"{round}"}}"#)).await.is(200);
        board.post("agents/A/memory", r#"{"cost":1}"#).await.is(201);
        board.put("state/a", &round.to_string()).await.is(200);
        for (tail, tag, reader) in readers {
            let answer = woken(reader).await;
            assert_ne!(answer.is(200).etag(), tag, "{tail}");
        }
    }
}

#[tokio::test]
async fn a_change_of_something_else_does_not_end_the_wait() {
    let server = Server::start();
    let board = filled(&server).await;
    let tag = board.get("state/a").await.etag();
    let reader = waiting_with(&board, &with("state/a", LONG), tag);
    for n in 0..20 {
        board.put("state/b", &n.to_string()).await.succeeded();
    }
    board.put("state/a", "7").await.is(200);
    assert_eq!(woken(reader).await.is(200).text(), "7\n");
}

#[tokio::test]
async fn a_log_is_read_on_when_it_has_an_entry() {
    let server = Server::start();
    let board = filled(&server).await;
    for log in ["requests", "agents/A/memory", "questions"] {
        let head = board.get(log).await.json()["next"].as_u64().unwrap();
        let tail = format!("{log}?after={head}");
        let empty = board.get(&with(&tail, "wait=20ms")).await;
        assert_eq!(empty.is(200).seqs(), [0_u64; 0]);
        assert_eq!(empty.json()["next"], head);
        let reader = waiting(&board, &with(&tail, LONG));
        board.post("trajectories", "{}").await.is(201);
        board.post(log, "{}").await.is(201);
        assert_eq!(woken(reader).await.is(200).seqs(), [head + 1]);
    }
}

#[tokio::test]
async fn a_page_is_waited_for_until_an_entry_matches() {
    let server = Server::start();
    let board = filled(&server).await;
    let lines = board.to(Method::GET, &with("requests?after=0&status=FAIL", LONG));
    let lines = tokio::spawn(ask(lines.header("accept", "application/x-ndjson")));
    let page = waiting(&board, &with("requests?after=0&status=FAIL", LONG));
    for _ in 0..3 {
        board.post("requests", r#"{"status":"OK"}"#).await.is(201);
    }
    // An entry that was there already comes to match.
    board.merge("requests/1", r#"{"status":"FAIL"}"#).await.is(200);
    assert_eq!(woken(page).await.is(200).seqs(), [1]);
    assert_eq!(woken(lines).await.is(200).text(), "{\"n\":1,\"status\":\"FAIL\"}\n");

    let pending = waiting(&board, &with("requests?after=4&pending=true", LONG));
    board.post("requests", r#"{"text":"next"}"#).await.is(201);
    assert_eq!(woken(pending).await.is(200).seqs(), [5]);
}

#[tokio::test]
async fn a_page_that_the_client_has_is_waited_past() {
    let server = Server::start();
    let board = filled(&server).await;
    let tag = board.get("requests?after=0").await.etag();
    unless_known(&board, "requests?after=0&wait=20ms", &tag).await.is(304);
    let reader = waiting_with(&board, &with("requests?after=0", LONG), tag);
    board.post("requests", "{}").await.is(201);
    assert_eq!(woken(reader).await.is(200).seqs(), [1, 2]);
}

#[tokio::test]
async fn a_revision_is_waited_for_as_long_as_the_wait_says() {
    let server = Server::start();
    let board = filled(&server).await;
    let head = board.get("").await.revision();
    let tail = format!("requests?min_revision={}", head + 1);
    board.get(&with(&tail, "wait=20ms")).await.problem(503, "revision-not-reached");
    let reader = waiting(&board, &with(&tail, LONG));
    board.post("requests", "{}").await.is(201);
    assert_eq!(woken(reader).await.is(200).revision(), head + 1);
}

#[tokio::test]
async fn a_deletion_ends_the_wait() {
    let server = Server::start();
    for round in 0..5 {
        let board = server.board(&format!("s{round}"));
        board.put("state/a", "1").await.is(201);
        let tag = board.get("state/a").await.etag();
        let readers = [
            waiting_with(&board, &with("state/a", LONG), tag),
            waiting(&board, &with("requests?after=0", LONG)),
            waiting(&board, &with("requests?min_revision=1000", LONG)),
            waiting(&board, &with("state/a?until=equals:2", LONG)),
        ];
        let gone = [
            waiting(&board, &with("state/a?until=absent", LONG)),
            waiting(&board, &with("?until=absent", LONG)),
        ];
        board.delete("").await.is(200);
        for reader in readers {
            woken(reader).await.problem(404, "session-not-found");
        }
        for reader in gone {
            let answer = woken(reader).await;
            assert_eq!((answer.is(204).revision(), answer.body()), (2, &b""[..]));
        }
    }
}

#[tokio::test]
async fn a_removal_ends_the_wait_for_what_is_removed() {
    let server = Server::start();
    let board = filled(&server).await;
    let tag = board.get("requests/1").await.etag();
    let entry = waiting_with(&board, &with("requests/1", LONG), tag);
    let value = waiting(&board, &with("state/a?until=absent", LONG));
    board.delete("requests/1").await.is(200);
    woken(entry).await.problem(404, "entry-not-found");
    let removed = board.delete("state/a").await.revision();
    assert_eq!(woken(value).await.is(204).revision(), removed);
}

#[tokio::test]
async fn lists_are_waited_for() {
    let server = Server::start();
    filled(&server).await;
    let list = |path: &str| server.to(Method::GET, path);
    for path in ["/v1/sessions", "/v1/sessions?prefix=n", "/v1/questions"] {
        let tag = ask(list(path)).await.is(200).etag();
        let known = ask(list(&with(path, "wait=20ms")).header("if-none-match", &tag)).await;
        assert_eq!(known.is(304).etag(), tag);
        let reader = tokio::spawn(ask(list(&with(path, LONG)).header("if-none-match", &tag)));
        let name = format!("new{}", path.len());
        server.board(&name).post("requests", "{}").await.is(201);
        server.board(&name).post("questions", r#"{"question":"?"}"#).await.is(201);
        assert_ne!(woken(reader).await.is(200).etag(), tag);
    }
}

#[tokio::test]
async fn the_end_of_the_server_ends_all_waits() {
    let mut server = Server::start();
    let board = filled(&server).await;
    let tag = board.get("requests").await.etag();
    let list = server.get("/v1/sessions").await.etag();
    let waits = [
        ("/v1/sessions/s/requests?wait=60s", tag.as_str(), 304, ""),
        ("/v1/sessions?wait=60s", list.as_str(), 304, ""),
        ("/v1/sessions/s/requests?after=1&wait=60s", "", 200, r#""entries":[]"#),
        ("/v1/sessions/s/state/a?until=absent&wait=60s", "", 412, "condition-not-met"),
        ("/v1/sessions/none?until=exists&wait=60s", "", 412, "condition-not-met"),
        ("/v1/sessions/s?min_revision=99&wait=60s", "", 503, "revision-not-reached"),
    ];
    let mut readers = Vec::new();
    for (path, tag, status, shown) in waits {
        let (mut stream, host) = (connect(&server), server.authority());
        let known =
            if tag.is_empty() { String::new() } else { format!("If-None-Match: {tag}\r\n") };
        // Both in one piece: when the first is answered, the second has come in.
        let requests = format!(
            "GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n\
            GET {path} HTTP/1.1\r\nHost: {host}\r\n{known}Connection: close\r\n\r\n"
        );
        stream.write_all(requests.as_bytes()).unwrap();
        let mut first = [0; 1];
        stream.read_exact(&mut first).unwrap();
        readers.push((stream, path, status, shown));
    }
    // Each is served by now, since what came later was.
    for _ in 0..20 {
        server.get("/healthz").await.is(200);
    }
    assert!(server.stop().success());
    for (stream, path, status, shown) in readers {
        let both = answer(stream);
        let text = format!("{}\r\n\r\n{}", both.head, both.body);
        let last = text.rsplit("HTTP/1.1 ").next().unwrap();
        assert!(last.starts_with(&status.to_string()) && last.contains(shown), "{path}: {text}");
    }
}
