//! Images and blobs that retained history does not name: uncounted and deleted, and no others.
//!
//! They are an hour old at least, so their files are made older here.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use reqwest::Method;

use crate::answer::{Answer, ask};
use crate::blobs::{digest, named, upload};
use crate::crash::{check_is_sound, rounds};
use crate::harness::{Board, DEADLINE, Server};
use crate::images::png;
use crate::postgres;

fn image(shade: u8) -> Vec<u8> {
    png(8, 8, shade)
}

async fn post(board: &Board, shade: u8) -> Answer {
    ask(board.typed(Method::POST, "screenshots", "image/png", image(shade))).await
}

async fn purge(board: &Board) {
    ask(board.to(Method::POST, "purge")).await.is(200);
}

/// The files of all images.
fn files(server: &Server) -> Vec<PathBuf> {
    let homes = server.data().join("blobs").read_dir().unwrap();
    let files = homes.flat_map(|home| home.unwrap().path().read_dir().unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

/// The number of stored images.
fn count(server: &Server) -> usize {
    let Some(schema) = server.schema() else { return files(server).len() };
    let count: i64 = postgres::value(schema, "SELECT count(*) FROM blob");
    usize::try_from(count).unwrap()
}

/// Lets all files be two hours old.
fn age(server: &Server) {
    if let Some(schema) = server.schema() {
        return postgres::run(schema, "UPDATE blob SET touched_at = touched_at - 7200000");
    }
    files(server).iter().for_each(|path| set_old(path));
}

fn set_old(path: &Path) {
    let then = SystemTime::now() - Duration::from_secs(2 * 60 * 60);
    // A temporary file may be gone by now.
    if let Ok(file) = File::options().write(true).open(path) {
        file.set_modified(then).unwrap();
    }
}

pub(crate) async fn until_there_are(server: &Server, count: usize) {
    let begin = Instant::now();
    while self::count(server) != count {
        assert!(begin.elapsed() < DEADLINE, "{}", self::count(server));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn refused_screenshots_leave_nothing_on_the_disk() {
    let max = (2 * image(1).len()).to_string();
    let server = Server::start_with(&["--session-blob-bytes-max", &max]);
    let board = server.board("s");
    post(&board, 1).await.is(201);
    for shade in 2..20 {
        let large = png(64, 64 + shade, 7);
        ask(board.typed(Method::POST, "screenshots", "image/png", large))
            .await
            .problem(507, "session-full");
    }
    let stale = board.typed(Method::POST, "screenshots", "image/png", image(3));
    ask(stale.header("If-Match", "\"no\"")).await.problem(412, "precondition-failed");
    // One that the session has is not theirs to take.
    let stale = board.typed(Method::POST, "screenshots", "image/png", image(1));
    ask(stale.header("If-Match", "\"no\"")).await.problem(412, "precondition-failed");
    until_there_are(&server, 1).await;
    assert_eq!(board.get("screenshots/1/image").await.is(200).body(), image(1));
}

#[tokio::test]
async fn a_full_session_gets_room_from_screenshots_out_of_history() {
    // They are not all of one length.
    let max = (2 * image(1).len() + 10).to_string();
    let mut server = Server::start_with(&["--session-blob-bytes-max", &max]);
    let board = server.board("s");
    for shade in [1, 2] {
        post(&board, shade).await.is(201);
    }
    post(&board, 3).await.problem(507, "session-full");
    board.delete("screenshots/2").await.is(200);
    // What was before can still be read.
    post(&board, 3).await.problem(507, "session-full");
    board.get("screenshots/2/image?at=2").await.is(200);
    age(&server);
    purge(&board).await;
    until_there_are(&server, 1).await;
    let tag = board.get("trajectories").await.etag();
    let audit = board.get("audit?order=desc&limit=1").await;
    assert!(audit.is(200).text().contains("\"images_forgotten\""), "{}", audit.text());
    post(&board, 3).await.is(201);
    for (seq, shade) in [(1, 1), (3, 3)] {
        assert_eq!(
            board.get(&format!("screenshots/{seq}/image")).await.is(200).body(),
            image(shade)
        );
    }
    assert_eq!(board.get("trajectories").await.etag(), tag);
    let archive = board.get("archive").await.is(200).text().to_owned();
    let copy = server.board("copy");
    let ndjson = "application/x-ndjson";
    ask(copy.typed(Method::PUT, "archive", ndjson, archive.clone())).await.is(201);
    assert_eq!(copy.get("archive").await.text(), archive);
    assert!(server.stop().success());
    check_is_sound(&server);
}

#[tokio::test]
async fn what_the_kept_past_shows_stays_over_a_restart() {
    let mut server = Server::start();
    let board = server.board("s");
    for shade in [1, 2] {
        post(&board, shade).await.is(201);
    }
    board.delete("screenshots/1").await.is(200);
    purge(&board).await;
    post(&board, 3).await.is(201);
    board.post("checkpoints", r#"{"name":"before"}"#).await.succeeded();
    ask(board.to(Method::DELETE, "screenshots")).await.is(200);
    age(&server);
    assert!(server.stop().success());
    server.start_again();
    until_there_are(&server, 2).await;
    let board = server.board("s");
    for (seq, shade) in [(2, 2), (3, 3)] {
        let then = board.get(&format!("screenshots/{seq}/image?at=before")).await;
        assert_eq!(then.is(200).body(), image(shade));
    }
    assert!(server.stop().success());
    check_is_sound(&server);
}

/// Posts the same few images again and again, deletes most and cuts the history, while what an earlier round
/// left is collected; then the server is killed.
#[tokio::test(flavor = "multi_thread")]
async fn no_kill_takes_the_image_of_an_acknowledged_screenshot() {
    let mut server = Server::start();
    let mut kept: BTreeMap<u64, u8> = BTreeMap::new();
    for round in 0..rounds() {
        let board = server.board("s");
        for n in 0..30_u8 {
            let posted = post(&board, n % 4).await;
            let seq = posted.is(201).seqs()[0];
            if n % 7 == 0 {
                kept.insert(seq, n % 4);
            } else {
                board.delete(&format!("screenshots/{seq}")).await.is(200);
            }
            if n == 20 {
                kept.retain(|seq, _| seq % 2 == 0);
                for entry in board.get("screenshots?limit=1000").await.seqs() {
                    if !kept.contains_key(&entry) {
                        board.delete(&format!("screenshots/{entry}")).await.is(200);
                    }
                }
                purge(&board).await;
            }
        }
        server.kill();
        check_is_sound(&server);
        age(&server);
        server.start_again();
        let board = server.board("s");
        for (seq, shade) in &kept {
            let shown = board.get(&format!("screenshots/{seq}/image")).await;
            assert_eq!(shown.is(200).body(), image(*shade), "round {round}, {seq}");
        }
    }
    server.kill();
    check_is_sound(&server);
}

#[tokio::test]
async fn a_blob_is_stored_once_and_goes_when_nothing_names_it() {
    let mut server = Server::start();
    let board = server.board("s");
    let bytes = vec![b'b'; 1_000_000];
    upload(&board, &bytes).await.is(201);
    for n in 0..1_000 {
        board.put(&format!("state/n{n}"), &named(&bytes)).await.is(201);
    }
    assert_eq!(count(&server), 1);
    ask(board.to(Method::DELETE, "state")).await.is(200);
    // Retained history still names it.
    age(&server);
    assert!(server.stop().success());
    server.start_again();
    let board = server.board("s");
    upload(&board, b"unnamed").await.is(201);
    upload(&board, b"young").await.is(201);
    for path in files(&server) {
        if !path.ends_with(digest(b"young")) {
            set_old(&path);
        }
    }
    assert!(server.stop().success());
    server.start_again();
    until_there_are(&server, 2).await;
    let board = server.board("s");
    let tail = format!("blobs/{}", digest(&bytes));
    assert_eq!(board.get(&tail).await.is(200).body(), bytes);
    board.get(&format!("blobs/{}", digest(b"young"))).await.is(200);
    board.get(&format!("blobs/{}", digest(b"unnamed"))).await.problem(404, "blob-not-found");
    board.put("state/a", &named(b"unnamed")).await.problem(422, "no-blob");
    purge(&board).await;
    until_there_are(&server, 1).await;
    board.get(&tail).await.problem(404, "blob-not-found");
    assert!(server.stop().success());
    check_is_sound(&server);
}

/// Uploads, names and drops the same few blobs again and again, while what an earlier round left is collected; then
/// the server is killed.
#[tokio::test(flavor = "multi_thread")]
async fn no_kill_takes_a_blob_that_is_named() {
    let mut server = Server::start();
    let mut kept: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for round in 0..rounds() {
        let board = server.board("s");
        for n in 0..30_u8 {
            let bytes = vec![n % 5; 10_000];
            let uploaded = upload(&board, &bytes).await;
            assert!(uploaded.status() < 300, "{uploaded}");
            let path = format!("state/{}", n % 7);
            board.put(&path, &named(&bytes)).await.succeeded();
            kept.insert(path, bytes);
            if n % 3 == 0 {
                let path = format!("state/{}", (n + 3) % 7);
                if kept.remove(&path).is_some() {
                    board.delete(&path).await.is(200);
                }
            }
            if n == 20 {
                purge(&board).await;
                // Another upload is under way when the server is killed.
                let late = board.typed(Method::POST, "blobs", "a/b", vec![n; 3_000_000]);
                tokio::spawn(late.send());
            }
        }
        server.kill();
        check_is_sound(&server);
        age(&server);
        server.start_again();
        let board = server.board("s");
        for (path, bytes) in &kept {
            let value = board.get(path).await.is(200).json();
            assert_eq!(value["$blob"], digest(bytes), "round {round}, {path}");
            let blob = board.get(&format!("blobs/{}", digest(bytes))).await;
            assert_eq!(blob.is(200).body(), bytes, "round {round}, {path}");
        }
    }
    server.kill();
    check_is_sound(&server);
}
