//! Hostile requests: paths to files, injected headers and events, rebound host names.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::ask;
use crate::follower::Follower;
use crate::harness::{Server, encoded};
use crate::raw::{RawAnswer, exchange};

/// Words that stand in a file which any process may read.
const OF_A_FILE: [&str; 2] = ["root:", "[package]"];

#[track_caller]
fn shows_no_file(answer: &RawAnswer, path: &str) {
    for words in OF_A_FILE {
        assert!(!answer.body.contains(words), "{path}: {}", answer.body);
    }
}

#[tokio::test]
async fn no_path_leads_out_of_the_docs() {
    let server = Server::start();
    for path in [
        "/docs/../../etc/passwd",
        "/docs/../../../../../../etc/passwd",
        "/docs/%2e%2e/%2e%2e/etc/passwd",
        "/docs/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/docs/..%2f..%2fCargo.toml",
        "/docs/..%5c..%5cetc%5cpasswd",
        "/docs/....//....//etc/passwd",
        "/docs//etc/passwd",
        "/docs/%2fetc%2fpasswd",
        "/docs/index.html%00.js",
        "/docs/swagger-ui.css%00",
        "/docs/%252e%252e%252fetc%252fpasswd",
        "/docs/file:%2f%2f%2fetc%2fpasswd",
        "/../etc/passwd",
        "/%2e%2e/etc/passwd",
        "//etc/passwd",
    ] {
        let answer = exchange(&server, &format!("GET {path} HTTP/1.1"), b"");
        assert_eq!(answer.status, 404, "{path}: {}", answer.head);
        shows_no_file(&answer, path);
    }
}

#[tokio::test]
async fn no_name_is_a_path() {
    let server = Server::start();
    for name in ["..", ".", "%2e%2e", "%2E", "..%2f..%2fetc", "a%2fb", "%00", "a%00b", "a%0Ab"] {
        for path in [
            format!("/v1/sessions/{name}"),
            format!("/v1/sessions/s/agents/{name}"),
            format!("/v1/sessions/s/agents/{name}/memory"),
        ] {
            let head =
                format!("PUT {path} HTTP/1.1\nContent-Type: application/json\nContent-Length: 2");
            let answer = exchange(&server, &head, b"{}");
            answer.problem(400, "invalid-name");
        }
    }
    let sessions = server.get("/v1/sessions").await.json();
    assert_eq!(sessions["sessions"], json!([]));
    // Nothing but the store's own files was made.
    let made: Vec<_> = std::fs::read_dir(server.data().parent().unwrap()).unwrap().collect();
    assert_eq!(made.len(), 1, "{made:?}");
}

#[tokio::test]
async fn names_that_look_like_paths_stay_names() {
    let server = Server::start();
    for name in
        ["...", "..a", "C:\\windows", "~root", "etc-passwd", "con", "\u{202e}txt", "a\u{2028}b"]
    {
        let board = server.made(name).await;
        assert_eq!(board.get("").await.json()["session"], name);
        board.delete("").await.succeeded();
    }
}

#[tokio::test]
async fn a_label_is_never_opened_or_fetched() {
    let server = Server::start();
    let board = server.board("s");
    for label in
        ["/etc/passwd", "../../Cargo.toml", "file:///etc/passwd", "http://127.0.0.1:9/x.png"]
    {
        let item = json!({ "metadata": null, "image_path": label, "image_str": label });
        board.post("screenshots", &item.to_string()).await.is(201);
    }
    for tail in ["screenshots?images=inline", "prompt", "prompt?format=anthropic", "blackboard"] {
        let shown = board.get(tail).await;
        let text = shown.is(200).text();
        for words in OF_A_FILE {
            assert!(!text.contains(words), "{tail}: {text}");
        }
    }
    board.get("screenshots/1/image").await.problem(404, "no-image");
}

#[tokio::test]
async fn control_characters_in_an_agents_header_are_refused() {
    let server = Server::start();
    server.made("s").await;
    for agent in
        ["a%0D%0AX-Evil:%20yes", "a%0Ab", "a%0db", "a%00b", "a%7Fb", "a%C2%85b", "a%1Bb", "a%2Fb"]
    {
        let head = format!(
            "POST /v1/sessions/s/requests HTTP/1.1\nContent-Type: application/json\nContent-Length: 2\nX-Agent-ID: {agent}"
        );
        exchange(&server, &head, b"{}").problem(400, "invalid-name");
    }
    for agent in ["a\rX-Evil: yes", "a\0b", "a\u{1b}[2Jb"] {
        let head = format!(
            "POST /v1/sessions/s/requests HTTP/1.1\nContent-Type: application/json\nContent-Length: 2\nX-Agent-ID: {agent}"
        );
        let answer = exchange(&server, &head, b"{}");
        assert_eq!(answer.status, 400, "{agent:?}: {}", answer.head);
    }
    assert_eq!(server.board("s").get("requests").await.json()["count"], 0);
}

