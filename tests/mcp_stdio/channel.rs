//! The channel: what waits for an agent, sent to the host as it comes.

use std::collections::VecDeque;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::bridge::{Bridge, command};
use crate::server::{Peer, Request, serve};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;

/// A server that shows these answers about an agent in turn, and then nothing new.
fn showing(looks: Vec<(u16, Value)>) -> String {
    let looks = Mutex::new(VecDeque::from(looks));
    serve(move |request, peer| match request.method().as_str() {
        "initialize" => {
            peer.json(r#"{"id":0,"result":{"capabilities":{"tools":{}},"instructions":"Work."}}"#);
        }
        "" => look(&looks, request, peer),
        "ping" => peer.echo(request),
        _ => peer.put("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"),
    })
}

fn look(looks: &Mutex<VecDeque<(u16, Value)>>, request: &Request, peer: &mut Peer) {
    assert!(request.head.starts_with("GET /v1/sessions/s/agents/B/attention"), "{}", request.head);
    let (next, left) = {
        let mut looks = looks.lock().unwrap();
        (looks.pop_front(), looks.len())
    };
    let Some((status, body)) = next else { return peer.wait_for_end() };
    let body = body.to_string();
    let length = body.len();
    peer.put(&format!(
        "HTTP/1.1 {status} \r\nContent-Type: application/json\r\nETag: \"{left}\"\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    ));
}

fn message(seq: u64, text: &str) -> Value {
    json!({"seq": seq, "revision": seq, "at": format!("T{seq}"), "agent": "A", "item": {"text": text}})
}

/// A look at messages, and at a revision up to which there is nothing else.
fn messages(messages: &[Value], next: u64) -> Value {
    json!({"messages": {"count": messages.len(), "newest": messages}, "paused": false, "next": next})
}

fn begun(looks: Vec<(u16, Value)>) -> Bridge {
    let mut command = command(&showing(looks));
    command.args(["--session", "s", "--agent", "B", "--channel"]);
    let mut bridge = Bridge::start(command);
    let answer: Value = serde_json::from_str(&bridge.ask(INITIALIZE)).unwrap();
    assert_eq!(answer["result"]["capabilities"]["experimental"], json!({"claude/channel": {}}));
    bridge.send(INITIALIZED);
    bridge
}

fn params(bridge: &Bridge) -> Value {
    let notification: Value = serde_json::from_str(&bridge.line()).unwrap();
    assert_eq!(notification["method"], "notifications/claude/channel");
    assert_eq!(notification.get("id"), None);
    notification["params"].clone()
}

#[test]
fn each_thing_is_sent_once_over_errors_and_pauses() {
    let (one, two) = (message(1, "a\nb"), message(2, "c"));
    let mut reply = two.clone();
    reply["item"] = json!({"text": "c", "thread": "t", "reply_to": 1});
    let mut paused = messages(&[one.clone(), reply.clone()], 2);
    paused["paused"] = true.into();
    let unreached = json!({"type": "x", "title": "x", "status": 404, "code": "session-not-found"});
    let bridge = begun(vec![
        (404, unreached),
        (200, messages(std::slice::from_ref(&one), 1)),
        (200, messages(std::slice::from_ref(&one), 1)),
        (200, paused),
        (200, messages(&[one, reply], 2)),
        (200, messages(&[two], 2)),
    ]);
    let meta = json!({"session": "s", "kind": "message", "seq": "1", "from_agent": "A"});
    assert_eq!(params(&bridge), json!({"content": "a\nb", "meta": meta}));
    let second = params(&bridge);
    assert_eq!((&second["content"], &second["meta"]["seq"]), (&json!("c"), &json!("2")));
    assert_eq!(
        (&second["meta"]["thread"], &second["meta"]["reply_to"]),
        (&json!("t"), &json!("1"))
    );
    bridge.end();
}

#[test]
fn answers_from_before_the_connection_are_not_sent() {
    let answer = |seq: u64| {
        let item = json!({"question": "Which?", "answer": seq});
        json!({"seq": seq, "revision": seq + 3, "at": "T", "agent": "B", "item": item})
    };
    let answers = |answers: &[Value], next: u64| json!({"answers": {"count": answers.len(), "newest": answers}, "next": next});
    let bridge = begun(vec![
        (200, answers(&[answer(1)], 4)),
        (200, answers(&[], 4)),
        (200, answers(&[answer(2)], 5)),
    ]);
    let sent = params(&bridge);
    let expected =
        r#"question 2, which you asked, has an answer: {"answer":2,"question":"Which?"}"#;
    assert_eq!((&sent["content"], &sent["meta"]["kind"]), (&json!(expected), &json!("answer")));
    bridge.end();
}

#[test]
fn a_channel_begins_with_initialize() {
    let mut bridge = begun(vec![]);
    let discover = r#"{"jsonrpc":"2.0","id":7,"method":"server/discover"}"#;
    let answer: Value = serde_json::from_str(&bridge.ask(discover)).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32601)));
    assert!(bridge.ask(PING).contains("\"result\":\"p\""));
    bridge.end();
}

#[test]
fn without_the_option_nothing_is_declared_or_asked() {
    let mut command = command(&showing(vec![]));
    command.args(["--session", "s", "--agent", "B"]);
    let mut bridge = Bridge::start(command);
    assert!(!bridge.ask(INITIALIZE).contains("claude/channel"));
    bridge.send(INITIALIZED);
    assert!(bridge.ask(PING).contains("\"result\":\"p\""));
    bridge.end();
}
