//! Messages: sent by anyone, seen by their owner alone, acknowledged once.

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::harness::{Board, Server, client};
use crate::matrix::token;
use crate::waiting::{LONG, waiting, with, woken};

const MESSAGES: &str = "agents/A/messages";

/// In the message that nobody else may see.
const SECRET: &str = "zanzibar";

/// Sends requests by a token.
struct By<'a> {
    server: &'a Server,
    http: Client,
    token: String,
}

impl<'a> By<'a> {
    fn new(server: &'a Server, arguments: &[&str]) -> Self {
        let token = token(server, &[&["create"], arguments].concat());
        Self { server, http: client(), token }
    }

    fn to(&self, method: Method, tail: &str) -> RequestBuilder {
        let url = format!("http://{}/v1/{tail}", self.server.authority());
        self.http.request(method, url).bearer_auth(&self.token)
    }

    async fn get(&self, tail: &str) -> Answer {
        ask(self.to(Method::GET, tail).header("accept", "application/json")).await
    }

    async fn send(&self, method: Method, tail: &str, body: &str) -> Answer {
        let request = self.to(method, tail).header("content-type", "application/json");
        ask(request.body(body.to_owned())).await
    }
}

async fn entries(board: &Board, tail: &str) -> Vec<Value> {
    board.get(tail).await.is(200).json()["entries"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_message_is_acknowledged_once() {
    let mut server = Server::start();
    let board = server.board("s");
    let sent = ask(board.by("B", Method::POST, MESSAGES, r#"{"text":"hello","thread":"t"}"#)).await;
    sent.is(201);
    assert_eq!(sent.header("location"), "/v1/sessions/s/agents/A/messages/1");
    board.post(MESSAGES, r#"["two",{"reply_to":1}]"#).await.is(201);
    assert_eq!(board.get("agents").await.json()["count"], 0, "a message registers nobody");
    let [first, ..] = &entries(&board, MESSAGES).await[..] else { panic!() };
    assert_eq!((&first["agent"], &first["item"]["thread"]), (&json!("B"), &json!("t")));
    assert_eq!(first.get("acked_at"), None);
    let ack = || board.put("agents/A/messages/1/ack", "");
    let acked = ack().await;
    let at = acked.is(200).json()["acked_at"].clone();
    let again = ack().await;
    assert_eq!(
        (again.json()["acked_at"].clone(), again.revision()),
        (at.clone(), acked.revision())
    );
    assert_eq!(board.get("agents/A/messages/1").await.etag(), acked.etag());
    let unacked = || entries(&board, "agents/A/messages?unacked=true");
    assert_eq!(unacked().await.len(), 2);
    board.put("agents/A/messages/4/ack", "").await.problem(404, "entry-not-found");
    board.put("agents/B/messages/1/ack", "").await.problem(404, "entry-not-found");
    board.put("agents/A/messages/2/ack?x=1", "").await.problem(400, "unknown-parameter");
    board.put("agents/A/memory/1/ack", "").await.problem(404, "route-not-found");
    server.kill();
    server.start_again();
    let board = server.board("s");
    assert_eq!(entries(&board, MESSAGES).await[0]["acked_at"], at);
    let tail = "agents/A/messages?unacked=true";
    assert_eq!(entries(&board, tail).await.len(), 2);
    board.delete("agents/A/messages/2").await.is(200);
    assert_eq!(entries(&board, tail).await.len(), 1);
}

#[tokio::test]
async fn a_reader_waits_for_the_next_message() {
    let server = Server::start();
    let board = server.made("s").await;
    let reader = waiting(&board, &with("agents/A/messages?after=0", LONG));
    board.post("agents/B/messages", "{}").await.is(201);
    board.post(MESSAGES, r#"{"text":"now"}"#).await.is(201);
    assert_eq!(woken(reader).await.items(), [json!({"text": "now"})]);
}

#[tokio::test]
async fn an_archive_and_a_restore_keep_acknowledgements() {
    let server = Server::start();
    let board = server.board("s");
    board.post(MESSAGES, r#"[{"text":"1"},{"text":"2"}]"#).await.is(201);
    board.post("checkpoints", r#"{"name":"then"}"#).await.is(201);
    board.put("agents/A/messages/1/ack", "").await.is(200);
    board.post("restore", r#"{"at":"then"}"#).await.is(200);
    let acked = entries(&board, MESSAGES).await;
    assert!(acked[0].get("acked_at").is_some() && acked[1].get("acked_at").is_none());
    let archive = board.get("archive").await.is(200).text().to_owned();
    let copy = server.board("copy");
    ask(copy.typed(Method::PUT, "archive", "application/x-ndjson", archive)).await.is(201);
    assert_eq!(entries(&copy, MESSAGES).await, acked);
    board.post("purge", "").await.is(200);
    assert_eq!(entries(&board, MESSAGES).await, acked);
    board.post("fork", r#"{"to":"other"}"#).await.is(201);
    assert_eq!(entries(&server.board("other"), MESSAGES).await, acked);
}

#[tokio::test]
async fn a_prompt_shows_the_unacknowledged_messages() {
    let server = Server::start();
    let board = server.board("s");
    board.post(MESSAGES, r#"[{"text":"old"},{"text":"new"}]"#).await.is(201);
    board.put("agents/A/messages/1/ack", "").await.is(200);
    let prompt = board.get("prompt?include=messages:A,requests").await;
    let text = prompt.is(200).json()[2]["text"].as_str().unwrap().to_owned();
    assert_eq!(text, "[Messages to A:]\n [{\"text\": \"new\"}]");
    let plain = board.get("prompt").await;
    assert!(!plain.text().contains("old") && !plain.text().contains("new"), "{plain}");
    let small = "prompt?include=messages:A&max_tokens=1";
    board.get(small).await.problem(422, "budget-too-small");
    assert_eq!(board.get("blackboard").await.json().as_object().unwrap().len(), 4);
}

#[tokio::test]
async fn so_many_unacknowledged_messages_and_no_more() {
    let server = Server::start();
    let board = server.board("s");
    let many = vec!["{}"; 10_000].join("\n");
    ask(board.typed(Method::POST, MESSAGES, "application/x-ndjson", many)).await.is(201);
    let full = board.post(MESSAGES, "{}").await;
    let detail = full.problem(507, "session-full")["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("10000 unacknowledged messages"), "{detail}");
    board.post("agents/B/messages", "{}").await.is(201);
    board.put("agents/A/messages/7/ack", "").await.is(200);
    board.post(MESSAGES, "{}").await.is(201);
}

#[tokio::test]
async fn a_transaction_sends_and_acknowledges() {
    let server = Server::start();
    let board = server.board("s");
    board.post(MESSAGES, "{}").await.is(201);
    let transaction = r#"{"if":[{"log":"agents/A/messages","count":1}],
        "then":[{"ack":1},{"append":"agents/B/messages","item":{"text":"done"}}]}"#;
    let done = ask(board.by("A", Method::POST, "transactions", transaction)).await;
    assert_eq!(done.is(200).json()["results"][1]["seq"], 1);
    assert_eq!(entries(&board, "agents/A/messages?unacked=true").await.len(), 0);
    board.post("transactions", r#"{"then":[{"ack":1}]}"#).await.problem(400, "agent-required");
    board.post("transactions", r#"{"then":[{"ack":1,"agent":"B"}]}"#).await.is(200);
    assert_eq!(entries(&board, "agents/B/messages?unacked=true").await.len(), 0);
}

#[tokio::test]
async fn another_agent_sees_nothing_of_a_message() {
    let server = Server::start();
    let admin = By::new(&server, &["--name", "admin", "--scopes", "admin"]);
    let agent =
        |name| By::new(&server, &["--name", name, "--agent", name, "--scopes", "read,write"]);
    let (owner, other) = (agent("A"), agent("B"));
    admin.send(Method::PUT, "sessions/s", "{}").await.is(201);
    let log = "sessions/s/agents/A/messages";
    let before = other.get("sessions/s").await.json();
    let sent = other.send(Method::POST, log, &format!(r#"{{"text":"{SECRET}"}}"#)).await;
    let revision = sent.is(201).revision();
    let read = owner.get(log).await;
    assert_eq!(read.items(), [json!({"text": SECRET})]);
    assert_eq!(read.json()["entries"][0]["agent"], "B");
    for tail in [
        "agents/A/messages",
        "agents/A/messages/1",
        "agents/A/attention",
        "prompt?include=messages:A",
        "archive",
    ] {
        other.get(&format!("sessions/s/{tail}")).await.problem(403, "forbidden");
    }
    let count = r#"{"if":[{"log":"agents/A/messages","count":1}],"then":[]}"#;
    other.send(Method::POST, "sessions/s/transactions", count).await.problem(403, "forbidden");
    for (method, tail, body) in [
        (Method::PUT, "/1/ack", ""),
        (Method::PUT, "/1", "{}"),
        (Method::PATCH, "/1", "{}"),
        (Method::DELETE, "/1", ""),
        (Method::PUT, "", "[]"),
        (Method::DELETE, "", ""),
    ] {
        other.send(method, &format!("{log}{tail}"), body).await.problem(403, "forbidden");
    }
    let ack = r#"{"then":[{"ack":1,"agent":"A"}]}"#;
    other.send(Method::POST, "sessions/s/transactions", ack).await.problem(403, "forbidden");
    let event = format!("sessions/s/events?after={}", revision - 1);
    let found = format!("search?q={SECRET}&session=s&min_revision={revision}");
    let reads = [
        event.as_str(),
        "sessions/s/audit",
        "sessions/s/diff?from=1",
        &found,
        "sessions/s/blackboard",
        "sessions/s/prompt",
        "sessions/s/agents",
    ];
    for tail in reads {
        let answer = other.get(tail).await;
        assert!(!answer.is(200).text().contains(SECRET), "{tail}: {answer}");
        assert!(!answer.text().contains("agents/A/messages"), "{tail}: {answer}");
    }
    let events = other.get(&event).await.json();
    assert_eq!(events["events"][0]["changes"], json!([]), "a commit that only sends is empty");
    assert!(owner.get(&event).await.text().contains(SECRET));
    assert_eq!(owner.get(&found).await.json()["hits"][0]["log"], "messages");
    assert_eq!(other.get(&found).await.json()["hits"], json!([]));
    let after = other.get("sessions/s").await.json();
    assert_eq!((&after["counts"], &after["agents"]), (&before["counts"], &before["agents"]));
    other.send(Method::POST, "sessions/s/fork", r#"{"to":"mine"}"#).await.is(201);
    let forked = admin.get("sessions/mine/agents/A/messages").await;
    assert_eq!(forked.json()["entries"], json!([]));
}
