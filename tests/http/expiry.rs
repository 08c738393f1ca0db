//! Expiry: by a commit, visible until then, never by the clock alone.

use reqwest::Method;
use serde_json::json;

use crate::answer::{Answer, ask};
use crate::clock::{Clocked, reached};
use crate::harness::Board;
use crate::whole::receipt;

const DAY: i64 = 24 * 60 * 60 * 1000;

/// Ten seconds after the clock's beginning.
const TEN_SECONDS: &str = "2026-11-21T07:03:21.123Z";

#[tokio::test]
async fn a_path_goes_at_its_time() {
    let server = Clocked::start().await;
    let board = server.board("s");
    board.put("state/a?ttl=10s", "1").await.is(201);
    board.put("state/b", "1").await.is(201);
    let (whole, other) = (board.get("state").await.etag(), board.get("state/b").await.etag());
    server.set(9_999);
    assert_eq!(board.get("state/a").await.is(200).revision(), 2);
    board.put("state/c", "1").await.is(201);
    assert_eq!(board.get("state").await.text(), "{\"a\":1,\"b\":1,\"c\":1}\n");

    server.set(10_000);
    let gone = reached(&board, "state/a", 4).await;
    gone.problem(404, "path-not-found");
    assert_eq!(gone.revision(), 4);
    let after = board.get("state").await;
    assert_eq!((after.text(), after.revision()), ("{\"b\":1,\"c\":1}\n", 4));
    assert_ne!(after.etag(), whole);
    let known = board.to(Method::GET, "state/b").header("if-none-match", other);
    assert_eq!(ask(known).await.is(304).revision(), 4);
    let shown = board.get("").await.json();
    assert_eq!((&shown["revision"], &shown["updated_at"]), (&json!(4), &json!(TEN_SECONDS)));
    // What is made there again lives for ever.
    board.put("state/a", "2").await.is(201);
    server.set(DAY);
    assert_eq!(board.put("state/d", "1").await.is(201).revision(), 6);
    board.get("state/a").await.is(200);
    server.stop().await;
}

