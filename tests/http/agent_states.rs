//! The state machine of agents: every move between the seven statuses, and those that a session adds.

use reqwest::Method;
use serde_json::json;

use crate::answer::ask;
use crate::harness::{Board, Server};
use crate::whole::{pointer, receipt, refuses};

/// Each status with those that may follow it; the same again is no move.
const MOVES: [(&str, &[&str]); 7] = [
    ("CONTINUE", &["SCREENSHOT", "PENDING", "CONFIRM", "FINISH", "FAIL", "ERROR"]),
    ("SCREENSHOT", &["CONTINUE"]),
    ("PENDING", &["CONTINUE"]),
    ("CONFIRM", &["CONTINUE", "FAIL"]),
    ("FINISH", &["CONTINUE"]),
    ("FAIL", &["CONTINUE"]),
    ("ERROR", &["CONTINUE"]),
];

fn status(status: &str) -> String {
    json!({"status":status}).to_string()
}

async fn states(board: &Board, states: &str) {
    let body = format!("{{\"settings\":{{\"agent_states\":{states}}}}}");
    board.put("", &body).await.succeeded();
}

#[tokio::test]
async fn every_move_between_two_statuses_is_allowed_or_refused() {
    let server = Server::start();
    let board = server.made("s").await;
    for (from, next) in MOVES {
        for (to, _) in MOVES {
            let tail = format!("agents/{from}-{to}");
            board.put(&tail, &status(from)).await.is(201);
            let before = board.get(&tail).await;
            for (method, tail, body) in [
                (Method::PATCH, tail.clone(), status(to)),
                (Method::PUT, tail.clone(), status(to)),
                (
                    Method::POST,
                    "transactions".to_owned(),
                    json!({"then":[{"status":format!("{from}-{to}"),"value":to}]}).to_string(),
                ),
            ] {
                let request = board.request(method.clone(), &tail, &body);
                if from == to {
                    assert_eq!(ask(request).await.is(200).revision(), before.revision(), "{from}");
                } else if next.contains(&to) {
                    let moved = ask(request).await;
                    assert_eq!(
                        moved.is(200).revision(),
                        board.get("").await.revision(),
                        "{from} to {to}"
                    );
                    let agent = format!("agents/{from}-{to}");
                    assert_eq!(board.get(&agent).await.json()["status"], to);
                    board.delete(&agent).await.is(200);
                    board.put(&agent, &status(from)).await.is(201);
                } else {
                    refuses(&board, request, 409, "illegal-transition").await;
                }
            }
        }
    }
}

