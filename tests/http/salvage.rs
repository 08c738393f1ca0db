//! `blackboard salvage`: sound data kept, losses reported by name.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;

use crate::damage::flip;
use crate::damaged_log::{frames, harm};
use crate::harness::{Server, finished};
use crate::images::{noise, noise_text};

const PAGE: usize = 4096;

/// Three sessions, one after the other, each of so many commits that it fills pages of its own.
async fn three_sessions(server: &Server) {
    for session in ["fine", "hurt", "well"] {
        let board = server.board(session);
        let text = format!("mark of {session} ").repeat(20);
        for n in 0..60 {
            board.post("requests", &format!("{{\"n\":{n},\"text\":\"{text}\"}}")).await.is(201);
        }
        let image = noise(8, 8);
        let posted = board.typed(reqwest::Method::POST, "screenshots", "image/png", image);
        crate::answer::ask(posted).await.is(201);
    }
}

async fn archive(server: &Server, session: &str) -> String {
    server.board(session).get("archive").await.is(200).text().to_owned()
}

/// What a salvage says, with how it ended and where its store is.
fn salvaged(data: &Path) -> (Option<i32>, String, PathBuf) {
    let to = data.with_file_name("salvaged");
    let before = files(data);
    let done =
        finished(&["salvage", "--to", to.to_str().unwrap(), "--data", data.to_str().unwrap()]);
    assert_eq!(files(data), before, "the damaged store was changed");
    let said = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
    (done.status.code(), said, to)
}

fn files(data: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(data).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            found.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    found.sort();
    found
}

fn exported(data: &Path, session: &str) -> String {
    let out = finished(&["export", session, "--data", data.to_str().unwrap()]);
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout).unwrap()
}

fn serve(data: &Path) -> String {
    let refused = finished(&["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    String::from_utf8([refused.stdout, refused.stderr].concat()).unwrap()
}

/// The write-ahead log goes into the database.
fn emptied_log(data: &Path) {
    drop(Connection::open(data.join("blackboard.db")).unwrap().execute_batch("SELECT * FROM meta"));
    let log = "PRAGMA wal_checkpoint(TRUNCATE)";
    Connection::open(data.join("blackboard.db")).unwrap().query_row(log, [], |_| Ok(())).unwrap();
}

/// The pages in which a text is and none of the others.
fn pages_with(bytes: &[u8], text: &str, none_of: [&str; 2]) -> Vec<usize> {
    let has =
        |page: &[u8], text: &str| page.windows(text.len()).any(|found| found == text.as_bytes());
    let pages = bytes.chunks(PAGE).enumerate();
    let of_it = pages.filter(|(_, page)| page[0] == 0x0D && has(page, text));
    of_it
        .filter(|(_, page)| !none_of.iter().any(|other| has(page, other)))
        .map(|(at, _)| at)
        .collect()
}

#[tokio::test]
async fn a_sound_store_is_salvaged_whole() {
    let mut server = Server::start();
    three_sessions(&server).await;
    assert!(server.stop().success());
    let data = server.data();
    let before = exported(&data, "hurt");
    let (code, said, to) = salvaged(&data);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("salvaged: 3 sessions whole, 0 in part, 0 not at all"), "{said}");
    assert_eq!(exported(&to, "hurt"), before);
}

#[tokio::test]
async fn a_session_with_a_changed_bit_is_kept_up_to_the_damage() {
    let mut server = Server::start();
    three_sessions(&server).await;
    let (fine, well) = (archive(&server, "fine").await, archive(&server, "well").await);
    assert!(server.stop().success());
    let data = server.data();
    flip(&data, "segment", "body", "hurt");
    let (code, said, to) = salvaged(&data);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("damaged: session hurt"), "{said}");
    assert!(said.contains("salvaged: 2 sessions whole, 1 in part, 0 not at all"), "{said}");
    assert_eq!((exported(&to, "fine"), exported(&to, "well")), (fine, well));
    assert!(exported(&to, "hurt").contains("\"appended\""), "{said}");
}

