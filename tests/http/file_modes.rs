//! File modes: nothing under the data directory is readable by other users.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use reqwest::Method;

use crate::answer::ask;
use crate::harness::Server;
use crate::images::noise;

/// Writes what makes files of every kind, and waits until the index has it.
async fn make_files(server: &Server) {
    let board = server.board("s");
    let image = board.typed(Method::POST, "screenshots", "image/png", noise(64, 64));
    let seq = ask(image).await.is(201).json()["entries"][0]["seq"].to_string();
    board.get(&format!("screenshots/{seq}/image?max_px=8")).await.is(200);
    let blob = board.typed(Method::POST, "blobs", "application/octet-stream", "bytes".to_owned());
    ask(blob).await.succeeded();
    let gone = server.board("gone");
    ask(gone.typed(Method::POST, "screenshots", "image/png", noise(8, 8))).await.is(201);
    gone.delete("").await.is(200);
    let last = board.post("requests", r#"{"t":"word"}"#).await;
    let wait = format!("&session=s&min_revision={}&wait=30s", last.revision());
    server.get(&format!("/v1/search?q=word{wait}")).await.is(200);
}

/// The files and directories below this one with rights for others.
fn public(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        // It may be removed meanwhile.
        let Ok(about) = entry.metadata() else { continue };
        let (path, mode) = (entry.path(), about.permissions().mode() & 0o777);
        if mode & 0o077 != 0 {
            found.push(format!("{} {mode:o}", path.display()));
        }
        if about.is_dir() {
            found.extend(public(&path));
        }
    }
    found
}

fn widen(path: &Path) {
    let is_dir = path.is_dir();
    fs::set_permissions(path, Permissions::from_mode(if is_dir { 0o755 } else { 0o644 })).unwrap();
}

#[tokio::test]
async fn every_file_of_the_data_directory_is_its_owners() {
    let mut server = Server::start();
    let cache = server.data().join("cache");
    make_files(&server).await;
    assert!(server.stop().success());
    // As an operator makes it, and an earlier start has left the cache.
    for path in [server.data(), cache.clone(), cache.join("search.db")] {
        widen(&path);
    }
    server.start_again();
    make_files(&server).await;
    assert_eq!(public(&server.data()), [""; 0]);
    assert!(server.stop().success());
    fs::remove_dir_all(&cache).unwrap();
    server.start_again();
    make_files(&server).await;
    assert_eq!(public(&server.data()), [""; 0]);
    for made in ["search.db", "search.db-wal", "search.db-shm", "thumbnails"] {
        assert!(cache.join(made).exists(), "{made}");
    }
}

#[tokio::test]
async fn a_start_narrows_what_a_copy_left_open() {
    let mut server = Server::start();
    make_files(&server).await;
    server.kill();
    fs::write(server.data().join("admin-token"), format!("bb_{}\n", "A".repeat(43))).unwrap();
    for file in fs::read_dir(server.data()).unwrap() {
        widen(&file.unwrap().path());
    }
    server.start_again();
    assert_eq!(public(&server.data()), [""; 0]);
    make_files(&server).await;
    assert_eq!(public(&server.data()), [""; 0]);
}

#[tokio::test]
async fn a_start_without_search_narrows_the_cache_too() {
    let mut server = Server::start_with(&["--search", "off"]);
    assert!(server.stop().success());
    let cache = server.data().join("cache");
    fs::create_dir_all(&cache).unwrap();
    widen(&cache);
    server.start_again();
    assert_eq!(public(&server.data()), [""; 0]);
}
