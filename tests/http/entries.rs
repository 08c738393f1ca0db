//! Single entries: read, replaced, patched, deleted.

use reqwest::Method;
use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server};
use crate::logs::LOGS;

const JSON_PATCH: &str = "application/json-patch+json";

async fn json_patch(board: &Board, tail: &str, patch: &Value) -> Answer {
    ask(board.typed(Method::PATCH, tail, JSON_PATCH, patch.to_string())).await
}

#[tokio::test]
async fn put_replaces_the_item_and_keeps_seq_and_places_of_keys() {
    let server = Server::start();
    for log in LOGS {
        let board = server.board("s");
        board.post(log, r#"[{"a":1,"b":2,"c":3},{"other":1}]"#).await.is(201);
        let before = board.get(&format!("{log}/1")).await.json();
        let request = board.json(Method::PUT, &format!("{log}/1"), r#"{"c":9.0,"d":0,"a":7}"#);
        ask(request.header("x-agent-id", "B")).await.is(200);
        let entry = board.get(&format!("{log}/1")).await;
        assert!(entry.is(200).text().contains(r#""item":{"a":7,"c":9.0,"d":0}"#), "{entry}");
        let after = entry.json();
        assert_eq!((&after["seq"], &after["at"]), (&json!(1), &before["at"]));
        assert_eq!(after["updated_by"], "B");
        assert!(after["updated_at"].is_string(), "{after}");
        assert_eq!(after["revision"], entry.revision());
        assert_eq!(after.get("agent"), None);
        assert_eq!(board.get(log).await.seqs(), [1, 2]);
    }
}

#[tokio::test]
async fn a_merge_patch_changes_members_and_null_removes_them() {
    let server = Server::start();
    for log in LOGS {
        let board = server.board("s");
        board.post(log, r#"{"a":1e1,"b":{"x":1,"y":2},"c":[1,2]}"#).await.is(201);
        let tail = format!("{log}/1");
        board.merge(&tail, r#"{"b":{"x":null,"z":{"w":1}},"c":[3],"d":2.50}"#).await.is(200);
        let entry = board.get(&tail).await;
        let item = r#""item":{"a":1e1,"b":{"y":2,"z":{"w":1}},"c":[3],"d":2.50}"#;
        assert!(entry.text().contains(item), "{entry}");
        for body in ["5", "null", "[]", "\"x\""] {
            board.merge(&tail, body).await.is(422);
        }
        assert!(board.get(&tail).await.text().contains(item));
    }
}

#[tokio::test]
async fn a_json_patch_is_done_whole_or_not_at_all() {
    let server = Server::start();
    for log in LOGS {
        let board = server.board("s");
        board.post(log, r#"{"a":1,"list":[1,2]}"#).await.is(201);
        let tail = format!("{log}/1");
        let patch = json!([
            {"op":"test","path":"/a","value":1},
            {"op":"add","path":"/list/-","value":3},
            {"op":"replace","path":"/a","value":{"deep":true}},
            {"op":"copy","from":"/a","path":"/b"}
        ]);
        json_patch(&board, &tail, &patch).await.is(200);
        let item = json!({"a":{"deep":true},"list":[1,2,3],"b":{"deep":true}});
        assert_eq!(board.get(&tail).await.json()["item"], item);
        let revision = board.get("").await.revision();
        for patch in [
            json!([{"op":"add","path":"/new","value":1},{"op":"test","path":"/a","value":9}]),
            json!([{"op":"remove","path":"/absent"}]),
            json!([{"op":"jump","path":"/a"}]),
            json!([{"op":"replace","path":"","value":[1]}]),
            json!({"op":"remove","path":"/a"}),
        ] {
            json_patch(&board, &tail, &patch).await.refused();
            assert_eq!(board.get(&tail).await.json()["item"], item, "{patch}");
        }
        assert_eq!(board.get("").await.revision(), revision);
    }
}

#[tokio::test]
async fn a_patch_of_another_type_is_told_what_to_send() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", "{}").await.is(201);
    let patch = board.to(Method::PATCH, "requests/1").header("content-type", "text/plain");
    let refused = ask(patch.body("{}")).await;
    refused.problem(415, "unsupported-media-type");
    assert!(refused.header("accept-patch").contains("application/merge-patch+json"), "{refused}");
    // JSON without a patch's type is a merge patch.
    ask(board.json(Method::PATCH, "requests/1", r#"{"a":1,"b":null}"#)).await.is(200);
    assert_eq!(board.get("requests/1").await.json()["item"], serde_json::json!({"a":1}));
}

#[tokio::test]
async fn a_patched_item_obeys_the_rules_of_a_posted_one() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", r#"{"a":1}"#).await.is(201);
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(128), "]".repeat(128));
    board.merge("requests/1", &deep).await.problem(422, "too-deep");
    board.put("requests/1", &deep).await.problem(422, "too-deep");
    board.merge("requests/1", r#"{"a":1e400}"#).await.problem(422, "unsupported-value");
    board.put("requests/1", r#"{"a":1e400}"#).await.problem(422, "unsupported-value");
    board.put("requests/1", "5").await.problem(422, "unsupported-item");
    board.put("requests/1", r#"{"a":NaN}"#).await.problem(400, "invalid-json");
    assert_eq!(board.get("requests/1").await.json()["item"], json!({"a":1}));
}

#[tokio::test]
async fn an_entry_that_is_not_there_is_404_for_every_verb() {
    let server = Server::start();
    let board = server.board("s");
    for log in LOGS {
        board.post(log, "[{},{}]").await.is(201);
        board.delete(&format!("{log}/1")).await.is(200);
        for seq in [1, 3, 99_999_999_999_u64] {
            let tail = format!("{log}/{seq}");
            board.get(&tail).await.problem(404, "entry-not-found");
            board.put(&tail, "{}").await.problem(404, "entry-not-found");
            board.merge(&tail, "{}").await.problem(404, "entry-not-found");
            board.delete(&tail).await.problem(404, "entry-not-found");
        }
        for seq in ["x", "-1", "1.0", "18446744073709551616"] {
            board.get(&format!("{log}/{seq}")).await.refused();
        }
        assert_eq!(board.get(log).await.seqs(), [2]);
    }
}

#[tokio::test]
async fn an_agents_memory_is_its_own() {
    let server = Server::start();
    let board = server.board("s");
    board.post("agents/A/memory", r#"{"of":"A"}"#).await.is(201);
    board.post("agents/B%20%C3%A9/memory", r#"{"of":"B"}"#).await.is(201);
    assert_eq!(board.lines("agents/A/memory").await, [r#"{"of":"A"}"#]);
    assert_eq!(board.lines("agents/B%20%C3%A9/memory").await, [r#"{"of":"B"}"#]);
    let dictionary = board.dictionary().await;
    assert!(!dictionary.contains("of"), "{dictionary}");
    board.delete("blackboard").await.is(200);
    assert_eq!(board.lines("agents/A/memory").await.len(), 1);
    board.delete("agents/A/memory").await.is(200);
    assert_eq!(board.lines("agents/B%20%C3%A9/memory").await.len(), 1);
}
