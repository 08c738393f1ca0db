//! The README's curl session works as it stands.

use std::fs;
use std::process::Command;

use crate::harness::Server;

/// The lines of the first `sh` block that has `curl` in it, continued lines joined.
fn session() -> Vec<String> {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = fs::read_to_string(readme).expect("README.md");
    let blocks = readme.split("```sh\n").skip(1);
    let mut blocks = blocks.filter_map(|rest| rest.split_once("\n```").map(|(block, _)| block));
    let block = blocks.find(|block| block.contains("curl")).expect("README.md has a curl session");
    let joined = block.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// `NAME=value` and `export NAME=value` stand for all later lines.
fn is_assignment(line: &str) -> bool {
    let line = line.trim_start_matches("export ");
    let name = line.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[tokio::test]
async fn the_curl_session_of_the_readme_can_be_pasted() {
    let server = Server::start();
    let place = tempfile::tempdir().unwrap();
    let mut assignments = String::new();
    let mut calls = 0;
    for line in session() {
        let line = line
            .replace("127.0.0.1:8733", server.authority())
            .replace("localhost:8733", server.authority());
        if is_assignment(&line) {
            assignments.push_str(&format!("{line}\n"));
            continue;
        }
        if !line.contains("curl") {
            continue;
        }
        calls += 1;
        let output = Command::new("sh")
            .args(["-c", &format!("{assignments}{line}")])
            .current_dir(place.path())
            .env("no_proxy", "*")
            .output()
            .expect("sh");
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}\n{said}\n{complained}");
        // Plain `curl -s` ends well on a refusal too.
        let refused = said.contains("\"instance\"") && said.contains("\"status\"");
        assert!(!refused || line.contains('#'), "{line}\n{said}");
    }
    assert!(calls > 2, "the session has {calls} calls");
}
