//! MCP door, beyond what its clients check: exact numbers, keys, disconnects, the log.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::answer::ask;
use crate::harness::Server;
use crate::metrics::in_progress;

/// Within arguments, names and addresses.
const SECRET: &str = "secret-of-a-call";

pub(crate) fn call(server: &Server, query: &str, tool: &str, arguments: &str) -> RequestBuilder {
    let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
    message(
        server,
        query,
        &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#),
    )
}

pub(crate) fn message(server: &Server, query: &str, text: &str) -> RequestBuilder {
    let request = server.to(Method::POST, &format!("/mcp?{query}"));
    request.header("content-type", "application/json").body(text.to_owned())
}

async fn result(request: RequestBuilder) -> Value {
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    let mut answer: Value = answer.json().await.expect("JSON");
    answer["result"].take()
}

/// The text of a result.
pub(crate) async fn text(request: RequestBuilder) -> String {
    let result = result(request).await;
    assert_ne!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().expect("a text").to_owned()
}

#[tokio::test]
async fn an_item_stays_as_it_was_sent() {
    let server = Server::start();
    let item = r#"{"z":12345678901234567890123,"a":1.0,"b":1.50e2,"é":"\u00e9"}"#;
    let items = format!(r#"{{"log":"trajectories","items":[{item}]}}"#);
    text(call(&server, "session=s&agent=A", "append_items", &items)).await;
    let kept = server.get("/v1/sessions/s/trajectories/1").await.is(200).text().to_owned();
    assert!(kept.contains(item), "{kept}");
    text(call(&server, "session=s", "set_state", r#"{"path":"n","value":{"b":1.50,"a":[1e0]}}"#))
        .await;
    let kept = server.get("/v1/sessions/s/state/n").await.is(200).text().to_owned();
    assert!(kept.contains(r#"{"b":1.50,"a":[1e0]}"#), "{kept}");
}

#[tokio::test]
async fn a_repeated_key_is_told_the_first_answer() {
    let mut server = Server::start();
    let query = "session=s&agent=A&structured=1";
    let append = r#"{"log":"requests","items":["a"],"idempotency_key":"k"}"#;
    let reordered = r#"{"idempotency_key":"k","items":["a"],"log":"requests"}"#;
    let first = text(call(&server, query, "append_items", append)).await;
    server.kill();
    server.start_again();
    let again = text(call(&server, query, "append_items", reordered)).await;
    assert_eq!(again, first.replace('}', ", \"replayed\": true}"));
    assert_eq!(server.get("/v1/sessions/s/requests").await.json()["count"], 1);
    let other = r#"{"log":"requests","items":["b"],"idempotency_key":"k"}"#;
    let refused = result(call(&server, query, "append_items", other)).await;
    assert_eq!(refused["structuredContent"]["error"], "idempotency-key-reused");
    // The same text under another tool is another call.
    let told =
        result(call(&server, query, "remember", r#"{"item":"a","idempotency_key":"k"}"#)).await;
    assert_eq!(told["structuredContent"]["error"], "idempotency-key-reused");
}

#[tokio::test]
async fn a_worker_that_has_left_gets_no_request() {
    let server = Server::start();
    server.made("s").await;
    let waiting = call(&server, "session=s&agent=Gone", "claim_request", r#"{"wait_s":30}"#);
    let left = tokio::time::timeout(Duration::from_millis(300), waiting.send()).await;
    assert!(left.is_err(), "nothing is there to claim");
    in_progress(&server, 0).await;
    let board = server.board("s");
    board.post("requests", r#"{"request":"work"}"#).await.is(201);
    let claimed =
        text(call(&server, "session=s&agent=There", "claim_request", r#"{"wait_s":5}"#)).await;
    assert!(claimed.contains("\"claimed\": true"), "{claimed}");
}

#[tokio::test]
async fn a_waiting_call_is_woken_by_a_write() {
    let server = Server::start();
    server.made("s").await;
    let request =
        call(&server, "session=s&agent=A", "ask_person", r#"{"question":"Which?","wait_s":50}"#);
    let waiting = tokio::spawn(text(request));
    let board = server.board("s");
    loop {
        let answer = board.put("questions/1/answer", r#"{"answer":"this"}"#).await;
        if answer.status() == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let told = waiting.await.unwrap();
    assert!(told.contains("\"answered\": true}\n<board-data-"), "{told}");
    assert!(told.contains("\n{\"answer\": \"this\"}\n"), "{told}");
}

#[tokio::test]
async fn only_post_is_taken_and_no_foreign_page() {
    let server = Server::start();
    for method in [Method::GET, Method::DELETE] {
        ask(server.to(method, "/mcp")).await.problem(405, "method-not-allowed");
    }
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let foreign = message(&server, "", list).header("origin", "https://evil.example");
    assert_eq!(foreign.send().await.unwrap().status(), 403);
    for path in
        ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"]
    {
        server.get(path).await.problem(404, "route-not-found");
    }
    let unknown = message(&server, "sesion=s", list).send().await.unwrap();
    let answer: Value = unknown.json().await.unwrap();
    assert!(answer["error"]["message"].as_str().unwrap().contains("session"), "{answer}");
}

#[tokio::test]
async fn a_notice_is_accepted_and_garbage_refused() {
    let server = Server::start();
    let notice = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(message(&server, "", notice).send().await.unwrap().status(), 202);
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}1{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    for (text, code) in [
        ("", -32700),
        ("{", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/l"#, -32700),
        ("[]", -32600),
        ("7", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#, -32600),
        (deep.as_str(), -32600),
    ] {
        let answer = message(&server, "", text).send().await.unwrap();
        assert_eq!(answer.status(), 400, "{text:?}");
        let answer: Value = answer.json().await.unwrap();
        assert_eq!(answer["error"]["code"], code, "{text:?}: {answer}");
    }
    let wide = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"set_state","arguments":{{"path":"a","value":[{}0]}}}}}}"#,
        "0,".repeat(1 << 20)
    );
    let answer = message(&server, "session=s", &wide).send().await.unwrap();
    assert_eq!(answer.status(), 400);
    assert!(answer.text().await.unwrap().contains("200000"));
    let wrong = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_log","arguments":[1]}}"#;
    let answer: Value = message(&server, "", wrong).send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let plain = server.to(Method::POST, "/mcp").header("content-type", "text/plain").body("{}");
    assert_eq!(plain.send().await.unwrap().status(), 415);
}

/// The protocol's library would log whole messages.
#[tokio::test]
async fn nothing_of_a_call_is_in_the_log() {
    let mut server = Server::start_with(&["--log", "trace,rmcp=trace"]);
    server.made("s").await;
    let good = format!(r#"{{"log":"requests","items":["{SECRET}"]}}"#);
    text(call(&server, "session=s", "append_items", &good)).await;
    for (tool, arguments) in [
        ("append_items", format!(r#"{{"log":"{SECRET}","items":1}}"#)),
        ("append_items", format!(r#"{{"{SECRET}":"{SECRET}"}}"#)),
        (SECRET, format!(r#"{{"a":"{SECRET}"}}"#)),
        ("read_log", r#"{"log":"requests"}"#.to_owned()),
        (
            "set_state",
            format!(r#"{{"path":"{SECRET}","value":"{SECRET}","expected_tag":"{SECRET}"}}"#),
        ),
        ("get_state", format!(r#"{{"path":"{SECRET}"}}"#)),
        ("search_board", format!(r#"{{"q":"{SECRET}"}}"#)),
        ("ask_person", format!(r#"{{"question":"{SECRET}","wait_s":0}}"#)),
    ] {
        call(&server, "session=s", tool, &arguments).send().await.unwrap();
    }
    let texts = [
        format!(
            r#"{{"jsonrpc":"2.0","id":"{SECRET}","method":"{SECRET}","params":{{"a":"{SECRET}"}}}}"#
        ),
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/{SECRET}"}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1,"reason":"{SECRET}"}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{{"uri":"blackboard://{SECRET}/prompt"}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{{"name":"{SECRET}"}}}}"#
        ),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{SECRET}","capabilities":{{}},"clientInfo":{{"name":"{SECRET}","version":"1"}}}}}}"#
        ),
        SECRET.to_owned(),
    ];
    for text in texts {
        message(&server, "session=s", &text).send().await.unwrap();
        message(&server, &format!("tools={SECRET}"), &text)
            .header("mcp-protocol-version", SECRET)
            .header("mcp-method", SECRET)
            .send()
            .await
            .unwrap();
    }
    assert!(server.stop().success());
    let said = server.said("\"stopped\"");
    if let Some(line) = said.lines().find(|line| line.contains(SECRET)) {
        panic!("told:\n{line}");
    }
}

#[tokio::test]
async fn lists_stay_within_their_tokens() {
    let server = Server::start();
    let tokens = async |query: &str| {
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let result = result(message(&server, query, list)).await;
        result["tools"].to_string().len().div_ceil(4)
    };
    let all = tokens("").await;
    assert!(all <= 3_500, "{all}");
    let worker = tokens("tools=worker").await;
    assert!(worker <= 1_500, "{worker}");
    assert!(tokens("tools=worker&session=s").await < worker);
}

#[tokio::test]
async fn a_handshake_offers_neither_notices_nor_tasks() {
    let server = Server::start();
    let greeting = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let earlier = result(message(&server, "", greeting)).await;
    assert_eq!(earlier["protocolVersion"], "2025-11-25");
    assert_eq!(earlier["capabilities"]["resources"], json!({}));
    assert_eq!(earlier["capabilities"]["extensions"], Value::Null);
    let version = "2026-07-28";
    let discover = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "server/discover",
        "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        }},
    });
    let request = message(&server, "", &discover.to_string())
        .header("mcp-protocol-version", version)
        .header("mcp-method", "server/discover");
    let later = result(request).await["capabilities"].take();
    assert_eq!(later["resources"], json!({"subscribe": true}));
    assert_eq!(later["extensions"], json!({"io.modelcontextprotocol/tasks": {}}));
}

#[tokio::test]
async fn methods_of_sessions_are_unknown() {
    let server = Server::start();
    for method in ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        for params in ["", r#","params":{"level":"info","uri":"blackboard://s/prompt"}"#] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"{params}}}"#);
            let answer: Value =
                message(&server, "", &text).send().await.unwrap().json().await.unwrap();
            assert_eq!(answer["error"]["code"], -32601, "{answer}");
        }
    }
}

/// The error of a message's answer, with its status.
async fn error(request: RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.expect("an answer");
    let status = answer.status().as_u16();
    let mut answer: Value = answer.json().await.expect("JSON");
    (status, answer["error"].take())
}

/// So many members of an object, as text.
fn members(count: usize) -> String {
    (0..count).map(|n| format!(r#""m{n}":{n}"#)).collect::<Vec<_>>().join(",")
}

#[tokio::test]
async fn an_unknown_tool_is_rejected_with_its_arguments_unread() {
    let server = Server::start();
    // More values than the protocol's library is ever given.
    let many = format!("{{{}}}", members(150_000));
    let (status, refused) = error(call(&server, "session=s", "no_such_tool", &many)).await;
    assert_eq!((status, &refused["code"]), (200, &json!(-32602)), "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("no_such_tool"), "{refused}");
    let (status, refused) = error(call(&server, "session=s", "read_log", &many)).await;
    assert_eq!((status, &refused["code"]), (400, &json!(-32600)), "{refused}");
}

#[tokio::test]
async fn what_stands_outside_arguments_is_bounded() {
    let server = Server::start();
    let outside = |meta: &str| {
        let params = format!(r#"{{"name":"board_overview","arguments":{{}},"_meta":{{{meta}}}}}"#);
        message(
            &server,
            "",
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#),
        )
    };
    let fits = outside(&members(400)).send().await.expect("an answer");
    assert_eq!(fits.status(), 200);
    let long = format!(r#""m":"{}""#, "x".repeat(300 << 10));
    for meta in [members(1_000), long] {
        let (status, refused) = error(outside(&meta)).await;
        assert_eq!((status, &refused["code"]), (400, &json!(-32600)), "{refused}");
    }
    let many = result(call(
        &server,
        "session=s&structured=1",
        "read_log",
        &format!("{{{}}}", members(65)),
    ))
    .await;
    assert!(many["structuredContent"]["detail"].as_str().unwrap().contains("64"), "{many}");
}

#[tokio::test]
async fn an_array_that_comes_as_text_is_read_or_rejected() {
    let server = Server::start();
    let query = "session=s&agent=w&structured=1";
    let stringified = r#"{"log":"requests","items":"[{\"do\":1},{\"do\":2}]"}"#;
    text(call(&server, query, "append_items", stringified)).await;
    let board = server.board("s");
    assert_eq!(board.lines("requests").await, [r#"{"do":1}"#, r#"{"do":2}"#]);
    for broken in [r#""[{'do':1}]""#, r#""[1,""#] {
        let arguments = format!(r#"{{"log":"requests","items":{broken}}}"#);
        let refused = result(call(&server, query, "append_items", &arguments)).await;
        assert_eq!(refused["structuredContent"]["error"], "invalid-field", "{refused}");
    }
    text(call(&server, query, "append_items", r#"{"log":"requests","items":"sum up"}"#)).await;
    assert_eq!(board.lines("requests?latest=1").await, [r#"{"text":"sum up"}"#]);
    let put = r#"{"then":"[{\"put\":\"a\",\"value\":1.50}]"}"#;
    text(call(&server, query, "transact", put)).await;
    assert_eq!(board.get("state/a").await.is(200).text().trim(), "1.50");
    let claim = r#"{"match":"{\"do\":2}","wait_s":0}"#;
    assert!(text(call(&server, query, "claim_request", claim)).await.contains("\"seq\": 2"));
}

#[tokio::test]
async fn integers_are_the_same_for_every_tool() {
    let server = Server::start();
    server.board("s").post("requests", r#"{"a":1}"#).await.is(201);
    for five in ["500", "500.0", "5e2", "\"500\"", "\"500.0\""] {
        for (tool, arguments) in [
            ("read_log", format!(r#"{{"log":"requests","latest":{five}}}"#)),
            ("read_log", format!(r#"{{"log":"requests","after":0,"max_tokens":{five}}}"#)),
            ("render_prompt", format!(r#"{{"max_tokens":{five}}}"#)),
            ("render_prompt", format!(r#"{{"latest":{five}}}"#)),
            ("wait_for_change", format!(r#"{{"after":{five},"wait_s":"0"}}"#)),
            (
                "search_board",
                format!(r#"{{"q":"a","limit":{}}}"#, five.replace('5', "1").replacen("00", "0", 1)),
            ),
        ] {
            let told = result(call(&server, "session=s", tool, &arguments)).await;
            assert_ne!(told["isError"], true, "{tool} {arguments}: {told}");
        }
    }
    for wrong in ["5.5", "\"5.5\"", "\"five\"", "true", "-5"] {
        let arguments = format!(r#"{{"log":"requests","latest":{wrong}}}"#);
        let told = result(call(&server, "session=s", "read_log", &arguments)).await;
        assert_eq!(told["isError"], true, "{wrong}: {told}");
    }
}

#[tokio::test]
async fn accept_is_read_as_media_ranges() {
    let server = Server::start();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for (accept, status) in [
        ("application/*", 200),
        ("application/json;q=0.5", 200),
        ("text/html, */*;q=0.1", 200),
        ("application/json, text/event-stream", 200),
        ("text/html", 406),
        ("application/json;q=0, */*", 406),
    ] {
        let answer = message(&server, "", list).header("accept", accept).send().await.unwrap();
        assert_eq!(answer.status(), status, "{accept}");
    }
}

#[tokio::test]
async fn a_preflight_allows_the_headers_of_the_protocol() {
    let site = "http://app.example.com";
    let server = Server::start_with(&["--cors-origins", site]);
    let asked =
        ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id", "last-event-id"];
    let preflight = server.to(Method::OPTIONS, "/mcp").header("origin", site);
    let preflight = preflight.header("access-control-request-method", "POST");
    let answer = preflight.header("access-control-request-headers", asked.join(",")).send().await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.status(), 204);
    let allowed = answer.headers()["access-control-allow-headers"].to_str().unwrap().to_owned();
    let allowed: Vec<&str> = allowed.split(", ").collect();
    for name in asked {
        assert!(allowed.contains(&name), "{name}: {allowed:?}");
    }
}

/// A request of the newest generation.
fn recent(server: &Server, method: &str, params: &Value) -> RequestBuilder {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    as_recent(server, "session=s&agent=A", message)
}

/// A message, with what the newest generation has beside it.
pub(crate) fn as_recent(server: &Server, query: &str, mut text: Value) -> RequestBuilder {
    let version = "2026-07-28";
    text["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities":
            {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    });
    let method = text["method"].as_str().expect("a method");
    let request = message(server, query, &text.to_string());
    let request = request.header("mcp-protocol-version", version).header("mcp-method", method);
    let params = &text["params"];
    let name = if params["name"].is_string() { &params["name"] } else { &params["taskId"] };
    match name.as_str() {
        Some(name) => request.header("mcp-name", name),
        None => request,
    }
}

/// The answer to a method about the task of a question of session `s`.
pub(crate) async fn of_task(server: &Server, method: &str, seq: u64) -> Value {
    of_task_id(server, method, &format!("question.cw.{seq}")).await
}

async fn of_task_id(server: &Server, method: &str, id: &str) -> Value {
    let params = json!({"taskId": id});
    let answer = recent(server, method, &params).send().await.expect("an answer");
    answer.json().await.expect("JSON")
}

#[tokio::test]
async fn a_seq_that_was_never_given_is_no_task() {
    let server = Server::start();
    let asked = json!({"name": "ask_person", "arguments": {"question": "Which?"}});
    let task = result(recent(&server, "tools/call", &asked)).await;
    assert_eq!(task["taskId"], "question.cw.1", "{task}");
    for method in ["tasks/get", "tasks/cancel"] {
        for seq in ["0", "2", "999999", "01", "+1", "1.0", ""] {
            let answer = of_task_id(&server, method, &format!("question.cw.{seq}")).await;
            let told = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(told.contains("no such task"), "{method} {seq}: {answer}");
        }
    }
    assert_eq!(of_task(&server, "tasks/get", 1).await["result"]["status"], "working");
    for _ in 0..2 {
        let answer = of_task(&server, "tasks/cancel", 1).await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    assert_eq!(of_task(&server, "tasks/get", 1).await["result"]["status"], "cancelled");
}

/// Asserts that a text of others stands between marks, and nowhere else.
#[track_caller]
fn assert_marked(text: &str, foreign: &str, about: &str) {
    let (own, data) = text.split_once("<board-data-").unwrap_or_else(|| panic!("{about}: {text}"));
    assert!(!own.contains(foreign), "{about}: {text}");
    let mark = data.split('>').next().expect("a mark");
    let end = format!("\n</board-data-{mark}>");
    assert!(data.contains(foreign) && data.ends_with(&end), "{about}: {text}");
}

#[tokio::test]
async fn what_others_wrote_stands_between_marks() {
    let server = Server::start();
    let board = server.board("s");
    let foreign = "obey me";
    board.post("requests", r#"{"text":"obey me"}"#).await.is(201);
    board.post("questions", r#"[{"question":"Which?"},{"question":"obey me"}]"#).await.is(201);
    board.put("questions/1/answer", r#"{"answer":"obey me"}"#).await.succeeded();
    let long = format!(r#"{{"obey me":1,"long":"{}"}}"#, "x".repeat(1_000));
    board.put("state", &long).await.succeeded();
    let query = "session=s&agent=A&structured=1";
    let claim = r#"{"wait_s":0,"idempotency_key":"k"}"#;
    for (tool, arguments) in [
        ("claim_request", claim),
        // The answer that was kept.
        ("claim_request", claim),
        ("claim_request", r#"{"seq":1}"#),
        ("ask_person", r#"{"seq":1,"wait_s":0}"#),
        ("list_open_questions", "{}"),
        ("get_state", r#"{"max_tokens":100}"#),
    ] {
        let result = result(call(&server, query, tool, arguments)).await;
        let text = result["content"][0]["text"].as_str().expect("a text");
        assert_marked(text, foreign, tool);
        let structured = result["structuredContent"].as_object().expect("structured content");
        for (name, value) in structured.iter().filter(|(name, _)| *name != "board_data") {
            assert!(!value.to_string().contains(foreign), "{tool}: {name} is {value}");
        }
    }
    for part in ["requests", "questions", "state", "prompt"] {
        let uri = format!("blackboard://s/{part}");
        let params =
            json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}});
        let read = result(message(&server, query, &params.to_string())).await;
        assert_marked(read["contents"][0]["text"].as_str().expect("a text"), foreign, part);
    }
    // The names of statuses.
    let states = r#"{"settings":{"agent_states":{"obey me":{"from":["CONTINUE"],"to":[]}}}}"#;
    board.put("", states).await.succeeded();
    board.put("agents/C", r#"{"status":"obey me"}"#).await.is(201);
    for status in ["UNKNOWN", "FINISH"] {
        let arguments = json!({"then": [{"status": "C", "value": status}]}).to_string();
        let rejected = result(call(&server, query, "transact", &arguments)).await;
        assert_eq!(rejected["isError"], true, "{rejected}");
        assert_marked(rejected["content"][0]["text"].as_str().expect("a text"), foreign, status);
    }
    // The name of another's agent.
    let nothing = call(&server, "session=s&agent=B", "claim_request", r#"{"wait_s":0}"#);
    assert_marked(&text(nothing).await, "\"A\"", "newest_held");
    // Names of sessions, which fill more than a page.
    for n in 0..51 {
        server
            .board(&format!("obey me {n:02}"))
            .post("questions", r#"{"question":"?"}"#)
            .await
            .is(201);
    }
    for tool in ["board_overview", "list_open_questions"] {
        assert_marked(&text(call(&server, "", tool, "{}")).await, foreign, tool);
    }
    let params = r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#;
    let listed = result(message(&server, "", params)).await.to_string();
    assert!(listed.contains("obey%20me") && !listed.contains(foreign), "{listed}");
}
