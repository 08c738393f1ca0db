//! The documents: their links, commands, files, lengths, and the tests that they name.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops where it fails and says why"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The most lines of README and architecture.
const LINES_MAX: usize = 200;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files with that suffix under a folder.
fn files(folder: &str, suffix: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, suffix: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, suffix, found);
            } else if path.extension().is_some_and(|other| other == suffix) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), suffix, &mut found);
    found.sort();
    found
}

/// README, contributors' documents and all of `docs`, by path.
fn documents() -> Vec<(PathBuf, String)> {
    let names =
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "src/ARCHITECTURE.md"];
    let paths = names.iter().map(|name| root().join(name)).chain(files("docs", "md"));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path.strip_prefix(root()).unwrap().to_owned(), text)
    };
    paths.map(read).collect()
}

/// The documents' code: lines of blocks, and inline spans.
fn documented_code() -> Vec<String> {
    let mut code = Vec::new();
    for (_, text) in documents() {
        let mut in_block = false;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
            } else if in_block {
                code.push(line.trim().to_owned());
            } else {
                code.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
            }
        }
    }
    code
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        text.chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn the_links_of_the_documents_lead_somewhere() {
    let mut wrong = Vec::new();
    for (path, text) in documents() {
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        for (target, _) in targets.filter(|(target, _)| !target.contains("://")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let at = match file {
                "" => root().join(&path),
                file => root().join(path.parent().unwrap()).join(file),
            };
            let has = || anchors(&fs::read_to_string(&at).unwrap()).contains(anchor);
            if !at.exists() || !(anchor.is_empty() || has()) {
                wrong.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn readme_and_architecture_stay_short() {
    for name in ["README.md", "src/ARCHITECTURE.md"] {
        let lines = fs::read_to_string(root().join(name)).unwrap().lines().count();
        assert!(lines <= LINES_MAX, "{name} has {lines} lines");
    }
}

/// The subcommand that a line of a document gives to the binary, if it gives one.
fn subcommand(line: &str) -> Option<&str> {
    let line = line.trim_start_matches("$ ");
    let rest = match line.strip_prefix("cargo run") {
        Some(rest) => rest.split_once(" -- ")?.1,
        None => line.strip_prefix("blackboard ")?,
    };
    let word = rest.split_whitespace().next()?;
    word.chars().all(|c| c.is_ascii_lowercase() || c == '-').then_some(word)
}

#[test]
fn the_commands_of_the_documents_exist() {
    let code = documented_code();
    let commands: BTreeSet<&str> = code.iter().filter_map(|line| subcommand(line)).collect();
    assert!(commands.contains("serve"), "the documents start the server: {commands:?}");
    for command in commands.into_iter().filter(|command| !command.starts_with('-')) {
        let status = Command::new(env!("CARGO_BIN_EXE_blackboard"))
            .args([command, "--help"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("the binary runs");
        assert!(status.success(), "`blackboard {command}` is in the documents, not in the binary");
    }
}

#[test]
fn the_files_of_the_documents_exist() {
    let folders = [
        "tests/",
        "docker/",
        "packaging/",
        "openapi/",
        "src/",
        ".ci/",
        "benches/",
        "docs/",
        "crates/",
        "examples/",
        "clients/",
    ];
    for line in documented_code() {
        for word in line.split_whitespace() {
            let word = word.trim_start_matches("./").trim_end_matches([',', '.', ';', ':']);
            if folders.iter().any(|folder| word.starts_with(folder)) && !word.contains('*') {
                assert!(root().join(word).exists(), "the documents name {word}");
            }
        }
    }
    assert!(documented_code().iter().any(|line| line.contains("tests/run")));
}

/// Names of functions in the sources, among them the tests.
fn function_names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in ["src", "tests", "crates", "examples"].iter().flat_map(|folder| files(folder, "rs"))
    {
        for line in fs::read_to_string(path).unwrap().lines() {
            let rest = line.trim_start().trim_start_matches("async ");
            let name = rest.strip_prefix("fn ").and_then(|rest| rest.split(['(', '<']).next());
            names.extend(name.map(str::to_owned));
        }
    }
    names
}

#[test]
fn the_tests_that_the_documents_name_exist() {
    let names = function_names();
    let mut wrong = Vec::new();
    for path in ["src/ARCHITECTURE.md", "docs/invariants.md", "docs/guide/agents.md"] {
        let text = fs::read_to_string(root().join(path)).unwrap();
        let spans = text.split('`').skip(1).step_by(2);
        let is_name = |span: &&str| {
            span.matches('_').count() > 2
                && span.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        let unknown = spans.filter(is_name).filter(|span| !names.contains(*span));
        wrong.extend(unknown.map(str::to_owned));
    }
    assert!(wrong.is_empty(), "no such tests: {wrong:#?}");
}