#[tokio::test]
async fn a_damaged_end_of_an_earlier_session_is_left_behind() {
    let mut server = Server::start();
    three_sessions(&server).await;
    server.board("well").delete("").await.is(200);
    server.board("well").post("requests", "{\"again\":1}").await.is(201);
    server.board("hurt").delete("").await.is(200);
    assert!(server.stop().success());
    let data = server.data();
    let database = Connection::open(data.join("blackboard.db")).unwrap();
    let damage = "UPDATE ending SET frame = zeroblob(length(frame))";
    assert!(database.execute(damage, []).unwrap() >= 2);
    drop(database);
    let (code, said, to) = salvaged(&data);
    assert_eq!(code, Some(1), "{said}");
    let lost = "session well: the end of an earlier session of that name is lost";
    assert!(said.contains(lost), "{said}");
    assert!(said.contains("salvaged: 2 sessions whole"), "{said}");
    let checked = finished(&["check", "--data", to.to_str().unwrap()]);
    assert!(checked.status.success(), "{checked:?}");
    fs::rename(&data, data.with_file_name("before")).unwrap();
    fs::rename(to, &data).unwrap();
    server.start_again();
    assert_eq!(server.board("well").lines("requests").await, ["{\"again\":1}"]);
    server.board("hurt").get("").await.is(404);
    server.board("hurt").post("requests", "{}").await.is(201);
}

#[tokio::test]
async fn a_session_with_damage_and_a_lost_image_keeps_the_rest() {
    let mut server = Server::start();
    let board = server.board("hurt");
    let image = board.typed(reqwest::Method::POST, "screenshots", "image/png", noise(8, 8));
    crate::answer::ask(image).await.is(201);
    board.post("requests", "{\"n\":1}").await.is(201);
    // Too large to be packed with the others.
    let large = format!("{{\"large\":\"{}\"}}", noise_text());
    board.post("requests", &large).await.is(201);
    assert!(server.stop().success());
    let data = server.data();
    flip(&data, "segment", "body", "hurt");
    let blobs = data.join("blobs");
    let homes = fs::read_dir(blobs).unwrap().map(|home| home.unwrap().path());
    let files = homes.filter(|home| home.file_name().unwrap().len() == 32);
    let mut files = files.flat_map(|home| fs::read_dir(home).unwrap());
    let lost = files.next().unwrap().unwrap().path();
    fs::remove_file(&lost).unwrap();

    let (code, said, to) = salvaged(&data);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("damaged: session hurt: kept up to revision 2, lost from 3 to 3"),
        "{said}"
    );
    let image = lost.file_name().unwrap().to_str().unwrap();
    assert!(said.contains(&format!("damaged: session hurt: image {image} is lost")), "{said}");
    assert_eq!(said.matches(image).count(), 1, "{said}");
    assert!(said.contains("salvaged: 0 sessions whole, 1 in part, 0 not at all"), "{said}");
    fs::rename(&data, data.with_file_name("before")).unwrap();
    fs::rename(to, &data).unwrap();
    server.start_again();
    let hurt = server.board("hurt");
    assert_eq!(hurt.lines("requests").await, ["{\"n\":1}"]);
    hurt.post("requests", "{}").await.is(201);
    let checked = finished(&["check", "--data", data.to_str().unwrap()]);
    let told = String::from_utf8(checked.stdout).unwrap();
    assert!(told.contains(image) && told.contains("not sound"), "{told}");
}

#[tokio::test]
async fn a_session_with_a_lost_image_is_named_and_counted_in_part() {
    let mut server = Server::start();
    three_sessions(&server).await;
    let home = fs::read_dir(server.data().join("blobs")).unwrap().next().unwrap().unwrap().path();
    let image = fs::read_dir(home).unwrap().next().unwrap().unwrap().path();
    assert!(server.stop().success());
    fs::write(&image, "Z").unwrap();
    let (code, said, to) = salvaged(&server.data());
    assert_eq!(code, Some(1), "{said}");
    let digest = image.file_name().unwrap().to_str().unwrap();
    let named = ["fine", "hurt", "well"].map(|name| format!("session {name}: image {digest}"));
    assert!(
        named.iter().any(|named| said.contains(&format!("damaged: {named} is lost"))),
        "{said}"
    );
    assert!(said.contains("salvaged: 2 sessions whole, 1 in part, 0 not at all"), "{said}");
    assert!(said.contains("note: ") && said.contains("'blackboard check'"), "{said}");
    let checked = finished(&["check", "--data", to.to_str().unwrap()]);
    let told = String::from_utf8(checked.stdout).unwrap();
    assert!(told.starts_with(&format!("damaged: image {digest} of session ")), "{told}");
}

