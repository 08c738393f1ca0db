//! Databases locked by another program: writes refused until the lock is free, without a restart.

use rusqlite::Connection;
use serde_json::json;

use crate::harness::Server;

#[tokio::test]
async fn another_programs_lock_refuses_writes_only_while_held() {
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
