//! The state on the board and in prompts, and its size limits.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::ask;
use crate::harness::Server;
use crate::raw::exchange;
use crate::whole::{Whole, pointer, receipt, refuses};

const EMPTY: &str = r#"{"questions":[],"requests":[],"trajectories":[],"screenshots":[]"#;

#[tokio::test]
async fn the_board_shows_the_state_last_and_only_when_asked() {
    let server = Server::start();
    let board = server.made("s").await;
    let shown = board.get("blackboard?include=state").await;
    assert_eq!(shown.is(200).text(), format!("{EMPTY},\"state\":{{}}}}\n"));
    let before = [
        board.get("blackboard").await.etag(),
        board.get("prompt").await.etag(),
        board.get("requests").await.etag(),
    ];
    let tag = shown.etag();
    board.put("state/z", r#"{"b":1E5,"a":[-0]}"#).await.is(201);
    let shown = board.get("blackboard?include=state").await;
    assert_eq!(shown.text(), format!("{EMPTY},\"state\":{{\"z\":{{\"b\":1E5,\"a\":[-0]}}}}}}\n"));
    assert_ne!(shown.etag(), tag);
    let plain = board.get("blackboard").await;
    assert_eq!(plain.text(), format!("{EMPTY}}}\n"));
    let after =
        [plain.etag(), board.get("prompt").await.etag(), board.get("requests").await.etag()];
    assert_eq!(after, before, "what does not show the state keeps its tag");
    for query in ["include=nothing", "include=", "include=state,questions,nothing"] {
        let tail = format!("blackboard?{query}");
        board.get(&tail).await.problem(400, "invalid-parameter");
        refuses(&board, board.to(Method::DELETE, &tail), 400, "invalid-parameter").await;
    }
}

#[tokio::test]
async fn the_board_is_replaced_with_its_state_in_one_commit() {
    let server = Server::start();
    let board = server.board("s");
    let body = r#"{"requests":[{"r":1}],"state":{"z":1E5,"a":{"b":-0}}}"#;
    assert_eq!(board.put("blackboard", body).await.is(201).revision(), 1);
    assert_eq!(board.get("state").await.text(), "{\"z\":1E5,\"a\":{\"b\":-0}}\n");
    assert_eq!(board.lines("requests").await, [r#"{"r":1}"#]);
    let child = board.get("state/a").await.etag();
    // Absent it stays, present it is replaced, and what is equal keeps its tag.
    board.put("blackboard", r#"{"requests":[{"r":2}]}"#).await.is(200);
    assert_eq!(board.get("state").await.text(), "{\"z\":1E5,\"a\":{\"b\":-0}}\n");
    board.put("blackboard", r#"{"state":{"a":{"b":-0}}}"#).await.is(200);
    assert_eq!(board.get("state").await.text(), "{\"a\":{\"b\":-0}}\n");
    assert_eq!(board.get("state/a").await.etag(), child);
    assert!(board.lines("requests").await.is_empty());
    assert_eq!(board.get("").await.revision(), 3);
}

#[tokio::test]
async fn a_board_whose_state_cannot_be_is_refused_whole() {
    let server = Server::start();
    let (absent, there) = (server.board("absent"), server.board("there"));
    there.put("blackboard", r#"{"requests":[{}],"state":{"a":1}}"#).await.is(201);
    for board in [&absent, &there] {
        for state in ["5", "null", "[]", "\"x\"", "true"] {
            let body = format!("{{\"requests\":[{{\"r\":2}}],\"state\":{state}}}");
            let put = board.json(Method::PUT, "blackboard", &body);
            let refused = refuses(board, put, 422, "invalid-field").await;
            assert_eq!(pointer(&refused), "/state");
        }
        let deep = format!("{}{}", "{\"a\":".repeat(129), "1".to_owned() + &"}".repeat(129));
        for (state, code) in [(r#"{"a":1e400}"#, "unsupported-value"), (&deep, "too-deep")] {
            let body = format!("{{\"requests\":[{{\"r\":2}}],\"state\":{state}}}");
            refuses(board, board.json(Method::PUT, "blackboard", &body), 422, code).await;
        }
    }
}

#[tokio::test]
async fn clearing_the_board_keeps_the_state_unless_told() {
    let server = Server::start();
    let board = server.board("s");
    board.put("blackboard", r#"{"requests":[{}],"state":{"a":1}}"#).await.is(201);
    assert_eq!(board.delete("blackboard").await.is(200).revision(), 2);
    assert_eq!(board.get("state").await.text(), "{\"a\":1}\n");
    board.post("requests", "{}").await.is(201);
    assert_eq!(board.delete("blackboard?include=state").await.is(200).revision(), 4);
    let shown = board.get("blackboard?include=state").await;
    assert_eq!(shown.text(), format!("{EMPTY},\"state\":{{}}}}\n"));
    let again = board.delete("blackboard?include=state").await;
    assert_eq!(receipt(again.is(200))["revision"], 4);
}

fn texts(parts: &Value) -> Vec<&str> {
    let parts = parts.as_array().expect("parts").iter();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

#[tokio::test]
async fn the_prompt_shows_the_state_between_screenshots_and_memories() {
    let server = Server::start();
    let board = server.board("s");
    board.put("state", r#"{"z":1E5,"a":[1.50,-0,"é"]}"#).await.succeeded();
    board.post("agents/A/memory", r#"{"m":1}"#).await.is(201);
    board.post("screenshots", r#"{"metadata":{"shot":1},"image_str":""}"#).await.is(201);
    board.post("requests", r#"{"r":1}"#).await.is(201);
    let state = "[State:]\n {\"z\": 100000.0, \"a\": [1.5, 0, \"\\u00e9\"]}";
    let tail = "prompt?include=memory:A,state,screenshots,requests&images=none";
    let parts = board.get(tail).await.is(200).json();
    let shown = texts(&parts);
    let place = |text: &str| shown.iter().position(|part| part.contains(text));
    let order =
        ["[Blackboard:]", "[Request History:]", "\"shot\"", state, "[Memory of A:]"].map(place);
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{shown:?}");
    assert!(shown.contains(&state), "{shown:?}");

    let alone = board.get("prompt?include=state").await;
    assert_eq!(texts(&alone.is(200).json()), ["[Blackboard:]", state]);
    board.put("state/new", "1").await.is(201);
    assert_ne!(board.get("prompt?include=state").await.etag(), alone.etag());
    let plain = board.get("prompt").await;
    assert!(!plain.text().contains("[State:]"), "{plain}");
}

#[tokio::test]
async fn a_document_over_16_mib_is_refused() {
    let server = Server::start();
    let board = server.board("s");
    let five = json!("x".repeat(5 << 20)).to_string();
    for path in ["state/a", "state/b", "state/c"] {
        board.put(path, &five).await.is(201);
    }
    board.put("state/list", "[]").await.is(201);
    let before: Vec<String> = vec![
        board.get("state/a").await.etag(),
        board.get("state/list").await.etag(),
        board.get("").await.revision().to_string(),
    ];
    let append = format!("{{\"append\":[{five}]}}");
    let merge = format!("{{\"e\":{five}}}");
    let then = format!("{{\"then\":[{{\"put\":\"d\",\"value\":{five}}}]}}");
    for request in [
        board.json(Method::PUT, "state/d", &five),
        board.json(Method::PATCH, "state/list", &append),
        board.request(Method::PATCH, "state", &merge),
        board.json(Method::POST, "transactions", &then),
    ] {
        ask(request).await.problem(507, "session-full");
    }
    let after: Vec<String> = vec![
        board.get("state/a").await.etag(),
        board.get("state/list").await.etag(),
        board.get("").await.revision().to_string(),
    ];
    assert_eq!(after, before);
    board.get("state/d").await.problem(404, "path-not-found");
    // What makes room goes through, and then there is room.
    board.put("state/a", "1").await.is(200);
    board.put("state/d", &five).await.is(201);
    board.delete("state/d").await.is(200);
    board.put("state/e", &five).await.is(201);
}

#[tokio::test]
async fn a_body_over_its_limit_is_refused_before_it_is_sent() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", "{}").await.is(201);
    let before = Whole::of(&board).await;
    for (line, media_type) in [
        ("PUT /v1/sessions/s/state", "application/json"),
        ("PUT /v1/sessions/s/state/a", "application/json"),
        ("PATCH /v1/sessions/s/state/a", "application/json"),
        ("PATCH /v1/sessions/s/state/a", "application/merge-patch+json"),
        ("PUT /v1/sessions/s/agents/A", "application/json"),
        ("PATCH /v1/sessions/s/agents/A", "application/merge-patch+json"),
        ("PUT /v1/sessions/s/requests/1/claim", "application/json"),
        ("PUT /v1/sessions/s/requests/1/done", "application/json"),
        ("POST /v1/sessions/s/transactions", "application/json"),
    ] {
        let head = format!(
            "{line} HTTP/1.1\nX-Agent-ID: A\nContent-Type: {media_type}\nContent-Length: {}",
            1 << 30
        );
        exchange(&server, &head, b"").problem(413, "body-too-large");
    }
    assert_eq!(Whole::of(&board).await, before);
}

#[tokio::test]
async fn the_state_takes_only_the_parameters_it_knows() {
    let server = Server::start();
    let board = server.board("s");
    board.put("state/a", "1").await.is(201);
    let before = Whole::of(&board).await;
    for tail in ["state", "state/a", "state/new"] {
        for (method, body) in
            [(Method::GET, ""), (Method::PUT, "{}"), (Method::PATCH, "{}"), (Method::DELETE, "")]
        {
            for query in ["tll=5s", "unknown", "TTL=5s", "limit=1"] {
                let refused =
                    ask(board.request(method.clone(), &format!("{tail}?{query}"), body)).await;
                let problem = refused.problem(400, "unknown-parameter");
                let name = query.split('=').next().unwrap();
                assert!(problem.to_string().contains(name), "{problem}");
            }
            if method != Method::PUT {
                ask(board.request(method, &format!("{tail}?ttl=5s"), body)).await.is(400);
            }
        }
        board.get(&format!("{tail}?min_revision=1&min_revision=1")).await.is(400);
        board.put(&format!("{tail}?ttl=5s&ttl=5s"), "{}").await.problem(400, "invalid-parameter");
    }
    assert_eq!(Whole::of(&board).await, before);
}
