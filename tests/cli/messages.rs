//! Messages between agents: sent, listed, followed and acknowledged.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::server::{Running, Server, finished};

fn items(page: &Value) -> Vec<&Value> {
    page["entries"].as_array().unwrap().iter().map(|entry| &entry["item"]).collect()
}

#[test]
fn a_message_waits_until_it_is_acknowledged() {
    let server = Server::start();
    let sent = server.table(&["send", "a b", "Bé", "hello", "--agent", "A"]);
    assert_eq!(sent, "a b/agents/Bé/messages/1; revision 1\n");
    let item = r#"{"n": 1.0}"#;
    server.json(&["send", "a b", "Bé", item, "--thread", "t", "--reply-to", "7"]);
    finished(server.command(&["send", "a b", "Bé", "-"]), "from \"input\"").text();
    finished(server.command(&["send", "a b", "Bé"]), r#"[{"text":"x"},"y"]"#).text();
    let page = server.json(&["messages", "a b", "Bé"]);
    assert_eq!(page["entries"].as_array().unwrap().len(), 5);
    assert_eq!(
        items(&page)[..3],
        [
            &json!({"text": "hello"}),
            &json!({"n": 1.0, "thread": "t", "reply_to": 7}),
            &json!({"text": "from \"input\""}),
        ]
    );
    let table = server.table(&["messages", "a b", "Bé", "--limit", "2"]);
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[0].starts_with("SEQ  AT") && lines[1].contains(" A "), "{table}");
    assert!(lines[2].ends_with(r#"{"n": 1.0,"thread":"t","reply_to":7}"#), "{table}");
    assert_eq!(lines[3], "… more follow: --after 2");
    server.json(&["messages", "a b", "Bé", "--ack", "1,3"]);
    // Again, which changes nothing.
    server.json(&["messages", "a b", "Bé", "--ack", "3"]);
    let left = server.json(&["messages", "a b", "Bé"]);
    assert_eq!(left["entries"].as_array().unwrap().len(), 3);
    let all = server.table(&["messages", "a b", "Bé", "--all"]);
    let acknowledged = all.lines().filter(|line| line.contains("acknowledged")).count();
    assert_eq!((all.lines().count(), acknowledged), (6, 2), "{all}");
    let entry = server.table(&["show", "a b/agents/Bé/messages/1"]);
    assert!(entry.contains("acked_at  20"), "{entry}");
    assert!(server.table(&["show", "a b/agents/Bé/messages"]).contains("acknowledged"));
}

#[test]
fn what_is_listed_can_be_acknowledged_at_once() {
    let server = Server::start();
    server.json(&["send", "demo", "B", "one"]);
    server.json(&["send", "demo", "B", "two"]);
    let taken = server.json(&["messages", "demo", "B", "--ack", "all", "--limit", "1"]);
    assert_eq!(items(&taken), [&json!({"text": "one"})]);
    let taken = server.table(&["messages", "demo", "B", "--ack", "all"]);
    assert!(taken.contains("two") && !taken.contains("one"), "{taken}");
    assert!(items(&server.json(&["messages", "demo", "B", "--ack", "all"])).is_empty());
    let late = server.run(&["messages", "demo", "B", "--wait", "1ms"]).refusal(7);
    assert_eq!(late, "no message came within 1ms\n");
    let waiting = ["messages", "demo", "B", "--wait", "30s", "--ack", "all", "--format", "table"];
    let waiting = Running::start(server.command(&waiting));
    server.json(&["send", "demo", "B", "three"]);
    assert!(waiting.line().starts_with("SEQ"));
    assert!(waiting.line().ends_with(r#"{"text":"three"}"#));
    assert!(waiting.wait().0.success());
    assert!(items(&server.json(&["messages", "demo", "B"])).is_empty());
}

#[test]
fn messages_are_followed_through_restarts() {
    let mut server = Server::start();
    server.json(&["send", "demo", "B", "1"]);
    let arguments = ["messages", "demo", "B", "--follow", "--ack", "all", "--json"];
    let following = Running::start(server.command(&arguments));
    for round in 1..5 {
        let line: Value = serde_json::from_str(&following.line()).unwrap();
        assert_eq!(line["item"]["text"], round.to_string());
        if round == 2 {
            server.kill();
            server.start_again();
        }
        server.json(&["send", "demo", "B", &(round + 1).to_string()]);
    }
    following.line();
    following.signal(Signal::TERM);
    let (status, rest, notes) = following.wait();
    assert!(status.success() && rest.is_empty(), "{rest:?}");
    assert!(notes.iter().all(|note| note.ends_with("trying again")), "{notes:?}");
}

#[test]
fn messages_are_their_agents_alone() {
    let server = Server::start();
    server.token("admin", &["--scopes", "admin", "--create"]);
    let of = |name: &str| server.token(name, &["--agent", name, "--scopes", "read,write"]);
    let (a, b) = (of("A"), of("B"));
    let run = |token: &str, arguments: &[&str]| {
        server.run(&[arguments, &["--token-file", token]].concat())
    };
    run(&a, &["send", "demo", "B", "for B"]).json();
    assert_eq!(items(&run(&b, &["messages", "demo", "B"]).json()), [&json!({"text": "for B"})]);
    run(&a, &["messages", "demo", "B"]).refusal(4);
    run(&a, &["messages", "demo", "B", "--ack", "1"]).refusal(4);
    run(&b, &["messages", "demo", "B", "--ack", "1"]).json();
    let twice = ["send", "demo", "B", "x", "--idempotency-key", "k"];
    assert_eq!(run(&a, &twice).json(), run(&a, &twice).json());
    let odd = run(&a, &["send", "demo", "B", "[1]", "--thread", "t"]).refusal(2);
    assert!(odd.starts_with("with --thread or --reply-to"), "{odd}");
}
