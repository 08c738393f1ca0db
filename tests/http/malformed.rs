//! Malformed database pages: limited to the sessions on them.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;

use crate::harness::{Server, finished};

const PAGE: usize = 4096;

/// So many batches, and the writer has swept whatever there is to delete.
const BATCHES: usize = 40;

/// The leaves of a table or an index.
fn pages(data: &Path, name: &str) -> Vec<u32> {
    let database = Connection::open(data.join("blackboard.db")).unwrap();
    let select = "SELECT pageno FROM dbstat WHERE name = ?1 AND pagetype = 'leaf' ORDER BY path";
    let mut select = database.prepare(select).unwrap();
    select.query_map([name], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Makes those of these pages malformed that have this text; how many there were.
fn spoil(data: &Path, pages: &[u32], text: &[u8]) -> usize {
    let file = data.join("blackboard.db");
    let mut bytes = fs::read(&file).unwrap();
    let mut spoilt = 0;
    for page in pages {
        let end = *page as usize * PAGE;
        let page = &mut bytes[end - PAGE..end];
        if page.windows(text.len()).any(|found| found == text) {
            page[0] = 0x55;
            spoilt += 1;
        }
    }
    fs::write(&file, bytes).unwrap();
    spoilt
}

fn id_of(data: &Path, session: &str) -> Vec<u8> {
    let database = Connection::open(data.join("blackboard.db")).unwrap();
    let select = "SELECT session FROM name WHERE name = CAST(?1 AS BLOB)";
    database.query_one(select, [session], |row| row.get(0)).unwrap()
}

/// Three sessions, all settled, each with a segment on a page of its own.
async fn three_sessions() -> Server {
    let mut server = Server::start();
    for session in ["fine", "hurt", "well"] {
        let board = server.board(session);
        // Bytes of which packing spares a half.
        let text: String = (0..190_u64)
            .flat_map(|n| {
                let n = (n + session.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let n = (n ^ (n >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                format!("{:016x}{:016x}", n ^ (n >> 31), n.wrapping_mul(n | 1)).into_bytes()
            })
            .map(char::from)
            .collect();
        for n in 0..2 {
            board.post("requests", &format!("{{\"n\":{n},\"text\":\"{text}\"}}")).await.is(201);
        }
    }
    assert!(server.stop().success());
    server
}

async fn write_often(server: &Server) {
    for n in 0..BATCHES {
        server.board("well").post("requests", &format!("{{\"again\":{n}}}")).await.is(201);
    }
}

#[tokio::test]
async fn a_deleted_session_on_a_malformed_page_stops_no_write() {
    let mut server = three_sessions().await;
    let data = server.data();
    let hurt = id_of(&data, "hurt");
    assert_eq!(spoil(&data, &pages(&data, "segment"), &hurt), 1);
    server.start_again();
    server.board("hurt").get("").await.problem(503, "store-unavailable");
    server.board("hurt").delete("").await.is(200);
    write_often(&server).await;
    server.get("/readyz").await.is(200);
    server.board("hurt").get("").await.is(404);
    assert!(server.stop().success());

    server.start_again();
    server.board("hurt").get("").await.is(404);
    server.board("hurt").post("requests", "{}").await.is(201);
    write_often(&server).await;
    assert_eq!(server.board("well").lines("requests").await.len(), 2 + 2 * BATCHES);
    assert_eq!(server.board("fine").lines("requests").await.len(), 2);
    let ready: Value = server.get("/readyz").await.is(200).json();
    assert_eq!(ready["damaged_sessions"], 0);
    assert!(server.stop().success());
    let to = data.with_file_name("salvaged");
    let salvaged =
        finished(&["salvage", "--to", to.to_str().unwrap(), "--data", data.to_str().unwrap()]);
    let said = String::from_utf8(salvaged.stdout).unwrap();
    assert!(said.contains("salvaged: 3 sessions whole, 0 in part, 0 not at all"), "{said}");
}

#[tokio::test]
async fn a_write_that_meets_a_malformed_page_is_refused_alone() {
    let mut server = three_sessions().await;
    let data = server.data();
    let names = pages(&data, "name");
    assert_eq!(spoil(&data, &names, b"hurt"), 1);
    server.start_again();
    for n in 0..3 {
        let new = server.board(&format!("new{n}"));
        let ((), refused) = tokio::join!(write_often(&server), new.post("requests", "{}"));
        let problem = refused.problem(503, "store-unavailable");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("nothing was written"), "{detail}");
        assert!(detail.contains("blackboard salvage"), "{detail}");
    }
    server.get("/readyz").await.is(200);
    for session in ["fine", "hurt", "well"] {
        server.board(session).post("requests", "{}").await.is(201);
    }
}
