//! Terms and ends of requests: priority, times, attempts, cancellation, review, and waits for them.

use serde_json::json;

use crate::server::{Running, Server};

#[test]
fn tables_say_why_a_request_waits() {
    let server = Server::start();
    let post = |flags: &[&str]| server.json(&[&["post", "s/requests", "{}"], flags].concat());
    post(&["--attempts", "3"]);
    post(&["--after", "1"]);
    post(&["--not-before", "2100-01-01T00:00:00Z", "--deadline", "2101-01-01T00:00:00Z"]);
    post(&["--priority", "-5", "--review"]);
    post(&[]);
    post(&["--after", "5"]);
    server.json(&["claim", "s/1", "--agent", "A"]);
    server.json(&["fail", "s/1", "no disk", "--retry-in", "1h", "--agent", "A"]);
    server.json(&["claim", "s/4", "--agent", "A"]);
    server.json(&["finish", "s/4", "draft", "--agent", "A"]);
    server.json(&["cancel", "s/5", "not needed"]);
    let table = server.table(&["show", "s/requests"]);
    let line = |seq: usize| table.lines().nth(seq).unwrap().to_owned();
    let expected = [
        "1 of 3 failed: no disk; not before 20",
        "waits for 1 ",
        "not before 2100-01-01T00:00:00.000Z",
        "in review",
        "cancelled: not needed",
        "waits for 5, which failed or was cancelled",
    ];
    for (seq, words) in (1..).zip(expected) {
        assert!(line(seq).contains(words), "{words}: {}", line(seq));
    }
    let entry = server.table(&["show", "s/requests/1"]);
    assert!(entry.contains("attempt     of A failed, 20"), "{entry}");
    assert!(entry.contains("Z: no disk\nattempts    1 of 3 failed\n"), "{entry}");
    server.json(&["post", "s/requests", "{}"]);
    let inbox = server.table(&["inbox", "--requests"]);
    assert!(inbox.contains("s/requests/7") && inbox.contains("pending"), "{inbox}");
    let claimed = server.table(&["claim", "s/7", "--agent", "A"]);
    assert!(claimed.ends_with("item     {}\n"), "{claimed}");
    assert!(server.table(&["show", "s/requests"]).contains("claimed by A "));
}

#[test]
fn a_wait_ends_when_its_request_does() {
    let server = Server::start();
    for _ in 0..3 {
        server.json(&["post", "s/requests", "{}"]);
    }
    let waiting = Running::start(server.command(&["wait", "s/1"]));
    let failing = Running::start(server.command(&["wait", "s/2"]));
    server.json(&["claim", "s/1", "--agent", "A"]);
    server.json(&["finish", "s/1", "7", "--agent", "A"]);
    assert!(waiting.line().contains("\"result\":\"7\""));
    assert!(waiting.wait().0.success());
    server.json(&["cancel", "s/2", "not needed"]);
    let why = failing.error();
    assert!(why.contains("was cancelled: not needed (condition-not-met)"), "{why}");
    assert_eq!(failing.wait().0.code(), Some(7));
    assert_eq!(server.json(&["wait", "s/2", "--until", "ended"])["seq"], 2);
    let late = server.run(&["wait", "s/3", "--until", "claimed", "--wait", "50ms"]).refusal(7);
    assert_eq!(late, "request 3 was not claimed within 50ms: pending\n");
    server.json(&["post", "s/requests", "{}", "--after", "2"]);
    let stopped = "waits for 2, which failed or was cancelled";
    for (until, unmet) in
        [("done", "was not done"), ("ended", "did not end"), ("failed", "did not fail")]
    {
        let late = server.run(&["wait", "s/4", "--until", until, "--wait", "50ms"]).refusal(7);
        assert_eq!(late, format!("request 4 {unmet} within 50ms: {stopped}\n"));
    }
    server.run(&["wait", "s/9"]).refusal(5);
}

