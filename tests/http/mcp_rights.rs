//! Access to the tools of MCP: every tool, by each kind of caller.
//!
//! A tool that has no row here fails the test, so that none comes without somebody having thought of it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::matrix::{ALL, House, Needs, Who, refusal};

/// A row: the tool, what it needs, its arguments besides the session.
type Row = (&'static str, Needs, &'static str);

const ROWS: &[Row] = &[
    ("board_overview", Needs::Read, "{}"),
    ("read_log", Needs::Read, r#"{"log":"requests"}"#),
    ("append_items", Needs::Write, r#"{"log":"requests","items":["more"]}"#),
    ("add_screenshot", Needs::Write, SCREENSHOT),
    ("get_screenshot", Needs::Read, r#"{"seq":1}"#),
    ("render_prompt", Needs::Read, "{}"),
    ("search_board", Needs::Read, r#"{"q":"word"}"#),
    ("get_state", Needs::Read, r#"{"path":"place"}"#),
    ("set_state", Needs::Write, r#"{"path":"other","value":1}"#),
    ("add_to_state", Needs::ReadWrite, r#"{"path":"number","add":1}"#),
    ("transact", Needs::Write, r#"{"then":[{"put":"n","value":1}]}"#),
    ("remember", Needs::WriteMemoryOfA, r#"{"agent":"A","item":"a note"}"#),
    ("recall", Needs::ReadMemoryOfA, r#"{"of":"A"}"#),
    ("ask_person", Needs::ReadWrite, r#"{"question":"Why?","wait_s":0}"#),
    ("answer_question", Needs::Write, r#"{"seq":1,"answer":"yes"}"#),
    ("list_open_questions", Needs::Read, "{}"),
    ("claim_request", Needs::ReadWrite, r#"{"wait_s":0}"#),
    ("finish_request", Needs::Write, r#"{"seq":1}"#),
    ("review_request", Needs::Write, r#"{"seq":2,"accept":true}"#),
    ("send_message", Needs::Write, r#"{"to":"A","item":"a message"}"#),
    ("attention", Needs::ReadWrite, r#"{"wait_s":0}"#),
    ("wait_for_change", Needs::Read, r#"{"after":0,"wait_s":0}"#),
    ("checkpoint_board", Needs::Write, r#"{"name":"other"}"#),
    ("compare_board", Needs::Read, r#"{"from":1}"#),
    ("restore_board", Needs::WriteMemories, r#"{"at":1}"#),
];

const SCREENSHOT: &str = r#"{"image":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="}"#;

/// Calls a method of the protocol. The status, and the answer if it is JSON.
async fn rpc(house: &House, who: Who, session: &str, method: &str, params: Value) -> (u16, Value) {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let request = house.request(who, Method::POST, &format!("/mcp?session={session}&structured=1"));
    let request = request.header("content-type", "application/json").header("x-agent-id", "A");
    let answer = request.body(message.to_string()).send().await.expect("an answer");
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap_or(Value::Null))
}

/// Whether the caller got through, else the reason.
fn refused(status: u16, answer: &Value) -> Option<String> {
    if status != 200 {
        return Some(status.to_string());
    }
    if answer["error"].is_object() {
        return Some("hidden".to_owned());
    }
    let result = &answer["result"];
    (result["isError"] == true)
        .then(|| result["structuredContent"]["error"].as_str().unwrap_or("an error").to_owned())
}

/// A second request, which another agent did.
async fn reviewable(house: &House, session: &str) {
    for (method, tail) in [(Method::POST, "requests?review=true"), (Method::PUT, "requests/2/done")]
    {
        let path = format!("/v1/sessions/{session}/{tail}");
        let request = house.request(Who::Admin, method, &path).header("x-agent-id", "Z");
        let request = request.header("content-type", "application/json").body("{}");
        assert!(request.send().await.expect("an answer").status().is_success());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tool_lets_through_exactly_those_allowed() {
    let house = House::new().await;
    house.fill("mine").await;
    let (_, listed) = rpc(&house, Who::Admin, "mine", "tools/list", json!({})).await;
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ROWS.iter().map(|row| row.0).collect::<Vec<_>>(), "who may do this?");
    for (number, (tool, needs, arguments)) in ROWS.iter().enumerate() {
        for who in ALL {
            let session = format!("mine-{number}-{}", who as u8);
            house.fill(&session).await;
            if *tool == "review_request" {
                reviewable(&house, &session).await;
            }
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            let params = json!({ "name": tool, "arguments": arguments });
            let (status, answer) = rpc(&house, who, &session, "tools/call", params).await;
            let told = refused(status, &answer);
            let expected = refusal(*needs, true, who);
            assert_eq!(told.is_some(), expected.is_some(), "{tool} by {who:?}: {answer}");
            match (expected, told.as_deref()) {
                (Some(401), told) => assert_eq!(told, Some("401"), "{tool} by {who:?}"),
                (Some(404), told) => {
                    assert_eq!(told, Some("session-not-found"), "{tool} by {who:?}");
                }
                // A bound token may name no other agent.
                (Some(_), told) => assert!(
                    ["forbidden", "hidden", "invalid-field"].contains(&told.unwrap()),
                    "{tool} by {who:?}: {told:?}"
                ),
                (None, _) => {}
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_is_shown_the_tools_that_it_may_use() {
    let house = House::new().await;
    house.fill("mine").await;
    for who in ALL {
        let (status, answer) = rpc(&house, who, "mine", "tools/list", json!({})).await;
        if refusal(Needs::Read, false, who) == Some(401) {
            assert_eq!(status, 401, "{who:?}");
            continue;
        }
        let shown = answer["result"]["tools"].as_array().unwrap();
        let writes = shown.iter().any(|tool| tool["annotations"]["readOnlyHint"] != true);
        let reads = shown.iter().any(|tool| tool["annotations"]["readOnlyHint"] == true);
        assert_eq!(writes, who != Who::Reader, "{who:?}");
        assert_eq!(reads, who != Who::Writer, "{who:?}");
        let names_agents =
            shown.iter().any(|tool| tool["inputSchema"]["properties"]["agent"].is_object());
        let bound = [Who::OwnAgent, Who::OtherAgent, Who::OtherAgentWithSight].contains(&who);
        assert_eq!(names_agents, !bound, "{who:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_are_read_by_those_who_may() {
    let house = House::new().await;
    house.fill("mine").await;
    for (rest, needs) in [
        ("prompt", Needs::Read),
        ("requests", Needs::Read),
        ("state/place", Needs::Read),
        ("screenshots/1", Needs::Read),
        ("agents/A/memory", Needs::ReadMemoryOfA),
        ("agents/A/messages", Needs::ReadMemoryOfA),
        ("agents/A/attention", Needs::ReadMemoryOfA),
    ] {
        for who in ALL {
            let uri = format!("blackboard://mine/{rest}");
            let (status, answer) =
                rpc(&house, who, "mine", "resources/read", json!({ "uri": uri })).await;
            let expected = refusal(needs, true, who);
            assert_eq!(
                refused(status, &answer).is_some(),
                expected.is_some(),
                "{rest} by {who:?}: {answer}"
            );
        }
    }
}
