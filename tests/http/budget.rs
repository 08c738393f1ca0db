//! Budgets: the costs of a session's agents, and the refusals once they have passed it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::ask;
use crate::harness::{Board, Server};
use crate::metrics::sample;

/// Sets the budget of the session.
async fn limit(board: &Board, max: &str) {
    let body = format!(r#"{{"settings":{{"cost_max":{max}}}}}"#);
    assert!(board.put("", &body).await.status() < 300);
}

async fn session(board: &Board) -> Value {
    board.get("").await.is(200).json()
}

async fn told(board: &Board) -> Vec<u64> {
    let audit = board.get("audit?kind=budget_exhausted").await.json();
    let commits = audit["commits"].as_array().unwrap().iter();
    commits.map(|commit| commit["revision"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn a_passed_budget_refuses_steps_and_claims_until_it_is_raised() {
    let server = Server::start();
    let board = server.board("s");
    limit(&board, "0.3").await;
    board.post("requests", "[{},{}]").await.is(201);
    let memory = |agent: &str| format!("agents/{agent}/memory");
    // 0.1 + 0.2 is 0.3, which has not passed 0.3.
    board.post(&memory("A"), r#"{"cost":0.1}"#).await.is(201);
    board.post(&memory("B"), r#"[{"cost":0.2},{"cost":"9"},{"c\u006fst":0}]"#).await.is(201);
    board.post("trajectories", r#"{"cost":7}"#).await.is(201);
    ask(board.by("A", Method::PUT, "requests/1/claim", "{}")).await.is(201);
    assert_eq!((session(&board).await["cost"].clone(), told(&board).await), (json!(0.3), vec![]));
    let passing = board.post(&memory("A"), r#"{"cost":1e-9}"#).await;
    let passed_at = passing.is(201).json()["revision"].as_u64().unwrap();
    assert_eq!(told(&board).await, [passed_at]);
    assert_eq!(sample(&server, "blackboard_sessions_over_budget").await, 1.0);
    let transaction = |then: &str| format!(r#"{{"then":[{{"put":"x","value":1}},{then}]}}"#);
    for (method, tail, body) in [
        (Method::POST, memory("A"), r#"{"cost":0}"#.to_owned()),
        (Method::POST, memory("C"), "{}".to_owned()),
        (Method::PUT, memory("C"), "[{}]".to_owned()),
        (Method::POST, "trajectories".to_owned(), "{}".to_owned()),
        (Method::PUT, "requests/2/claim".to_owned(), "{}".to_owned()),
        (Method::POST, "requests/claim".to_owned(), String::new()),
        (Method::POST, "transactions".to_owned(), transaction(r#"{"claim_next":{}}"#)),
        (
            Method::POST,
            "transactions".to_owned(),
            transaction(r#"{"append":"trajectories","item":{}}"#),
        ),
    ] {
        ask(board.by("A", method, &tail, &body)).await.problem(409, "budget-exhausted");
    }
    // The work under way may end, and people may answer.
    ask(board.by("A", Method::PUT, "requests/1/claim", "{}")).await.is(200);
    ask(board.by("A", Method::PUT, "requests/1/done", "")).await.is(200);
    board.post("questions", r#"{"question":"more?"}"#).await.is(201);
    board.post("requests", "{}").await.is(201);
    board.put("state/x", "1").await.is(201);
    assert_eq!(told(&board).await, [passed_at]);
    limit(&board, "1").await;
    board.post(&memory("A"), r#"{"cost":1}"#).await.is(201);
    assert_eq!(told(&board).await.len(), 2);
    board.post(&memory("A"), "{}").await.problem(409, "budget-exhausted");
    limit(&board, "null").await;
    board.post(&memory("A"), r#"{"cost":1}"#).await.is(201);
    assert_eq!(sample(&server, "blackboard_sessions_over_budget").await, 0.0);
    limit(&board, "2").await;
    assert_eq!(told(&board).await.len(), 3);
}

#[tokio::test]
async fn the_sum_of_costs_follows_every_change_of_a_memory() {
    let mut server = Server::start();
    let board = server.board("s");
    let cost = async |board: &Board| session(board).await["cost"].as_f64().unwrap();
    board
        .post("agents/A/memory", r#"[{"cost":0.1,"step":1},{"cost":0.2},{"cost":0.4}]"#)
        .await
        .is(201);
    board.post("agents/B/memory", r#"{"cost":1.5}"#).await.is(201);
    board.put("agents/A/memory/2", r#"{"cost":-0.25}"#).await.is(200);
    assert_eq!(cost(&board).await, 1.75);
    board.delete("agents/A/memory?steps=1").await.is(200);
    assert_eq!(cost(&board).await, 1.65);
    board.post("checkpoints", r#"{"name":"then"}"#).await.is(201);
    board.delete("agents/B").await.is(200);
    assert_eq!(cost(&board).await, 0.15);
    board.post("fork", r#"{"to":"t","at":"then"}"#).await.is(201);
    board.post("restore", r#"{"at":"then"}"#).await.is(200);
    assert_eq!((cost(&board).await, cost(&server.board("t")).await), (1.65, 1.65));
    limit(&board, "1").await;
    server.kill();
    server.start_again();
    let board = server.board("s");
    assert_eq!(cost(&board).await, 1.65);
    board.post("trajectories", "{}").await.problem(409, "budget-exhausted");
    assert_eq!(sample(&server, "blackboard_sessions_over_budget").await, 1.0);
}

#[tokio::test]
async fn a_budget_is_a_number() {
    let server = Server::start();
    let board = server.board("s");
    for max in ["-1", "1e10", "\"1\"", "true", "[]", "{}", "1e400"] {
        let body = format!(r#"{{"settings":{{"cost_max":{max}}}}}"#);
        let refused = board.put("", &body).await;
        let problem = refused.problem(422, "invalid-field");
        assert_eq!(problem["errors"][0]["pointer"], "/settings/cost_max", "{max}");
    }
    board.get("").await.problem(404, "session-not-found");
    limit(&board, "0").await;
    assert_eq!(session(&board).await["settings"], json!({"cost_max":0.0}));
    board.post("agents/A/memory", r#"{"cost":0.5}"#).await.is(201);
    board.post("agents/A/memory", "{}").await.problem(409, "budget-exhausted");
}
