//! What waits for an agent, forwarded until the receiver or the agent acknowledges it.

use std::collections::{BTreeMap, BTreeSet};

use rustix::process::Signal;
use serde_json::Value;

use super::receiver::{Message, Receiver};
use super::{cursor, ended, started, stored};
use crate::server::Server;

const ATTENTION: [&str; 3] = ["demo", "--attention", "B"];

fn send(server: &Server, text: &str) {
    server.json(&["send", "demo", "B", text, "--agent", "A"]);
}

/// The entries of a list in a message.
fn listed<'a>(message: &'a Message, list: &str) -> &'a Vec<Value> {
    assert_eq!(message.body["type"], "attention");
    assert_eq!(
        (&message.body["session"], &message.body["data"]["agent"]),
        (&"demo".into(), &"B".into())
    );
    message.body["data"][list]["newest"].as_array().unwrap()
}

fn texts(message: &Message) -> Vec<&str> {
    let texts = listed(message, "messages").iter();
    texts.map(|entry| entry["item"]["text"].as_str().unwrap()).collect()
}

#[test]
fn a_message_to_an_agent_comes_once() {
    let (mut server, receiver) = (Server::start(), Receiver::start());
    let path = cursor(&server);
    let arguments = [ATTENTION.as_slice(), &["--cursor", &path]].concat();
    // Nobody has written to the session yet.
    let forwarding = started(&server, &receiver.url, &arguments);
    send(&server, "one");
    let first = receiver.message();
    assert_eq!(texts(&first), ["one"]);
    assert_eq!(first.body["timestamp"], listed(&first, "messages")[0]["at"]);
    send(&server, "two");
    assert_eq!(texts(&receiver.message()), ["two"]);
    server.kill();
    server.start_again();
    send(&server, "three");
    let third = receiver.message();
    assert_eq!(texts(&third), ["three"]);
    assert_eq!(third.body["data"]["messages"]["count"], 3);
    forwarding.signal(Signal::TERM);
    assert!(forwarding.wait().0.success());
    server.json(&["messages", "demo", "B", "--ack", "1"]);
    let forwarding = started(&server, &receiver.url, &arguments);
    send(&server, "four");
    assert_eq!(texts(&receiver.message()), ["four"]);
    forwarding.signal(Signal::TERM);
    assert!(forwarding.wait().0.success() && receiver.is_empty());
    // The key of what was acknowledged goes at the first look that finds nothing new.
    let keys = stored(&path)["delivered"].as_array().unwrap().len();
    assert!((3..=4).contains(&keys), "{keys}");
}

