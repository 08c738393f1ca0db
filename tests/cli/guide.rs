//! Commands of the guide's blocks, pasted and run.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::server::{Server, blackboard, finished};

const COMMAND_LINE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guide/command-line.md"));

const ACCESS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guide/access.md"));

/// The text of each block for a shell.
fn blocks(page: &'static str) -> Vec<&'static str> {
    let begun = page.split("```sh\n").skip(1);
    begun.map(|rest| rest.split("```").next().unwrap()).collect()
}

/// The output of all blocks of a page, pasted into one shell in the folder of the data directory.
fn pasted(page: &'static str, server: &Server) -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_blackboard")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), env::var("PATH").unwrap());
    let script = blocks(page).join("\n").replace("http://127.0.0.1:8733", &server.url);
    let mut command = Command::new("bash");
    command.args(["-e", "-c", &script]).env("PATH", path).env("no_proxy", "*");
    for (name, value) in blackboard(&server.home).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(server.home.path());
    finished(command, "").text()
}

#[test]
fn the_guides_commands_run_as_they_stand() {
    let server = Server::start();
    assert_eq!(blocks(COMMAND_LINE).len(), 2);
    let text = pasted(COMMAND_LINE, &server);
    for expected in ["\"seq\":1", "Make a chart", "created; requests/1 {", "requests/1 done: {"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(server.json(&["show", "demo/requests/1"])["done"]["result"]["file"], "chart.png");
}

#[test]
fn the_guide_gives_each_agent_a_token_of_its_own() {
    let server = Server::start_with(&["--require-token"]);
    assert_eq!(blocks(ACCESS).len(), 1);
    let text = pasted(ACCESS, &server);
    let expected =
        ["\"session\":\"team-1\"", "linux-agent: read,write on team-* as LinuxAgent, until "];
    for expected in expected {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let revoked = server.home.path().join("linux-agent.token");
    let other = server.home.path().join("host-agent.token");
    let show = |token: &Path| {
        let token = token.to_str().unwrap();
        server.run(&["show", "team-1/trajectories/1", "--token-file", token])
    };
    assert!(show(&revoked).refusal(4).contains("revoked"));
    assert_eq!(show(&other).json()["agent"], "LinuxAgent");
}
