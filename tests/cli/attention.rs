//! What waits for an agent, for people and for the hooks of agent hosts.

use std::fs::File;
use std::process::Command;

use serde_json::{Value, json};

use crate::server::{Done, Running, Server, finished};

const CLAUDE_CODE: &str = "claude-code";

fn send(server: &Server, text: &str) {
    server.json(&["post", "s/agents/B/messages", text, "--agent", "A"]);
}

fn hook(server: &Server, host: &str, more: &[&str]) -> Command {
    let hook = ["attention", "s", "--agent", "B", "--hook", host];
    let mut command = server.command(&[&hook, more].concat());
    command.env_remove("XDG_STATE_HOME");
    command
}

fn input(session: &str, event: &str) -> String {
    json!({"session_id": session, "hook_event_name": event, "cwd": "/"}).to_string()
}

/// What a hook answers to an event of a host's session, or null.
fn answered(server: &Server, host: &str, session: &str, event: &str) -> Value {
    let done = finished(hook(server, host, &[]), &input(session, event));
    assert!(done.error.is_empty(), "{}", done.error);
    if done.output.is_empty() { Value::Null } else { done.json() }
}

fn seqs(notice: &Value) -> Vec<u64> {
    let lines = notice.as_str().unwrap_or_default().lines();
    let seq = |line: &str| line.strip_prefix("- message ")?.split(' ').next()?.parse().ok();
    lines.filter_map(seq).collect()
}