#[test]
fn all_that_waits_for_an_agent_comes() {
    let (server, receiver) = (Server::start(), Receiver::start());
    server.json(&["ask", "demo", "q?", "--no-wait", "--agent", "B"]);
    server.json(&["answer", "demo/1", "yes"]);
    server.json(&["post", "demo/requests", r#"{"device":"linux"}"#]);
    server.json(&["post", "demo/requests", r#"{"device":"mac"}"#]);
    let arguments = [ATTENTION.as_slice(), &["--match", r#"{"device":"linux"}"#]].concat();
    let forwarding = started(&server, &receiver.url, &arguments);
    let first = receiver.message();
    assert_eq!(listed(&first, "answers")[0]["item"]["answer"], "yes");
    assert_eq!(listed(&first, "claimable")[0]["item"]["device"], "linux");
    assert!(listed(&first, "claimable").len() == 1 && listed(&first, "messages").is_empty());
    server.json(&["claim", "demo/1", "--agent", "B"]);
    server.json(&["cancel", "demo/1", "late"]);
    let cancel = receiver.message();
    assert_eq!(listed(&cancel, "cancels")[0]["cancel"]["reason"], "late");
    assert!(listed(&cancel, "answers").is_empty() && listed(&cancel, "claimable").is_empty());
    // A renewal is nothing new.
    server.json(&["claim", "demo/1", "--agent", "B"]);
    server.json(&["post", "demo/requests", r#"{"device":"linux"}"#, "--review"]);
    assert_eq!(listed(&receiver.message(), "claimable")[0]["seq"], 3);
    server.json(&["claim", "demo/3", "--agent", "A"]);
    server.json(&["finish", "demo/3", "draft", "--agent", "A"]);
    assert_eq!(listed(&receiver.message(), "reviews")[0]["seq"], 3);
    drop(forwarding);
    let only = [ATTENTION.as_slice(), &["--include", "messages,cancels"]].concat();
    let _forwarding = started(&server, &receiver.url, &only);
    let only = receiver.message();
    assert!(listed(&only, "cancels").len() == 1 && only.body["data"]["answers"].is_null());
}

#[test]
fn messages_beyond_those_shown_come_in_their_order() {
    let (server, receiver) = (Server::start(), Receiver::start());
    let many: Vec<String> = (1..=45).map(|n| format!("{{\"text\":\"{n}\"}}")).collect();
    server.json(&["send", "demo", "B", &format!("[{}]", many.join(","))]);
    let path = cursor(&server);
    let arguments = [ATTENTION.as_slice(), &["--cursor", &path]].concat();
    let mut forwarding = started(&server, &receiver.url, &arguments);
    let mut come: Vec<String> = Vec::new();
    let mut take = |message: Message| {
        assert!(listed(&message, "messages").len() <= 20);
        come.extend(texts(&message).into_iter().map(str::to_owned));
        come.len()
    };
    take(receiver.message());
    // It may end before the receiver has answered, or after.
    forwarding.signal(Signal::TERM);
    assert!(forwarding.wait().0.success());
    forwarding = started(&server, &receiver.url, &arguments);
    while take(receiver.message()) < 45 {}
    send(&server, "46");
    assert_eq!(take(receiver.message()), 46);
    assert!(come.iter().eq((1..=46).map(|n| n.to_string()).collect::<Vec<_>>().iter()));
    drop(forwarding);
}

#[test]
fn a_request_beside_many_messages_comes_once() {
    let (server, receiver) = (Server::start(), Receiver::start());
    let many: Vec<String> = (1..=45).map(|n| format!("{{\"text\":\"{n}\"}}")).collect();
    server.json(&["send", "demo", "B", &format!("[{}]", many.join(","))]);
    server.json(&["post", "demo/requests", "work"]);
    let _forwarding = started(&server, &receiver.url, &ATTENTION);
    let come = [receiver.message(), receiver.message(), receiver.message()];
    let requests: usize = come.iter().map(|message| listed(message, "claimable").len()).sum();
    let sizes = come.each_ref().map(|message| listed(message, "messages").len());
    assert_eq!((sizes, requests), ([20, 20, 5], 1));
    send(&server, "46");
    let next = receiver.message();
    assert_eq!(texts(&next), ["46"]);
    assert!(listed(&next, "claimable").is_empty() && receiver.is_empty());
}

#[test]
fn a_delivery_ends_though_no_message_follows() {
    let (server, receiver) = (Server::start(), Receiver::start());
    receiver.answer(&["503 Service Unavailable\r\nRetry-After: 3000"]);
    send(&server, "one");
    let path = cursor(&server);
    let arguments = [ATTENTION.as_slice(), &["--cursor", &path]].concat();
    let _forwarding = started(&server, &receiver.url, &arguments);
    assert_eq!(texts(&receiver.message()), ["one"]);
    server.json(&["messages", "demo", "B", "--ack", "1"]);
    // Nothing else waits, so the next look forgets the message's key: the delivery has ended.
    server.json(&["post", "demo/requests", "work"]);
    let next = receiver.message();
    assert!(texts(&next).is_empty() && listed(&next, "claimable").len() == 1);
}

#[test]
fn a_delivery_ends_once_its_messages_are_acknowledged() {
    let (server, receiver) = (Server::start(), Receiver::start());
    let later = "503 Service Unavailable\r\nRetry-After: 3000";
    receiver.answer(&["500 Internal Server Error", later]);
    send(&server, "one");
    send(&server, "two");
    let forwarding = started(&server, &receiver.url, &ATTENTION);
    let tries = [receiver.message(), receiver.message()];
    assert!(tries.iter().all(|one| one.id == tries[0].id && texts(one) == ["one", "two"]));
    // Half of them is not enough, and what waits for the receiver is not over before the pause is.
    server.json(&["messages", "demo", "B", "--ack", "1"]);
    send(&server, "three");
    server.json(&["messages", "demo", "B", "--ack", "2"]);
    assert_eq!(texts(&receiver.message()), ["three"]);
    assert!(receiver.is_empty());
    let said = forwarding.error();
    assert!(said.contains("what waits for B in demo: the receiver answered 500"), "{said}");
}

#[test]
fn an_attention_that_nobody_takes_ends_the_forward() {
    let (server, receiver) = (Server::start(), Receiver::start());
    let path = cursor(&server);
    send(&server, "one");
    let arguments = [ATTENTION.as_slice(), &["--cursor", &path]].concat();
    receiver.answer(&["400 Bad Request", "500 Internal Server Error"]);
    let refused = ended(&server, &receiver.url, &arguments).refusal(12);
    assert!(refused.contains("rejected what waits for B in demo with 400"), "{refused}");
    let tired = [arguments.as_slice(), &["--attempts", "1"]].concat();
    ended(&server, &receiver.url, &tired).refusal(12);
    assert_eq!(receiver.message().id, receiver.message().id);
    assert!(stored(&path)["delivered"].as_array().unwrap().is_empty());
    let other = ["demo", "--attention", "C", "--cursor", &path];
    let other = ended(&server, &receiver.url, &other).refusal(2);
    assert!(other.contains("is the cursor of agent B of session demo"), "{other}");
}

#[test]
fn no_message_is_missed_when_forwards_are_killed() {
    let (mut server, receiver) = (Server::start(), Receiver::start());
    let path = cursor(&server);
    let arguments = [ATTENTION.as_slice(), &["--cursor", &path]].concat();
    let mut held: BTreeMap<BTreeSet<u64>, BTreeSet<String>> = BTreeMap::new();
    let mut come = BTreeSet::new();
    let mut take = |message: Message| {
        let seqs = listed(&message, "messages").iter().map(|entry| entry["seq"].as_u64().unwrap());
        let seqs: BTreeSet<u64> = seqs.collect();
        come.extend(seqs.iter().copied());
        held.entry(seqs).or_default().insert(message.id);
        come.len()
    };
    let mut count = 0;
    for round in 0..6 {
        for n in 0..8 {
            send(&server, &n.to_string());
        }
        let forwarding = started(&server, &receiver.url, &arguments);
        let kept = receiver.hold();
        if round > 0 {
            count = take(receiver.message());
        }
        if round % 2 == 0 {
            kept.send("200 OK").ok();
        } else {
            server.kill();
            server.start_again();
        }
        forwarding.signal(Signal::KILL);
        assert!(!forwarding.wait().0.success());
    }
    let _forwarding = started(&server, &receiver.url, &arguments);
    while count < 48 {
        count = take(receiver.message());
    }
    // The same messages have the same id.
    assert!(held.values().all(|ids| ids.len() == 1), "{held:?}");
}
