//! Paths of the state: keys, invalid forms, depth.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, encoded};
use crate::raw::exchange;
use crate::state::MIXED;
use crate::whole::{Whole, made_at, refuses};

#[tokio::test]
async fn any_string_may_be_a_key() {
    let server = Server::start();
    let board = server.board("s");
    let keys = [
        "a/b",
        "a b",
        "é",
        "日本語",
        "🛸",
        "~",
        "~1",
        "~0/",
        "%",
        "%2F",
        "a+b",
        "a,b",
        "...",
        "0",
        "-",
        "?q=1#f",
        "\"",
        "back\\slash",
        "include",
        "[0]",
        "$",
        "*",
        "a.b",
    ];
    for key in keys {
        let segment = encoded(&segment(key));
        let made = board.put(&format!("state/{segment}/{segment}"), "1.0").await;
        assert_eq!(made_at(&server, &made).await.is(200).text(), "1.0\n", "{key}");
    }
    let state = board.get("state").await.json();
    let expected: Value = keys.iter().map(|&key| (key.to_owned(), json!({key:1.0}))).collect();
    assert_eq!(state, expected);
    let made = board.put("state/a~1b%2Fc/%7E0", "1").await;
    assert!(made.header("location").ends_with("/v1/sessions/s/state/a~1b/c/~0"), "{made}");
    for key in keys {
        board.delete(&format!("state/{}", encoded(&segment(key)))).await.is(200);
    }
    assert_eq!(board.get("state").await.text(), "{}\n");
}

/// Writes a key as a segment of a path (RFC 6901).
fn segment(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[tokio::test]
async fn an_encoded_slash_separates() {
    let server = Server::start();
    let board = server.board("s");
    board.put("state/tasks%2Ft1", r#"{"n":1}"#).await.is(201);
    assert_eq!(board.get("state").await.json(), json!({"tasks":{"t1":{"n":1}}}));
    for path in ["tasks/t1/n", "tasks%2Ft1%2fn", "tasks/t1%2Fn"] {
        assert_eq!(board.get(&format!("state/{path}")).await.is(200).json(), json!(1), "{path}");
    }
    board.get("state/tasks~1t1").await.problem(404, "path-not-found");
}

#[tokio::test]
async fn a_path_that_cannot_be_is_refused_by_every_method() {
    let server = Server::start();
    let board = server.board("s");
    board.put("state", r#"{"a":{"b":1}}"#).await.succeeded();
    let before = Whole::of(&board).await;
    let no_name = [
        "", "/a", "a//b", "a/", "a/b/", ".", "..", "a/.", "a/..", "%2e", "%2E%2E", ".%2e/a",
        "a%2F", "%2Fa", "a%2F..", "~", "~2", "a/%7E", "a~", "~~0",
    ];
    let no_text = ["%", "a%2", "%zz", "%FF", "a/%C3", "%ED%A0%80", "a%/b"];
    let named = no_name.map(|path| (path, "invalid-name"));
    let encoded = no_text.map(|path| (path, "invalid-encoding"));
    for (path, code) in named.into_iter().chain(encoded) {
        for (method, media_type, body) in [
            ("GET", "", ""),
            ("PUT", "application/json", "1"),
            ("PATCH", "application/merge-patch+json", "{}"),
            ("PATCH", "application/json", r#"{"add":1}"#),
            ("DELETE", "", ""),
        ] {
            let typed = if body.is_empty() {
                String::new()
            } else {
                format!("\nContent-Type: {media_type}")
            };
            let length = body.len();
            let head = format!(
                "{method} /v1/sessions/s/state/{path} HTTP/1.1{typed}\nContent-Length: {length}"
            );
            exchange(&server, &head, body.as_bytes()).problem(400, code);
        }
    }
    assert_eq!(Whole::of(&board).await, before);
}

#[tokio::test]
async fn a_path_leads_through_objects_only() {
    let server = Server::start();
    let board = server.board("s");
    board.put("state", MIXED).await.succeeded();
    for path in ["n/x", "s/x", "s/0", "l/0", "l/0/a", "l/-", "l/length", "z/x", "t/x/y"] {
        let tail = format!("state/{path}");
        board.get(&tail).await.problem(404, "path-not-found");
        let put = board.json(Method::PUT, &tail, "1");
        refuses(&board, put, 409, "not-an-object").await;
        let merge = board.request(Method::PATCH, &tail, "{}");
        refuses(&board, merge, 409, "not-an-object").await;
        let add = board.json(Method::PATCH, &tail, r#"{"add":1}"#);
        refuses(&board, add, 409, "not-an-object").await;
        let append = board.json(Method::PATCH, &tail, r#"{"append":[1]}"#);
        refuses(&board, append, 409, "not-an-object").await;
        board.delete(&tail).await.refused();
    }
    for path in ["absent", "o/absent", "o/in/absent", "absent/deeper"] {
        let tail = format!("state/{path}");
        board.get(&tail).await.problem(404, "path-not-found");
        refuses(&board, board.to(Method::DELETE, &tail), 404, "path-not-found").await;
    }
    assert_eq!(board.get("state").await.text().trim_end(), MIXED);
}

#[tokio::test]
async fn path_and_value_have_128_levels_together() {
    let server = Server::start();
    let board = server.board("s");
    let path = |segments: usize| format!("state{}", "/a".repeat(segments));
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let object = |levels: usize| format!("{{\"a\":{}}}", nested(levels - 1));
    let refused = async |method: Method, tail: &str, body: &str| {
        refuses(&board, board.request(method, tail, body), 422, "too-deep").await;
    };
    for (segments, levels) in
        [(1, 128), (1, 1_000), (60, 69), (127, 2), (128, 1), (129, 0), (500, 0)]
    {
        let value = if levels == 0 { "1".to_owned() } else { nested(levels) };
        refused(Method::PUT, &path(segments), &value).await;
        refused(Method::PATCH, &path(segments), &value).await;
    }
    refused(Method::PUT, "state", &object(129)).await;
    refused(Method::PATCH, "state", &object(129)).await;
    for (segments, levels) in [(1, 127), (60, 68), (127, 1), (128, 0)] {
        let value = if levels == 0 { "1".to_owned() } else { nested(levels) };
        let tail = path(segments);
        board.put(&tail, &value).await.is(201);
        assert_eq!(board.get(&tail).await.is(200).text().trim_end(), value);
        board.get("prompt?include=state").await.is(200);
        board.delete("state").await.is(200);
    }
    board.put("state", &object(128)).await.is(200);
    board.put("state", "{}").await.is(200);
    board.put(&path(127), "[]").await.is(201);
    let append = board.json(Method::PATCH, &path(127), r#"{"append":[[]]}"#);
    refuses(&board, append, 422, "too-deep").await;
    board.patch(&path(127), r#"{"append":[1]}"#).await.is(200);
}
