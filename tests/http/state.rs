//! State of a session: one JSON document, read, written and deleted as sent.

use reqwest::Method;
use serde_json::json;

use crate::answer::ask;
use crate::harness::Server;
use crate::whole::{Whole, pointer, receipt, refuses};

/// A value of each kind.
pub(crate) const MIXED: &str = r#"{"n":1,"s":"x","l":[{"a":1},2],"z":null,"t":true,"o":{"in":{}}}"#;

#[tokio::test]
async fn the_state_of_a_new_session_is_an_empty_object() {
    let server = Server::start();
    let board = server.board("s");
    for tail in ["state", "state/a", "state/a/b"] {
        board.get(tail).await.problem(404, "session-not-found");
        board.delete(tail).await.problem(404, "session-not-found");
    }
    board.put("", "{}").await.is(201);
    let state = board.get("state").await;
    assert_eq!((state.is(200).text(), state.revision()), ("{}\n", 1));
    assert!(state.header("content-type").starts_with("application/json"), "{state}");
    let absent = board.get("state/a").await;
    absent.problem(404, "path-not-found");
    assert_eq!(absent.revision(), 1);
}

#[tokio::test]
async fn a_value_is_read_as_it_was_sent() {
    let server = Server::start();
    let board = server.board("s");
    for value in [
        "1E5",
        "1.50",
        "-0",
        "-0.0",
        "1e-07",
        "123456789012345678901234567890",
        "-9223372036854775809",
        "null",
        "true",
        "\"\"",
        "[]",
        "{}",
        "[[],{},null,1.0,1E+2]",
        r#""\u00e9é\/\n🛸""#,
        r#"{"z":1,"a":2,"m":{"y":[1E5,1.50],"b":null},"":0,"..":3}"#,
        r#"{"to_dict":1,"__class__":{"step":2},"$serde_json::private::Number":"1"}"#,
    ] {
        for tail in ["state/v", "state/in/here"] {
            board.put(tail, value).await.succeeded();
            let shown = board.get(tail).await;
            assert_eq!(shown.is(200).text(), format!("{value}\n"));
        }
    }
    let digits = "7".repeat(4300);
    board.put("state/v", &digits).await.is(200);
    assert_eq!(board.get("state/v").await.text().trim_end(), digits);
}