#[tokio::test]
async fn the_same_status_is_no_move_and_other_members_change() {
    let server = Server::start();
    let board = server.board("s");
    for (from, _) in MOVES {
        let tail = format!("agents/{from}");
        board.put(&tail, &status(from)).await.is(201);
        let body = json!({"status":from,"note":1}).to_string();
        board.merge(&tail, &body).await.is(200);
        assert_eq!(board.get(&tail).await.json()["note"], 1);
        board.put(&tail, r#"{"note":2}"#).await.is(200);
        assert_eq!(board.get(&tail).await.json()["status"], from);
    }
    // A move that is not allowed takes its other members with it.
    let body = r#"{"status":"FAIL","note":3}"#;
    let patch = board.request(Method::PATCH, "agents/ERROR", body);
    refuses(&board, patch, 409, "illegal-transition").await;
}

const DELEGATE: &str = r#"{"DELEGATE_TO_APP":{"from":["CONTINUE"],"to":["CONTINUE","FINISH"]}}"#;

#[tokio::test]
async fn a_session_may_add_statuses_and_their_moves() {
    let server = Server::start();
    let board = server.board("s");
    let put = board.json(Method::PUT, "agents/H", &status("DELEGATE_TO_APP"));
    refuses(&board, put, 422, "invalid-field").await;
    states(&board, DELEGATE).await;
    let settings = &board.get("").await.json()["settings"];
    assert_eq!(settings["agent_states"]["DELEGATE_TO_APP"]["from"], json!(["CONTINUE"]));

    board.put("agents/first", &status("DELEGATE_TO_APP")).await.is(201);
    for (from, to, allowed) in [
        ("CONTINUE", "DELEGATE_TO_APP", true),
        ("PENDING", "DELEGATE_TO_APP", false),
        ("FINISH", "DELEGATE_TO_APP", false),
        ("DELEGATE_TO_APP", "CONTINUE", true),
        ("DELEGATE_TO_APP", "FINISH", true),
        ("DELEGATE_TO_APP", "FAIL", false),
        ("CONTINUE", "PENDING", true),
        ("PENDING", "FINISH", false),
    ] {
        let tail = format!("agents/{from}-{to}");
        board.put(&tail, &status(from)).await.is(201);
        let patch = board.request(Method::PATCH, &tail, &status(to));
        if allowed {
            ask(patch).await.is(200);
        } else {
            refuses(&board, patch, 409, "illegal-transition").await;
        }
    }
    // Only for this session.
    let other = server.board("other");
    other.put("agents/H", &status("DELEGATE_TO_APP")).await.problem(422, "invalid-field");
    let listed = board.get("agents?status=DELEGATE_TO_APP").await.is(200).json();
    let agents = listed["agents"].as_array().unwrap();
    assert!(agents.iter().all(|agent| agent["status"] == "DELEGATE_TO_APP"), "{listed}");
    assert_eq!(agents.len(), 3, "{listed}");
}

#[tokio::test]
async fn added_statuses_may_lead_to_one_another() {
    let server = Server::start();
    let board = server.board("s");
    states(
        &board,
        r#"{"ASSIGN":{"from":["CONTINUE"],"to":["WAIT"]},"WAIT":{"from":[],"to":["FAIL"]}}"#,
    )
    .await;
    board.put("agents/A", "{}").await.is(201);
    for to in ["ASSIGN", "WAIT", "FAIL", "CONTINUE"] {
        board.merge("agents/A", &status(to)).await.is(200);
    }
    let patch = board.request(Method::PATCH, "agents/A", &status("WAIT"));
    refuses(&board, patch, 409, "illegal-transition").await;
}

#[tokio::test]
async fn from_a_removed_status_an_agent_can_only_continue() {
    let server = Server::start();
    let board = server.board("s");
    for (index, after) in
        [r#"{"OTHER":{"from":["CONTINUE"],"to":["CONTINUE"]}}"#, "null"].into_iter().enumerate()
    {
        states(&board, DELEGATE).await;
        let tail = format!("agents/A{index}");
        board.put(&tail, &status("DELEGATE_TO_APP")).await.is(201);
        // The setting is replaced as a whole.
        states(&board, after).await;
        assert_eq!(board.get(&tail).await.json()["status"], "DELEGATE_TO_APP");
        let new = board.json(Method::PUT, "agents/new", &status("DELEGATE_TO_APP"));
        assert_eq!(pointer(&refuses(&board, new, 422, "invalid-field").await), "/status");
        for to in ["FINISH", "FAIL", "PENDING"] {
            let patch = board.request(Method::PATCH, &tail, &status(to));
            refuses(&board, patch, 409, "illegal-transition").await;
        }
        board.merge(&tail, r#"{"note":1}"#).await.is(200);
        board.merge(&tail, &status("CONTINUE")).await.is(200);
    }
    assert_eq!(board.get("").await.json()["settings"].get("agent_states"), None);
}

#[tokio::test]
async fn a_setting_that_names_no_state_machine_is_refused() {
    let server = Server::start();
    let (absent, there) = (server.board("absent"), server.board("there"));
    states(&there, DELEGATE).await;
    for states in [
        r#"{"CONTINUE":{"from":[],"to":[]}}"#,
        r#"{"SCREENSHOT":{"from":["CONTINUE"],"to":["CONTINUE"]}}"#,
        r#"{"NEW":{"from":["NEVER"],"to":["CONTINUE"]}}"#,
        r#"{"NEW":{"from":["CONTINUE"],"to":["NEVER"]}}"#,
        r#"{"NEW":{"from":["DELEGATE_TO_APP"],"to":["CONTINUE"]}}"#,
        r#"{"NEW":{"from":["continue"],"to":["CONTINUE"]}}"#,
        r#"{"NEW":{"from":"CONTINUE","to":["CONTINUE"]}}"#,
        r#"{"NEW":{"from":[1],"to":["CONTINUE"]}}"#,
        r#"{"NEW":["CONTINUE"]}"#,
        r#"{"NEW":5}"#,
        "[]",
        "5",
        "\"NEW\"",
    ] {
        for board in [&absent, &there] {
            let body = format!("{{\"settings\":{{\"agent_states\":{states}}}}}");
            let refused =
                refuses(board, board.json(Method::PUT, "", &body), 422, "invalid-field").await;
            assert!(pointer(&refused).starts_with("/settings/agent_states"), "{refused}");
        }
    }
    let body = r#"{"settings":{"agent_states":{"NEW":{"from":[],"to":[],"too":[]}}}}"#;
    refuses(&there, there.json(Method::PUT, "", body), 422, "unknown-field").await;
}

#[tokio::test]
async fn equal_states_again_commit_nothing() {
    let server = Server::start();
    let board = server.board("s");
    states(&board, DELEGATE).await;
    states(&board, DELEGATE).await;
    board.put("", r#"{"settings":{"history_keys":null}}"#).await.is(200);
    let same = board.put("", "{}").await;
    assert_eq!(receipt(same.is(200))["revision"], 1);
    assert!(board.get("").await.json()["settings"]["agent_states"].is_object());
}
