//! Webhooks of `forward`: signed, in order, and none missed during kills.

mod attention;
mod receiver;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use rustix::process::Signal;
use serde_json::Value;

use self::receiver::{Receiver, SECRET};
use crate::server::{Done, Running, Server, finished};

/// Arguments of a forward to a receiver, before others.
fn forward<'a>(to: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    [&["forward", "--to", to], arguments].concat()
}

fn started(server: &Server, to: &str, arguments: &[&str]) -> Running {
    let mut command = server.command(&forward(to, arguments));
    command.env("BLACKBOARD_WEBHOOK_SECRET", SECRET);
    Running::start(command)
}

/// Runs a forward that ends by itself.
fn ended(server: &Server, to: &str, arguments: &[&str]) -> Done {
    let mut command = server.command(&forward(to, arguments));
    command.env("BLACKBOARD_WEBHOOK_SECRET", SECRET);
    let done = finished(command, "");
    let said = format!("{}{}", done.output, done.error);
    assert!(!said.contains("MfKQ9r8G") && !said.contains("hidden"), "{said}");
    done
}

fn post(server: &Server, count: usize) {
    for _ in 0..count {
        server.json(&["post", "demo/requests", "work"]);
    }
}

fn cursor(server: &Server) -> String {
    server.home.path().join("cursor").to_str().unwrap().to_owned()
}

fn stored(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn events_come_signed_and_in_order() {
    let (server, receiver) = (Server::start(), Receiver::start());
    server.json(&["post", "a.ä b/requests", "{\"n\": 1.0}", "--agent", "A"]);
    let secret = server.home.path().join("secret");
    fs::write(&secret, format!("{SECRET}\n")).unwrap();
    let arguments = ["a.ä b", "--after", "0", "--secret-file", secret.to_str().unwrap()];
    let forwarding = Running::start(server.command(&forward(&receiver.url, &arguments)));
    let first = receiver.message();
    assert_eq!((first.target.as_str(), first.revision()), ("/hook?key=hidden", 1));
    let data = &first.body["data"];
    assert_eq!((&first.body["session"], &first.body["timestamp"]), (&"a.ä b".into(), &data["at"]));
    assert_eq!(data["agent"], "A");
    assert_eq!(data["changes"][1]["entries"][0]["item"]["n"], 1.0);
    for revision in 2..6 {
        server.json(&["state", "set", "a.ä b/n", &revision.to_string()]);
        let message = receiver.message();
        assert_eq!(
            (message.revision(), &message.body["type"]),
            (revision, &"commit.state_put".into())
        );
    }
    forwarding.signal(Signal::INT);
    let (status, output, errors) = forwarding.wait();
    assert!(status.success() && output.is_empty() && errors.is_empty(), "{errors:?}");
}

#[test]
fn filters_choose_among_events() {
    let (server, receiver) = (Server::start(), Receiver::start());
    let arguments = ["demo", "--after", "0", "--on", "state/a", "--by", "A"];
    let _forwarding = started(&server, &receiver.url, &arguments);
    server.json(&["state", "set", "demo/b", "1", "--agent", "A"]);
    server.json(&["state", "set", "demo/a", "1", "--agent", "B"]);
    server.json(&["state", "set", "demo/a", "2", "--agent", "A"]);
    server.json(&["state", "set", "demo/a", "3", "--agent", "A"]);
    assert_eq!([receiver.message().revision(), receiver.message().revision()], [3, 4]);
}

#[test]
fn a_message_is_sent_again_until_it_is_acknowledged() {
    let (server, receiver) = (Server::start(), Receiver::start());
    post(&server, 2);
    let busy = "429 Too Many Requests\r\nRetry-After: 2";
    receiver.answer(&["500 Internal Server Error", busy, "200 OK"]);
    let forwarding = started(&server, &receiver.url, &["demo", "--after", "0"]);
    let tries = [receiver.message(), receiver.message(), receiver.message()];
    assert!(tries.iter().all(|message| message.id == tries[0].id && message.revision() == 1));
    // The receiver asked for two seconds, four times as long as the pause would be.
    assert!(tries[2].seconds >= tries[1].seconds + 2, "{tries:?}");
    let next = receiver.message();
    assert!(next.revision() == 2 && next.id != tries[0].id);
    let said = forwarding.error();
    assert!(said.ends_with(
        "revision 1 of demo: the receiver answered 500 Internal Server Error; trying again"
    ));
    forwarding.signal(Signal::TERM);
    let (status, _, errors) = forwarding.wait();
    assert!(status.success() && errors.is_empty(), "{errors:?}");
}

#[test]
fn a_receiver_may_come_later() {
    let server = Server::start();
    post(&server, 2);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let forwarding = started(&server, &format!("http://{address}/hook"), &["demo", "--after", "0"]);
    let said = forwarding.error();
    assert!(said.contains("the connection was refused; trying again"), "{said}");
    let receiver = Receiver::start_at(&address);
    assert_eq!([receiver.message().revision(), receiver.message().revision()], [1, 2]);
}

#[test]
fn nothing_is_missed_when_forwards_are_killed() {
    let (server, receiver) = (Server::start(), Receiver::start());
    let path = cursor(&server);
    let arguments = ["demo", "--cursor", &path];
    // Without a revision it begins now, and the file holds that at once.
    server.json(&["post", "demo/requests", "before"]);
    let mut forwarding = started(&server, &receiver.url, &arguments);
    while !fs::exists(&path).unwrap() {
        std::thread::yield_now();
    }
    forwarding.signal(Signal::KILL);
    let mut ids: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut take = |message: receiver::Message| {
        let revision = message.revision();
        let next = ids.last_key_value().map_or(2, |(last, _)| last + 1);
        assert!(revision <= next, "{revision} came before {next}");
        ids.entry(revision).or_default().push(message.id);
        revision
    };
    for round in 0..6 {
        post(&server, 8);
        forwarding = started(&server, &receiver.url, &arguments);
        let kept = receiver.hold();
        for _ in 0..round {
            take(receiver.message());
            kept.send("200 OK").ok();
        }
        forwarding.signal(Signal::KILL);
        assert!(!forwarding.wait().0.success());
    }
    let _forwarding = started(&server, &receiver.url, &arguments);
    while take(receiver.message()) < 49 {}
    assert!(ids.keys().copied().eq(2..=49), "{ids:?}");
    assert!(ids.values().all(|same| same.iter().all(|id| *id == same[0])), "{ids:?}");
    let mut distinct: Vec<_> = ids.values().map(|same| &same[0]).collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 48);
}