#[tokio::test]
async fn members_keep_their_order_and_new_ones_come_last() {
    let server = Server::start();
    let board = server.board("s");
    board.put("state", r#"{"z":{"b":1E5,"a":[1.50,-0]},"a":null}"#).await.succeeded();
    for (tail, expected) in [
        ("state", r#"{"z":{"b":1E5,"a":[1.50,-0]},"a":null}"#),
        ("state/z", r#"{"b":1E5,"a":[1.50,-0]}"#),
        ("state/z/b", "1E5"),
        ("state/z/a", "[1.50,-0]"),
        ("state/a", "null"),
    ] {
        assert_eq!(board.get(tail).await.is(200).text().trim_end(), expected, "{tail}");
    }
    board.put("state/z/c", "0").await.is(201);
    board.put("state/z/b", "7.0").await.is(200);
    board.put("state/m/n", "{}").await.is(201);
    let expected = r#"{"z":{"b":7.0,"a":[1.50,-0],"c":0},"a":null,"m":{"n":{}}}"#;
    assert_eq!(board.get("state").await.text().trim_end(), expected);
}

#[tokio::test]
async fn put_says_whether_it_made_the_path() {
    let server = Server::start();
    let board = server.board("s");
    let made = board.put("state/devices/linux/ready", "true").await;
    assert_eq!(receipt(made.is(201)), json!({"revision":1}));
    assert!(
        made.header("location").ends_with("/v1/sessions/s/state/devices/linux/ready"),
        "{made}"
    );
    assert_eq!(made.etag(), board.get("state/devices/linux/ready").await.etag());
    let changed = board.put("state/devices/linux/ready", "false").await;
    assert_eq!(receipt(changed.is(200)), json!({"revision":2}));
    assert_eq!(changed.header("location"), "");
    // What a path leads through was made with it, and is there.
    board.put("state/devices/linux", r#"{"ready":1}"#).await.is(200);
    let root = board.put("state", r#"{"b":1,"a":2}"#).await;
    assert_eq!(
        (receipt(root.is(200)), root.etag()),
        (json!({"revision":4}), board.get("state").await.etag())
    );
    assert_eq!(board.get("state").await.text(), "{\"b\":1,\"a\":2}\n");
}

#[tokio::test]
async fn the_root_is_an_object_and_stays_one() {
    let server = Server::start();
    let board = server.board("s");
    for body in ["5", "null", "true", "\"x\"", "[]", "[[\"a\",1]]"] {
        refuses(&board, board.json(Method::PUT, "state", body), 422, "invalid-field").await;
        let merge = board.request(Method::PATCH, "state", body);
        refuses(&board, merge, 422, "invalid-field").await;
    }
    board.put("state", r#"{"a":1}"#).await.succeeded();
    for body in ["5", "null", "[]"] {
        refuses(&board, board.json(Method::PUT, "state", body), 422, "invalid-field").await;
        let merge = board.request(Method::PATCH, "state", body);
        refuses(&board, merge, 422, "invalid-field").await;
    }
}

#[tokio::test]
async fn a_deleted_path_is_gone_and_its_parent_stays() {
    let server = Server::start();
    let board = server.board("s");
    board.put("state", r#"{"a":{"b":{"c":1},"d":2},"e":3}"#).await.succeeded();
    let deleted = board.delete("state/a/b").await;
    assert_eq!(receipt(deleted.is(200)), json!({"revision":2}));
    board.get("state/a/b").await.problem(404, "path-not-found");
    board.get("state/a/b/c").await.problem(404, "path-not-found");
    board.delete("state/a/d").await.is(200);
    assert_eq!(board.get("state").await.text(), "{\"a\":{},\"e\":3}\n");
    assert_eq!(receipt(board.delete("state").await.is(200)), json!({"revision":4}));
    assert_eq!(board.get("state").await.text(), "{}\n");
    // An empty document has nothing to lose.
    assert_eq!(receipt(board.delete("state").await.is(200)), json!({"revision":4}));
}

#[tokio::test]
async fn the_first_write_makes_the_session() {
    let server = Server::start();
    for (index, (tail, patch, body)) in [
        ("state", "", r#"{"a":1}"#),
        ("state/a/b", "", "null"),
        ("state", "application/merge-patch+json", r#"{"a":1}"#),
        ("state/a", "application/merge-patch+json", "5"),
        ("state/a", "application/json", r#"{"add":1}"#),
        ("state/a/b", "application/json", r#"{"append":[1]}"#),
    ]
    .into_iter()
    .enumerate()
    {
        let board = server.board(&format!("first-{index}"));
        let request = match patch {
            "" => board.json(Method::PUT, tail, body),
            patch => board.typed(Method::PATCH, tail, patch, body),
        };
        assert_eq!(ask(request).await.succeeded().revision(), 1);
        assert_eq!(board.get("").await.is(200).revision(), 1);
    }
    let strict = Server::start_with(&["--auto-create", "false"]);
    let board = strict.board("s");
    board.put("state/a", "1").await.problem(404, "session-not-found");
    board.merge("state/a", "1").await.problem(404, "session-not-found");
    board.patch("state/a", r#"{"add":1}"#).await.problem(404, "session-not-found");
    board.get("").await.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_refused_write_changes_nothing_and_makes_no_session() {
    let server = Server::start();
    let digits = "7".repeat(4301);
    let refused: [(&str, u16, &str); 12] = [
        ("", 400, "invalid-json"),
        ("{", 400, "invalid-json"),
        ("01", 400, "invalid-json"),
        ("NaN", 400, "invalid-json"),
        ("{\"a\":1}x", 400, "invalid-json"),
        ("'x'", 400, "invalid-json"),
        ("1e400", 422, "unsupported-value"),
        (r#"{"v":[1,-1.8e308]}"#, 422, "unsupported-value"),
        (r#""\ud83d""#, 422, "unsupported-value"),
        (r#"{"\ude00":1}"#, 422, "unsupported-value"),
        (&digits, 422, "unsupported-value"),
        ("[1e400]", 422, "unsupported-value"),
    ];
    let (absent, there) = (server.board("absent"), server.board("there"));
    there.put("state/v", MIXED).await.is(201);
    for (body, status, code) in refused {
        for board in [&absent, &there] {
            for tail in ["state/v", "state/new/path"] {
                refuses(board, board.json(Method::PUT, tail, body), status, code).await;
                let merge = board.typed(
                    Method::PATCH,
                    tail,
                    "application/merge-patch+json",
                    body.to_owned(),
                );
                refuses(board, merge, status, code).await;
            }
        }
    }
    let deep = there.put("state/v", r#"{"a":[0,{"b/c":1e400}]}"#).await;
    assert_eq!(pointer(&deep), "/a/1/b~1c");
}

#[tokio::test]
async fn the_state_outlives_a_kill() {
    let mut server = Server::start();
    let board = server.board("s");
    board.put("state/z", r#"{"b":1E5,"a":[1.50,-0]}"#).await.is(201);
    board.put("state/a~1b?ttl=1d", "null").await.is(201);
    board.patch("state/n", r#"{"add":123456789012345678901234567890}"#).await.is(201);
    board.delete("state/z/b").await.is(200);
    let before = Whole::of(&board).await;
    server.kill();
    server.start_again();
    let board = server.board("s");
    let expected = "{\"z\":{\"a\":[1.50,-0]},\"a/b\":null,\"n\":123456789012345678901234567890}\n";
    assert_eq!(board.get("state").await.text(), expected);
    assert_eq!(Whole::of(&board).await, before);
}
