//! Tail of a session: events in order, once each, through restarts of the server.

use rustix::process::Signal;
use serde_json::Value;

use crate::server::{Running, Server};

fn revision(line: &str) -> u64 {
    let event: Value = serde_json::from_str(line).unwrap();
    event["revision"].as_u64().unwrap()
}

#[test]
fn every_revision_comes_once_through_kills_and_restarts() {
    let mut server = Server::start();
    server.json(&["post", "demo/requests", "first"]);
    let tail = Running::start(server.command(&["tail", "demo", "--json", "--after", "0"]));
    assert_eq!(revision(&tail.line()), 1);
    let mut expected = 1;
    for round in 0..6 {
        for _ in 0..3 {
            server.json(&["post", "demo/requests", "more"]);
        }
        if round % 2 == 0 {
            server.kill();
        } else {
            server.stop();
        }
        server.start_again();
        server.json(&["post", "demo/requests", "after the restart"]);
        for _ in 0..4 {
            expected += 1;
            assert_eq!(revision(&tail.line()), expected);
        }
    }
    tail.signal(Signal::INT);
    let (status, rest, notes) = tail.wait();
    assert!(status.success() && rest.is_empty(), "{rest:?}");
    assert!(notes.iter().all(|note| note.ends_with("trying again")), "{notes:?}");
}

#[test]
fn past_events_are_printed_without_a_wait() {
    let server = Server::start();
    for _ in 0..3 {
        server.json(&["post", "demo/requests", "do it"]);
    }
    let lines = |flags: &[&str]| {
        let text = server.run(&[&["tail", "demo", "--no-follow"], flags].concat()).text();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&[]).iter().map(|line| revision(line)).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(lines(&["--after", "1", "--count", "1"]).len(), 1);
    assert_eq!(lines(&["--after", "3"]).len(), 0);
    assert!(lines(&["--format", "table"])[2].contains("requests/3"));
}

#[test]
fn filtered_revisions_are_not_lost_in_a_restart() {
    let mut server = Server::start();
    server.json(&["post", "demo/requests", "first", "--agent", "A"]);
    let filter = ["tail", "demo", "--json", "--on", "state/a", "--by", "A", "--after", "0"];
    let tail = Running::start(server.command(&filter));
    for round in 0..3_u64 {
        let (value, hidden) = (round.to_string(), ["state", "set", "demo/b", "1", "--agent", "A"]);
        server.json(&hidden);
        server.json(&["state", "set", "demo/a", "-1", "--agent", "B"]);
        server.json(&["state", "set", "demo/a", &value, "--agent", "A"]);
        let event: Value = serde_json::from_str(&tail.line()).unwrap();
        assert_eq!(event["changes"][0]["value"], round);
        server.kill();
        server.start_again();
    }
}

#[test]
fn a_tail_begins_before_its_session() {
    let server = Server::start();
    let tail = Running::start(
        server.command(&["tail", "demo", "--format", "table", "--count", "2", "--after", "0"]),
    );
    server.json(&["post", "demo/requests", "{\"n\": 1.0}", "--agent", "A"]);
    let line = tail.line();
    assert!(line.starts_with("     1 ") && line.contains(" A "), "{line}");
    assert!(line.ends_with("created; requests/1 {\"n\": 1.0}"), "{line}");
    server.json(&["state", "set", "demo/a", "true"]);
    assert!(tail.line().ends_with("state_put      state/a = true"));
    assert!(tail.wait().0.success());
}

#[test]
fn a_count_of_more_than_there_is_says_that_it_waits() {
    let server = Server::start();
    server.json(&["post", "demo/requests", "first"]);
    let tail = ["tail", "demo", "--json", "--after", "0", "--count", "2"];
    let tail = Running::start(server.command(&tail));
    assert_eq!(revision(&tail.line()), 1);
    assert_eq!(tail.error(), "1 of 2 events so far; waiting for more, Ctrl-C ends");
    server.json(&["post", "demo/requests", "second"]);
    assert_eq!(revision(&tail.line()), 2);
    let (status, rest, notes) = tail.wait();
    assert!(status.success() && rest.is_empty() && notes.is_empty(), "{rest:?} {notes:?}");
}

#[test]
fn colours_are_there_only_when_asked_for() {
    let server = Server::start();
    server.json(&["post", "demo/requests", "a\u{1b}[2J"]);
    let lines = |color: &str| {
        let tail = ["tail", "demo", "--after", "0", "--count", "1", "--color", color];
        server.table(&tail)
    };
    assert!(!lines("auto").contains('\u{1b}'));
    let coloured = lines("always");
    assert!(coloured.starts_with("\u{1b}[2m") && !coloured.contains("\u{1b}[2J"), "{coloured:?}");
}

#[test]
fn compact_shows_what_opens_and_refers_to_it_at_its_end() {
    let server = Server::start();
    server.json(&["post", "demo/requests", "work"]);
    let tail = ["tail", "demo", "--compact", "--format", "table", "--after", "0"];
    let tail = Running::start(server.command(&tail));
    tail.line();
    server.json(&["ask", "demo", "red?", "--no-wait", "--agent", "A"]);
    // Nobody has answered yet.
    let asked = tail.line();
    assert!(asked.ends_with("questions/1 asked: \"red?\""), "{asked}");
    server.json(&["ask", "demo", "blue?", "--no-wait", "--agent", "A"]);
    assert!(tail.line().ends_with("questions/2 asked: \"blue?\""));
    server.json(&["claim", "demo", "--agent", "B"]);
    let claimed = tail.line();
    assert!(claimed.contains("requests/1 claimed by B, fence "), "{claimed}");
    // A renewal is no line.
    server.json(&["claim", "demo/1", "--agent", "B"]);
    server.json(&["answer", "demo/1", "yes"]);
    let answered = tail.line();
    assert!(answered.contains("questions/1 \"red?\" → \"yes\" (asked by A "), "{answered}");
    server.json(&["finish", "demo/1", "done it", "--agent", "B"]);
    let done = tail.line();
    assert!(done.contains("requests/1 done: \"done it\" (claimed by B "), "{done}");
    tail.signal(Signal::TERM);
    let (status, rest, _) = tail.wait();
    assert!(status.success());
    assert_eq!(rest.len(), 1);
    assert!(rest[0].starts_with("open: questions/2 \"blue?\" (asked by A at "), "{rest:?}");
}

#[test]
fn a_gap_is_told() {
    let server = Server::start();
    server.json(&["post", "demo/requests", "a"]);
    let beyond = ["tail", "demo", "--after", "99", "--count", "1"];
    let resync = server.run(&beyond).text();
    assert_eq!(resync, "{\"kind\":\"resync\",\"revision\":1,\"oldest_revision\":0}\n");
    assert!(server.table(&beyond).contains("resync"));
}

#[test]
fn a_refused_tail_ends_with_its_code() {
    let server = Server::start();
    let line = server.run(&["tail", "demo", "--on", "logs"]).refusal(8);
    assert!(line.contains("(invalid-parameter)"), "{line}");
}