#[tokio::test]
async fn the_next_command_meets_what_is_over_no_more() {
    let server = Clocked::start().await;
    let board = server.board("s");
    board.put("state/n?ttl=10s", "41").await.is(201);
    board.put("state/t?ttl=20s", "{}").await.is(201);
    server.set(10_000);
    let added = ask(board.json(Method::PATCH, "state/n", r#"{"add":1}"#)).await;
    assert_eq!(receipt(added.is(201)), json!({"revision":4,"value":1}));
    server.set(20_000);
    let test = r#"{"if":[{"path":"t","absent":true}],"then":[{"put":"t","value":1,"ttl":"5s"}]}"#;
    let put = board.post("transactions", test).await.is(200).json();
    assert_eq!((&put["succeeded"], &put["revision"]), (&json!(true), &json!(6)));
    server.set(25_000);
    let delete = board.delete("state/t").await;
    delete.problem(404, "path-not-found");
    assert_eq!(delete.revision(), 7, "what it speaks of can be read");
    assert_eq!(board.get("state").await.text(), "{\"n\":1}\n");
    server.stop().await;
}

fn by(board: &Board, agent: &str, method: Method, tail: &str) -> reqwest::RequestBuilder {
    board.to(method, tail).header("x-agent-id", agent)
}

async fn claim(board: &Board, agent: &str) -> Answer {
    ask(by(board, agent, Method::PUT, "requests/1/claim")).await
}

async fn pending(board: &Board) -> Vec<u64> {
    board.get("requests?pending=true").await.is(200).seqs()
}

#[tokio::test]
async fn a_claim_runs_out_and_its_fence_stands_until_another_wins() {
    let server = Clocked::start().await;
    let board = server.board("s");
    board.post("requests", r#"{"request":"Print it"}"#).await.is(201);
    let won = claim(&board, "A").await.is(201).json();
    let expected = json!({"agent":"A","fence":2,"expires_at":"2026-11-21T07:04:11.123Z"});
    assert_eq!(won["claim"], expected);
    let held = board.get("requests/1").await;
    assert_eq!((&held.json()["claim"], pending(&board).await), (&expected, vec![]));
    server.set(59_999);
    claim(&board, "B").await.problem(409, "already-claimed");

    server.set(60_000);
    let lapsed = reached(&board, "requests/1", 3).await;
    let entry = lapsed.is(200).json();
    assert_eq!((&entry["revision"], entry.get("claim")), (&json!(3), None));
    assert_eq!(entry["updated_at"], "2026-11-21T07:04:11.123Z");
    assert_eq!(entry.get("updated_by"), None, "nobody wrote it");
    assert_ne!(lapsed.etag(), held.etag());
    assert_eq!(pending(&board).await, [1]);
    board.post("trajectories?claim=1&fence=2", r#"{"late":true}"#).await.is(201);
    ask(by(&board, "A", Method::DELETE, "requests/1/claim")).await.is(200);
    board.put("state/x?claim=1&fence=2", "1").await.is(201);

    let won = claim(&board, "B").await.is(201).json();
    assert_eq!((&won["claim"]["fence"], &won["claim"]["agent"]), (&json!(6), &json!("B")));
    for tail in ["trajectories?claim=1&fence=2", "trajectories?claim=1&fence=3"] {
        board.post(tail, "{}").await.problem(409, "stale-fence");
    }
    let done = ask(board.json(Method::PUT, "requests/1/done", r#"{"fence":2}"#)).await;
    done.problem(409, "stale-fence");
    board.post("trajectories?claim=1&fence=6", "{}").await.is(201);
    assert_eq!(board.get("trajectories").await.items(), [json!({"late":true}), json!({})]);
    server.stop().await;
}

#[tokio::test]
async fn what_was_finished_does_not_run_out() {
    let server = Clocked::start().await;
    let board = server.board("s");
    board.post("requests", "{}").await.is(201);
    claim(&board, "A").await.is(201);
    let done = board.json(Method::PUT, "requests/1/done", r#"{"fence":2,"result":"ok"}"#);
    ask(done.header("x-agent-id", "A")).await.is(200);
    server.set(DAY);
    assert_eq!(board.post("trajectories?claim=1&fence=2", "{}").await.is(201).revision(), 4);
    assert_eq!(board.get("requests/1").await.json()["done"]["result"], "ok");
    server.stop().await;
}

#[tokio::test]
async fn a_session_goes_after_its_last_write_and_its_name_goes_on() {
    let server = Clocked::start().await;
    let board = server.board("s");
    board.put("", r#"{"settings":{"ttl":"10s"}}"#).await.is(201);
    let tag = board.get("").await.etag();
    server.set(9_000);
    board.post("requests", "{}").await.is(201);
    server.set(18_999);
    board.get("requests").await.is(200);
    server.set(19_000);
    reached(&board, "", 3).await.problem(404, "session-not-found");
    board.get("requests").await.problem(404, "session-not-found");
    board.delete("").await.problem(404, "session-not-found");

    let again = board.put("", "{}").await;
    assert_eq!(again.is(201).revision(), 4);
    let shown = board.get("").await;
    assert_eq!(shown.json()["counts"]["requests"], 0);
    assert_eq!(shown.json()["settings"].get("ttl"), None);
    assert_ne!(shown.etag(), tag);
    // Refused with the old tag: it is another session.
    let stale = board.json(Method::PUT, "", "{}").header("if-match", tag);
    ask(stale).await.problem(412, "precondition-failed");
    server.stop().await;
}

async fn keyed(board: &Board, body: &str) -> Answer {
    let request = board.json(Method::PATCH, "state/n", body);
    ask(request.header("idempotency-key", "count")).await
}

#[tokio::test]
async fn a_key_is_forgotten_after_a_day() {
    let server = Clocked::start().await;
    let board = server.board("s");
    let first = keyed(&board, r#"{"add":1}"#).await;
    assert_eq!(receipt(first.is(201)), json!({"revision":1,"value":1}));
    server.set(DAY);
    let repeat = keyed(&board, r#"{"add":1}"#).await;
    assert_eq!(repeat.is(201).header("idempotency-replayed"), "true");
    assert_eq!((repeat.text(), repeat.etag()), (first.text(), first.etag()));
    keyed(&board, r#"{"add":2}"#).await.problem(422, "idempotency-key-reused");
    server.set(DAY + 1);
    let anew = keyed(&board, r#"{"add":2}"#).await;
    assert_eq!(anew.is(200).header("idempotency-replayed"), "");
    assert_eq!(receipt(&anew), json!({"revision":2,"value":3}));
    keyed(&board, r#"{"add":1}"#).await.problem(422, "idempotency-key-reused");
    // From its own time on it is kept for a day, over a restart too.
    let server = server.restart_at(2 * DAY + 1).await;
    let board = server.board("s");
    let repeat = keyed(&board, r#"{"add":2}"#).await;
    assert_eq!((repeat.text(), repeat.header("idempotency-replayed")), (anew.text(), "true"));
    server.set(2 * DAY + 2);
    assert_eq!(keyed(&board, r#"{"add":2}"#).await.is(200).json()["value"], 5);
    server.stop().await;
}

#[tokio::test]
async fn values_that_expired_while_down_are_gone_at_the_first_answer() {
    let server = Clocked::start().await;
    let (board, gone) = (server.board("s"), server.board("gone"));
    board.put("state/a?ttl=10s", "1").await.is(201);
    board.post("requests", "{}").await.is(201);
    claim(&board, "A").await.is(201);
    gone.put("", r#"{"settings":{"ttl":"1h"}}"#).await.is(201);
    let mut server = server.restart_at(DAY).await;
    for _ in 0..2 {
        let (board, gone) = (server.board("s"), server.board("gone"));
        gone.get("").await.problem(404, "session-not-found");
        // Both ended in one commit, and no start finds them again.
        let entry = board.get("requests/1").await;
        assert_eq!((entry.revision(), entry.json().get("claim")), (4, None));
        board.get("state/a").await.problem(404, "path-not-found");
        server = server.restart_at(DAY + 1).await;
    }
    assert_eq!(claim(&server.board("s"), "B").await.is(201).json()["claim"]["fence"], 5);
    assert_eq!(server.board("gone").put("", "{}").await.is(201).revision(), 3);
    server.stop().await;
}