#[test]
fn what_waits_is_listed_or_waited_for() {
    let server = Server::start();
    server.json(&["state", "set", "s/a", "1"]);
    let looked = server.run(&["attention", "s", "--agent", "B"]).refusal(7);
    assert_eq!(looked, "nothing waits for the agent now; --wait waits for something\n");
    assert!(server.run(&["attention", "s"]).refusal(2).contains("the name of an agent"));
    send(&server, "hello\nB");
    let table = server.table(&["attention", "s", "--agent", "B"]);
    assert!(
        table.contains("message  1    A     message 1 from A: {\"text\":\"hello\\nB\"}"),
        "{table}"
    );
    let shown = server.json(&["attention", "s", "--agent", "B", "--json"]);
    assert_eq!(shown["messages"]["newest"][0]["item"]["text"], "hello\nB");
    let wanted = ["attention", "s", "--agent", "B", "--include", "claimable", "--match"];
    let wanted = [&wanted[..], &[r#"{"device":"linux"}"#]].concat();
    server.run(&wanted).refusal(7);
    let waiting = Running::start(server.command(&[&wanted[..], &["--wait", "1m"]].concat()));
    server.json(&["post", "s/requests", r#"{"device":"windows"}"#]);
    server.json(&["post", "s/requests", r#"{"device":"linux"}"#]);
    let came: Value = serde_json::from_str(&waiting.line()).unwrap();
    assert_eq!(came["claimable"]["newest"][0]["seq"], 2);
    assert!(came.get("messages").is_none(), "{came}");
    assert!(waiting.wait().0.success());
}

#[test]
fn a_hook_reports_each_thing_once_to_a_session() {
    let server = Server::start();
    assert_eq!(answered(&server, CLAUDE_CODE, "h1", "SessionStart"), Value::Null);
    send(&server, "one");
    let start = answered(&server, CLAUDE_CODE, "h1", "SessionStart");
    let start = &start["hookSpecificOutput"];
    assert_eq!(start["hookEventName"], "SessionStart");
    assert_eq!(seqs(&start["additionalContext"]), [1]);
    assert_eq!(answered(&server, CLAUDE_CODE, "h1", "Stop"), Value::Null);
    send(&server, "two");
    let stop = answered(&server, CLAUDE_CODE, "h1", "Stop");
    assert_eq!((&stop["decision"], seqs(&stop["reason"])), (&json!("block"), vec![2]));
    assert_eq!(answered(&server, CLAUDE_CODE, "h1", "Stop"), Value::Null);
    assert_eq!(answered(&server, CLAUDE_CODE, "h1", "Notification"), Value::Null);
    // Another session, and the same name at another host, are told what is not acknowledged.
    let stop = answered(&server, CLAUDE_CODE, "h2", "Stop");
    assert_eq!(seqs(&stop["reason"]), [1, 2]);
    let stop = answered(&server, "gemini-cli", "h1", "AfterAgent");
    assert_eq!((&stop["decision"], seqs(&stop["reason"])), (&json!("deny"), vec![1, 2]));
    let tool = answered(&server, "codex", "h1", "PostToolUse");
    assert_eq!(seqs(&tool["hookSpecificOutput"]["additionalContext"]), [1, 2]);
}

#[test]
fn hooks_that_run_at_once_report_a_thing_once() {
    let server = Server::start();
    for number in 0..20 {
        send(&server, &format!("number {number}"));
    }
    let path = server.home.path().join("input");
    std::fs::write(&path, input("h", "Stop")).unwrap();
    let running: Vec<Running> = (0..8)
        .map(|_| {
            let mut command = hook(&server, CLAUDE_CODE, &[]);
            command.stdin(File::open(&path).unwrap());
            Running::start(command)
        })
        .collect();
    let mut reported = Vec::new();
    for hook in running {
        let (status, output, errors) = hook.wait();
        assert!(status.success() && errors.is_empty(), "{errors:?}");
        for line in output {
            let output: Value = serde_json::from_str(&line).unwrap();
            reported.extend(seqs(&output["reason"]));
        }
    }
    reported.sort_unstable();
    assert_eq!(reported, (1..=20).collect::<Vec<u64>>());
}

#[test]
fn a_hook_never_stops_its_host() {
    let mut server = Server::start();
    send(&server, "one");
    let noted = |done: Done, expected: &str| {
        assert!(done.status.success() && done.output.is_empty(), "{}", done.output);
        assert_eq!(done.error.lines().count(), 1, "{}", done.error);
        assert!(done.error.contains(expected), "{}", done.error);
    };
    let run = |command: Command, text: &str| finished(command, text);
    noted(run(hook(&server, CLAUDE_CODE, &[]), "no JSON"), "the input is not that of a hook");
    noted(
        run(hook(&server, CLAUDE_CODE, &[]), r#"{"session_id":"","hook_event_name":"Stop"}"#),
        "not that of a hook",
    );
    let nameless = server.command(&["attention", "s", "--hook", CLAUDE_CODE]);
    noted(run(nameless, &input("h", "Stop")), "--agent (BLACKBOARD_AGENT)");
    let unmatched = hook(&server, CLAUDE_CODE, &["--match", "{"]);
    noted(run(unmatched, &input("h", "Stop")), "--match is not JSON");
    let unusable = hook(&server, CLAUDE_CODE, &["--url", "ftp://host"]);
    noted(run(unusable, &input("h", "Stop")), "--url");
    let misspelt = run(hook(&server, CLAUDE_CODE, &["--wiat", "1m"]), &input("h", "Stop"));
    assert_eq!(misspelt.status.code(), Some(1), "{}", misspelt.error);
    let elsewhere = server.command(&["attention", "t", "--agent", "B", "--hook", CLAUDE_CODE]);
    let nothing = run(elsewhere, &input("h", "Stop"));
    assert!(nothing.text().is_empty());
    server.kill();
    noted(run(hook(&server, CLAUDE_CODE, &[]), &input("h", "Stop")), "refused");
    server.start_again();
    let stop = answered(&server, CLAUDE_CODE, "h", "Stop");
    assert_eq!(seqs(&stop["reason"]), [1]);
}

#[test]
fn a_hook_that_waits_wakes_claude_code() {
    let mut server = Server::start();
    send(&server, "one");
    answered(&server, CLAUDE_CODE, "h", "SessionStart");
    let path = server.home.path().join("input");
    std::fs::write(&path, input("h", "Stop")).unwrap();
    let mut command = hook(&server, CLAUDE_CODE, &["--wait", "5m"]);
    command.stdin(File::open(&path).unwrap());
    let waiting = Running::start(command);
    server.kill();
    server.start_again();
    send(&server, "two");
    let (status, output, errors) = waiting.wait();
    assert_eq!((status.code(), output.len()), (Some(2), 0), "{errors:?}");
    assert_eq!(seqs(&json!(errors.join("\n"))), [2]);
}

#[test]
fn a_paused_agent_is_not_made_to_go_on() {
    let server = Server::start();
    send(&server, "one");
    server.json(&["pause", "s", "B"]);
    assert_eq!(answered(&server, CLAUDE_CODE, "h", "Stop"), Value::Null);
    server.json(&["resume", "s", "B"]);
    let stop = answered(&server, CLAUDE_CODE, "h", "Stop");
    assert_eq!(seqs(&stop["reason"]), [1]);
}

#[test]
fn an_answer_from_before_the_first_hook_is_past() {
    let server = Server::start();
    let ask = ["ask", "s", "Which?", "--no-wait", "--agent", "B"];
    server.json(&ask);
    server.json(&["answer", "s/1", "this"]);
    assert_eq!(answered(&server, CLAUDE_CODE, "h1", "SessionStart"), Value::Null);
    server.json(&ask);
    server.json(&["answer", "s/2", "that"]);
    let start = answered(&server, CLAUDE_CODE, "h2", "SessionStart");
    let context = start["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.contains("- question 2, which you asked") && !context.contains("question 1"));
    assert_eq!(answered(&server, CLAUDE_CODE, "h2", "Stop"), Value::Null);
}
