//! Waits with `until`: on sessions, values, questions, requests and agents.

use reqwest::Method;
use serde_json::json;

use crate::answer::ask;
use crate::harness::{Server, encoded};
use crate::waiting::{LONG, filled, unless_known, waiting, with, woken};

#[tokio::test]
async fn a_session_is_waited_for() {
    let server = Server::start();
    let board = server.board("new");
    let late = board.get("?until=exists&wait=20ms").await;
    assert_eq!(late.problem(412, "condition-not-met")["status"], 412);
    assert_eq!(late.revision(), 0);
    assert_eq!(board.get("?until=absent").await.is(204).revision(), 0);
    for tail in ["?until=absent", "state/a?until=absent"] {
        let malformed = board.to(Method::GET, tail).header("if-none-match", "g");
        ask(malformed).await.problem(400, "invalid-parameter");
    }
    board.get("?until=equals:1").await.problem(400, "invalid-parameter");

    let session = waiting(&board, &with("?until=exists", LONG));
    let value = waiting(&board, &with("state/a/b?until=exists", LONG));
    board.post("requests", "{}").await.is(201);
    board.put("state/a", "{}").await.is(201);
    assert_eq!(woken(session).await.is(200).json()["session"], "new");
    board.put("state/a/b", "[1]").await.is(201);
    assert_eq!(woken(value).await.is(200).text(), "[1]\n");

    let late = board.get("?until=absent&wait=20ms").await;
    late.problem(412, "condition-not-met");
    assert_eq!(late.revision(), 3);
    let plain = board.get("").await.etag();
    assert_eq!(board.get("?until=exists").await.is(200).etag(), plain);
    board.delete("").await.is(200);
    assert_eq!(board.get("?until=absent").await.is(204).revision(), 4);
    let again = waiting(&board, &with("?until=exists", LONG));
    board.put("", "{}").await.is(201);
    assert_eq!(woken(again).await.is(200).revision(), 5);
}

