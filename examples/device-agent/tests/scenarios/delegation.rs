//! Delegation between agents: a host with two applications, three authors and a critic.

use serde_json::json;

use crate::harness::{World, tool};

/// The documents' `HostAgent` and `AppAgents` (`ufo2/host_agent/overview.md`).
#[tokio::test]
async fn a_host_delegates_a_chart_and_a_report() {
    let world = World::new().await;
    let root = world.root("office");
    let server = world.sandbox("office", "");
    let flags = ["--server", server.as_str(), "--tools", "list_files,draw_chart,write_file"];
    let _excel = world.agent("Excel", "AppAgent", &json!({"make a chart": [
        {"thought": "look first", "status": "SCREENSHOT"},
        {"thought": "three bars", "status": "FINISH", "result": "chart.svg",
            "commands": [tool("draw_chart", &json!({"path": "chart.svg", "values": [3, 4, 5]}))]},
    ]}), &flags);
    let _word = world.agent("Word", "AppAgent", &json!({"put chart.svg into the report": [
        {"thought": "one line", "status": "FINISH", "result": "report.md",
            "commands": [tool("write_file", &json!({"path": "report.md", "text": "![sales](chart.svg)\n"}))]},
    ]}), &flags);
    let _host = world.agent("HostAgent", "HostAgent", &json!({"a report with a chart": [
        {"thought": "the chart first", "status": "ASSIGN", "agent": "Excel", "subtask": "make a chart"},
        {"thought": "then the text", "status": "ASSIGN", "agent": "Word", "subtask": "put chart.svg into the report"},
        {"thought": "both are done", "status": "FINISH", "result": "report.md"},
    ]}), &[]);
    let seq = world.post(&json!({"agent": "HostAgent", "request": "a report with a chart"})).await;
    assert_eq!(world.done(seq).await["result"], json!("report.md"));
    assert!(std::fs::read_to_string(root.join("chart.svg")).unwrap().contains("height='5'"));
    assert_eq!(std::fs::read_to_string(root.join("report.md")).unwrap(), "![sales](chart.svg)\n");
    // The host of each agent, and the agent whose turn it is at the end.
    let excel = world.board.get("agents/Excel", &[]).await.unwrap().body;
    assert_eq!((&excel["status"], &excel["turn"]), (&json!("FINISH"), &json!("HostAgent")));
    insta::assert_snapshot!("delegation", world.prompt().await);
}

/// Drafts in private, and what a critic accepts of them.
#[tokio::test]
async fn a_critic_merges_drafts_of_three_forks() {
    let world = World::new().await;
    let authors = ["Ann", "Bob", "Eve"];
    let _authors = authors.map(|name| {
        let script = json!({"propose a title": [
            {"thought": format!("{name} thinks"), "status": "CONTINUE"},
            {"thought": format!("{name} proposes"), "status": "FINISH", "result": format!("{name}'s title")},
        ]});
        world.agent(name, "LinuxAgent", &script, &[])
    });
    let mut drafts = Vec::new();
    for name in authors {
        drafts.push(
            world
                .post(&json!({"agent": name, "request": "propose a title", "private": true}))
                .await,
        );
    }
    let item = json!({"agent": "Critic", "request": "choose", "drafts": drafts});
    let choice = world.request(json!({"append": "requests", "item": item, "after": drafts})).await;
    for seq in &drafts {
        world.done(*seq).await;
    }
    assert_eq!(world.items("trajectories").await, [json!(null); 0], "drafts are private");
    let script = json!({"choose": [{"thought": "two are good", "status": "FINISH", "accept": ["Ann", "Eve"], "result": 2}]});
    let _critic = world.agent("Critic", "CriticAgent", &script, &[]);
    assert_eq!(world.done(choice).await["result"], json!(2));
    let steps = world.items("trajectories").await;
    let by: Vec<_> = steps.iter().map(|step| step["agent"].as_str().unwrap()).collect();
    assert_eq!(by, ["Ann", "Ann", "Eve", "Eve", "Critic"]);
    insta::assert_snapshot!("critic", world.prompt().await);
}
