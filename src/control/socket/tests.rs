//! Tests of the control socket: its place, its permissions, and one left by a killed server.

use std::os::unix::fs::FileTypeExt as _;

use tempfile::TempDir;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[tokio::test]
async fn only_its_owner_may_use_it_and_it_goes_with_the_server() {
    let dir = TempDir::new().expect("a directory");
    let socket = Socket::bind(dir.path()).expect("a socket");
    let path = dir.path().join(SOCKET);
    assert_eq!(mode(&path), 0o600);
    assert!(fs::metadata(&path).expect("it is there").file_type().is_socket());
    connect(dir.path()).expect("it answers");
    drop(socket);
    assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 0, "something is left");
    connect(dir.path()).expect_err("nobody is there");
}

#[tokio::test]
async fn one_that_a_crash_left_is_replaced() {
    let dir = TempDir::new().expect("a directory");
    let stale = dir.path().join(SOCKET);
    drop(net::UnixListener::bind(&stale).expect("a socket"));
    assert!(stale.exists());
    fs::create_dir(dir.path().join(NURSERY)).expect("made");
    fs::write(dir.path().join(NURSERY).join(SOCKET), "").expect("written");
    connect(dir.path()).expect_err("nobody is there");
    let _socket = Socket::bind(dir.path()).expect("a socket");
    connect(dir.path()).expect("it answers");
    assert!(!dir.path().join(NURSERY).exists());
}

#[tokio::test]
async fn a_path_that_is_too_long_for_an_address_will_do() {
    let dir = TempDir::new().expect("a directory");
    let long = dir.path().join("d".repeat(120)).join("e".repeat(120));
    fs::create_dir_all(&long).expect("made");
    let socket = Socket::bind(&long).expect("a socket");
    connect(&long).expect("it answers");
    drop(socket);
    assert_eq!(fs::read_dir(&long).expect("a directory").count(), 0, "something is left");
}
