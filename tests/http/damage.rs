//! Damaged sessions: reported everywhere, harmless to others, deleted or replaced.

use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;

use crate::answer::ask;
use crate::harness::{Server, finished};
use crate::images::noise_text;
use crate::metrics::value;

/// Flips a bit in this column of this session's last row, behind the server's back.
pub(crate) fn flip(data: &Path, table: &str, column: &str, session: &str) {
    let database = Connection::open(data.join("blackboard.db")).unwrap();
    let id = id_of(&database, session);
    let select = format!("SELECT rowid, {column} FROM {table} WHERE session = ?1 ORDER BY rowid");
    let mut select = database.prepare(&select).unwrap();
    let rows = select.query_map([&id], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?))).unwrap();
    let (row, mut bytes): (i64, Vec<u8>) = rows.last().unwrap().unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let update = format!("UPDATE {table} SET {column} = ?2 WHERE rowid = ?1");
    assert_eq!(database.execute(&update, (row, bytes)).unwrap(), 1);
}

/// The identity of a session, which its summary names.
fn id_of(database: &Connection, session: &str) -> Vec<u8> {
    let named = format!("\"{session}\"");
    let select = "SELECT session FROM session WHERE instr(frame, CAST(?1 AS BLOB)) > 0";
    database.query_one(select, [named], |row| row.get(0)).unwrap()
}

/// A server with three sessions of five commits each, all settled, one of them damaged since.
async fn with_one_damaged() -> Server {
    // The search index would read the session that it has not followed to its end.
    with_one_damaged_and(&["--search", "off"]).await
}

async fn with_one_damaged_and(flags: &[&str]) -> Server {
    let mut server = Server::start_with(flags);
    for session in ["fine", "hurt", "well"] {
        let board = server.board(session);
        for n in 0..5 {
            board.post("requests", &format!("{{\"n\":{n}}}")).await.is(201);
        }
    }
    assert!(server.stop().success());
    flip(&server.data(), "segment", "body", "hurt");
    server.start_again();
    server
}

async fn listed(server: &Server) -> Vec<Value> {
    let page: Value = server.get("/v1/sessions").await.is(200).json();
    page["sessions"].as_array().unwrap().clone()
}

async fn damaged_sessions(server: &Server) -> Vec<String> {
    let mut counts = Vec::new();
    for path in ["/healthz", "/readyz"] {
        let body: Value = server.get(path).await.is(200).json();
        counts.push(body["damaged_sessions"].to_string());
    }
    let metrics = server.get("/metrics").await;
    let count = value(metrics.is(200).text(), "blackboard_sessions_damaged").unwrap();
    counts.push(count.to_string());
    counts
}

#[tokio::test]
async fn damage_that_a_read_finds_is_counted_and_listed() {
    let server = with_one_damaged().await;
    assert_eq!(damaged_sessions(&server).await, ["0"; 3], "nothing was read yet");
    let hurt = server.board("hurt");
    for _ in 0..2 {
        hurt.get("").await.problem(503, "store-unavailable");
    }
    hurt.post("requests", "{}").await.is(503);
    assert_eq!(damaged_sessions(&server).await, ["1"; 3]);
    let sessions = listed(&server).await;
    let names: Vec<_> =
        sessions.iter().map(|session| session["session"].as_str().unwrap()).collect();
    assert_eq!(names, ["fine", "hurt", "well"]);
    assert_eq!(sessions[1]["damaged"], true);
    assert_eq!(
        (&sessions[1]["revision"], &sessions[1]["counts"]["requests"]),
        (&5.into(), &5.into())
    );
    assert!(sessions[0].get("damaged").is_none() && sessions[2].get("damaged").is_none());
    server.board("well").post("requests", "{}").await.is(201);
}

#[tokio::test]
async fn the_search_follows_the_sessions_beside_a_damaged_one() {
    let mut server = with_one_damaged_and(&[]).await;
    server.kill();
    std::fs::remove_file(server.data().join("cache/search.db")).unwrap();
    server.start_again();
    for session in ["fine", "well"] {
        let query = format!("/v1/search?q=3&session={session}&min_revision=5&wait=30s");
        let found: Value = server.get(&query).await.is(200).json();
        assert_eq!(found["hits"][0]["seq"], 4, "{found}");
    }
    let found: Value = server.get("/v1/search?q=3").await.is(200).json();
    assert_eq!(found["hits"].as_array().unwrap().len(), 2, "{found}");
}

