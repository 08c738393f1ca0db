//! Documents: their links, commands, files, lengths, facts, and the tests that they name.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops where it fails and says why"
)]

mod bounds;
mod commands;
mod facts;
mod stated;
mod versions;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The most lines of what is read first.
const LINES_MAX: [(&str, usize); 2] = [("README.md", 120), ("src/ARCHITECTURE.md", 200)];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files with that suffix, or with none, under a folder. What packages brought along is passed over.
fn files(folder: &str, suffix: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, suffix: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_other = name.starts_with('.') || name == "node_modules" || name == "target";
            if path.is_dir() && !is_other {
                walk(&path, suffix, found);
            } else if path.is_file() && path.extension().unwrap_or_default() == suffix {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), suffix, &mut found);
    found.sort();
    found
}

/// README, contributors' documents, all of `docs`, and what clients and examples say of themselves, by path.
fn documents() -> Vec<(PathBuf, String)> {
    let names =
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "src/ARCHITECTURE.md"];
    let folders = ["docs", "clients", "examples"];
    let paths = names.iter().map(|name| root().join(name));
    let paths = paths.chain(folders.iter().flat_map(|folder| files(folder, "md")));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path.strip_prefix(root()).unwrap().to_owned(), text)
    };
    paths.map(read).collect()
}

/// Checks that the document's table with this head has these rows, or writes them with `BLACKBOARD_WRITE_TABLES`.
fn is_table(document: &str, head: &str, rows: &str) {
    let path = root().join(document);
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(&format!("{head}\n")).expect("the table's head");
    let (line, rest) = rest.split_once('\n').expect("the line below the head");
    let end = rest.find("\n\n").map_or(rest.len(), |end| end + 1);
    let (stated, after) = rest.split_at(end);
    if std::env::var_os("BLACKBOARD_WRITE_TABLES").is_some() {
        fs::write(path, format!("{before}{head}\n{line}\n{rows}{after}")).unwrap();
        return;
    }
    let all: BTreeSet<&str> = stated.lines().chain(rows.lines()).collect();
    let is_in_one = |row: &&&str| stated.contains(**row) != rows.contains(**row);
    let wrong: Vec<_> = all.iter().filter(is_in_one).collect();
    let remedy = "BLACKBOARD_WRITE_TABLES=1 cargo test --test documents writes them from the code";
    assert!(stated == rows, "{document}: rows {wrong:#?} or their order; {remedy}");
}

/// A document's blocks of code, and the paragraphs and rows between them, each on one line.
fn parts(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut blocks, mut paragraphs) = (Vec::new(), vec![String::new()]);
    let mut block: Option<String> = None;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            match block.take() {
                Some(whole) => blocks.push(whole),
                None => block = Some(String::new()),
            }
            paragraphs.push(String::new());
        } else if let Some(block) = &mut block {
            block.push_str(line);
            block.push('\n');
        } else {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['|', '-', '#']) {
                paragraphs.push(String::new());
            }
            paragraphs.last_mut().unwrap().push_str(line);
            paragraphs.last_mut().unwrap().push(' ');
        }
    }
    (blocks, paragraphs)
}

/// A document's blocks of code.
fn blocks(text: &str) -> Vec<String> {
    parts(text).0
}

/// A document's inline code.
fn spans(text: &str) -> Vec<String> {
    let paragraphs = parts(text).1;
    let spans = |paragraph: &String| {
        let spans = paragraph.split('`').skip(1).step_by(2).map(str::to_owned);
        spans.collect::<Vec<_>>()
    };
    paragraphs.iter().flat_map(spans).collect()
}

/// The documents' code: lines of blocks, and inline spans.
fn documented_code() -> Vec<String> {
    let code = |(_, text): (PathBuf, String)| {
        let blocks = blocks(&text);
        let lines = blocks.iter().flat_map(|block| block.lines());
        let lines: Vec<_> = lines.map(|line| line.trim().to_owned()).collect();
        [lines, spans(&text)].concat()
    };
    documents().into_iter().flat_map(code).collect()
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
fn every_finding_has_its_form_and_its_row() {
    let rows = fs::read_to_string(root().join("docs/outside.md")).unwrap();
    let mut named: BTreeSet<_> = rows.lines().filter_map(|row| row.strip_suffix("` |")).collect();
    for file in fs::read_dir(root().join("findings")).unwrap() {
        let file = file.unwrap().path();
        let text = fs::read_to_string(&file).unwrap();
        let name = file.file_stem().unwrap().to_str().unwrap();
        let software = text.lines().nth(1).unwrap_or_default();
        let is_told = software.starts_with("# ") && software.contains(|c: char| c.is_ascii_digit());
        assert!(is_told, "{name}: its second line names no version");
        for part in ["#!/usr/bin/env bash\n", "\nset -euo pipefail\n", "$(mktemp -d)", "trap "] {
            assert!(text.contains(part), "{name} has no {part:?}");
        }
        let before = named.len();
        named.retain(|row| !row.ends_with(&format!("`{name}")));
        assert_eq!(before - named.len(), 1, "{name} needs one row in docs/outside.md");
    }
    assert!(named.is_empty(), "there are no such findings: {named:?}");
}

#[test]
fn readme_and_architecture_stay_short() {
    for (name, most) in LINES_MAX {
        let lines = fs::read_to_string(root().join(name)).unwrap().lines().count();
        assert!(lines <= most, "{name} has {lines} lines");
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
    // Files that the reader makes.
    let ignored = fs::read_to_string(root().join(".gitignore")).unwrap();
    let is_made = |word: &str| ignored.lines().any(|line| line.trim_start_matches('/') == word);
    for line in documented_code() {
        for word in line.split_whitespace() {
            let word = word.trim_start_matches("./").trim_end_matches([',', '.', ';', ':', ')']);
            let is_ours = folders.iter().any(|folder| word.starts_with(folder));
            if is_ours && !word.contains('*') && !is_made(word) {
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
