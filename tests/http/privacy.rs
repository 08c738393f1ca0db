//! What clients send stays between them and the board: no log, no metric and no refusal repeats it.
//!
//! One server is asked for one of everything, well and badly, with a secret wherever a client can put a text.

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::answer::{Answer, ask};
use crate::canaries::{BISCUIT, TOKEN};
use crate::harness::{Server, encoded};
use crate::raw::exchange;

const SESSION: &str = "s";
const AGENT: &str = "AppAgent";

/// Within contents, as a value and as a member's name.
const CONTENT: &str = "secret-of-the-content";
const MEMBER: &str = "secret-of-the-member";

/// In a query, a header, a path that leads nowhere.
const QUERY: &str = "secret-of-the-query";
const HEADER: &str = "secret-of-the-header";
const PATH: &str = "secret-of-the-path";

const LOGGED_NEVER: [&str; 7] = [CONTENT, MEMBER, QUERY, HEADER, PATH, TOKEN, BISCUIT];

/// Headers that bring a text of the client's.
const HEADERS: [&str; 11] = [
    "accept",
    "idempotency-key",
    "if-match",
    "if-none-match",
    "last-event-id",
    "origin",
    "range",
    "referer",
    "traceparent",
    "x-api-key",
    "x-request-id",
];

/// Bodies of all kinds: good, of the wrong form, cut off, too deep, of no text at all.
fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let good = format!(r#"{{"text":"{CONTENT}","{MEMBER}":1}}"#);
    let deep = format!("{}\"{CONTENT}\"{}", "[".repeat(200), "]".repeat(200));
    let long = "x".repeat(1 << 20);
    let json = [
        good.clone(),
        format!("[{good},7]"),
        format!(r#""{CONTENT}""#),
        format!(r#"{{"text":"{CONTENT}"#),
        format!(r#"{{"text":"{CONTENT}",}}"#),
        format!(r#"{{"text":"{CONTENT}","n":1e999}}"#),
        format!(r#"{{"text":"{CONTENT}\ud800"}}"#),
        format!(r#"{{"d":{deep}}}"#),
        format!(r#"{{"text":"{CONTENT}{long}"}}"#),
        format!(r#"{{"answer":"{CONTENT}"}}"#),
        format!(r#"{{"settings":{{"ttl":"{CONTENT}"}},"labels":{{"{MEMBER}":"{CONTENT}"}}}}"#),
        format!(r#"{{"labels":{{"a":{{"{MEMBER}":"{CONTENT}"}}}}}}"#),
        format!(r#"{{"to":7,"at":"{CONTENT}"}}"#),
        format!(r#"{{"fence":"{CONTENT}","result":"{CONTENT}"}}"#),
        format!(r#"{{"ttl":"{CONTENT}"}}"#),
        format!(r#"{{"append":"{CONTENT}"}}"#),
        format!(r#"{{"add":"{CONTENT}"}}"#),
        format!(
            r#"{{"if":[{{"path":"a","equals":"{CONTENT}"}}],"then":[{{"put":"a","value":"{CONTENT}"}}]}}"#
        ),
        format!(r#"{{"then":[{{"put":"a","value":"{CONTENT}","ttl":"{CONTENT}"}}]}}"#),
        format!(r#"{{"questions":["{CONTENT}"],"requests":"{CONTENT}"}}"#),
        format!(r#"{{"image_str":"data:image/png;base64,{CONTENT}"}}"#),
    ];
    let mut bodies: Vec<(&str, Vec<u8>)> =
        json.into_iter().map(|text| ("application/json", text.into_bytes())).collect();
    let not_utf8 = [b"{\"text\":\"".as_slice(), CONTENT.as_bytes(), b"\xff\"}"].concat();
    bodies.extend([
        ("application/json", not_utf8),
        ("application/json", Vec::new()),
        ("application/x-ndjson", format!("{good}\n{{\"text\":\"{CONTENT}\n").into_bytes()),
        ("application/merge-patch+json", good.clone().into_bytes()),
        (
            "application/json-patch+json",
            format!(r#"[{{"op":"test","path":"/text","value":"{CONTENT}"}}]"#).into_bytes(),
        ),
        (
            "application/json-patch+json",
            format!(r#"[{{"op":"{MEMBER}","path":"/{MEMBER}","value":"{CONTENT}"}}]"#).into_bytes(),
        ),
        ("image/png", CONTENT.as_bytes().to_vec()),
        ("multipart/form-data; boundary=b", format!("--b\r\n{CONTENT}").into_bytes()),
        ("text/plain", good.into_bytes()),
    ]);
    bodies
}

/// Every operation of the document, with names in its path.
async fn operations(server: &Server) -> Vec<(Method, String)> {
    let document = server.get("/openapi.json").await.json();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        let parts = path.split('/').map(|part| match part.trim_matches(['{', '}']) {
            "session" => SESSION,
            "agent" => AGENT,
            "log" => "requests",
            "seq" => "1",
            "path" => "plan/step",
            "checkpoint" => "before",
            name => name,
        });
        let path = parts.collect::<Vec<_>>().join("/");
        for method in item.as_object().expect("methods").keys() {
            if let Ok(method) = Method::from_bytes(method.to_uppercase().as_bytes()) {
                operations.push((method, path.clone()));
            }
        }
    }
    assert!(operations.len() > 60, "{operations:?}");
    // What deletes the session comes last.
    operations.sort_by_key(|(method, path)| (*method == Method::DELETE, path.len()));
    operations
}

/// A refusal may name what it refuses, but not repeat what was to be stored.
fn check(answer: &Answer) {
    if answer.status() < 400 {
        return;
    }
    let mut told = answer.text().to_owned();
    // By the contract it shows what is there, to whoever may read it.
    if answer.status() == 412 {
        let mut problem = answer.json();
        problem.as_object_mut().expect("a problem").remove("current");
        told = problem.to_string();
    }
    for secret in [CONTENT, HEADER, TOKEN, BISCUIT] {
        assert!(!told.contains(secret), "{secret} is repeated: {answer}");
    }
}

async fn asked(request: RequestBuilder) {
    check(&ask(request.header("x-agent-id", encoded(AGENT))).await);
}

/// Entries, an image, an agent, a state and a checkpoint, so that routes find something.
async fn fill(server: &Server) {
    let board = server.board(SESSION);
    let item = format!(r#"{{"text":"{CONTENT}","{MEMBER}":["{CONTENT}"]}}"#);
    for tail in ["requests", "questions", "trajectories", "agents/AppAgent/memory"] {
        ask(board.by(AGENT, Method::POST, tail, &item)).await.is(201);
    }
    let png = include_bytes!("../corpus/images/rgb.png");
    ask(board.typed(Method::POST, "screenshots", "image/png", png.to_vec())).await.is(201);
    board.put("state/plan", &format!(r#"{{"step":"{CONTENT}"}}"#)).await.succeeded();
    board.post("checkpoints", r#"{"name":"before"}"#).await.succeeded();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_everything_leaves_no_secret_in_logs_metrics_or_refusals() {
    let mut server = Server::start();
    fill(&server).await;
    let query = format!("?{QUERY}={QUERY}&wait={QUERY}");
    for (method, path) in operations(&server).await {
        let streams = path.ends_with("/events");
        let request = |path: &str| server.to(method.clone(), path);
        asked(request(&format!("{path}{query}"))).await;
        for name in HEADERS {
            // A stream of events would not end.
            let refused = if streams { query.as_str() } else { "" };
            asked(request(&format!("{path}{refused}")).header(name, HEADER)).await;
        }
        if method != Method::GET {
            for (media_type, body) in bodies() {
                asked(request(&path).header("content-type", media_type).body(body)).await;
            }
            let named = request(&path).header("content-type", "application/json");
            asked(named.header("content-encoding", HEADER).body("{}")).await;
            fill(&server).await;
        }
    }
    for path in [format!("/{PATH}"), format!("/v1/sessions/s/requests/{PATH}")] {
        asked(server.to(Method::GET, &path)).await;
    }
    not_quite_http(&server);
    let metrics = server.get("/metrics").await;
    told_nothing(metrics.is(200).text());
    assert!(server.stop().success());
    told_nothing(&server.said("\"stopped\""));
}

/// What the connection itself refuses, or finds cut off.
fn not_quite_http(server: &Server) {
    for (head, body) in [
        (format!("GET /healthz?{QUERY} HTTP/1.1\nBad Header {HEADER}: 1"), String::new()),
        (format!("GET /healthz HTTP/9.9\nX: {HEADER}"), String::new()),
        (format!("GET /healthz HTTP/1.1\nHost: {HEADER}"), String::new()),
        (format!("GET /healthz HTTP/1.1\nX: {}", HEADER.repeat(4000)), String::new()),
        (
            "POST /v1/sessions/s/requests HTTP/1.1\nContent-Type: application/json\nContent-Length: 4"
                .to_owned(),
            format!("{CONTENT}{CONTENT}"),
        ),
        (
            "POST /v1/sessions/s/requests HTTP/1.1\nContent-Type: application/json\nTransfer-Encoding: chunked"
                .to_owned(),
            format!("{CONTENT}\r\n{CONTENT}"),
        ),
    ] {
        let answer = exchange(server, &head, body.as_bytes());
        assert!(!answer.body.contains(HEADER) && !answer.body.contains(CONTENT), "{}", answer.body);
    }
}

fn told_nothing(text: &str) {
    for secret in LOGGED_NEVER {
        if let Some(line) = text.lines().find(|line| line.contains(secret)) {
            panic!("{secret} is told:\n{line}");
        }
    }
}

#[tokio::test]
async fn lines_of_the_qa_file_are_not_told_where_they_are_none() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("qa.jsonl");
    let lines = [
        format!(r#"{{"question":"{CONTENT}","answer":"{CONTENT}"}}"#),
        format!(r#"["{CONTENT}"]"#),
        format!(r#"{{"question":"{CONTENT}"#),
        format!(r#"{{"question":"{CONTENT}","{MEMBER}":1e999}}"#),
    ];
    std::fs::write(&file, lines.join("\n")).unwrap();
    let mut server = Server::start_with(&["--qa-file", file.to_str().unwrap()]);
    let board = server.made(SESSION).await;
    assert_eq!(board.get("questions").await.json()["count"], 1);
    assert!(server.stop().success());
    let said = server.said("\"stopped\"");
    assert_eq!(said.matches("is no item").count(), 3, "{said}");
    told_nothing(&said);
}

#[tokio::test]
async fn names_that_would_turn_a_line_around_stand_in_it_as_numbers() {
    const HOSTILE: &str = "s\u{202e}\u{2028}\u{2066}e";
    let mut server = Server::start();
    let board = server.board(HOSTILE);
    ask(board.by(HOSTILE, Method::POST, "requests", "{}")).await.is(201);
    // Who asks for it is told by name, in a line of its own.
    ask(board.by(HOSTILE, Method::POST, "purge", "")).await.succeeded();
    assert!(server.stop().success());
    let said = server.said("\"stopped\"");
    assert!(said.is_ascii(), "{said}");
    let lines = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let purged = lines.filter(|line| line["message"] == "purged the history");
    let purged: Vec<Value> = purged.collect();
    assert!(purged.iter().any(|line| line["session"] == HOSTILE), "{said}");
}