#[tokio::test]
async fn a_damaged_session_can_be_deleted_and_its_revisions_go_on() {
    let mut server = with_one_damaged().await;
    let hurt = server.board("hurt");
    hurt.get("").await.is(503);
    let deleted: Value = hurt.delete("").await.is(200).json();
    assert_eq!(deleted["revision"], 6);
    hurt.get("").await.is(404);
    assert_eq!(damaged_sessions(&server).await, ["0"; 3]);
    assert_eq!(listed(&server).await.len(), 2);
    for _ in 0..2 {
        server.kill();
        server.start_again();
        assert_eq!(damaged_sessions(&server).await, ["0"; 3]);
        server.board("hurt").get("").await.is(404);
    }
    let made: Value = server.board("hurt").post("requests", "{}").await.is(201).json();
    assert_eq!(made["revision"], 7);
    assert!(server.stop().success());
    let checked = finished(&["check", "--data", server.data().to_str().unwrap()]);
    assert!(checked.status.success(), "{checked:?}");
}

#[tokio::test]
async fn a_deletion_finds_the_damage_itself() {
    let server = with_one_damaged().await;
    server.board("hurt").delete("").await.is(200);
    server.board("hurt").get("").await.is(404);
    assert_eq!(damaged_sessions(&server).await, ["0"; 3]);
}

#[tokio::test]
async fn a_damaged_sessions_archive_has_its_sound_part_and_says_so() {
    let mut server = Server::start();
    let board = server.board("hurt");
    // The last of them is too large to be packed with the others.
    let large = noise_text();
    for n in 0..3 {
        board.post("requests", &format!("{{\"n\":{n}}}")).await.is(201);
    }
    board.post("requests", &format!("{{\"large\":\"{large}\"}}")).await.is(201);
    assert!(server.stop().success());
    flip(&server.data(), "segment", "body", "hurt");
    server.start_again();
    let hurt = server.board("hurt");
    let archive = hurt.get("archive").await;
    assert_eq!(archive.is(200).header("blackboard-revision"), "3");
    let lines: Vec<Value> =
        archive.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["is_partial"], &lines[0]["revision"]), (&true.into(), &3.into()));
    assert_eq!(lines.last().unwrap()["end"]["head"], 4);

    // It replaces the session that it was taken of, above all that this ever was.
    let put = hurt.typed(
        reqwest::Method::PUT,
        "archive",
        "application/x-ndjson",
        archive.text().to_owned(),
    );
    let made: Value = ask(put).await.is(201).json();
    assert_eq!(made["revision"], 5);
    assert_eq!(hurt.lines("requests").await, [r#"{"n":0}"#, r#"{"n":1}"#, r#"{"n":2}"#]);
    assert_eq!(damaged_sessions(&server).await, ["0"; 3]);
    server.kill();
    server.start_again();
    assert_eq!(server.board("hurt").lines("requests").await.len(), 3);
    assert!(server.stop().success());
}

#[tokio::test]
async fn an_export_of_all_has_sound_sessions_and_names_the_damaged() {
    let mut server = Server::start();
    for session in ["fine", "hurt", "well"] {
        let board = server.board(session);
        for n in 0..3 {
            let large = "x".repeat(200 << 10);
            board.post("requests", &format!("{{\"n\":{n},\"large\":\"{large}\"}}")).await.is(201);
        }
    }
    let whole = server.board("fine").get("archive").await.is(200).text().to_owned();
    assert!(server.stop().success());
    let data = server.data();
    flip(&data, "segment", "body", "hurt");
    let to = data.with_file_name("archives");
    let exported = finished(&[
        "export",
        "--all",
        "--to",
        to.to_str().unwrap(),
        "--data",
        data.to_str().unwrap(),
    ]);
    let said = String::from_utf8(exported.stderr).unwrap();
    assert_eq!(exported.status.code(), Some(1), "{said}");
    assert!(said.contains("error: hurt: the session is damaged"), "{said}");
    assert!(said.contains("up to revision 2") && said.contains("up to 3"), "{said}");
    assert_eq!(std::fs::read_to_string(to.join("fine.ndjson")).unwrap(), whole);
    let cut = std::fs::read_to_string(to.join("hurt.ndjson")).unwrap();
    assert!(cut.lines().last().unwrap().contains("\"head\":3"), "{cut}");
}
