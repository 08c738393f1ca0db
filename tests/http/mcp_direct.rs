//! Calls of tools that are answered without the protocol's library, beside its own answers.

use reqwest::RequestBuilder;
use serde_json::json;

use crate::harness::Server;
use crate::mcp::{as_recent, call, message, text};

/// The status, headers and text of an answer, without what no two answers have in common.
async fn whole(request: RequestBuilder) -> (u16, Vec<(String, String)>, String) {
    let answer = request.send().await.expect("an answer");
    let mut headers: Vec<_> = answer.headers().clone().into_iter().collect();
    headers.retain(|(name, _)| {
        !["date", "x-request-id"].contains(&name.as_ref().map_or("", |name| name.as_str()))
    });
    let headers = headers.into_iter().map(|(name, value)| {
        (name.map_or_else(String::new, |name| name.to_string()), format!("{value:?}"))
    });
    (answer.status().as_u16(), headers.collect(), answer.text().await.expect("a text"))
}

/// The library passes over a member of a message that the protocol does not have, and answers what has one.
#[tokio::test]
async fn calls_are_answered_as_by_the_library() {
    let server = Server::start();
    let query = "session=s&agent=A&structured=1";
    for (tool, arguments) in [
        ("append_items", r#"{"log":"requests","items":[{"a":1.50}],"idempotency_key":"k"}"#),
        ("set_state", r#"{"path":"tasks","value":{"t1":{"n":1}}}"#),
        ("remember", r#"{"item":"noted"}"#),
    ] {
        text(call(&server, query, tool, arguments)).await;
    }
    for (tool, arguments) in [
        ("get_state", json!({"path": "tasks/t1"})),
        ("get_state", json!({"path": "missing"})),
        ("get_state", json!({"path": 5, "other": 1})),
        ("get_state", json!({"session": "none"})),
        ("get_state", json!(null)),
        ("read_log", json!({"log": "requests"})),
        ("read_log", json!({})),
        ("recall", json!({})),
        ("board_overview", json!({})),
        ("render_prompt", json!({"include": ["requests", "state"]})),
        ("compare_board", json!({"from": 1})),
        ("get_screenshot", json!({})),
        ("append_items", json!({"log": "requests", "items": [{"a": 1.5}], "idempotency_key": "k"})),
        ("set_state", json!({"path": "a", "value": 1, "expected_tag": "1.0"})),
        ("restore_board", json!({"at": "nowhere"})),
        ("no_tool", json!({})),
    ] {
        let params = json!({"name": tool, "arguments": arguments});
        let plain = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params});
        let mut other = plain.clone();
        other["other"] = json!(1);
        for query in [query, "session=s", "session=s&tools=worker", "sesion=s"] {
            let direct = whole(message(&server, query, &plain.to_string())).await;
            let of_library = whole(message(&server, query, &other.to_string())).await;
            assert_eq!(direct, of_library, "{query} {plain}");
            let direct = whole(as_recent(&server, query, plain.clone())).await;
            let of_library = whole(as_recent(&server, query, other.clone())).await;
            assert_eq!(direct, of_library, "{query} {plain}, recent");
        }
    }
}
