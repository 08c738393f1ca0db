//! Idempotent repeats at bad moments: after a kill, concurrently, after a deletion.

use reqwest::Method;
use serde_json::json;

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::whole::Whole;

fn write(
    board: &Board,
    method: &Method,
    tail: &str,
    body: &str,
    key: &str,
) -> reqwest::RequestBuilder {
    board.by("A", method.clone(), tail, body).header("idempotency-key", key)
}

#[track_caller]
fn is_repeat(first: &Answer, repeat: &Answer) {
    assert_eq!(repeat.header("idempotency-replayed"), "true", "{repeat}");
    assert_eq!((repeat.status(), repeat.text()), (first.status(), first.text()), "{repeat}");
    for header in ["etag", "location", "blackboard-revision"] {
        assert_eq!(repeat.header(header), first.header(header), "{header}: {repeat}");
    }
}

const WRITES: [(Method, &str, &str); 9] = [
    (Method::POST, "requests", "[{},{}]"),
    (Method::PUT, "state/a%2Fb", r#"{"n":1E5}"#),
    (Method::PATCH, "state", r#"{"m":1}"#),
    (Method::PUT, "agents/B", r#"{"status":"FAIL"}"#),
    (Method::PUT, "requests/1/claim", ""),
    (Method::PUT, "requests/2/done", r#"{"result":[1.50]}"#),
    (
        Method::POST,
        "transactions",
        r#"{"then":[{"add":"count","value":1},{"append":"questions","item":{}}]}"#,
    ),
    (Method::DELETE, "requests/2", ""),
    // Nothing is changed by it, and it is kept all the same.
    (Method::PUT, "", "{}"),
];

#[tokio::test]
async fn keys_outlive_a_kill_and_a_restart() {
    let mut server = Server::start();
    let board = server.board("s");
    let mut firsts = Vec::new();
    for (index, (method, tail, body)) in WRITES.iter().enumerate() {
        let first = ask(write(&board, method, tail, body, &format!("key-{index}"))).await;
        first.succeeded();
        firsts.push(first);
    }
    let before = Whole::of(&board).await;
    for round in 0..2 {
        if round == 0 {
            server.kill();
        } else {
            assert!(server.stop().success());
        }
        server.start_again();
        let board = server.board("s");
        for ((index, (method, tail, body)), first) in WRITES.iter().enumerate().zip(&firsts) {
            let key = format!("key-{index}");
            is_repeat(first, &ask(write(&board, method, tail, body, &key)).await);
            let other = ask(write(&board, &Method::POST, "trajectories", "{}", &key)).await;
            other.problem(422, "idempotency-key-reused");
        }
        assert_eq!(Whole::of(&board).await, before, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repeats_under_way_at_once_are_one_write() {
    let server = Server::start();
    for (index, (tail, body)) in [
        ("requests", "[{},{}]"),
        ("transactions", r#"{"then":[{"add":"n","value":1},{"append":"requests","item":{}}]}"#),
    ]
    .into_iter()
    .enumerate()
    {
        let board = server.board(&format!("s-{index}"));
        let repeats = (0..16).map(|_| {
            let request = write(&board, &Method::POST, tail, body, "once");
            tokio::spawn(async move { ask(request).await })
        });
        let mut answers = Vec::new();
        for repeat in repeats.collect::<Vec<_>>() {
            answers.push(repeat.await.unwrap());
        }
        let firsts =
            answers.iter().filter(|answer| answer.header("idempotency-replayed").is_empty());
        assert_eq!(firsts.count(), 1);
        for answer in &answers {
            answer.succeeded();
            assert_eq!((answer.status(), answer.text()), (answers[0].status(), answers[0].text()));
            assert_eq!(answer.etag(), answers[0].etag());
        }
        assert_eq!(board.get("").await.revision(), 1);
    }
    assert_eq!(server.board("s-0").get("requests").await.json()["count"], 2);
    assert_eq!(server.board("s-1").get("state").await.text(), "{\"n\":1}\n");
}

#[tokio::test]
async fn a_deletion_is_repeated_until_the_name_is_used_again() {
    let mut server = Server::start();
    let board = server.board("s");
    board.post("requests", "{}").await.is(201);
    let delete = |board: &Board| write(board, &Method::DELETE, "", "", "gone");
    let first = ask(delete(&board)).await;
    assert_eq!(first.is(200).header("idempotency-replayed"), "");
    is_repeat(&first, &ask(delete(&board)).await);
    board.delete("").await.problem(404, "session-not-found");
    server.kill();
    server.start_again();
    let board = server.board("s");
    is_repeat(&first, &ask(delete(&board)).await);
    board.get("").await.problem(404, "session-not-found");

    let again = board.post("requests", "{}").await.is(201).revision();
    let second = ask(delete(&board)).await;
    assert_eq!(second.is(200).header("idempotency-replayed"), "");
    assert!(second.revision() > again, "{second}");
    board.get("").await.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_deleted_sessions_keys_go_with_it() {
    let server = Server::start();
    let board = server.board("s");
    let post = || write(&board, &Method::POST, "requests", "{}", "k");
    ask(post()).await.is(201);
    board.delete("").await.is(200);
    let again = ask(post()).await;
    assert_eq!(again.is(201).header("idempotency-replayed"), "");
    assert_eq!(board.get("requests").await.json()["count"], 1);
}

#[tokio::test]
async fn a_repeated_claim_is_the_same_claim_and_no_renewal() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", "{}").await.is(201);
    let claim = || write(&board, &Method::PUT, "requests/1/claim", "", "k");
    let first = ask(claim()).await;
    let entry = board.get("requests/1").await;
    is_repeat(first.is(201), &ask(claim()).await);
    assert_eq!(board.get("requests/1").await.text(), entry.text());
    // Even when another has it by now.
    ask(board.by("A", Method::DELETE, "requests/1/claim", "")).await.is(200);
    ask(board.by("B", Method::PUT, "requests/1/claim", "")).await.is(201);
    is_repeat(&first, &ask(claim()).await);
    assert_eq!(board.get("requests/1").await.json()["claim"]["agent"], json!("B"));
}
