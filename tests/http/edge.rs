//! Edge of the server: health, content coding, addresses.

use std::io::Read as _;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::harness::{Server, finished};
use crate::raw::exchange;

#[tokio::test]
async fn a_healthy_server_says_so() {
    let server = Server::start();
    for path in ["/healthz", "/readyz"] {
        server.get(path).await.is(200);
    }
}

async fn coded(server: &Server, path: &str, coding: &str) -> Answer {
    ask(server.to(Method::GET, path).header("accept-encoding", coding)).await
}

#[tokio::test]
async fn answers_are_packed_as_the_client_asks() {
    let server = Server::start();
    let board = server.board("s");
    let item = format!("{{\"text\":\"{}\"}}", "a word and another ".repeat(500));
    board.post("requests", &item).await.is(201);
    for tail in ["requests", "blackboard", "prompt"] {
        let path = format!("/v1/sessions/s/{tail}");
        let plain = server.get(&path).await;
        assert_eq!(plain.is(200).header("content-encoding"), "");
        let gzip = coded(&server, &path, "gzip").await;
        assert_eq!(gzip.is(200).header("content-encoding"), "gzip");
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(gzip.body()).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain.body());
        let zstd = coded(&server, &path, "zstd").await;
        assert_eq!(zstd.is(200).header("content-encoding"), "zstd");
        assert_eq!(zstd::decode_all(zstd.body()).unwrap(), plain.body());
        for answer in [&plain, &gzip, &zstd] {
            let vary = answer.header("vary").to_ascii_lowercase();
            assert!(vary.contains("accept-encoding") && vary.contains("accept"), "{answer}");
            // A strong tag names bytes; a client that unpacks may still present it.
            let request = server.to(Method::GET, &path).header("if-none-match", answer.etag());
            ask(request.header("accept-encoding", "gzip")).await.is(304);
        }
        assert!(gzip.body().len() < plain.body().len() / 4);
    }
}

#[tokio::test]
async fn an_answer_that_nobody_accepts_is_still_json() {
    let server = Server::start();
    let board = server.made("s").await;
    for accept in ["*/*", "application/json", "text/html, */*;q=0.1", "application/*"] {
        let answer = ask(board.to(Method::GET, "requests").header("accept", accept)).await;
        assert!(answer.is(200).header("content-type").starts_with("application/json"), "{accept}");
    }
}

#[tokio::test]
async fn the_weights_of_accept_choose_between_json_and_lines() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", "{}").await.is(201);
    for (accept, chosen) in [
        ("application/x-ndjson", "application/x-ndjson"),
        ("application/jsonl", "application/x-ndjson"),
        ("application/x-ndjson, application/json", "application/x-ndjson"),
        ("application/json;q=0.5, application/x-ndjson;q=0.6", "application/x-ndjson"),
        ("application/x-ndjson;q=0", "application/json"),
        ("application/x-ndjson;q=0.0, */*", "application/json"),
        ("application/x-ndjson;Q=0", "application/json"),
        ("application/x-ndjson;q=0.1, application/json", "application/json"),
        ("application/json, application/x-ndjson; q=0.9", "application/json"),
    ] {
        let answer = ask(board.to(Method::GET, "requests").header("accept", accept)).await;
        assert_eq!(answer.is(200).header("content-type"), chosen, "{accept}");
    }
}

#[tokio::test]
async fn where_it_listens_is_said_in_the_quietest_log() {
    for filter in ["error", "off"] {
        // The harness knows the address from that line alone.
        let server = Server::start_with(&["--log", filter]);
        server.get("/healthz").await.is(200);
    }
}

/// The log is written by a thread of its own, after the answers that it tells of.
#[tokio::test]
async fn a_server_that_ends_has_written_all_of_its_log() {
    const REQUESTS: usize = 200;
    let mut server = Server::start();
    let board = server.board("s");
    let ids: Vec<String> = join_all((0..REQUESTS).map(|_| board.get("")))
        .await
        .iter()
        .map(|answer| answer.header("x-request-id").to_owned())
        .collect();
    assert!(server.stop().success());
    let said = server.said("\"stopped\"");
    let lines: Vec<Value> =
        said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for id in ids {
        let of_it = lines.iter().filter(|line| line["request_id"] == id.as_str());
        assert_eq!(of_it.count(), 1, "{id}");
    }
}

#[tokio::test]
async fn head_answers_as_get_does_without_a_body() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", "{}").await.is(201);
    for tail in ["", "requests", "requests/1", "blackboard", "prompt"] {
        let get = board.get(tail).await;
        let head = ask(board.to(Method::HEAD, tail)).await;
        assert!(head.is(200).body().is_empty(), "{head}");
        assert_eq!((head.etag(), head.revision()), (get.etag(), get.revision()));
    }
}

#[test]
fn beyond_loopback_it_must_be_told_that_it_is_insecure() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.7:0"] {
        let refused = finished(&["serve", "--listen", address, "--data", data.to_str().unwrap()]);
        assert!(!refused.status.success(), "{address}");
        let said = [refused.stdout, refused.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("--insecure"), "{address}: {said}");
    }
}

#[test]
fn the_command_line_explains_itself() {
    for arguments in [
        vec!["--help"],
        vec!["--version"],
        vec!["serve", "--help"],
        vec!["check", "--help"],
        vec!["openapi", "--help"],
        vec!["healthcheck", "--help"],
    ] {
        let output = finished(&arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        assert!(!output.stdout.is_empty(), "{arguments:?}");
    }
    for arguments in
        [vec!["srve"], vec!["serve", "--lisen", "x"], vec!["serve", "--listen", "nowhere"]]
    {
        let output = finished(&arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(!output.stderr.is_empty() || !output.stdout.is_empty(), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_problem_is_as_the_rfc_has_it() {
    let server = Server::start();
    let answer = server.get("/v1/sessions/none/requests").await;
    let problem = answer.problem(404, "session-not-found");
    let members: Vec<&str> = problem.as_object().unwrap().keys().map(String::as_str).collect();
    for member in ["type", "title", "status", "detail", "instance", "code"] {
        assert!(members.contains(&member), "{members:?}");
    }
    assert!(problem["detail"].as_str().unwrap().contains("none"), "{problem}");
    assert!(problem["retryable"].is_boolean() || problem["retryable"] == Value::Null);
}

#[tokio::test]
async fn whatever_a_client_sends_its_line_in_the_log_is_short() {
    let mut server = Server::start();
    let long = "N".repeat(3_000);
    for (method, name) in [("M".repeat(9_000), "s"), ("GET".to_owned(), long.as_str())] {
        let head = format!(
            "{method} /v1/sessions/{name}/{name}?{name} HTTP/1.1\nX-Agent-Id: {long}\nUser-Agent: {name}\n\
             X-Request-Id: {name}\nTraceparent: {name}"
        );
        assert!((400..500).contains(&exchange(&server, &head, b"").status));
    }
    assert!(server.stop().success());
    let said = server.said("\"stopped\"");
    let lines = said.lines().filter(|line| line.contains("\"answered\""));
    let lines: Vec<Value> = lines
        .map(|line| {
            assert!(line.len() < 4 << 10, "{} bytes: {line}", line.len());
            serde_json::from_str(line).unwrap()
        })
        .collect();
    assert_eq!((&lines[0]["method"], &lines[1]["method"]), (&json!("other"), &json!("GET")));
    let cut = format!("{}…", "N".repeat(3 * 256));
    assert_eq!((&lines[1]["session"], &lines[1]["agent"]), (&json!(cut), &json!(cut)));
}