#[test]
fn an_unanswered_message_comes_again_with_its_id() {
    let (server, receiver) = (Server::start(), Receiver::start());
    let path = cursor(&server);
    post(&server, 1);
    let arguments = ["demo", "--cursor", &path, "--after", "0"];
    let kept = receiver.hold();
    let forwarding = started(&server, &receiver.url, &arguments);
    let first = receiver.message();
    forwarding.signal(Signal::KILL);
    assert!(!forwarding.wait().0.success());
    drop(kept);
    assert_eq!(stored(&path)["revision"], 0);
    let _forwarding = started(&server, &receiver.url, &arguments);
    assert_eq!(receiver.message().id, first.id);
}

#[test]
fn a_signal_lets_the_delivery_in_flight_end() {
    let (server, receiver) = (Server::start(), Receiver::start());
    let path = cursor(&server);
    post(&server, 2);
    for (answer, revision) in [("200 OK", 1), ("503 Service Unavailable", 1)] {
        let held = receiver.hold();
        let arguments = ["demo", "--cursor", &path, "--after", "0"];
        let forwarding = started(&server, &receiver.url, &arguments);
        receiver.message();
        forwarding.signal(Signal::TERM);
        held.send(answer).unwrap();
        let (status, _, errors) = forwarding.wait();
        assert!(status.success() && errors.is_empty(), "{errors:?}");
        assert_eq!(stored(&path)["revision"], revision, "{answer}");
    }
    assert!(receiver.is_empty());
}

#[test]
fn a_forward_goes_on_through_restarts_of_the_server() {
    let (mut server, receiver) = (Server::start(), Receiver::start());
    post(&server, 1);
    let forwarding = started(&server, &receiver.url, &["demo", "--after", "0"]);
    assert_eq!(receiver.message().revision(), 1);
    for round in 0..4 {
        post(&server, 1);
        if round % 2 == 0 {
            server.kill();
        } else {
            server.stop();
        }
        server.start_again();
        post(&server, 1);
        let revisions = [receiver.message().revision(), receiver.message().revision()];
        assert_eq!(revisions, [2 * round + 2, 2 * round + 3]);
    }
    forwarding.signal(Signal::INT);
    let (status, _, errors) = forwarding.wait();
    assert!(status.success());
    assert!(errors.iter().all(|error| error.ends_with("trying again")), "{errors:?}");
}

#[test]
fn a_refused_message_stops_the_forward_or_is_left_out() {
    let (server, receiver) = (Server::start(), Receiver::start());
    let path = cursor(&server);
    post(&server, 3);
    let arguments = ["demo", "--cursor", &path, "--after", "0"];
    receiver.answer(&["200 OK", "400 Bad Request"]);
    let refused = ended(&server, &receiver.url, &arguments).refusal(12);
    assert!(refused.contains("rejected revision 2 of demo with 400 Bad Request"), "{refused}");
    assert_eq!(stored(&path), serde_json::json!({"session": "demo", "revision": 1}));
    let skipping = [arguments.as_slice(), &["--skip-refused"]].concat();
    receiver.answer(&["422 Unprocessable Entity", "410 Gone"]);
    let done = ended(&server, &receiver.url, &skipping);
    assert_eq!(done.status.code(), Some(12));
    let lines: Vec<_> = done.error.lines().collect();
    assert!(lines[0].contains("rejected revision 2 of demo with 422") && lines.len() == 2);
    assert!(lines[1].contains("revision 3 of demo with 410: it accepts no more"), "{lines:?}");
    assert_eq!(stored(&path)["revision"], 2);
    receiver.answer(&["301 Moved\r\nLocation: /hook"]);
    let moved = ended(&server, &receiver.url, &skipping).refusal(12);
    assert!(moved.contains("redirects are not followed"), "{moved}");
    receiver.answer(&["503 Service Unavailable", "503 Service Unavailable"]);
    let tired = [arguments.as_slice(), &["--attempts", "2"]].concat();
    let done = ended(&server, &receiver.url, &tired);
    assert_eq!(done.status.code(), Some(12));
    assert!(done.error.contains("503 Service Unavailable (attempts: 2)"));
    assert_eq!(stored(&path)["revision"], 2);
    let revisions: Vec<_> = (0..7).map(|_| receiver.message().revision()).collect();
    assert_eq!(revisions, [1, 2, 2, 3, 3, 3, 3]);
}

