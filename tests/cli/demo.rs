//! Example run of `blackboard demo`: its content, restarts, people and tokens.

use rustix::process::Signal;
use serde_json::Value;

use crate::server::{Running, Server};

/// The entries of a log.
fn entries(server: &Server, log: &str) -> Vec<Value> {
    server.json(&["show", log])["entries"].as_array().unwrap().clone()
}

/// The number of members that hold no other members.
fn leaves(value: &Value) -> usize {
    value.as_object().map_or(1, |members| members.values().map(leaves).sum())
}

#[test]
fn a_run_fills_a_session_with_all_that_a_board_has() {
    let server = Server::start();
    let told = server.run(&["demo", "run", "--pace", "0"]).text();
    assert!(told.contains("watch  blackboard tail run\n"), "{told}");
    assert!(told.contains("6 requests, 23 steps, 8 screenshots, 2 questions; cost 0.3"), "{told}");
    let about = server.json(&["show", "run"]);
    assert_eq!(about["counts"]["trajectories"], 23);
    assert_eq!((&about["settings"]["cost_max"], &about["agents"]), (&1.0.into(), &3.into()));
    assert_eq!(about["labels"]["demo"], "blackboard");
    for entry in entries(&server, "run/screenshots") {
        assert_eq!(
            (&entry["image"]["width"], &entry["image"]["height"]),
            (&640.into(), &400.into())
        );
    }
    let steps = server.json(&["show", "run/trajectories", "--latest", "23"]);
    let named = steps["entries"].as_array().unwrap().iter();
    let named: Vec<_> = named.filter_map(|step| step["item"]["screenshot"].as_u64()).collect();
    assert_eq!(named, [1, 2, 3, 4, 5, 6, 7, 8], "each screenshot is named by the step after it");
    let requests = entries(&server, "run/requests");
    assert!(requests.iter().all(|entry| entry["done"]["result"].is_object()), "{requests:?}");
    let failures: Vec<_> =
        requests.iter().map(|entry| entry["failures"].as_u64().unwrap()).collect();
    assert_eq!(failures, [0, 0, 1, 0, 0, 0]);
    assert_eq!(requests[4]["after"], serde_json::json!([3, 4]));
    let questions = entries(&server, "run/questions");
    assert_eq!(questions[0]["item"]["answer"], "by region");
    assert_eq!(questions[1]["item"]["answer"], Value::Null);
    assert!(server.table(&["inbox"]).contains("run/questions/2"));
    let checkpoints = server.json(&["checkpoint", "run"]);
    assert_eq!(checkpoints["checkpoints"].as_array().unwrap().len(), 3);
    let state = server.json(&["state", "get", "run"]);
    assert_eq!(
        (&state["progress"]["steps"], &state["progress"]["percent"]),
        (&23.into(), &100.into())
    );
    assert!((30..50).contains(&leaves(&state)), "{state}");
    let memory = entries(&server, "run/agents/ExcelAgent/memory");
    assert!(memory.len() > 5 && memory.iter().all(|step| step["item"]["cost"].is_number()));
    assert_eq!(server.json(&["state", "get", "run-draft/facts/chart/type"]), "line");
    let again = server.run(&["demo", "run", "--pace", "0"]).refusal(6);
    assert_eq!(again, "session run already exists; choose another name, or give none\n");
    let other = server.run(&["demo", "--pace", "0"]).text();
    assert!(other.contains("watch  blackboard tail demo-"), "{other}");
}

#[test]
fn a_run_goes_on_through_a_restart_of_the_server() {
    let mut server = Server::start();
    let run = Running::start(server.command(&["demo", "run", "--pace", "4"]));
    run.line();
    server.run(&["tail", "run", "--after", "0", "--count", "20"]).text();
    server.kill();
    server.start_again();
    let (status, told, errors) = run.wait();
    assert!(status.success() && errors.is_empty(), "{errors:?}");
    assert!(
        told.iter().any(|line| line.contains("6 requests, 23 steps, 8 screenshots")),
        "{told:?}"
    );
}

#[test]
fn a_person_may_be_faster_and_may_end_the_run() {
    let server = Server::start();
    let run = Running::start(server.command(&["demo", "run", "--pace", "10"]));
    run.line();
    server.run(&["tail", "run", "--after", "0", "--on", "questions", "--count", "1"]).text();
    server.json(&["answer", "run/questions/1", "by month"]);
    let grouping = ["tail", "run", "--after", "0", "--on", "state/facts/chart/grouping", "--count"];
    server.run(&[&grouping[..], &["1"]].concat()).text();
    assert_eq!(server.json(&["state", "get", "run/facts/chart/grouping"]), "by month");
    run.signal(Signal::INT);
    let (status, _, errors) = run.wait();
    assert!(status.success());
    assert_eq!(errors, ["interrupted; session run stays as it is"]);
}

#[test]
fn a_token_that_may_not_write_is_refused() {
    let server = Server::start();
    server.token("admin", &["--scopes", "admin"]);
    let reader = server.token("reader", &["--scopes", "read"]);
    let line = server.run(&["demo", "--pace", "0", "--token-file", &reader]).refusal(4);
    assert!(line.contains("(forbidden)"), "{line}");
    let bound = server.token("bound", &["--agent", "A", "--scopes", "read,write"]);
    let done = server.run(&["demo", "--pace", "0", "--token-file", &bound]);
    assert_eq!(done.status.code(), Some(4), "{}{}", done.output, done.error);
}
