//! Forks, restores and purges.

use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::whole::{made_at, pointer, receipt, refuses};

/// A session with a commit or two of each kind, at revision 6; `then` names revision 3.
async fn lived(server: &Server) -> Board {
    let board = server.board("s");
    board.post("requests", r#"[{"n":1E5},{"n":2}]"#).await.is(201);
    board.put("state/a", r#"{"b":1}"#).await.is(201);
    board.post("checkpoints", r#"{"name":"then"}"#).await.is(201);
    board.put("requests/1", r#"{"n":3}"#).await.is(200);
    board.delete("state/a/b").await.is(200);
    ask(board.by("Ann", Method::PUT, "agents/Ann", r#"{"type":"AppAgent"}"#)).await.is(201);
    board
}

fn post(board: &Board, verb: &str, body: &serde_json::Value) -> RequestBuilder {
    board.json(Method::POST, verb, &body.to_string())
}

async fn dictionary(board: &Board) -> String {
    board.get("blackboard?include=state").await.is(200).text().to_owned()
}

/// No session of this name was made.
async fn is_absent(server: &Server, session: &str) {
    server.board(session).get("").await.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_fork_has_the_board_as_it_is_and_goes_its_own_way() {
    let server = Server::start();
    let board = lived(&server).await;
    let forked = ask(post(&board, "fork", &json!({"to":"f é"}))).await;
    let body = receipt(forked.is(201));
    assert_eq!(body, json!({"revision":7,"session":"f é","at":6}));
    assert!(forked.header("location").ends_with("/v1/sessions/f%20%C3%A9"), "{forked}");
    let shown = made_at(&server, &forked).await;
    assert_eq!((shown.etag(), &shown.json()["session"]), (forked.etag(), &json!("f é")));

    let fork = server.board("f é");
    assert_eq!(dictionary(&fork).await, dictionary(&board).await);
    assert_eq!(fork.get("requests").await.json(), board.get("requests").await.json());
    assert_eq!(fork.get("agents/Ann").await.text(), board.get("agents/Ann").await.text());
    assert_ne!(fork.get("requests").await.etag(), board.get("requests").await.etag());
    let before = dictionary(&board).await;
    let written = fork.post("requests", r#"{"n":4}"#).await;
    assert_eq!((written.is(201).revision(), written.seqs()), (8, vec![3]));
    assert_eq!((dictionary(&board).await, board.get("").await.revision()), (before, 6));
    board.delete("").await.is(200);
    assert_eq!(fork.get("requests").await.is(200).json()["count"], 3);
}

#[tokio::test]
async fn a_fork_may_begin_at_any_revision_that_is_kept() {
    let server = Server::start();
    let board = lived(&server).await;
    for (to, at, revision) in [
        ("a", json!(3), 3),
        ("b", json!("then"), 3),
        ("c", json!("3"), 3),
        ("d", json!(1), 1),
        ("e", json!(6), 6),
        ("f", json!(3.0), 3),
    ] {
        let forked = ask(post(&board, "fork", &json!({"to":to,"at":at}))).await;
        let body = receipt(forked.is(201));
        assert_eq!(
            (&body["at"], &body["revision"]),
            (&json!(revision), &json!(revision + 1)),
            "{to}"
        );
        let lines = server.board(to).lines("requests").await;
        let first = if revision < 4 { r#"{"n":1E5}"# } else { r#"{"n":3}"# };
        assert_eq!(lines, [first, r#"{"n":2}"#], "{to}");
    }
    let state = server.board("b").get("state").await;
    assert_eq!(state.text(), "{\"a\":{\"b\":1}}\n");
}

#[tokio::test]
async fn a_fork_has_the_images_of_its_board() {
    let server = Server::start();
    let board = server.board("s");
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let screenshot = json!({"image_str": format!("data:image/png;base64,{png}")}).to_string();
    board.post("screenshots", &screenshot).await.is(201);
    ask(post(&board, "fork", &json!({"to":"f"}))).await.is(201);
    let bytes = board.get("screenshots/1/image").await.is(200).body().to_vec();
    board.delete("").await.is(200);
    let fork = server.board("f");
    assert_eq!(fork.get("screenshots/1/image").await.is(200).body(), bytes);
}

#[tokio::test]
async fn a_fork_takes_no_name_that_is_taken() {
    let server = Server::start();
    let board = lived(&server).await;
    let other = server.made("other").await;
    for to in ["other", "s"] {
        let fork = post(&board, "fork", &json!({ "to": to }));
        refuses(&server.board(to), fork, 409, "session-exists").await;
    }
    // A name that had a session goes on above its last revision.
    for _ in 0..9 {
        other.post("requests", "{}").await.is(201);
    }
    let last = other.delete("").await.is(200).revision();
    let forked = ask(post(&board, "fork", &json!({"to":"other"}))).await;
    assert_eq!((last, forked.is(201).revision()), (11, 12));
    assert_eq!(other.get("requests").await.json()["count"], 2);
}

#[tokio::test]
async fn what_names_no_fork_or_no_point_is_refused_with_its_place() {
    let server = Server::start();
    let board = lived(&server).await;
    let long = format!(r#"{{"to":"{}"}}"#, "x".repeat(257));
    for (verb, body, code, place) in [
        ("fork", "{}", "invalid-field", ""),
        ("fork", "[]", "invalid-field", ""),
        ("fork", r#"{"at":1}"#, "invalid-field", ""),
        ("fork", r#"{"to":5}"#, "invalid-field", "/to"),
        ("fork", r#"{"to":null}"#, "invalid-field", "/to"),
        ("fork", r#"{"to":""}"#, "invalid-field", "/to"),
        ("fork", r#"{"to":".."}"#, "invalid-field", "/to"),
        ("fork", r#"{"to":"a/b"}"#, "invalid-field", "/to"),
        ("fork", &long, "invalid-field", "/to"),
        ("fork", r#"{"to":"f","at":null}"#, "invalid-field", "/at"),
        ("fork", r#"{"to":"f","at":-1}"#, "invalid-field", "/at"),
        ("fork", r#"{"to":"f","at":1.5}"#, "invalid-field", "/at"),
        ("fork", r#"{"to":"f","at":""}"#, "invalid-field", "/at"),
        ("fork", r#"{"to":"f","at":"a/b"}"#, "invalid-field", "/at"),
        ("fork", r#"{"to":"f","at":[3]}"#, "invalid-field", "/at"),
        ("fork", r#"{"to":"f","from":3}"#, "unknown-field", "/from"),
        ("restore", "{}", "invalid-field", ""),
        ("restore", "3", "invalid-field", ""),
        ("restore", r#"{"at":true}"#, "invalid-field", "/at"),
        ("restore", r#"{"at":"."}"#, "invalid-field", "/at"),
        ("restore", r#"{"to":"f"}"#, "unknown-field", "/to"),
    ] {
        let refused = refuses(&board, board.json(Method::POST, verb, body), 422, code).await;
        assert_eq!(pointer(&refused), place, "{body}");
    }
    for verb in ["fork", "restore"] {
        refuses(&board, board.to(Method::POST, verb), 415, "unsupported-media-type").await;
        let get = board.to(Method::GET, verb);
        refuses(&board, get, 405, "method-not-allowed").await;
    }
    is_absent(&server, "f").await;
}

#[tokio::test]
async fn a_point_that_is_not_there_is_not_found() {
    let server = Server::start();
    let board = lived(&server).await;
    for (at, code) in [
        ("7", "revision-not-found"),
        ("0", "revision-not-found"),
        ("99999999999999999999", "revision-not-found"),
        (r#""7""#, "revision-not-found"),
        (r#""Then""#, "checkpoint-not-found"),
    ] {
        let fork = board.json(Method::POST, "fork", &format!(r#"{{"to":"f","at":{at}}}"#));
        refuses(&board, fork, 404, code).await;
        let restore = board.json(Method::POST, "restore", &format!(r#"{{"at":{at}}}"#));
        refuses(&board, restore, 404, code).await;
    }
    is_absent(&server, "f").await;
    let absent = server.board("absent");
    for (verb, body) in [("fork", json!({"to":"f"})), ("restore", json!({"at":1}))] {
        ask(post(&absent, verb, &body)).await.problem(404, "session-not-found");
    }
    ask(absent.to(Method::POST, "purge")).await.problem(404, "session-not-found");
    is_absent(&server, "f").await;
    is_absent(&server, "absent").await;
}

#[tokio::test]
async fn a_repeated_fork_is_answered_even_without_its_source() {
    let server = Server::start();
    let board = lived(&server).await;
    let fork = |to: &str| {
        post(&board, "fork", &json!({"to":to,"at":"then"})).header("idempotency-key", "k")
    };
    let first = ask(fork("f")).await;
    first.is(201);
    server.board("f").post("requests", "{}").await.is(201);
    board.delete("checkpoints/then").await.is(200);
    for _ in 0..2 {
        let again = ask(fork("f")).await;
        assert_eq!((again.is(201).text(), again.etag()), (first.text(), first.etag()));
        assert_eq!(again.header("idempotency-replayed"), "true");
        if board.get("").await.status() == 200 {
            board.delete("").await.is(200);
        }
    }
    let other = post(&board, "fork", &json!({"to":"f"})).header("idempotency-key", "k");
    ask(other).await.problem(422, "idempotency-key-reused");
    assert_eq!(server.board("f").get("requests").await.json()["count"], 3);
}

async fn restored(board: &Board, at: serde_json::Value) -> Answer {
    ask(post(board, "restore", &json!({ "at": at }))).await
}

#[tokio::test]
async fn a_restore_is_a_commit_and_can_be_undone() {
    let server = Server::start();
    let board = lived(&server).await;
    let now = dictionary(&board).await;
    board.post("requests", r#"{"n":9}"#).await.is(201);
    let back = restored(&board, json!("then")).await;
    assert_eq!(receipt(back.is(200)), json!({"revision":8}));
    assert_eq!(back.etag(), board.get("").await.etag());
    assert_eq!(board.lines("requests").await, [r#"{"n":1E5}"#, r#"{"n":2}"#]);
    assert_eq!(board.get("state").await.text(), "{\"a\":{\"b\":1}}\n");
    assert_eq!(board.get("agents").await.json()["count"], 0);
    // No seq is used again, and the checkpoint stays.
    assert_eq!(board.post("requests", "{}").await.is(201).seqs(), [4]);
    assert_eq!(board.get("checkpoints").await.json()["checkpoints"][0]["revision"], 3);

    restored(&board, json!(6)).await.is(200);
    assert_eq!(dictionary(&board).await, now);
    assert_eq!(board.get("agents/Ann").await.is(200).json()["type"], "AppAgent");
    let same = restored(&board, json!(10)).await;
    assert_eq!(same.is(200).revision(), 10);
}

#[tokio::test]
async fn a_restore_has_terms_as_every_write() {
    let server = Server::start();
    let board = lived(&server).await;
    let tag = board.get("").await.etag();
    board.post("requests", "{}").await.is(201);
    let restore = || post(&board, "restore", &json!({"at":"then"}));
    refuses(&board, restore().header("if-match", &tag), 412, "precondition-failed").await;
    refuses(&board, restore().header("if-none-match", "*"), 412, "precondition-failed").await;
    let first = ask(restore().header("idempotency-key", "k")).await;
    first.is(200);
    board.post("requests", r#"{"later":true}"#).await.is(201);
    board.delete("checkpoints/then").await.is(200);
    let again = ask(restore().header("idempotency-key", "k")).await;
    assert_eq!((again.is(200).text(), again.etag()), (first.text(), first.etag()));
    assert!(board.lines("requests").await.contains(&r#"{"later":true}"#.to_owned()));
}

#[tokio::test]
async fn a_purge_forgets_what_was_before() {
    let mut server = Server::start();
    let board = lived(&server).await;
    let (now, tag) = (dictionary(&board).await, board.get("requests").await.etag());
    let purged = ask(board.to(Method::POST, "purge")).await;
    assert_eq!(receipt(purged.is(200)), json!({"revision":6}));
    let shown = board.get("").await.json();
    assert_eq!((&shown["revision"], &shown["oldest_revision"]), (&json!(6), &json!(6)));
    assert_eq!((dictionary(&board).await, board.get("requests").await.etag()), (now.clone(), tag));
    for at in [json!(3), json!("then"), json!(5)] {
        for (verb, body) in [("restore", json!({ "at": at })), ("fork", json!({"to":"f","at":at}))]
        {
            let gone = refuses(&board, post(&board, verb, &body), 410, "history-compacted").await;
            assert_eq!(gone.json()["oldest_revision"], 6);
        }
    }
    board.post("requests", "{}").await.is(201);
    ask(board.to(Method::POST, "purge")).await.is(200);
    server.kill();
    server.start_again();
    let board = server.board("s");
    assert_eq!(board.get("").await.json()["oldest_revision"], 7);
    assert_eq!(board.post("requests", "{}").await.is(201).revision(), 8);
    restored(&board, json!(7)).await.is(200);
}

#[tokio::test]
async fn a_purge_has_terms_and_no_parameters() {
    let server = Server::start();
    let board = lived(&server).await;
    let tag = board.get("").await.etag();
    board.post("requests", "{}").await.is(201);
    let purge = |tail: &str| board.to(Method::POST, &format!("purge{tail}"));
    let stale = refuses(&board, purge("").header("if-match", &tag), 412, "precondition-failed");
    assert_eq!(stale.await.etag(), board.get("").await.etag());
    refuses(&board, purge("").header("if-none-match", "*"), 412, "precondition-failed").await;
    refuses(&board, purge("?claim=1&fence=1"), 409, "stale-fence").await;
    refuses(&board, purge("?before=1"), 400, "unknown-parameter").await;
    refuses(&board, board.to(Method::GET, "purge"), 405, "method-not-allowed").await;
    ask(purge("").header("if-match", board.get("").await.etag())).await.is(200);
}

#[tokio::test]
async fn a_repeated_purge_does_not_forget_what_came_since() {
    let server = Server::start();
    let board = lived(&server).await;
    let purge = || ask(board.to(Method::POST, "purge").header("idempotency-key", "p"));
    let first = purge().await;
    assert_eq!(receipt(first.is(200)), json!({"revision":7}));
    board.post("requests", "{}").await.is(201);
    let again = purge().await;
    assert_eq!((again.header("idempotency-replayed"), again.text()), ("true", first.text()));
    board.get("requests?at=7").await.is(200);
    ask(board.to(Method::POST, "purge")).await.is(200);
    board.get("requests?at=7").await.problem(410, "history-compacted");
}

#[tokio::test]
async fn a_forks_key_is_its_sources_too() {
    let mut server = Server::start();
    let board = lived(&server).await;
    let fork = |board: &Board, to: &str| {
        post(board, "fork", &json!({"to":to,"at":"then"})).header("idempotency-key", "k")
    };
    let first = ask(fork(&board, "f")).await;
    first.is(201);
    assert_eq!(board.get("").await.json()["revision"], 7);
    for other in
        [fork(&board, "g"), board.json(Method::PUT, "state/x", "1").header("idempotency-key", "k")]
    {
        ask(other).await.problem(422, "idempotency-key-reused");
    }
    is_absent(&server, "g").await;
    ask(server.board("f").to(Method::DELETE, "")).await.is(200);
    server.kill();
    server.start_again();
    let again = ask(fork(&server.board("s"), "f")).await;
    assert_eq!((again.header("idempotency-replayed"), again.text()), ("true", first.text()));
    is_absent(&server, "f").await;
}
