//! Settings adopted from UFO: history keys, storing screenshots, question-answer pairs.

use std::fs;

use reqwest::Method;
use serde_json::json;

use crate::answer::ask;
use crate::harness::Server;

async fn trajectories_part(board: &crate::harness::Board, tail: &str) -> String {
    let parts = board.get(tail).await.is(200).json();
    parts[3]["text"].as_str().expect("the fourth part").to_owned()
}

#[tokio::test]
async fn history_keys_are_the_prompts_keys_unless_the_query_has_keys() {
    let server = Server::start();
    let board = server.board("s");
    board.put("", r#"{"settings":{"history_keys":["step","a"]}}"#).await.is(201);
    board.post("trajectories", r#"{"a":1e5,"b":2,"step":1}"#).await.is(201);
    board.post("requests", r#"{"b":2}"#).await.is(201);
    let heading = "[Step Trajectories Completed Previously:]\n ";
    let shown = trajectories_part(&board, "prompt").await;
    assert_eq!(shown, format!("{heading}[{{\"a\": 100000.0, \"step\": 1}}]"));
    let shown = trajectories_part(&board, "prompt?keys=b").await;
    assert_eq!(shown, format!("{heading}[{{\"b\": 2}}]"));
    // Only trajectories and memories are filtered, and only in the prompt.
    let parts = board.get("prompt").await.json();
    assert_eq!(parts[2]["text"], "[Request History:]\n [{\"b\": 2}]");
    assert_eq!(board.lines("trajectories").await, [r#"{"a":1e5,"b":2,"step":1}"#]);

    board.put("", r#"{"settings":{"history_keys":null}}"#).await.is(200);
    let shown = trajectories_part(&board, "prompt").await;
    assert_eq!(shown, format!("{heading}[{{\"a\": 100000.0, \"b\": 2, \"step\": 1}}]"));
}

#[tokio::test]
async fn a_session_may_drop_its_screenshots() {
    let server = Server::start();
    let board = server.board("s");
    board.put("", r#"{"settings":{"screenshot_to_memory":false}}"#).await.is(201);
    let dropped = board.post("screenshots", r#"{"metadata":1,"image_str":""}"#).await;
    let body = dropped.is(200).json();
    assert_eq!((&body["entries"], &body["dropped"]), (&json!([]), &json!(1)));
    assert_eq!(board.get("screenshots").await.json()["count"], 0);
    assert_eq!(board.get("").await.revision(), 1);
    board.post("requests", "{}").await.is(201);
    board.put("", r#"{"settings":{"screenshot_to_memory":null}}"#).await.is(200);
    board.post("screenshots", "{}").await.is(201);
}

#[tokio::test]
async fn question_answer_pairs_are_loaded_at_creation_only() {
    let server = Server::start();
    let board = server.board("s");
    let body = r#"{"qa_pairs":[{"question":"q1","answer":"a1"},{"question":"q2","answer":"a2"}]}"#;
    board.put("", body).await.is(201);
    let expected = [r#"{"question":"q1","answer":"a1"}"#, r#"{"question":"q2","answer":"a2"}"#];
    assert_eq!(board.lines("questions").await, expected);
    assert_eq!(board.get("").await.revision(), 1);
    board.put("", r#"{"qa_pairs":[{"question":"q3"}]}"#).await.refused();
    assert_eq!(board.lines("questions").await, expected);
    for body in [r#"{"qa_pairs":[5]}"#, r#"{"qa_pairs":{}}"#, r#"{"qa_pairs":"x"}"#] {
        server.board("t").put("", body).await.is(422);
    }
    server.board("t").get("").await.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_file_of_pairs_seeds_every_new_session() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("qa.jsonl");
    let lines: String =
        (1..=5).map(|n| format!("{{\"question\":\"q{n}\",\"answer\":\"a\"}}\n")).collect();
    fs::write(&file, lines).unwrap();
    let server = Server::start_with(&["--qa-file", file.to_str().unwrap(), "--qa-last", "2"]);
    let last = [r#"{"question":"q4","answer":"a"}"#, r#"{"question":"q5","answer":"a"}"#];
    let by_name = server.made("by-name").await;
    assert_eq!(by_name.lines("questions").await, last);
    let by_writing = server.board("by-writing");
    by_writing.post("requests", "{}").await.is(201);
    assert_eq!(by_writing.lines("questions").await, last);
    assert_eq!(by_writing.get("").await.revision(), 1);
    by_writing.post("questions", "{}").await.is(201);
    assert_eq!(by_writing.get("questions").await.seqs(), [1, 2, 3]);
}

#[tokio::test]
async fn pairs_that_refer_to_a_blob_stay_in_their_session() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("qa.jsonl");
    let of_another = format!(r#"{{"question":"q1","file":{{"$blob":"{}"}}}}"#, "ab".repeat(32));
    fs::write(&file, format!("{of_another}\n{{\"question\":\"q2\"}}\n")).unwrap();
    let arguments = ["--qa-file", file.to_str().unwrap(), "--qa-session", "qa"];
    let server = Server::start_with(&arguments);
    let board = server.board("s");
    let blob = ask(board.typed(Method::POST, "blobs", "text/plain", "x")).await;
    let sha256 = blob.is(201).json()["sha256"].as_str().unwrap().to_owned();
    assert_eq!(board.lines("questions").await, [r#"{"question":"q2"}"#]);
    let question = format!(r#"{{"question":"q3","file":{{"$blob":"{sha256}"}}}}"#);
    board.post("questions", &question).await.is(201);
    board.put("questions/2/answer", r#"{"answer":"a"}"#).await.is(200);
    board.put("questions/1/answer", r#"{"answer":"b"}"#).await.is(200);
    let gathered = server.board("qa").lines("questions").await;
    assert_eq!(gathered.last().unwrap(), r#"{"question":"q2","answer":"b"}"#);
    assert!(gathered.iter().all(|line| !line.contains("$blob")), "{gathered:?}");
    let new = server.made("new").await;
    assert!(new.lines("questions").await.iter().all(|line| !line.contains("$blob")));
}

#[tokio::test]
async fn an_unknown_or_misshapen_setting_is_refused_by_name() {
    let server = Server::start();
    let board = server.board("s");
    let unknown = [r#"{"setings":{}}"#, r#"{"settings":{"histroy_keys":["a"]}}"#];
    for (body, name) in unknown.into_iter().zip(["setings", "histroy_keys"]) {
        let problem = board.put("", body).await.problem(422, "unknown-field");
        assert!(problem.to_string().contains(name), "{problem}");
    }
    for body in [
        r#"{"settings":{"history_keys":"a"}}"#,
        r#"{"settings":{"history_keys":[1]}}"#,
        r#"{"settings":{"screenshot_to_memory":"no"}}"#,
        r#"{"settings":[null,null]}"#,
        r#"{"settings":5}"#,
        r#"{"labels":{"a":1}}"#,
        r#"{"labels":[["a","b"]]}"#,
        "[null,null,null]",
        "null",
        "5",
        "\"x\"",
    ] {
        board.put("", body).await.is(422);
    }
    board.get("").await.problem(404, "session-not-found");
}
