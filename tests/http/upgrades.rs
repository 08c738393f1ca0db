//! Data of a newer version: refused with a remedy by every command, unchanged.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::harness::{Server, finished};

/// Where SQLite keeps the format of what is in a database, as four bytes from the highest.
const USER_VERSION_AT: usize = 60;

fn run(command: &[&str], data: &Path) -> Output {
    finished(&[command, &["--data", data.to_str().expect("a path")]].concat())
}

#[tokio::test]
async fn a_newer_data_directory_is_refused_and_not_touched() {
    let mut server = Server::start();
    server.made("s").await;
    assert!(server.stop().success());
    let data = server.data();
    let database = data.join("blackboard.db");
    let mut bytes = fs::read(&database).expect("a database");
    bytes[USER_VERSION_AT..USER_VERSION_AT + 4].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(&database, &bytes).expect("written");
    let to = data.with_file_name("to");
    let to = to.to_str().expect("a path");
    for command in [
        &["serve", "--listen", "127.0.0.1:0"] as &[&str],
        &["check"],
        &["backup", "--to", to],
        &["export", "s"],
        &["export", "--all", "--to", to],
        &["import", "t"],
    ] {
        let refused = run(command, &data);
        assert_eq!(refused.status.code(), Some(1), "{command:?}");
        let said = String::from_utf8_lossy(&refused.stderr);
        let reason = "has format 99, written by a newer blackboard";
        assert!(
            said.contains(reason) && said.contains("upgrade blackboard"),
            "{command:?}: {said}"
        );
        assert!(!Path::new(to).exists());
    }
    assert_eq!(fs::read(&database).expect("a database"), bytes);
}

#[tokio::test]
async fn a_newer_archive_is_refused_with_what_to_do() {
    let server = Server::start();
    server.made("s").await;
    let archive = server.board("s").get("archive").await.is(200).text().to_owned();
    let file = server.data().with_file_name("newer.ndjson");
    fs::write(&file, archive.replacen("\"blackboard_archive\":1", "\"blackboard_archive\":2", 1))
        .expect("written");
    let refused = run(&["import", "t", "--from", file.to_str().unwrap()], &server.data());
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(
        said,
        "error: line 1: archive version 2 is not supported, only version 1 is; if a newer blackboard wrote it, upgrade this \
         one\n"
    );
}

#[tokio::test]
async fn a_backup_of_a_newer_version_is_refused_too() {
    let server = Server::start();
    server.made("s").await;
    let to = server.data().with_file_name("backup");
    let output = run(&["backup", "--to", to.to_str().unwrap()], &server.data());
    assert!(output.status.success());
    let database = to.join("blackboard.db");
    let mut bytes = fs::read(&database).expect("a database");
    bytes[USER_VERSION_AT..USER_VERSION_AT + 4].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(&database, &bytes).expect("written");
    for command in [&["check"] as &[&str], &["serve", "--listen", "127.0.0.1:0"]] {
        let said = String::from_utf8_lossy(&run(command, &to).stderr).into_owned();
        assert!(said.contains("written by a newer blackboard"), "{said}");
    }
}