#[tokio::test]
async fn a_value_is_waited_for() {
    let server = Server::start();
    let board = filled(&server).await;
    for (value, equal, other) in [
        ("1.0", "1", "2"),
        ("100", "1e2", "\"100\""),
        (r#"{"a":1,"b":{"c":[1,2]}}"#, r#"{ "b":{"c":[1.0,2]}, "a":1 }"#, r#"{"a":1}"#),
        (r#""ready""#, r#""re\u0061dy""#, r#""Ready""#),
        ("[1,2]", "[1, 2]", "[2,1]"),
        ("null", "null", "false"),
    ] {
        board.put("state/v", value).await.succeeded();
        let until = |value: &str| format!("state/v?until=equals:{}", encoded(value));
        let plain = board.get("state/v").await.etag();
        assert_eq!(board.get(&until(equal)).await.is(200).etag(), plain, "{equal}");
        let refused = board.get(&with(&until(other), "wait=20ms")).await;
        let problem = refused.problem(412, "condition-not-met");
        let shown: serde_json::Value = serde_json::from_str(value).unwrap();
        assert_eq!(problem["current"], shown, "{value}");
        let reader = waiting(&board, &with(&until(other), LONG));
        board.put("state/v", other).await.is(200);
        assert_eq!(woken(reader).await.is(200).text(), format!("{other}\n"));
    }
}

#[tokio::test]
async fn an_answer_is_waited_for() {
    let server = Server::start();
    let board = server.board("s");
    let asked = board.post("questions", r#"[{"question":"a?"},{"question":"b?"}]"#).await;
    let until = |seq: u64| format!("questions/{seq}?until=answered");
    let late = board.get(&with(&until(1), "wait=20ms")).await;
    assert_eq!(late.problem(412, "condition-not-met")["current"]["item"], json!({"question":"a?"}));
    let (first, second) =
        (waiting(&board, &with(&until(1), LONG)), waiting(&board, &with(&until(2), LONG)));
    board.put("questions/1/answer", r#"{"answer":"yes"}"#).await.is(200);
    board.put("questions/2/answer", r#"{"skip":true}"#).await.is(200);
    let answered = woken(first).await;
    assert_eq!(answered.is(200).json()["item"]["answer"], "yes");
    assert_eq!(answered.etag(), board.get("questions/1").await.etag());
    assert_eq!(woken(second).await.is(200).json()["seq"], 2);
    // An answered question is shown at once, without waiting.
    board.get(&with(&until(1), LONG)).await.is(200);
    let expiring = board.post("questions?expires=50ms&default=no", r#"{"question":"c?"}"#).await;
    assert_eq!(expiring.header("location"), "/v1/sessions/s/questions/3");
    let expired = woken(waiting(&board, &with(&until(3), LONG))).await;
    assert_eq!(expired.is(200).json()["item"]["answer"], "no");

    board.post("questions", r#"{"question":"d?"}"#).await.is(201);
    let deleted = waiting(&board, &with(&until(4), LONG));
    board.delete("questions/4").await.is(200);
    woken(deleted).await.problem(404, "entry-not-found");
    assert_ne!(asked.etag(), "");
}

#[tokio::test]
async fn a_claim_and_an_end_are_waited_for() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", "[{},{}]").await.is(201);
    for until in ["claimed", "done"] {
        let late = board.get(&format!("requests/1?until={until}")).await;
        late.problem(412, "condition-not-met");
    }
    let claimed = waiting(&board, &with("requests/1?until=claimed", LONG));
    let done = waiting(&board, &with("requests/1?until=done", LONG));
    ask(board.by("A", Method::PUT, "requests/1/claim", r#"{"ttl":"1h"}"#)).await.is(201);
    assert_eq!(woken(claimed).await.is(200).json()["claim"]["agent"], "A");
    ask(board.by("A", Method::PUT, "requests/1/done", r#"{"result":1}"#)).await.is(200);
    assert_eq!(woken(done).await.is(200).json()["done"]["result"], 1);
    // A claim that has ended was one.
    board.get("requests/1?until=claimed").await.is(200);
    // Its tag is the entry's, whenever the claim ends.
    let claimed = ask(board.by("A", Method::PUT, "requests/2/claim", r#"{"ttl":"500ms"}"#)).await;
    let tag = claimed.is(201).etag();
    let lapsed = unless_known(&board, &with("requests/2", LONG), &tag).await;
    assert!(lapsed.is(200).json()["claim"].is_null(), "{lapsed}");
    board.get("requests/2?until=claimed").await.is(200);
}

#[tokio::test]
async fn a_status_is_waited_for() {
    let server = Server::start();
    let board = server.board("s");
    board.put("agents/A", r#"{"status":"CONTINUE"}"#).await.is(201);
    let late = board.get("agents/A?until=status:FINISH&wait=20ms").await;
    assert_eq!(late.problem(412, "condition-not-met")["current"]["status"], "CONTINUE");
    let reader = waiting(&board, &with("agents/A?until=status:FINISH", LONG));
    board.patch("agents/A", r#"{"status":"FINISH"}"#).await.is(200);
    let finished = woken(reader).await;
    assert_eq!(finished.is(200).json()["status"], "FINISH");
    assert_eq!(finished.etag(), board.get("agents/A").await.etag());
    let deleted = waiting(&board, &with("agents/A?until=status:PENDING", LONG));
    board.delete("agents/A").await.is(200);
    woken(deleted).await.problem(404, "agent-not-found");
}

#[tokio::test]
async fn a_value_that_holds_already_is_shown_at_once() {
    let server = Server::start();
    let board = filled(&server).await;
    for query in ["until=exists", "until=equals:1", "until=equals:1&wait=60s"] {
        assert_eq!(board.get(&format!("state/a?{query}")).await.is(200).text(), "1\n");
    }
    for tail in ["state/none", "state/a/below"] {
        let here = board.get("").await.revision();
        assert_eq!(board.get(&with(tail, "until=absent")).await.is(204).revision(), here);
        for until in ["exists", "equals:1"] {
            let answer = board.get(&format!("{tail}?until={until}")).await;
            let problem = answer.problem(412, "condition-not-met");
            assert!(problem.get("current").is_none(), "{problem}");
        }
    }
    assert_eq!(
        board.get("state/a?until=absent").await.problem(412, "condition-not-met")["current"],
        1
    );
    let tag = board.get("state/a").await.etag();
    unless_known(&board, "state/a?until=exists&wait=20ms", &tag).await.is(304);
    server.board("none").get("state/a?until=equals:1").await.problem(404, "session-not-found");
    assert_eq!(server.board("none").get("state/a?until=absent").await.is(204).revision(), 0);
}

#[tokio::test]
async fn a_large_value_is_not_shown_with_the_refusal() {
    let server = Server::start();
    let board = filled(&server).await;
    board.put("state/large", &format!("\"{}\"", "x".repeat(64 << 10))).await.is(201);
    let problem = board.get("state/large?until=absent").await.problem(412, "condition-not-met");
    assert!(problem.get("current").is_none(), "{}", problem["detail"]);
}

#[tokio::test]
async fn what_cannot_be_waited_for_is_refused() {
    let server = Server::start();
    let board = filled(&server).await;
    let deep = format!("equals:{}1{}", "[".repeat(200), "]".repeat(200));
    for until in [
        "",
        "there",
        "Exists",
        "equals",
        "equals:",
        "equals:{",
        "equals:nan",
        "equals:1e400",
        &deep,
    ] {
        let tail = format!("state/a?until={}", encoded(until));
        board.get(&tail).await.problem(400, "invalid-parameter");
    }
    board.post("questions", "{}").await.is(201);
    board.post("agents/A/memory", "{}").await.is(201);
    for tail in [
        "questions/1?until=done",
        "questions/1?until=exists",
        "requests/1?until=answered",
        "trajectories/1?until=done",
        "agents/A/memory/1?until=done",
        "agents/A?until=FINISH",
        "agents/A?until=status:",
        "agents/A?until=status:FINISH&at=1",
        "questions/1?until=answered&at=1",
    ] {
        board.get(tail).await.problem(400, "invalid-parameter");
    }
    board.get("state/a?until=equals:%FF").await.problem(400, "invalid-encoding");
}