#[tokio::test]
async fn a_malformed_page_costs_only_the_sessions_on_it() {
    let mut server = Server::start();
    three_sessions(&server).await;
    let (fine, well) = (archive(&server, "fine").await, archive(&server, "well").await);
    server.kill();
    let data = server.data();
    emptied_log(&data);
    let file = data.join("blackboard.db");
    let mut bytes = fs::read(&file).unwrap();
    let pages = pages_with(&bytes, "mark of hurt", ["mark of fine", "mark of well"]);
    assert!(pages.len() > 2, "{pages:?}");
    bytes[pages[1] * PAGE] = 0x55;
    fs::write(&file, bytes).unwrap();
    let refused = serve(&data);
    assert!(refused.contains("blackboard salvage"), "{refused}");
    let checked = finished(&["check", "--data", data.to_str().unwrap()]);
    let found = String::from_utf8(checked.stdout).unwrap();
    assert_eq!(checked.status.code(), Some(1), "{found}");
    assert!(found.contains("damaged: session hurt: kept up to revision"), "{found}");
    assert!(!found.contains("session fine") && !found.contains("session well"), "{found}");
    let (code, said, to) = salvaged(&data);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("damaged: session hurt: kept up to revision"), "{said}");
    assert!(said.contains("of journal cannot be read"), "{said}");
    assert!(said.contains("salvaged: 2 sessions whole, 1 in part, 0 not at all"), "{said}");
    assert_eq!((exported(&to, "fine"), exported(&to, "well")), (fine, well));
    let kept = exported(&to, "hurt");
    let lines = kept.lines().filter(|line| line.starts_with("{\"commit\"")).count();
    assert!(lines > 2 && lines < 60, "{lines}");
}

#[tokio::test]
async fn a_changed_bit_in_the_log_costs_nothing() {
    let mut server = Server::start();
    three_sessions(&server).await;
    let before = [archive(&server, "fine").await, archive(&server, "hurt").await];
    let data = server.data();
    let log = data.join("blackboard.db-wal");
    // A log that was moved begins anew with the next write, and the rest of its file is of before.
    while frames(&fs::read(&log).unwrap()) < 8 {
        server.board("well").post("requests", "{}").await.is(201);
    }
    server.kill();
    harm(&log, 0);
    assert!(serve(&data).contains("blackboard salvage"));
    let (code, said, to) = salvaged(&data);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!([exported(&to, "fine"), exported(&to, "hurt")], before);
}

#[tokio::test]
async fn a_changed_bit_in_a_first_commit_harms_no_other_session() {
    let mut server = Server::start();
    three_sessions(&server).await;
    let fine = archive(&server, "fine").await;
    server.kill();
    let data = server.data();
    let database = Connection::open(data.join("blackboard.db")).unwrap();
    let first = "SELECT id, frame FROM journal WHERE instr(frame, CAST('\"hurt\"' AS BLOB)) > 0";
    let (id, mut frame): (i64, Vec<u8>) =
        database.query_row(first, [], |row| row.try_into()).unwrap();
    let middle = frame.len() / 2;
    frame[middle] ^= 1;
    database.execute("UPDATE journal SET frame = ?2 WHERE id = ?1", (id, frame)).unwrap();
    drop(database);
    server.start_again();
    let sessions: Value = server.get("/v1/sessions").await.is(200).json();
    assert_eq!(sessions["sessions"][1]["session"], "hurt");
    assert_eq!(sessions["sessions"][1]["damaged"], true);
    assert_eq!(sessions["sessions"][1]["revision"], 61);
    assert_eq!(archive(&server, "fine").await, fine);
    server.board("hurt").get("").await.is(503);
    server.board("hurt").delete("").await.is(200);
    server.board("hurt").post("requests", "{}").await.is(201);
}