#[test]
fn a_result_is_accepted_or_rejected_by_another() {
    let server = Server::start();
    server.json(&["post", "s/requests", "{}", "--review"]);
    for verdict in ["--refuse", "--accept"] {
        let early = server.run(&["review", "s/1", verdict, "--agent", "B"]).refusal(6);
        assert_eq!(early, "request 1 is not in review\n");
        server.json(&["claim", "s/1", "--agent", "A"]);
        server.json(&["finish", "s/1", "draft", "--agent", "A"]);
        server.run(&["review", "s/1", verdict, "--agent", "A"]).refusal(4);
        server.json(&["review", "s/1", verdict, "a unit", "--agent", "B"]);
    }
    let shown = server.json(&["show", "s/requests/1"]);
    assert_eq!(shown["past_attempts"][0]["outcome"], "refused");
    assert_eq!(shown["done"]["verdict"]["reason"], "a unit");
    let table = server.table(&["show", "s/requests/1"]);
    assert!(table.contains("verdict   accepted by B at 20"), "{table}");
    assert!(table.contains("attempt   of A refused, 20"), "{table}");
    assert_eq!(table.matches(": a unit\n").count(), 2, "{table}");
    let neither = server.run(&["review", "s/1", "--agent", "B"]);
    assert_eq!(neither.status.code(), Some(2));
    assert!(neither.error.contains("<--accept|--refuse>"), "{}", neither.error);
    let both = server.run(&["review", "s/1", "--accept", "--refuse", "--agent", "B"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn an_entry_shows_the_terms_of_its_request() {
    let server = Server::start();
    let post = ["post", "s/requests", "{}"];
    server.json(&post);
    let times = ["--not-before", "2100-01-01T00:00:00Z", "--deadline", "2101-01-01T00:00:00Z"];
    let terms = ["--attempts", "3", "--after", "1", "--priority", "-5", "--review"];
    server.json(&[&post[..], &terms, &times].concat());
    let table = server.table(&["show", "s/requests/2"]);
    let expected = "attempts    0 of 3 failed\n\
                    after       1\n\
                    priority    -5\n\
                    not_before  2100-01-01T00:00:00.000Z\n\
                    deadline    2101-01-01T00:00:00.000Z\n\
                    review      by another agent\n\
                    item        {}\n";
    assert!(table.ends_with(expected), "{table}");
}

#[test]
fn a_cancelled_request_is_retried() {
    let server = Server::start();
    server.json(&["post", "s/requests", "{}"]);
    server.json(&["cancel", "s/1"]);
    server.json(&["retry", "s/1", "--deadline", "1h"]);
    let shown = server.json(&["show", "s/requests/1"]);
    assert!(shown["deadline"].is_string() && shown.get("cancelled").is_none(), "{shown}");
}

#[test]
fn an_unclaimed_request_is_finished_on_purpose_only() {
    let server = Server::start();
    server.json(&["post", "s/requests", "{}"]);
    let refused = server.run(&["finish", "s/1", "x"]).refusal(6);
    assert_eq!(refused, "nobody has claimed request 1; --unclaimed finishes it all the same\n");
    server.json(&["finish", "s/1", "x", "--unclaimed"]);
    server.json(&["finish", "s/1", "x"]);
    assert_eq!(server.json(&["show", "s/requests/1"])["done"]["result"], "x");
}

#[test]
fn a_question_has_its_options() {
    let server = Server::start();
    let ask = ["ask", "s", "Which?", "--option", "Bars", "--option", "Lines", "--no-wait"];
    server.json(&ask);
    let shown = server.json(&["show", "s/questions/1"]);
    assert_eq!(shown["item"], json!({"question":"Which?","options":["Bars","Lines"]}));
}

#[test]
fn a_session_is_deleted_on_purpose_only() {
    let server = Server::start();
    server.json(&["post", "s/trajectories", "{}", "--agent", "A"]);
    let unasked = server.run(&["delete", "s"]).refusal(2);
    assert_eq!(unasked, "session s is not deleted without a question; give --yes\n");
    server.json(&["delete", "s", "--yes"]);
    server.run(&["show", "s"]).refusal(5);
}

#[test]
fn agents_are_listed_with_their_status() {
    let server = Server::start();
    server.json(&["post", "s/agents/A/memory", "{}", "--agent", "A"]);
    let table = server.table(&["agents", "s"]);
    assert!(table.starts_with("AGENT  STATUS") && table.contains("A      CONTINUE"), "{table}");
    let listed = server.json(&["agents", "s", "--status", "PENDING"]);
    assert_eq!(listed["agents"], json!([]));
}

#[test]
fn a_blob_comes_back_as_it_was() {
    let server = Server::start();
    server.json(&["post", "s/requests", "{}"]);
    let path = server.home.path().join("bytes");
    std::fs::write(&path, [0, 255, 10]).unwrap();
    let path = path.to_str().unwrap();
    let sha256 = server.table(&["blob", "put", "s", path, "--media-type", "image/x-none"]);
    let copy = format!("{path}.copy");
    server.run(&["blob", "get", "s", sha256.trim(), "-o", &copy]).text();
    assert_eq!(std::fs::read(copy).unwrap(), [0, 255, 10]);
    server.run(&["blob", "get", "s", &"0".repeat(64)]).refusal(5);
    assert_eq!(server.run(&["blob", "get", "s", "0"]).status.code(), Some(2));
}
