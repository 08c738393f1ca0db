//! Curl sessions of README, tutorial and guide, pasted and run.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::Server;

/// Pages of the guide with a curl session, and its number of commands.
const PAGES: [(&str, usize); 14] = [
    ("agents", 12),
    ("blobs", 10),
    ("events", 7),
    ("history", 16),
    ("logs", 14),
    ("messages", 8),
    ("prompts", 11),
    ("questions", 8),
    ("screenshots", 6),
    ("search", 4),
    ("sessions", 9),
    ("state", 10),
    ("tasks", 31),
    ("writes", 14),
];

/// A command of a document, and the answer that the comments below it show.
#[derive(Debug)]
struct Printed {
    command: String,
    shown: String,
}

/// What a pasted command said, how it ended, and the statuses that curl got.
struct Answer {
    said: String,
    ended: String,
    statuses: String,
}

/// The commands of a document's `sh` blocks that ask `$B`, and how many such blocks there are. Comments directly below a
/// command show its answer; those below an empty line explain the next one.
fn sessions(document: &str) -> (usize, Vec<Printed>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = fs::read_to_string(path).expect(document);
    let blocks = text.split("```sh\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split_once("\n```").map(|(block, _)| block));
    let asked: Vec<&str> = blocks.filter(|block| block.contains("$B")).collect();
    let mut printed: Vec<Printed> = Vec::new();
    let mut is_below = false;
    for line in asked.join("\n\n").replace("\\\n", " ").lines() {
        let comment = line.strip_prefix('#');
        match (printed.last_mut(), comment) {
            // A quoted body may have several lines.
            (Some(last), _) if last.command.matches('\'').count() % 2 == 1 => {
                last.command.push('\n');
                last.command.push_str(line);
            }
            (Some(last), Some(comment)) if is_below => last.shown.push_str(comment),
            (_, Some(_)) => {}
            _ if line.trim().is_empty() => is_below = false,
            _ => {
                printed.push(Printed { command: line.to_owned(), shown: String::new() });
                is_below = true;
            }
        }
    }
    (asked.len(), printed)
}

/// Ends what each command said; none of them says it itself.
const END: &str = "--- end of a command, ended with";

/// The standard error of each curl goes to a file of its own: two that run at once would mix their statuses in one.
const EACH_CURL: &str = "curl() { command curl \"$@\" 2>\"$(mktemp .errors.XXXXXX)\"; }\n";

/// All commands in one shell, as if they were pasted. Curl adds each status to its standard error.
fn pasted(commands: &[String], place: &Path) -> Vec<Answer> {
    fs::write(place.join(".curlrc"), "write-out = \"%{stderr}<%{http_code}>\\n\"\n").unwrap();
    // A file that is still empty belongs to a curl in the background, whose status a later command shows.
    let line = |command: &String| {
        format!(
            "{{ {command}\n}} 2>.errors; ended=$?\necho; echo '{END}' $ended $(cat .errors*)\n\
             find . -maxdepth 1 -name '.errors*' -size +0 -delete\n"
        )
    };
    let lines: String = commands.iter().map(line).collect();
    let script = format!("{EACH_CURL}{lines}");
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(place)
        .env("no_proxy", "*")
        .env("CURL_HOME", place)
        .output()
        .expect("sh");
    let said = String::from_utf8_lossy(&output.stdout);
    let mut all = Vec::new();
    let mut rest = &*said;
    while let Some((said, after)) = rest.split_once(END) {
        let (ended, after) = after.split_once('\n').unwrap_or((after, ""));
        let (ended, statuses) = ended.trim().split_once(' ').unwrap_or((ended.trim(), ""));
        let [said, ended, statuses] = [said, ended, statuses].map(str::to_owned);
        all.push(Answer { said, ended, statuses });
        rest = after;
    }
    let complained = String::from_utf8_lossy(&output.stderr);
    assert_eq!(all.len(), commands.len(), "{said}\n{complained}");
    all
}

#[tokio::test]
async fn the_curl_sessions_of_the_tutorial_can_be_pasted() {
    let (blocks, printed) = sessions("docs/tutorial.md");
    assert_eq!((blocks, printed.len()), (7, 33));
    check_shown(&printed);
}

#[tokio::test]
async fn the_curl_session_of_the_readme_can_be_pasted() {
    let (blocks, printed) = sessions("README.md");
    assert_eq!((blocks, printed.len()), (1, 5));
    check_shown(&printed);
}

#[tokio::test]
async fn the_curl_session_for_agent_hosts_can_be_pasted() {
    let (blocks, printed) = sessions("docs/guide/mcp.md");
    assert_eq!((blocks, printed.len()), (2, 6));
    check_pasted(&printed);
}

#[tokio::test]
async fn the_curl_sessions_of_the_guide_say_what_they_show() {
    for (page, count) in PAGES {
        let (_, printed) = sessions(&format!("docs/guide/{page}.md"));
        assert_eq!(printed.len(), count, "{page}");
        check_shown(&printed);
    }
}

/// Asserts that each command answers what the document shows: a status, if there is one, and text with `...` for gaps.
fn check_shown(printed: &[Printed]) {
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (Printed { command, shown }, answer) in printed.iter().zip(check_pasted(printed)) {
        let shown = joined(shown);
        let parts = shown.split_once(' ').filter(|(status, text)| {
            status.parse::<u16>().is_ok() && status.len() == 3 && text.starts_with(['{', '[', '"'])
        });
        let (status, text) = parts.unwrap_or(("", &shown));
        assert!(answer.statuses.contains(status), "{command}\nis {}", answer.statuses);
        let said = joined(&answer.said);
        let mut rest = said.as_str();
        for piece in text.split("...").map(str::trim) {
            let found = rest.split_once(piece);
            (_, rest) =
                found.unwrap_or_else(|| panic!("{piece}\nis not in\n{said}\nof\n{command}"));
        }
    }
}

/// Asserts that each command ends well and says something, or is the rejection that it announces; returns the answers.
fn check_pasted(printed: &[Printed]) -> Vec<Answer> {
    let server = Server::start();
    let place = tempfile::tempdir().unwrap();
    let address = |printed: &Printed| printed.command.replace("127.0.0.1:8733", server.authority());
    let commands: Vec<String> = printed.iter().map(address).collect();
    let answers = pasted(&commands, place.path());
    for (command, Answer { said, ended, .. }) in commands.iter().zip(&answers) {
        assert_eq!(ended, "0", "{command}\n{said}");
        // What the server cannot even read is rejected without a body.
        let shows =
            command.contains("curl") && !command.contains(" -o ") && !command.contains("=$(");
        assert!(!shows || !said.trim().is_empty(), "{command}\nsays nothing");
        // Plain `curl -s` ends well on a rejection too. Where one is meant, its status stands behind.
        let rejected = said.contains("\"instance\"") && said.contains("\"status\"");
        let meant = command.rsplit_once("# ").map(|(_, status)| status.trim());
        match meant.filter(|status| status.len() == 3) {
            Some(status) => {
                assert!(said.contains(&format!("\"status\":{status},")), "{command}\n{said}");
            }
            None => assert!(!rejected, "{command}\n{said}"),
        }
    }
    answers
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