#[test]
fn an_open_question_of_any_session_comes_once() {
    let (mut server, receiver) = (Server::start(), Receiver::start());
    let path = cursor(&server);
    let arguments = ["--questions", "--cursor", &path];
    let ask = |server: &Server, session: &str| server.json(&["ask", session, "q?", "--no-wait"]);
    ask(&server, "a");
    ask(&server, "b");
    ask(&server, "b");
    server.json(&["answer", "b/1", "yes"]);
    let forwarding = started(&server, &receiver.url, &arguments);
    let place = |message: &receiver::Message| {
        assert_eq!(message.body["type"], "question.open");
        let (session, data) = (&message.body["session"], &message.body["data"]);
        assert_eq!((session, &data["item"]["question"]), (&data["session"], &"q?".into()));
        format!("{}/{}", session.as_str().unwrap(), data["seq"])
    };
    assert_eq!([place(&receiver.message()), place(&receiver.message())], ["a/1", "b/2"]);
    ask(&server, "a");
    assert_eq!(place(&receiver.message()), "a/2");
    server.kill();
    server.start_again();
    ask(&server, "c");
    let held = receiver.message();
    assert_eq!(place(&held), "c/1");
    forwarding.signal(Signal::TERM);
    assert!(forwarding.wait().0.success());
    server.json(&["answer", "a/1", "yes"]);
    ask(&server, "0");
    let forwarding = started(&server, &receiver.url, &arguments);
    assert_eq!(place(&receiver.message()), "0/1");
    forwarding.signal(Signal::TERM);
    assert!(forwarding.wait().0.success() && receiver.is_empty());
    // Those of one session, in a forward of its own: the ids are the same.
    let forwarding = started(&server, &receiver.url, &["--questions", "c"]);
    assert_eq!(receiver.message().id, held.id);
    ask(&server, "cc");
    ask(&server, "c");
    assert_eq!(place(&receiver.message()), "c/2");
    drop(forwarding);
}

#[test]
fn a_cursor_before_the_history_is_refused_with_the_remedy() {
    let (server, receiver) = (Server::start(), Receiver::start());
    let path = cursor(&server);
    post(&server, 3);
    fs::write(&path, r#"{"session":"demo","revision":1}"#).unwrap();
    let address = server.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    let purge = format!(
        "POST /v1/sessions/demo/purge HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(purge.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let arguments = ["demo", "--cursor", &path];
    let refused = ended(&server, &receiver.url, &arguments).refusal(5);
    assert!(refused.contains("the history begins at 3") && refused.contains("delete"), "{refused}");
    assert!(refused.ends_with("give --after 3\n"), "{refused}");
    fs::write(&path, r#"{"session":"demo","revision":9}"#).unwrap();
    let refused = ended(&server, &receiver.url, &arguments).refusal(5);
    assert!(refused.contains("the session is at revision 3, before 9"), "{refused}");
    fs::write(&path, r#"{"session":"other","revision":9}"#).unwrap();
    let refused = ended(&server, &receiver.url, &arguments).refusal(2);
    assert!(refused.contains("is the cursor of session other"), "{refused}");
    assert!(receiver.is_empty());
}

#[test]
fn a_forward_needs_a_secret_and_a_receiver() {
    let server = Server::start();
    let run = |arguments: &[&str], secret: &str| {
        let mut command = server.command(arguments);
        command.env("BLACKBOARD_WEBHOOK_SECRET", secret);
        finished(command, "")
    };
    let to = ["forward", "demo", "--to", "http://127.0.0.1:1/hidden"];
    let absent = run(&to, "").refusal(2);
    assert!(absent.contains("--secret-file or BLACKBOARD_WEBHOOK_SECRET"), "{absent}");
    let short = run(&to, "whsec_aGlkZGVu").refusal(2);
    assert!(short.contains("24 to 64") && !short.contains("aGlkZGVu"), "{short}");
    let user = run(&["forward", "demo", "--to", "http://a:hidden@host"], SECRET).refusal(2);
    assert!(user.contains("user name") && !user.contains("hidden"), "{user}");
    assert_eq!(run(&["forward", "--to", "http://127.0.0.1:1"], SECRET).status.code(), Some(2));
}
