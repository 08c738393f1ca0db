//! Failures: an agent that is killed, a request that fails twice.

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{World, tool};

/// The documents' fault tolerance of agents (`galaxy/constellation_orchestrator/overview.md`), by claim and fence.
#[tokio::test]
async fn another_agent_goes_on_where_one_was_killed() {
    let world = World::new().await;
    let _client = world.device("linux", "write_file", "");
    let append =
        |text: &str| tool("write_file", &json!({"path": "log.txt", "text": text, "append": true}));
    let script = json!({"three lines": [
        {"thought": "the first", "status": "CONTINUE", "commands": [append("one\n")]},
        {"thought": "ask", "status": "PENDING", "question": "What is the second line?", "commands": [append("two\n")]},
        {"thought": "the last", "status": "FINISH", "result": "log.txt", "commands": [append("three\n")]},
    ]});
    let flags = ["--device", "linux", "--skill", "lines"];
    let first = world.agent("First", "LinuxAgent", &script, &flags);
    let seq = world.post(&json!({"skill": "lines", "request": "three lines"})).await;
    world.when("questions", |page| page["count"] == 1).await;
    first.signal(Signal::KILL);
    let _second = world.agent("Second", "LinuxAgent", &script, &flags);
    let holder =
        world.when(&format!("requests/{seq}"), |entry| entry["claim"]["agent"] == "Second").await;
    assert_eq!(holder["claim"]["agent"], json!("Second"));
    world.put("questions/1/answer", &json!({"answer": "two"})).await;
    assert_eq!(world.done(seq).await["steps"], json!(3));
    // Nothing was asked or done twice.
    assert_eq!(world.items("questions").await.len(), 1);
    assert_eq!(
        std::fs::read_to_string(world.root("linux").join("log.txt")).unwrap(),
        "one\ntwo\nthree\n"
    );
    let steps = |memory: Vec<serde_json::Value>| {
        memory.iter().map(|item| item["step"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(steps(world.items("agents/First/memory").await), [1, 2]);
    assert_eq!(steps(world.items("agents/Second/memory").await), [3]);
    insta::assert_snapshot!("takeover", world.prompt().await);
}

/// The successor waits for the command that its predecessor sent.
#[tokio::test]
async fn a_command_under_way_is_not_sent_again() {
    let world = World::new().await;
    let _client = world.device("linux", "execute_command", "sleep");
    let script = json!({"wait": [{"thought": "sleep", "status": "FINISH", "result": "slept",
        "commands": [tool("execute_command", &json!({"command": "sleep 2"}))]}]});
    let flags = ["--device", "linux", "--skill", "waiting"];
    let first = world.agent("First", "LinuxAgent", &script, &flags);
    let seq = world.post(&json!({"skill": "waiting", "request": "wait"})).await;
    world.when("requests/2", |entry| entry.get("claim").is_some()).await;
    first.signal(Signal::KILL);
    // It decides nothing: its own script is empty.
    let _second = world.agent("Second", "LinuxAgent", &json!({}), &flags);
    assert_eq!(world.done(seq).await["result"], json!("slept"));
    assert_eq!(world.items("requests").await.len(), 2);
    assert_eq!(world.items("agents/Second/memory").await[0]["results"][0]["status"], "success");
}

/// The agent that was only stopped is the stale one: its claim is another's by then.
#[tokio::test]
async fn an_agent_that_wakes_up_late_writes_nothing() {
    let world = World::new().await;
    let script = json!({"ask": [
        {"thought": "ask", "status": "PENDING", "question": "Which one?"},
        {"thought": "done", "status": "FINISH", "result": "done"},
    ], "again": [{"thought": "next", "status": "FINISH", "result": "next"}]});
    let first = world.agent("First", "LinuxAgent", &script, &["--skill", "asking"]);
    let seq = world.post(&json!({"skill": "asking", "request": "ask"})).await;
    world.when("questions", |page| page["count"] == 1).await;
    first.signal(Signal::STOP);
    let second = world.agent("Second", "LinuxAgent", &script, &["--skill", "asking"]);
    let path = format!("requests/{seq}");
    world.when(&path, |entry| entry["claim"]["agent"] == "Second").await;
    world.put("questions/1/answer", &json!({"answer": "this"})).await;
    assert_eq!(world.done(seq).await["steps"], json!(2));
    second.stopped();
    first.signal(Signal::CONT);
    // It has understood when it takes the next request.
    let next = world.post(&json!({"skill": "asking", "request": "again"})).await;
    assert_eq!(world.done(next).await["result"], json!("next"));
    let steps = world.items("trajectories").await;
    let by: Vec<_> = steps.iter().map(|step| [&step["agent"], &step["request"]]).collect();
    assert_eq!(by, [["First", "ask"], ["Second", "ask"], ["First", "again"]]);
}

/// Volunteers, attempts and dependencies of requests, as a board assigns tasks (`docs/guide/tasks.md`).
#[tokio::test]
async fn a_request_fails_twice_and_is_tried_again() {
    let world = World::new().await;
    let root = world.root("desk");
    let server = world.sandbox("desk", "cat");
    let flags = |skill| ["--server", &server, "--tools", "execute_command", "--skill", skill];
    let read = |path: &str| tool("execute_command", &json!({"command": format!("cat {path}")}));
    let _reader = world.agent("Reader", "LinuxAgent", &json!({"read the figures": [
        {"thought": "read", "status": "FINISH", "commands": [read("figures.txt")], "result": "read"},
    ]}), &flags("reading"));
    let _writer = world.agent(
        "Writer",
        "LinuxAgent",
        &json!({"write about them": [
            {"thought": "write", "status": "FINISH", "result": "written"},
        ]}),
        &flags("writing"),
    );
    let item = json!({"skill": "reading", "request": "read the figures"});
    let reading = world.request(json!({"append": "requests", "item": item, "attempts": 2})).await;
    let item = json!({"skill": "writing", "request": "write about them"});
    let writing =
        world.request(json!({"append": "requests", "item": item, "after": [reading]})).await;
    let path = format!("requests/{reading}");
    let failed = world.when(&path, |entry| entry.get("failed").is_some()).await;
    assert_eq!((&failed["failures"], &failed["failed"]["agent"]), (&json!(2), &json!("Reader")));
    assert!(
        failed["failed"]["reason"]["errors"][0]
            .as_str()
            .is_some_and(|why| why.contains("No such file")),
        "{failed}"
    );
    let waits = world.board.get(&format!("requests/{writing}"), &[]).await.unwrap().body;
    assert_eq!(waits["blocked_by"], json!([reading]));
    std::fs::write(root.join("figures.txt"), "3 4 5\n").unwrap();
    world.board.write(reqwest::Method::POST, &format!("{path}/retry"), &json!({})).await.unwrap();
    assert_eq!(world.done(reading).await["result"], json!("read"));
    assert_eq!(world.done(writing).await["result"], json!("written"));
    insta::assert_snapshot!("volunteers", world.prompt().await);
}
