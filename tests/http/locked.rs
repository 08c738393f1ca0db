//! A database that another program has locked: writes are refused until it is free, and no restart is needed.

use rusqlite::Connection;
use serde_json::json;

use crate::harness::Server;

#[tokio::test]
async fn a_lock_of_another_program_refuses_writes_only_while_it_is_held() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", r#"{"n":1}"#).await.is(201);
    let other = Connection::open(server.data().join("blackboard.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = board.post("requests", r#"{"n":2}"#).await;
    let problem = refused.problem(503, "store-unavailable");
    assert_eq!(problem["retryable"], json!(true));
    assert_eq!(problem.get("outcome"), None);
    assert_eq!(refused.header("retry-after"), "1");
    server.get("/readyz").await.is(200);
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(board.post("requests", r#"{"n":3}"#).await.is(201).revision(), 2);
}
