//! Prompt profiles of a session: shown as set, replaced together, kept over a restart.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::ask;
use crate::harness::{Board, Server};

const PROFILES: &str = concat!(
    r#"{"agent":{"format":"anthropic","include":["requests","memory:App é"],"steps":[1,2.0],"screenshots":3,"#,
    r#""max_px":1024,"max_tokens":8000,"headings":{"trajectories":"[Step Trajectories:]"}},"#,
    r#""é \"x\"":{"cache_marks":true}}"#
);

async fn shown(board: &Board) -> Value {
    board.get("").await.is(200).json()["settings"]["profiles"].clone()
}

fn asking(profiles: &str) -> String {
    format!(r#"{{"settings":{{"profiles":{profiles}}}}}"#)
}

#[tokio::test]
async fn profiles_are_shown_as_they_were_set_and_replaced_together() {
    let server = Server::start();
    let board = server.board("s");
    board.put("", &asking(PROFILES)).await.is(201);
    let text = board.get("").await.is(200).text().to_owned();
    assert!(text.contains(PROFILES), "{text}");
    // Another setting leaves them, and setting them as they are changes nothing.
    board.put("", r#"{"settings":{"max_items":9}}"#).await.is(200);
    let before = board.get("").await.revision();
    board.put("", &asking(PROFILES)).await.is(200);
    assert_eq!(board.get("").await.revision(), before);

    board.put("", &asking(r#"{"b":{"latest":5}}"#)).await.is(200);
    assert_eq!(shown(&board).await, json!({"b":{"latest":5}}));
    board.put("", &asking("null")).await.is(200);
    assert_eq!(shown(&board).await, Value::Null);
}

#[tokio::test]
async fn profiles_come_through_a_restart_a_fork_and_an_archive() {
    let mut server = Server::start();
    let board = server.board("s");
    board.put("", &asking(PROFILES)).await.is(201);
    let expected: Value = serde_json::from_str(PROFILES).unwrap();
    board.post("fork", r#"{"to":"forked"}"#).await.is(201);
    assert_eq!(shown(&server.board("forked")).await, expected);

    let archive = board.get("archive").await.is(200).text().to_owned();
    let copy = server.board("copy");
    let put = copy.typed(Method::PUT, "archive", "application/x-ndjson", archive.clone());
    ask(put).await.is(201);
    assert_eq!(shown(&copy).await, expected);
    assert_eq!(copy.get("archive").await.is(200).text(), archive);

    server.kill();
    server.start_again();
    for name in ["s", "forked", "copy"] {
        assert_eq!(shown(&server.board(name)).await, expected, "{name}");
    }
}

#[tokio::test]
async fn an_invalid_profile_is_refused_with_its_place() {
    let server = Server::start();
    let board = server.board("s");
    board.put("", &asking(PROFILES)).await.is(201);
    for (profiles, code, place) in [
        (r#"{"p":{"max_px":0}}"#, "invalid-field", "/p/max_px"),
        (r#"{"p":{"format":"openai"}}"#, "invalid-field", "/p/format"),
        (r#"{"p":{"include":["nothing"]}}"#, "invalid-field", "/p/include/0"),
        (r#"{"p":{"headings":{"state":"a\nb"}}}"#, "invalid-field", "/p/headings/state"),
        (r#"{"p":{"keys":null}}"#, "invalid-field", "/p/keys"),
        (r#"{"a/b":{}}"#, "invalid-field", "/a~1b"),
        (r#"{"p":{"model":"x"}}"#, "unknown-field", "/p/model"),
        ("[]", "invalid-field", ""),
    ] {
        let problem = board.put("", &asking(profiles)).await.problem(422, code);
        let pointer = problem["errors"][0]["pointer"].as_str().unwrap().to_owned();
        assert_eq!(pointer, format!("/settings/profiles{place}"), "{profiles}");
    }
    assert_eq!(shown(&board).await, serde_json::from_str::<Value>(PROFILES).unwrap());
}
