//! Read-only commands: no file changed, and no store created beside the remains of one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use reqwest::Method;
use tempfile::TempDir;

use crate::answer::ask;
use crate::harness::{Server, finished};
use crate::images::noise;

/// Every file of a data directory, with its bytes.
fn contents(data: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut dirs = vec![data.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).expect("a directory") {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            if kind.is_dir() {
                dirs.push(path.clone());
                found.push((path, Vec::new()));
            } else if kind.is_file() {
                let bytes = fs::read(&path).unwrap();
                found.push((path, bytes));
            }
        }
    }
    found.sort();
    found
}

fn run(arguments: &[&str], data: &Path) -> Output {
    finished(&[arguments, &["--data", data.to_str().expect("a path")]].concat())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

/// A server with items, an image, and something that ends by time.
async fn filled() -> Server {
    let server = Server::start();
    let board = server.board("s");
    for n in 0..30 {
        board.post("requests", &format!("{{\"n\":{n}}}")).await.is(201);
    }
    ask(board.typed(Method::POST, "screenshots", "image/png", noise(60, 50))).await.is(201);
    // The index has its files then.
    server.get("/v1/search?q=none&session=s&min_revision=1&wait=60s").await.is(200);
    server
}

/// Looks in every way; each is to succeed and to change nothing. A server that runs may keep house meanwhile, but
/// in the same files.
fn look(data: &Path, runs: bool) {
    let elsewhere = TempDir::new().unwrap();
    let place = |name: &str| elsewhere.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(place("scratch")).unwrap();
    let before = contents(data);
    for command in [
        &["check"] as &[&str],
        &["check", "--scratch", &place("scratch")],
        &["export", "s"],
        &["export", "--all", "--to", &place("all")],
        &["token", "list"],
        &["backup", "--to", &place("backup")],
    ] {
        let output = run(command, data);
        assert!(output.status.success(), "{command:?}: {}", said(&output));
        if command[0] == "check" {
            assert_eq!(said(&output), "sound: 31 commits, 1 sessions, 1 images\n", "{command:?}");
        }
        is_unchanged(data, &before, runs, command);
    }
    assert_eq!(fs::read_dir(place("scratch")).unwrap().count(), 0);
    let sound = run(&["check"], &elsewhere.path().join("backup"));
    assert!(sound.status.success(), "{}", said(&sound));
}

/// The files are those of before; with the same bytes too, unless a server runs, which keeps house in them.
fn is_unchanged(data: &Path, before: &[(PathBuf, Vec<u8>)], runs: bool, command: &[&str]) {
    let now = contents(data);
    let names =
        |files: &[(PathBuf, Vec<u8>)]| files.iter().map(|file| file.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&now), names(before), "{command:?}");
    for (now, before) in now.iter().zip(before) {
        assert!(runs || now == before, "{command:?} changes {}", now.0.display());
    }
}

#[tokio::test]
async fn a_look_changes_no_file_of_a_killed_server() {
    let mut server = filled().await;
    server.kill();
    let data = server.data();
    assert!(fs::metadata(data.join("blackboard.db-wal")).unwrap().len() > 0);
    look(&data, false);
    // As in a copy of what is needed.
    for file in ["blackboard.db-shm", "lock"] {
        fs::remove_file(data.join(file)).unwrap();
    }
    look(&data, false);
    server.start_again();
    assert_eq!(server.board("s").get("requests").await.json()["count"], 30);
}

#[tokio::test]
async fn a_look_changes_no_file_of_a_stopped_server() {
    let mut server = filled().await;
    assert!(server.stop().success());
    let data = server.data();
    look(&data, false);
    fs::remove_file(data.join("blackboard.db-wal")).unwrap();
    look(&data, false);
}

#[tokio::test]
async fn a_look_beside_a_running_server_changes_no_file() {
    let server = filled().await;
    look(&server.data(), true);
    server.board("s").post("requests", "{}").await.is(201);
}

#[tokio::test]
async fn a_copy_to_check_is_refused_where_it_cannot_be() {
    let mut server = filled().await;
    let data = server.data();
    for runs in [true, false] {
        let before = contents(&data);
        for scratch in [data.clone(), data.join("absent")] {
            let command = ["check", "--scratch", scratch.to_str().unwrap()];
            let refused = run(&command, &data);
            assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
            is_unchanged(&data, &before, runs, &command);
        }
        server.kill();
    }
}

#[tokio::test]
async fn nothing_is_made_where_something_of_a_store_is_left() {
    let mut server = filled().await;
    server.kill();
    let data = server.data();
    let (database, log) = (data.join("blackboard.db"), data.join("blackboard.db-wal"));
    let refuses = |left: &str| {
        let before = contents(&data);
        for command in [
            &["check"] as &[&str],
            &["serve", "--listen", "127.0.0.1:0"],
            &["import", "t", "--create"],
        ] {
            let refused = run(command, &data);
            assert_eq!(refused.status.code(), Some(1), "{command:?}: {}", said(&refused));
            let said = said(&refused);
            assert!(said.contains("blackboard.db"), "{command:?}: {said}");
            let is_absent = command == ["check"] && !database.exists();
            assert!(is_absent || said.contains(left), "{command:?}: {said}");
            assert!(contents(&data) == before, "{command:?} changes something");
        }
    };
    fs::write(&database, "").unwrap();
    refuses("blackboard.db-wal of a store exists");
    fs::remove_file(&database).unwrap();
    refuses("blackboard.db-wal of a store exists");
    fs::write(&database, "").unwrap();
    fs::remove_file(&log).unwrap();
    refuses("blobs of a store exists");
    fs::remove_dir_all(data.join("blobs")).unwrap();
    // What a first start leaves that is killed at once.
    let empty = run(&["check"], &data);
    assert_eq!(empty.status.code(), Some(1));
    assert!(said(&empty).contains("is empty; it contains no store"), "{}", said(&empty));
    server.start_again();
    server.board("s").post("requests", "{}").await.is(201);
}
