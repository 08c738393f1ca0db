//! Curl sessions of README, tutorial and guide, pasted and run.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::Server;

/// The commands of a document's `sh` blocks that ask `$B`, and how many such blocks there are.
fn sessions(document: &str) -> (usize, Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = fs::read_to_string(path).expect(document);
    let blocks = text.split("```sh\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split_once("\n```").map(|(block, _)| block));
    let asked: Vec<&str> = blocks.filter(|block| block.contains("$B")).collect();
    let mut commands: Vec<String> = Vec::new();
    for line in asked.join("\n").replace("\\\n", " ").lines() {
        match commands.last_mut() {
            // A quoted body may have several lines.
            Some(last) if last.matches('\'').count() % 2 == 1 => {
                last.push('\n');
                last.push_str(line);
            }
            _ if line.trim().is_empty() || line.starts_with('#') => {}
            _ => commands.push(line.to_owned()),
        }
    }
    (asked.len(), commands)
}

/// Ends what each command said; none of them says it itself.
const END: &str = "--- end of a command, ended with";

/// All commands in one shell, as if they were pasted: what each said, and how it ended.
fn pasted(commands: &[String], place: &Path) -> Vec<(String, String)> {
    let script: String =
        commands.iter().map(|command| format!("{command}\necho; echo '{END}' $?\n")).collect();
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(place)
        .env("no_proxy", "*")
        .output()
        .expect("sh");
    let said = String::from_utf8_lossy(&output.stdout);
    let mut all = Vec::new();
    let mut rest = &*said;
    while let Some((answer, after)) = rest.split_once(END) {
        let (status, after) = after.split_once('\n').unwrap_or((after, ""));
        all.push((answer.to_owned(), status.trim().to_owned()));
        rest = after;
    }
    let complained = String::from_utf8_lossy(&output.stderr);
    assert_eq!(all.len(), commands.len(), "{said}\n{complained}");
    all
}

#[tokio::test]
async fn the_curl_sessions_of_the_tutorial_can_be_pasted() {
    let (blocks, commands) = sessions("docs/tutorial.md");
    assert_eq!(blocks, 6);
    assert_eq!(commands.len(), 94);
    check_pasted(&commands);
}

#[tokio::test]
async fn the_curl_session_of_the_readme_can_be_pasted() {
    let (blocks, commands) = sessions("README.md");
    assert_eq!((blocks, commands.len()), (1, 8));
    check_pasted(&commands);
}

#[tokio::test]
async fn the_curl_session_for_agent_hosts_can_be_pasted() {
    let (blocks, commands) = sessions("docs/guide/mcp.md");
    assert_eq!((blocks, commands.len()), (1, 3));
    check_pasted(&commands);
}

#[tokio::test]
async fn the_curl_session_of_an_agent_says_what_it_shows() {
    let document = "docs/guide/agents.md";
    let (blocks, commands) = sessions(document);
    assert_eq!((blocks, commands.len()), (1, 12));
    let answers = check_pasted(&commands);
    let shown = shown(document);
    assert_eq!(shown.len(), 10);
    // The first two commands set variables.
    for (shown, answer) in shown.iter().zip(&answers[2..]) {
        let mut rest = answer.as_str();
        for piece in shown.split("...").map(str::trim) {
            let found = rest.split_once(piece);
            (_, rest) = found.unwrap_or_else(|| panic!("{piece}\nis not in\n{answer}"));
        }
    }
}

/// The answers that comments show below the commands of a document's `sh` block: one each, with `...` for gaps.
fn shown(document: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = fs::read_to_string(path).expect(document);
    text.lines()
        .filter_map(|line| line.strip_prefix("# {").or(line.strip_prefix("# [")))
        .map(str::to_owned)
        .collect()
}

/// Asserts that each command ends well and says something, or is the refusal that it announces; returns what each said.
fn check_pasted(commands: &[String]) -> Vec<String> {
    let server = Server::start();
    let place = tempfile::tempdir().unwrap();
    let commands: Vec<String> =
        commands.iter().map(|c| c.replace("127.0.0.1:8733", server.authority())).collect();
    let answers = pasted(&commands, place.path());
    for (command, (said, status)) in commands.iter().zip(&answers) {
        assert_eq!(status, "0", "{command}\n{said}");
        // What the server cannot even read is refused without a body.
        let shows =
            command.contains("curl") && !command.contains(" -o ") && !command.contains("=$(");
        assert!(!shows || !said.trim().is_empty(), "{command}\nsays nothing");
        // Plain `curl -s` ends well on a refusal too. Where one is meant, its status stands behind.
        let refused = said.contains("\"instance\"") && said.contains("\"status\"");
        let meant = command.rsplit_once("# ").map(|(_, status)| status.trim());
        match meant.filter(|status| status.len() == 3) {
            Some(status) => {
                assert!(said.contains(&format!("\"status\":{status},")), "{command}\n{said}");
            }
            None => assert!(!refused, "{command}\n{said}"),
        }
    }
    answers.into_iter().map(|(said, _)| said).collect()
}

#[test]
fn an_example_without_a_server_ends_with_one_line() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for name in ["agent.py", "increments.py", "prompt_bytes.py"] {
        // Nothing listens on the port of discard, which only root may take.
        let mut run = Command::new("python3");
        run.arg(examples.join(name)).arg("http://127.0.0.1:9");
        let output = run.output().expect("python3 runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.lines().count() == 1, "{name}: {said}");
        assert!(said.contains("cannot reach the server"), "{name}: {said}");
    }
}
