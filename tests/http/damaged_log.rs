//! Changed bits in the write-ahead log of a killed server: refused by name, or, with `--sync normal`, the last commit alone
//! lost.

use std::fs;
use std::path::{Path, PathBuf};

use reqwest::Method;

use crate::answer::ask;
use crate::harness::{Server, finished};

const COMMITS: u64 = 60;

/// The bytes of a log's header, and of each frame in it.
const HEADER: usize = 32;
const FRAME: usize = 24 + 4096;

fn log_of(server: &Server) -> PathBuf {
    server.data().join("blackboard.db-wal")
}

/// A killed server with commits in its log, and the tag that their page had.
async fn killed(flags: &[&str]) -> (Server, String) {
    let mut server = Server::start_with(flags);
    let board = server.board("s");
    for n in 1..=COMMITS {
        board.post("requests", &format!("{{\"n\":{n}}}")).await.is(201);
    }
    let tag = board.get("requests").await.etag();
    server.kill();
    (server, tag)
}

/// How many frames the log has of its own.
pub(crate) fn frames(log: &[u8]) -> usize {
    let of_log = |at: &usize| log.get(at + 8..at + 16) == log.get(16..24);
    (HEADER..log.len()).step_by(FRAME).take_while(of_log).count()
}

/// Changes a bit in the page of this frame.
pub(crate) fn harm(log: &Path, frame: usize) {
    let mut bytes = fs::read(log).unwrap();
    bytes[HEADER + frame * FRAME + 2_000] ^= 1;
    fs::write(log, bytes).unwrap();
}

fn contents(server: &Server) -> Vec<Vec<u8>> {
    let files = ["blackboard.db", "blackboard.db-wal"];
    files.map(|file| fs::read(server.data().join(file)).unwrap()).into()
}

#[tokio::test]
async fn a_changed_bit_before_other_commits_refuses_the_start() {
    let (server, _) = killed(&[]).await;
    let log = log_of(&server);
    harm(&log, frames(&fs::read(&log).unwrap()) / 2);
    let left = contents(&server);
    let data = server.data();
    let data = data.to_str().expect("a path");
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["check"], &["export", "s"]] {
        let refused = finished(&[command, &["--data", data]].concat());
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        let said = String::from_utf8([refused.stdout, refused.stderr].concat()).unwrap();
        for fact in [log.to_str().unwrap(), "is damaged", "commits", "salvage"] {
            assert!(said.contains(fact), "{command:?}: {said}");
        }
        assert_eq!(contents(&server), left, "{command:?}");
    }
}

#[tokio::test]
async fn commits_behind_a_changed_bit_are_salvaged_with_new_tags() {
    let (mut server, tag) = killed(&[]).await;
    let log = log_of(&server);
    harm(&log, frames(&fs::read(&log).unwrap()) / 2);
    let (data, left) = (server.data(), contents(&server));
    let to = data.with_file_name("salvaged");
    let (from, place) = (data.to_str().unwrap(), to.to_str().unwrap());
    let done = finished(&["salvage", "--data", from, "--to", place]);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success() && said.contains("salvaged: 1 sessions whole"), "{said}");
    assert_eq!(contents(&server), left);
    assert!(finished(&["check", "--data", place]).status.success());
    fs::rename(&data, data.with_file_name("damaged")).unwrap();
    fs::rename(&to, &data).unwrap();
    server.start_again();
    let board = server.board("s");
    assert_eq!(board.get("requests").await.json()["count"], COMMITS);
    ask(board.to(Method::GET, "requests").header("if-none-match", &tag)).await.is(200);
}

#[tokio::test]
async fn a_changed_bit_in_the_last_commit_refuses_the_start() {
    let (server, _) = killed(&[]).await;
    let log = log_of(&server);
    harm(&log, frames(&fs::read(&log).unwrap()) - 1);
    let (data, left) = (server.data(), contents(&server));
    let data = data.to_str().expect("a path");
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["check"]] {
        let refused = finished(&[command, &["--data", data]].concat());
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        let said = String::from_utf8([refused.stdout, refused.stderr].concat()).unwrap();
        let facts =
            [format!("ends with commit {}", COMMITS - 1), format!("commit {COMMITS} was stored")];
        assert!(facts.iter().all(|fact| said.contains(fact)), "{command:?}: {said}");
        assert_eq!(contents(&server), left, "{command:?}");
    }
}

#[tokio::test]
async fn an_unsynced_last_commit_is_lost_alone() {
    let (mut server, tag) = killed(&["--sync", "normal"]).await;
    let log = log_of(&server);
    harm(&log, frames(&fs::read(&log).unwrap()) - 1);
    let checked = finished(&["check", "--data", server.data().to_str().unwrap()]);
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success() && said.contains("the write-ahead log ends early"), "{said}");
    server.start_again();
    let board = server.board("s");
    assert_eq!(board.get("requests").await.json()["count"], COMMITS - 1);
    // The same revision has another content.
    board.post("requests", "{\"n\":\"another\"}").await.is(201);
    let known = board.to(Method::GET, "requests").header("if-none-match", &tag);
    ask(known).await.is(200);
}
