//! Checkpoints: names for revisions.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server, encoded};
use crate::whole::{pointer, receipt, refuses};

async fn put(board: &Board, name: &str) -> Answer {
    board.post("checkpoints", &json!({ "name": name }).to_string()).await
}

/// Names and revisions, in the order of a list.
async fn listed(board: &Board, tail: &str) -> Vec<(String, u64)> {
    let page = board.get(tail).await.is(200).json();
    let checkpoints = page["checkpoints"].as_array().expect("checkpoints").clone();
    let pair = |checkpoint: &Value| {
        let name = checkpoint["name"].as_str().expect("a name").to_owned();
        (name, checkpoint["revision"].as_u64().expect("a revision"))
    };
    checkpoints.iter().map(pair).collect()
}

#[tokio::test]
async fn a_checkpoint_names_the_revision_of_its_own_commit() {
    let server = Server::start();
    let board = server.made("s").await;
    let tag = board.get("checkpoints").await.etag();
    let made = ask(board.by("Ann", Method::POST, "checkpoints", r#"{"name":"a é"}"#)).await;
    let body = receipt(made.is(201));
    assert_eq!(
        (&body["revision"], &body["name"], &body["agent"]),
        (&json!(2), &json!("a é"), &json!("Ann"))
    );
    assert!(body["at"].as_str().is_some_and(|at| at.len() == 24), "{made}");
    assert!(made.header("location").ends_with("/v1/sessions/s/checkpoints/a%20%C3%A9"), "{made}");
    let list = board.get("checkpoints").await;
    let expected = json!({"checkpoints":[body],"next":"a é","more":false,"revision":2});
    assert_eq!((list.json(), list.etag()), (expected, made.next_tag()));
    assert_ne!(list.etag(), tag);

    // Other writes do not touch it; by nobody it has no agent.
    board.post("requests", "{}").await.is(201);
    assert_eq!(board.get("checkpoints").await.etag(), made.next_tag());
    let other = put(&board, "0").await;
    other.problem(422, "invalid-field");
    let other = receipt(put(&board, "0a").await.is(201));
    assert_eq!((&other["revision"], other.get("agent")), (&json!(4), None));
    assert_eq!(listed(&board, "checkpoints").await, [("0a".to_owned(), 4), ("a é".to_owned(), 2)]);
}

#[tokio::test]
async fn a_name_that_is_there_moves() {
    let server = Server::start();
    let board = server.made("s").await;
    put(&board, "a").await.is(201);
    let tag = board.get("checkpoints").await.etag();
    let moved = put(&board, "a").await;
    assert_eq!(
        (receipt(moved.is(200))["revision"].clone(), moved.header("location")),
        (json!(3), "")
    );
    assert_eq!(listed(&board, "checkpoints").await, [("a".to_owned(), 3)]);
    assert_ne!(moved.etag(), tag);

    let only = |name: &str, value: &str| {
        board.json(Method::POST, "checkpoints", r#"{"name":"a"}"#).header(name, value)
    };
    refuses(&board, only("if-none-match", "*"), 412, "precondition-failed").await;
    refuses(&board, only("if-match", &tag), 412, "precondition-failed").await;
    ask(only("if-match", &moved.etag())).await.is(200);
    ask(only("if-match", "*")).await.is(200);
    let fresh = board.json(Method::POST, "checkpoints", r#"{"name":"b"}"#);
    ask(fresh.header("if-none-match", "*")).await.is(201);
}

#[tokio::test]
async fn what_is_no_checkpoint_is_refused_with_its_place() {
    let server = Server::start();
    let board = server.made("s").await;
    let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(257));
    for (body, code, place) in [
        ("{}", "invalid-field", ""),
        ("[]", "invalid-field", ""),
        (r#""a""#, "invalid-field", ""),
        (r#"{"name":5}"#, "invalid-field", "/name"),
        (r#"{"name":null}"#, "invalid-field", "/name"),
        (r#"{"name":""}"#, "invalid-field", "/name"),
        (r#"{"name":"12"}"#, "invalid-field", "/name"),
        (r#"{"name":"."}"#, "invalid-field", "/name"),
        (r#"{"name":"a/b"}"#, "invalid-field", "/name"),
        (r#"{"name":"a\n"}"#, "invalid-field", "/name"),
        (r#"{"name":"\ud800"}"#, "invalid-field", "/name"),
        (&long, "invalid-field", "/name"),
        (r#"{"name":"a","at":1}"#, "unknown-field", "/at"),
    ] {
        let request = board.json(Method::POST, "checkpoints", body);
        let refused = refuses(&board, request, 422, code).await;
        assert_eq!(pointer(&refused), place, "{body}");
    }
    refuses(&board, board.to(Method::POST, "checkpoints"), 415, "unsupported-media-type").await;
    let absent = server.board("absent");
    put(&absent, "a").await.problem(404, "session-not-found");
    absent.get("checkpoints").await.problem(404, "session-not-found");
    absent.get("").await.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_checkpoint_is_read_at_its_address() {
    let server = Server::start();
    let board = server.made("s").await;
    let made = put(&board, "a").await;
    let shown = board.get("checkpoints/a").await;
    assert_eq!(shown.is(200).json(), receipt(made.is(201)));
    let known = board.to(Method::GET, "checkpoints/a").header("if-none-match", made.etag());
    ask(known).await.is(304);
    // Another checkpoint does not change its tag; a move does.
    put(&board, "b").await.is(201);
    assert_eq!(board.get("checkpoints/a").await.etag(), made.etag());
    put(&board, "a").await.is(200);
    let moved = board.get("checkpoints/a").await;
    assert_eq!(moved.json()["revision"], 4);
    assert_ne!(moved.etag(), made.etag());
    board.get("checkpoints/none").await.problem(404, "checkpoint-not-found");

    let only = |tag: &str| board.to(Method::DELETE, "checkpoints/a").header("if-match", tag);
    refuses(&board, only(&made.etag()), 412, "precondition-failed").await;
    ask(only(&moved.etag())).await.is(200);
}

#[tokio::test]
async fn a_checkpoint_can_be_removed() {
    let server = Server::start();
    let board = server.made("s").await;
    put(&board, "a é").await.is(201);
    put(&board, "b").await.is(201);
    let tail = format!("checkpoints/{}", encoded("a é"));
    let gone = board.delete(&tail).await;
    assert_eq!(receipt(gone.is(200)), json!({"revision":4}));
    let list = board.get("checkpoints").await;
    assert_eq!((list.etag(), &list.json()["revision"]), (gone.etag(), &json!(4)));
    assert_eq!(listed(&board, "checkpoints").await, [("b".to_owned(), 3)]);
    let again = refuses(&board, board.to(Method::DELETE, &tail), 404, "checkpoint-not-found").await;
    assert_eq!(again.revision(), 4);
    refuses(&board, board.to(Method::DELETE, "checkpoints/3"), 400, "invalid-name").await;
    refuses(&board, board.to(Method::PUT, "checkpoints/b"), 405, "method-not-allowed").await;
    refuses(&board, board.to(Method::DELETE, "checkpoints"), 405, "method-not-allowed").await;
    let absent = server.board("absent").delete("checkpoints/b").await;
    absent.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_list_goes_by_name_and_on_where_a_page_ended() {
    let server = Server::start();
    let board = server.made("s").await;
    for name in ["c", "a", "é", "b", "B"] {
        put(&board, name).await.is(201);
    }
    let all = ["B", "a", "b", "c", "é"];
    let (mut found, mut after) = (Vec::new(), String::new());
    for expected in [2, 2, 1] {
        let page = board.get(&format!("checkpoints?limit=2{after}")).await;
        let body = page.is(200).json();
        let names = body["checkpoints"].as_array().expect("checkpoints");
        assert_eq!((names.len(), &body["more"]), (expected, &json!(expected == 2)));
        found.extend(names.iter().map(|one| one["name"].as_str().unwrap().to_owned()));
        after = format!("&after={}", encoded(body["next"].as_str().expect("a name")));
        let known = board.to(Method::GET, "checkpoints").header("if-none-match", page.etag());
        ask(known).await.is(200);
        let known = board.to(Method::GET, &format!("checkpoints?limit=2{after}"));
        ask(known.header("if-none-match", page.etag())).await.is(200);
    }
    assert_eq!(found, all);
    let tag = board.get("checkpoints").await.etag();
    ask(board.to(Method::GET, "checkpoints").header("if-none-match", tag)).await.is(304);
    for wrong in ["limit=0", "limit=1001", "after=5", "after="] {
        board.get(&format!("checkpoints?{wrong}")).await.problem(400, "invalid-parameter");
    }
    board.get("checkpoints?prefix=a").await.problem(400, "unknown-parameter");
}

#[tokio::test]
async fn a_repeat_makes_no_other_checkpoint() {
    let mut server = Server::start();
    let board = server.made("s").await;
    let post = |board: &Board| {
        board.json(Method::POST, "checkpoints", r#"{"name":"a"}"#).header("idempotency-key", "k")
    };
    let first = ask(post(&board)).await;
    first.is(201);
    server.kill();
    server.start_again();
    let board = server.board("s");
    let again = ask(post(&board)).await;
    assert_eq!(
        (again.is(201).text(), again.header("idempotency-replayed")),
        (first.text(), "true")
    );
    assert_eq!(listed(&board, "checkpoints").await, [("a".to_owned(), 2)]);
}

#[tokio::test]
async fn a_session_has_a_thousand_checkpoints_at_most() {
    let server = Server::start_with(&["--sync", "normal"]);
    let board = server.made("s").await;
    for n in 0..1000 {
        put(&board, &format!("c{n}")).await.is(201);
    }
    put(&board, "d").await.problem(507, "session-full");
    put(&board, "c0").await.is(200);
    board.delete("checkpoints/c1").await.is(200);
    put(&board, "d").await.is(201);
    assert_eq!(listed(&board, "checkpoints?limit=1000").await.len(), 1000);
}
