//! Calls that the original documents but does not implement: one request each.

use reqwest::Method;
use serde_json::json;

use crate::answer::ask;
use crate::harness::{Server, encoded};
use crate::whole::refuses;

#[tokio::test]
async fn a_trajectory_is_posted_under_its_key() {
    let server = Server::start();
    let board = server.board("s");
    let key = "open, file/é";
    let tail = format!("trajectories?trajectory_key={}", encoded(key));
    for (body, stored) in [
        (r#"{"z":1E5,"a":[1.50]}"#, r#"{"key":"open, file/é","z":1E5,"a":[1.50]}"#),
        ("{}", r#"{"key":"open, file/é"}"#),
        (r#"{"a":1,"key":"own"}"#, r#"{"key":"open, file/é","value":{"a":1,"key":"own"}}"#),
        (r#""text""#, r#"{"key":"open, file/é","value":"text"}"#),
        ("5.0", r#"{"key":"open, file/é","value":5.0}"#),
        ("null", r#"{"key":"open, file/é","value":null}"#),
        ("true", r#"{"key":"open, file/é","value":true}"#),
    ] {
        let seq = board.post(&tail, body).await.is(201).seqs()[0];
        assert_eq!(board.lines("trajectories").await.last().map(String::as_str), Some(stored));
        let found = board.get(&tail).await;
        assert!(found.is(200).seqs().contains(&seq), "{body}");
    }
    // An array is many still.
    let many = board.post("trajectories?trajectory_key=m", r#"[{"n":1},"text"]"#).await;
    assert_eq!(many.is(201).seqs(), [8, 9]);
    let found = board.get("trajectories?trajectory_key=m").await;
    assert_eq!(found.items(), [json!({"key":"m","n":1}), json!({"key":"m","value":"text"})]);
    let refused = board.json(Method::POST, "trajectories?trajectory_key=m", r#"{"a":1e400}"#);
    refuses(&board, refused, 422, "unsupported-value").await;
    let twice = board.json(Method::POST, "trajectories?trajectory_key=a&trajectory_key=b", "{}");
    refuses(&board, twice, 400, "invalid-parameter").await;
    board.get("trajectories?trajectory_key=none").await.is(200);
    assert!(board.get("trajectories?trajectory_key=none").await.seqs().is_empty());
}

#[tokio::test]
async fn keyed_lines_are_keyed_each() {
    let server = Server::start();
    let board = server.board("s");
    let lines = "{\"n\":1}\n{\"key\":\"own\"}\n";
    let tail = "trajectories?trajectory_key=k";
    ask(board.typed(Method::POST, tail, "application/x-ndjson", lines)).await.is(201);
    assert_eq!(
        board.lines("trajectories").await,
        [r#"{"key":"k","n":1}"#, r#"{"key":"k","value":{"key":"own"}}"#]
    );
}

#[tokio::test]
async fn filters_may_be_combined_and_the_latest_is_of_what_they_leave() {
    let server = Server::start();
    let board = server.board("s");
    let steps = r#"[{"key":"a","status":"FAIL","step":1},{"key":"b","status":"FAIL","step":2},
        {"key":"a","status":"FINISH","step":3},{"key":"a","results":[{"status":"FAIL"}],"step":4},{"key":"a","step":5}]"#;
    board.post("trajectories", steps).await.is(201);
    for (query, seqs) in [
        ("trajectory_key=a&status=FAIL", vec![1, 4]),
        ("trajectory_key=a&status=FAIL&latest=1", vec![4]),
        ("trajectory_key=a&latest=2", vec![4, 5]),
        ("status=FAIL&pending=true", vec![1, 2, 4]),
        ("status=NONE&latest=5", vec![]),
    ] {
        let page = board.get(&format!("trajectories?{query}")).await;
        assert_eq!(page.is(200).seqs(), seqs, "{query}");
        assert_eq!(page.json()["count"], 5, "{query}");
    }
    let questions = r#"[{"question":"1"},{"question":"2","answer":"x"},{"question":"3"}]"#;
    board.post("questions", questions).await.is(201);
    assert_eq!(board.get("questions?pending=true&latest=1").await.seqs(), [3]);
    let lines = board.lines("questions?pending=true").await;
    assert_eq!(lines, [r#"{"question":"1"}"#, r#"{"question":"3"}"#]);
    board.get("questions?pending=true&latest=1&after=1").await.problem(400, "invalid-parameter");
}
