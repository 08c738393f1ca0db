//! Commands of the guide's blocks, pasted and run.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::server::{Server, finished};

const GUIDE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guide/command-line.md"));

/// The text of each block for a shell.
fn blocks() -> Vec<&'static str> {
    let begun = GUIDE.split("```sh\n").skip(1);
    begun.map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn the_guides_commands_run_as_they_stand() {
    let server = Server::start();
    let folder = Path::new(env!("CARGO_BIN_EXE_blackboard")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), env::var("PATH").unwrap());
    let blocks = blocks();
    assert_eq!(blocks.len(), 2);
    let script = blocks.join("\n").replace("http://127.0.0.1:8733", &server.url);
    let mut command = Command::new("bash");
    command.args(["-e", "-c", &script]).env("PATH", path).env("HOME", server.home.path());
    let text = finished(command, "").text();
    for expected in ["\"seq\":1", "Make a chart", "created; requests/1 {", "requests/1 done: {"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(server.json(&["show", "demo/requests/1"])["done"]["result"]["file"], "chart.png");
}