#[tokio::test]
async fn nothing_that_a_client_names_becomes_a_header() {
    let server = Server::start();
    let name = "a; b=\"c\", d\u{e9}\u{2028}: x";
    let board = server.board(name);
    let made = board.post("requests", "{}").await;
    assert!(made.is(201).header("location").is_ascii());
    let text = encoded("x\r\nX-Evil: yes");
    for path in [
        format!("/v1/sessions/{}/requests?agent={text}", encoded(name)),
        format!("/v1/sessions/{}/state/{text}", encoded(name)),
        format!("/v1/sessions/{}/requests?{text}=1", encoded(name)),
        format!("/nowhere/{text}"),
        format!("/docs/{text}"),
    ] {
        let answer = exchange(&server, &format!("GET {path} HTTP/1.1"), b"");
        assert!(answer.status > 0, "{path}");
        assert!(!answer.head.to_lowercase().contains("x-evil"), "{}", answer.head);
    }
}

/// Texts that would end a frame, or begin another, where they stood in one as they are.
const SPLITTING: &str = "a\n\ndata: evil\r\n\r\nevent: evil\rid: 99\n\n: \u{0}\u{2028}\u{85}";

#[tokio::test]
async fn no_text_splits_an_event() {
    let server = Server::start();
    let board = server.board("s");
    let text = Value::from(SPLITTING).to_string();
    let mut all = server.to(Method::GET, "/v1/events").send().await.unwrap();
    let spread = format!("{{\r\n \"text\"\n:\r {text},\n\n {text}: 1\r\n}}");
    for (tail, body) in [
        ("requests", spread.clone()),
        ("trajectories", format!("[{spread}\r\n,\n\n{spread}]")),
        ("questions", text.clone()),
        ("agents/A/memory", spread.clone()),
        ("transactions", format!(r#"{{"then":[{{"put":"x","value":{spread}}}]}}"#)),
        ("checkpoints", r#"{"name":"data: x"}"#.to_owned()),
    ] {
        ask(board.by("data: id: 7", Method::POST, tail, &body)).await.succeeded();
    }
    board.put(&format!("state/{}", encoded(SPLITTING)), &spread).await.succeeded();
    board.put("agents/B", &format!(r#"{{"host":{text}}}"#)).await.succeeded();
    let head = board.get("").await.revision();

    // The follower takes apart each line of each frame, and knows no other.
    let mut follower = Follower::open(&board, "?after=0", None).await.unwrap();
    let mut last = 0;
    while last < head {
        let frame = follower.frame().await.expect("a frame");
        last = frame.id.expect("a revision");
        assert_ne!(frame.event, "evil");
        if !frame.data.is_empty() {
            let event: Value = serde_json::from_str(&frame.data).expect("one JSON text");
            assert_eq!(event["revision"], last);
        }
    }
    let mut noticed = String::new();
    while noticed.matches("\n\n").count() < usize::try_from(head).unwrap() {
        let piece = all.chunk().await.unwrap().expect("more notices");
        noticed.push_str(std::str::from_utf8(&piece).unwrap());
    }
    assert!(!noticed.contains("evil"), "{noticed}");
}

#[tokio::test]
async fn under_another_name_the_server_does_not_answer() {
    let server = Server::start();
    for (target, host, status) in [
        ("/healthz", "evil.example", 421),
        ("/healthz", "localhost.evil.example", 421),
        ("/healthz", "evil@localhost", 421),
        ("/healthz", "localhost:80@evil.example", 421),
        ("/healthz", "localhost,evil.example", 421),
        ("/healthz", "localhost:99999", 421),
        ("/healthz", "localhost:80:80", 421),
        ("/healthz", "localhost..", 421),
        ("/healthz", "127.1", 421),
        ("/healthz", "0x7f000001", 421),
        ("/healthz", "2130706433", 421),
        ("/healthz", "[::1]evil.example", 421),
        ("/healthz", "", 421),
        ("http://evil.example/healthz", "localhost", 421),
        ("http://evil@localhost/healthz", "localhost", 421),
        ("http://localhost/healthz", "evil.example", 421),
        ("/healthz", "localhost.", 200),
        ("/healthz", "LOCALHOST:1", 200),
        ("/healthz", "[::1]:8733", 200),
        ("http://localhost/healthz", "127.0.0.1", 200),
    ] {
        let answer = exchange(&server, &format!("GET {target} HTTP/1.1\nHost: {host}"), b"");
        assert_eq!(answer.status, status, "{target} at {host:?}: {}", answer.head);
    }
    for hosts in ["localhost\nHost: evil.example", "localhost\nHost: localhost"] {
        let answer = exchange(&server, &format!("GET /healthz HTTP/1.1\nHost: {hosts}"), b"");
        answer.problem(400, "invalid-parameter");
    }
}

#[tokio::test]
async fn the_page_of_another_site_can_do_nothing() {
    let server = Server::start();
    for origin in [
        "https://evil.example",
        "null",
        "file://",
        "http://localhost.evil.example",
        "http://evil@localhost",
        "chrome-extension://abc",
        "http://6.6.6.6",
        "",
    ] {
        let request = server.to(Method::PUT, "/v1/sessions/s").header("origin", origin);
        let request = request.header("content-type", "application/json").body("{}");
        ask(request).await.problem(403, "forbidden");
    }
    server.get("/v1/sessions/s").await.problem(404, "session-not-found");
}
