//! Devices that work on commands: three of one agent, one with a shell, three in turn.

use serde_json::json;

use crate::harness::{World, tool};

/// The documents' agent server and device clients (`infrastructure/agents/server_client_architecture.md`).
#[tokio::test]
async fn one_agent_drives_three_devices() {
    let world = World::new().await;
    let devices = ["windows", "linux", "mobile"];
    let clients = devices.map(|name| world.device(name, "write_file", ""));
    let write = |device: &str| {
        let mut command = tool("write_file", &json!({"path": "note.txt", "text": device}));
        command["device"] = json!(device);
        command
    };
    let mut refused = tool("delete_file", &json!({"path": "note.txt"}));
    refused["device"] = json!("linux");
    let mut unfit = tool("write_file", &json!({"path": 7, "text": ""}));
    unfit["device"] = json!("mobile");
    let script = json!({"leave a note everywhere": [
        {"thought": "every device has its own", "status": "CONTINUE", "commands": devices.map(write)},
        {"thought": "what is forbidden is not done", "status": "CONTINUE", "commands": [refused, unfit]},
        {"thought": "all are there", "status": "FINISH", "result": "three notes"},
    ]});
    let agent = world.agent("Planner", "AppAgent", &script, &["--device", "linux"]);
    let seq = world.post(&json!({"agent": "Planner", "request": "leave a note everywhere"})).await;
    let result = world.done(seq).await;
    assert_eq!((&result["result"], &result["steps"]), (&json!("three notes"), &json!(3)));
    for name in devices {
        assert_eq!(std::fs::read_to_string(world.root(name).join("note.txt")).unwrap(), name);
    }
    let memory = world.items("agents/Planner/memory").await;
    let undo = json!({"tool_name": "delete_file", "parameters": {"path": "note.txt"}, "tool_type": "action"});
    assert_eq!(memory[0]["results"][0]["undo"], undo);
    let outcomes = memory[1]["results"].as_array().unwrap();
    let outcomes: Vec<_> =
        outcomes.iter().map(|one| (one["status"].as_str(), one["error"].as_str())).collect();
    assert_eq!(
        outcomes,
        [
            (Some("skipped"), Some("tool 'delete_file' is not on the device's list")),
            (Some("skipped"), Some("tool 'write_file': parameter 'path' is no string")),
        ]
    );
    insta::assert_snapshot!("devices", world.prompt().await);
    agent.stopped();
    clients.into_iter().for_each(crate::harness::Process::stopped);
}

/// The documents' `LinuxAgent` (`linux/overview.md`, `linux/commands.md`).
#[tokio::test]
async fn a_linux_agent_does_shell_work() {
    let world = World::new().await;
    let root = world.root("linux");
    std::fs::write(root.join("sales.csv"), "north,3\nsouth,4\nnorth,5\n").unwrap();
    let _client = world.device("linux", "execute_command,write_file", "grep,wc,cat");
    let shell = |command: &str| tool("execute_command", &json!({"command": command}));
    let script = json!({"how many sales in the north?": [
        {"thought": "nothing outside", "status": "CONTINUE", "commands": [shell("cat ../demo.json"), shell("rm sales.csv")]},
        {"thought": "count", "status": "CONTINUE", "commands": [shell("grep 'north' sales.csv | wc -l")]},
        {"thought": "keep it", "status": "FINISH", "result": 2,
            "commands": [tool("write_file", &json!({"path": "answer.txt", "text": "2"}))]},
    ]});
    let _agent = world.agent("LinuxAgent", "LinuxAgent", &script, &["--device", "linux"]);
    let seq = world
        .post(&json!({"agent": "LinuxAgent", "request": "how many sales in the north?"}))
        .await;
    assert_eq!(world.done(seq).await["result"], json!(2));
    let memory = world.items("agents/LinuxAgent/memory").await;
    let results = memory.iter().flat_map(|step| step["results"].as_array().unwrap());
    let results: Vec<_> =
        results.map(|one| (one["status"].as_str().unwrap(), one["error"].as_str())).collect();
    assert_eq!(
        results[..2],
        [
            ("failure", Some("'../demo.json' is not in the directory")),
            ("failure", Some("program 'rm' is not allowed")),
        ]
    );
    assert_eq!(memory[1]["results"][0]["result"]["stdout"], json!("2\n"));
    assert_eq!(std::fs::read_to_string(root.join("answer.txt")).unwrap(), "2");
    insta::assert_snapshot!("shell", world.prompt().await);
}

/// The documents' devices that wait for each other by the blackboard (`infrastructure/agents/design/blackboard.md`).
#[tokio::test]
async fn three_devices_hand_over_by_readiness() {
    let world = World::new().await;
    let names = ["windows", "linux", "mobile"];
    let script = |name: &str| {
        json!({(format!("work on {name}")): [{"thought": name, "status": "FINISH",
        "commands": [tool("write_file", &json!({"path": "part.txt", "text": name}))]}]})
    };
    let _agents = names.map(|name| {
        let server = world.sandbox(name, "");
        let flags = ["--server", server.as_str(), "--tools", "write_file"];
        world.agent(name, "LinuxAgent", &script(name), &flags)
    });
    // The last one is asked first, and each waits for the one before it.
    let mut seqs = Vec::new();
    for (number, name) in names.iter().enumerate().rev() {
        let mut item = json!({"agent": name, "request": format!("work on {name}"), "readies": format!("devices/{name}/ready")});
        if let Some(before) = number.checked_sub(1) {
            item["needs"] = json!(format!("devices/{}/ready", names[before]));
            seqs.push(world.post(&item).await);
            world.when(&format!("agents/{name}"), |agent| agent["status"] == "PENDING").await;
        } else {
            seqs.push(world.post(&item).await);
        }
    }
    for seq in seqs {
        world.done(seq).await;
    }
    let steps = world.items("trajectories").await;
    assert_eq!(steps.iter().map(|step| step["agent"].as_str().unwrap()).collect::<Vec<_>>(), names);
    insta::assert_snapshot!("readiness", world.prompt().await);
}
