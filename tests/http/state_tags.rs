//! Tags of the state: changed with their value only, and usable as conditions.

use reqwest::Method;
use serde_json::json;

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::whole::{receipt, refuses};

const PATHS: [&str; 6] = ["state", "state/a", "state/a/x", "state/a/y", "state/b", "state/b/l"];

const DOCUMENT: &str = r#"{"a":{"x":{"deep":1},"y":2},"b":{"l":[1]}}"#;

async fn tags(board: &Board) -> Vec<String> {
    let mut tags = Vec::new();
    for tail in PATHS {
        let answer = board.get(tail).await;
        tags.push(if answer.status() == 200 { answer.etag() } else { String::new() });
    }
    tags
}

#[tokio::test]
async fn a_tag_changes_with_its_subtree_and_only_then() {
    let server = Server::start();
    let merge = "application/merge-patch+json";
    let json = "application/json";
    let writes: [(Method, &str, &str, &str, [bool; 6]); 17] = [
        (Method::PUT, "state/a/x/deep", json, "2", [true, true, true, false, false, false]),
        (
            Method::PUT,
            "state/a/x",
            json,
            r#"{"deep":1.0}"#,
            [true, true, true, false, false, false],
        ),
        (Method::PUT, "state/a/y", json, "3", [true, true, false, true, false, false]),
        (Method::PUT, "state/a/new", json, "3", [true, true, false, false, false, false]),
        (Method::PUT, "state/new", json, "3", [true, false, false, false, false, false]),
        // What an ancestor's write leaves equal keeps its tag.
        (
            Method::PUT,
            "state/a",
            json,
            r#"{"x":{"deep":1},"y":5}"#,
            [true, true, false, true, false, false],
        ),
        (
            Method::PUT,
            "state/a",
            json,
            r#"{"y":2,"x":{"deep":1},"z":0}"#,
            [true, true, false, false, false, false],
        ),
        (
            Method::PUT,
            "state",
            json,
            r#"{"b":{"l":[1]},"a":{"x":{"deep":1},"y":3}}"#,
            [true, true, false, true, false, false],
        ),
        (
            Method::PUT,
            "state",
            json,
            r#"{"a":1,"b":{"l":[1]}}"#,
            [true, true, true, true, false, false],
        ),
        (
            Method::PATCH,
            "state",
            merge,
            r#"{"a":{"y":9}}"#,
            [true, true, false, true, false, false],
        ),
        (Method::PATCH, "state/a", merge, r#"{"y":null}"#, [true, true, false, true, false, false]),
        (Method::PATCH, "state/a/y", json, r#"{"add":1}"#, [true, true, false, true, false, false]),
        (
            Method::PATCH,
            "state/b/l",
            json,
            r#"{"append":[2]}"#,
            [true, false, false, false, true, true],
        ),
        (Method::DELETE, "state/a/x", "", "", [true, true, true, false, false, false]),
        (Method::DELETE, "state/a/x/deep", "", "", [true, true, true, false, false, false]),
        (Method::DELETE, "state", "", "", [true; 6]),
        (Method::POST, "requests", json, "{}", [false; 6]),
    ];
    for (index, (method, tail, media_type, body, expected)) in writes.into_iter().enumerate() {
        let board = server.board(&format!("tags-{index}"));
        board.put("state", DOCUMENT).await.succeeded();
        let before = tags(&board).await;
        let request = match media_type {
            "" => board.to(method.clone(), tail),
            media_type => board.typed(method.clone(), tail, media_type, body),
        };
        let written = ask(request).await;
        assert_eq!(written.succeeded().revision(), 2, "{written}");
        let after = tags(&board).await;
        let changed: Vec<bool> =
            before.iter().zip(&after).map(|(before, after)| before != after).collect();
        assert_eq!(changed, expected, "{method} {tail} {body}");
        if method != Method::DELETE && tail.starts_with("state") {
            assert_eq!(written.etag(), board.get(tail).await.etag(), "{method} {tail} {body}");
        }
    }
}

#[tokio::test]
async fn the_same_text_again_commits_nothing() {
    let server = Server::start();
    let board = server.board("s");
    board.put("state", DOCUMENT).await.succeeded();
    let before = tags(&board).await;
    for (tail, body) in [
        ("state", DOCUMENT),
        ("state/a", r#"{"x":{"deep":1},"y":2}"#),
        ("state/a/x/deep", "1"),
        ("state/b/l", "[1]"),
    ] {
        let tag = board.get(tail).await.etag();
        let same = board.put(tail, body).await;
        assert_eq!((receipt(same.is(200)), same.etag()), (json!({"revision":1}), tag), "{tail}");
    }
    assert_eq!(tags(&board).await, before);
    for (tail, body) in [("state/a/y", "2.0"), ("state/b/l", "[1.0]"), ("state/a/y", "2")] {
        let tag = board.get(tail).await.etag();
        assert_ne!(board.put(tail, body).await.is(200).etag(), tag, "{tail} {body}");
    }
    assert_eq!(board.get("").await.revision(), 4);
}

#[tokio::test]
async fn a_tag_is_not_used_again_for_an_equal_value() {
    let server = Server::start();
    let board = server.board("s");
    let mut known = Vec::new();
    for round in 0..3 {
        board.put("state/a/b", "1").await.is(201);
        for tail in ["state", "state/a", "state/a/b"] {
            let tag = board.get(tail).await.etag();
            assert!(!known.contains(&tag), "{round}: {tail}");
            known.push(tag);
        }
        board.delete("state/a").await.is(200);
    }
    board.delete("").await.is(200);
    board.put("state/a/b", "1").await.is(201);
    for tail in ["state", "state/a", "state/a/b"] {
        assert!(!known.contains(&board.get(tail).await.etag()), "{tail}");
    }
}

#[tokio::test]
async fn a_read_is_304_while_its_tag_holds() {
    let server = Server::start();
    let board = server.board("s");
    board.put("state", DOCUMENT).await.succeeded();
    let read = async |tail: &str, tag: &str| -> Answer {
        ask(board.to(Method::GET, tail).header("if-none-match", tag)).await
    };
    for tail in PATHS {
        let tag = board.get(tail).await.etag();
        let same = read(tail, &tag).await;
        assert_eq!((same.is(304).body(), same.etag()), (b"".as_slice(), tag));
    }
    let (x, b) = (board.get("state/a/x").await.etag(), board.get("state/b").await.etag());
    board.put("state/a/x/deep", "7").await.is(200);
    read("state/b", &b).await.is(304);
    assert_eq!(read("state/a/x", &x).await.is(200).text(), "{\"deep\":7}\n");
    let head = board.get("").await.revision();
    for tail in ["state", "state/b/l"] {
        board.get(&format!("{tail}?min_revision={head}")).await.is(200);
        board.get(&format!("{tail}?min_revision=x")).await.problem(400, "invalid-parameter");
    }
}

#[tokio::test]
async fn a_writer_may_insist_on_the_tag_of_the_path() {
    let server = Server::start();
    let board = server.board("s");
    let writes: [(Method, &str, &str, &str); 8] = [
        (Method::PUT, "state/a/x", "application/json", "5"),
        (Method::PATCH, "state/a/x", "application/merge-patch+json", r#"{"n":1}"#),
        (Method::PATCH, "state/a/y", "application/json", r#"{"add":1}"#),
        (Method::PATCH, "state/b/l", "application/json", r#"{"append":[5]}"#),
        (Method::DELETE, "state/a/x", "", ""),
        (Method::PUT, "state", "application/json", "{}"),
        (Method::PATCH, "state", "application/merge-patch+json", r#"{"n":1}"#),
        (Method::DELETE, "state", "", ""),
    ];
    for (method, tail, media_type, body) in writes {
        board.put("state", DOCUMENT).await.succeeded();
        let stale = board.get(tail).await.etag();
        board.put("state", r#"{"a":{"x":{"deep":2},"y":3},"b":{"l":[2]}}"#).await.is(200);
        // A sibling's change does not matter.
        let present = board.get(tail).await;
        board.put("requests", "[{}]").await.succeeded();
        let write = |header: &'static str, tags: &str| {
            let request = match media_type {
                "" => board.to(method.clone(), tail),
                media_type => board.typed(method.clone(), tail, media_type, body),
            };
            request.header(header, tags)
        };
        for (header, tags) in
            [("if-match", stale.as_str()), ("if-match", "\"other\""), ("if-none-match", "*")]
        {
            let refused = refuses(&board, write(header, tags), 412, "precondition-failed").await;
            assert_eq!(refused.etag(), present.etag(), "{refused}");
            assert_eq!(refused.json()["current"], present.json(), "{refused}");
        }
        let listed = format!("\"other\", {}", present.etag());
        ask(write("if-match", &listed)).await.is(200);
        board.put("state", DOCUMENT).await.succeeded();
        ask(write("if-match", "*")).await.is(200);
    }
}

#[tokio::test]
async fn a_star_asks_whether_the_path_is_there() {
    let server = Server::start();
    let board = server.made("s").await;
    for tail in ["state/a", "state/b/c"] {
        for (method, media_type, body) in [
            (Method::PUT, "application/json", "1"),
            (Method::PATCH, "application/merge-patch+json", "1"),
            (Method::PATCH, "application/json", r#"{"add":1}"#),
        ] {
            let write = |header: &'static str, tags: &'static str| {
                board.typed(method.clone(), tail, media_type, body).header(header, tags)
            };
            for tags in ["*", "\"other\""] {
                let refused =
                    refuses(&board, write("if-match", tags), 412, "precondition-failed").await;
                assert_eq!(refused.json().get("current"), None, "{refused}");
            }
            ask(write("if-none-match", "*")).await.is(201);
            let refused =
                refuses(&board, write("if-none-match", "*"), 412, "precondition-failed").await;
            assert_eq!(refused.json()["current"], 1, "{refused}");
            board.delete(tail).await.is(200);
        }
    }
    // The document itself is there as soon as its session is.
    let root =
        |header: &'static str| board.json(Method::PUT, "state", r#"{"r":1}"#).header(header, "*");
    refuses(&board, root("if-none-match"), 412, "precondition-failed").await;
    ask(root("if-match")).await.is(200);
    let absent = server.board("absent");
    let only_there = absent.json(Method::PUT, "state/a", "1").header("if-match", "*");
    assert!(matches!(ask(only_there).await.status(), 404 | 412));
    absent.get("").await.problem(404, "session-not-found");
    let only_new = absent.json(Method::PUT, "state/a", "1").header("if-none-match", "*");
    ask(only_new).await.is(201);
}

#[tokio::test]
async fn a_refusal_shows_what_is_there_unless_it_is_large() {
    let server = Server::start();
    let board = server.board("s");
    for (length, shown) in [(65_000, true), (70_000, false)] {
        let value = json!("x".repeat(length));
        board.put("state/v", &value.to_string()).await.succeeded();
        let write = board.json(Method::PUT, "state/v", "1").header("if-match", "\"other\"");
        let refused = refuses(&board, write, 412, "precondition-failed").await;
        assert_eq!(refused.json().get("current").is_some(), shown, "{length}");
    }
    board.put("state/v", r#"{"z":1E5,"a":-0}"#).await.is(200);
    let write = board.json(Method::PUT, "state/v", "1").header("if-match", "\"other\"");
    let refused = ask(write).await;
    assert!(refused.is(412).text().contains(r#""current":{"z":1E5,"a":-0}"#), "{refused}");
}

#[tokio::test]
async fn a_new_deadline_is_a_commit_and_no_change_of_the_value() {
    let server = Server::start();
    let board = server.board("s");
    board.put("state/a/lease?ttl=1h", r#"{"by":"A"}"#).await.is(201);
    let tags = [board.get("state").await.etag(), board.get("state/a/lease").await.etag()];
    for (tail, revision) in [("state/a/lease?ttl=1h", 2), ("state/a/lease?ttl=36500d", 3)] {
        let renewed = board.put(tail, r#"{"by":"A"}"#).await;
        assert_eq!(receipt(renewed.is(200)), json!({"revision":revision}));
        let now = [board.get("state").await.etag(), board.get("state/a/lease").await.etag()];
        assert_eq!((now, renewed.etag()), (tags.clone(), tags[1].clone()));
    }
    // Without one the deadline ends, which is a change too; then there is nothing left to end.
    for _ in 0..2 {
        let kept = board.put("state/a/lease", r#"{"by":"A"}"#).await;
        assert_eq!(receipt(kept.is(200)), json!({"revision":4}));
        assert_eq!(kept.etag(), tags[1]);
    }
}
