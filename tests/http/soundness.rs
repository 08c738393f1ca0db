//! Data directory: one server at a time, and flipped bits found.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use reqwest::Method;

use crate::answer::ask;
use crate::harness::{Server, finished};
use crate::images::noise;

fn check(data: &Path) -> Output {
    finished(&["check", "--data", data.to_str().expect("a path")])
}

/// A start that is to be refused.
fn serve(data: &str) -> Output {
    finished(&["serve", "--listen", "127.0.0.1:0", "--data", data])
}

fn files(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).expect("a directory") {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            found.extend(files(&path));
        } else if kind.is_file() {
            found.push(path);
        }
    }
    found
}

/// Where those bytes stand in the directory, in whatever file.
fn places(data: &Path, needle: &[u8]) -> Vec<(PathBuf, usize)> {
    let mut places = Vec::new();
    for file in files(data) {
        let bytes = fs::read(&file).unwrap();
        let at = bytes.windows(needle.len()).position(|window| window == needle);
        places.extend(at.map(|at| (file, at)));
    }
    places
}

fn flip(file: &Path, at: usize) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at] ^= 0x01;
    fs::write(file, bytes).unwrap();
}

#[tokio::test]
async fn two_servers_cannot_open_one_directory() {
    let server = Server::start();
    let board = server.board("s");
    board.post("requests", "{}").await.is(201);
    let data = server.data();
    let data = data.to_str().expect("a path");
    let second = serve(data);
    assert!(!second.status.success(), "{}", second.status);
    let said = [second.stdout, second.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains(data), "it does not say which directory: {said}");
    assert!(!said.contains("panicked"), "{said}");
    board.post("requests", "{}").await.is(201);
}

#[tokio::test]
async fn check_finds_a_flipped_byte_in_the_database_and_in_a_blob() {
    let mut server = Server::start();
    let board = server.board("s");
    for n in 0..50 {
        let item = format!("{{\"n\":{n},\"mark\":\"needle-{n:03}\"}}");
        board.post("requests", &item).await.is(201);
    }
    let image = noise(60, 50);
    ask(board.typed(Method::POST, "screenshots", "image/png", image.clone())).await.is(201);
    assert!(server.stop().success());
    let data = server.data();
    assert!(check(&data).status.success(), "{:?}", check(&data));

    // What the server settled when it stopped is packed: a frame of zstd begins so (RFC 8878).
    let mut flips = places(&data, &[0x28, 0xB5, 0x2F, 0xFD]);
    assert!(!flips.is_empty(), "the commits are in no file");
    flips.iter_mut().for_each(|(_, at)| *at += 100);
    let blobs = places(&data, &image);
    assert!(!blobs.is_empty(), "the image's bytes are in no file");
    flips.extend(blobs.into_iter().map(|(file, at)| (file, at + image.len() / 2)));
    for (file, at) in flips {
        flip(&file, at);
        let found = check(&data);
        assert!(!found.status.success(), "byte {at} of {}", file.display());
        let said = [found.stdout, found.stderr].concat();
        assert!(!said.is_empty(), "check fails without a word");
        flip(&file, at);
        assert!(check(&data).status.success());
    }
    server.start_again();
    assert_eq!(server.board("s").get("requests").await.json()["count"], 50);
}

#[tokio::test]
async fn check_finds_a_blob_that_is_gone() {
    let mut server = Server::start();
    let image = noise(60, 50);
    let board = server.board("s");
    ask(board.typed(Method::POST, "screenshots", "image/png", image.clone())).await.is(201);
    assert!(server.stop().success());
    let data = server.data();
    let (file, at) = places(&data, &image).pop().expect("the image's bytes are in some file");
    if at == 0 {
        fs::remove_file(file).unwrap();
        assert!(!check(&data).status.success());
    }
}

/// A stopped server's directory whose database is gone, with all that is left in it.
async fn without_database() -> (Server, Vec<(PathBuf, Vec<u8>)>) {
    let mut server = Server::start();
    let board = server.board("s");
    ask(board.typed(Method::POST, "screenshots", "image/png", noise(60, 50))).await.is(201);
    assert!(server.stop().success());
    fs::remove_file(server.data().join("blackboard.db")).unwrap();
    let left = contents(&server.data());
    assert!(left.iter().any(|(_, bytes)| *bytes == noise(60, 50)), "the image is in no file");
    (server, left)
}

fn contents(data: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = files(data);
    files.sort();
    files.into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect()
}

#[tokio::test]
async fn check_of_what_has_no_database_fails_and_makes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let absent = home.path().join("absent");
    assert_eq!(check(&absent).status.code(), Some(1));
    assert!(!absent.exists());

    assert_eq!(check(home.path()).status.code(), Some(1));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);

    let (server, left) = without_database().await;
    let refused = check(&server.data());
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains(server.data().to_str().unwrap()), "{said}");
    assert_eq!(contents(&server.data()), left);
}

#[tokio::test]
async fn images_without_a_database_are_no_new_directory() {
    let (server, left) = without_database().await;
    let data = server.data();
    for _ in 0..2 {
        let refused = serve(data.to_str().unwrap());
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        let said = String::from_utf8([refused.stdout, refused.stderr].concat()).unwrap();
        assert!(said.contains(data.join("blackboard.db").to_str().unwrap()), "{said}");
        assert_eq!(contents(&data), left);
    }
}

#[test]
fn a_place_that_has_no_directories_is_an_error_and_no_crash() {
    for place in ["/proc/nope", "/proc/nope/deeper/still", "/dev/null/data"] {
        let refused = serve(place);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        let said = String::from_utf8([refused.stdout, refused.stderr].concat()).unwrap();
        assert!(said.contains(&place[..9]) && !said.contains("panicked"), "{said}");
    }
}
