//! Changed bits in each kind of row: reported, limited to one session, harmless to others.

use std::path::{Path, PathBuf};

use reqwest::Method;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::answer::ask;
use crate::harness::{Server, finished};
use crate::images::noise;
use crate::metrics::value;

const SESSIONS: [&str; 3] = ["fine", "hurt", "well"];

/// What a changed bit costs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cost {
    /// Nothing that is shown, but the check tells of it.
    Nothing,
    /// The session, until it is deleted or replaced.
    Session,
}
use Cost::{Nothing, Session};

/// Where the sessions' rows are when the bit is changed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rows {
    /// After a clean stop.
    Settled,
    /// The same, with a base that a purge made.
    Purged,
    /// After a kill.
    Unsettled,
}
use Rows::{Purged, Settled, Unsettled};

const FLIPS: [(Rows, &str, &str, Cost); 27] = [
    (Unsettled, "journal", "session", Session),
    (Unsettled, "journal", "revision", Session),
    (Unsettled, "journal", "frame", Session),
    (Unsettled, "name", "crc", Nothing),
    (Settled, "segment", "session", Session),
    // Each commit in it has a checksum of its own.
    (Settled, "segment", "first", Nothing),
    (Settled, "segment", "last", Session),
    (Settled, "segment", "commits", Nothing),
    (Settled, "segment", "bytes", Nothing),
    (Settled, "segment", "crc", Nothing),
    (Settled, "segment", "body", Session),
    (Settled, "session", "session", Nothing),
    (Settled, "session", "revision", Nothing),
    (Settled, "session", "frame", Nothing),
    (Settled, "name", "session", Nothing),
    (Settled, "name", "crc", Nothing),
    (Settled, "name", "name", Nothing),
    (Purged, "base", "session", Session),
    (Purged, "base", "revision", Session),
    (Purged, "base", "part", Session),
    (Purged, "base", "frame", Session),
    (Purged, "history", "session", Session),
    (Purged, "history", "base", Session),
    (Purged, "history", "parts", Session),
    (Purged, "history", "forgotten", Session),
    (Purged, "history", "staged", Session),
    (Purged, "history", "sum", Session),
];

async fn with_rows(rows: Rows) -> Server {
    let mut server = Server::start();
    for session in SESSIONS {
        let board = server.board(session);
        for n in 0..4 {
            board.post("requests", &format!("{{\"n\":{n}}}")).await.is(201);
            if n == 1 {
                let image = board.typed(Method::POST, "screenshots", "image/png", noise(4, 4));
                ask(image).await.is(201);
            }
            if n == 2 && rows == Purged {
                ask(board.to(Method::POST, "purge")).await.is(200);
            }
        }
    }
    match rows {
        Unsettled => server.kill(),
        Settled | Purged => assert!(server.stop().success()),
    }
    server
}

/// Changes a bit in the last row that the session has in this table.
fn flip(data: &Path, table: &str, column: &str) {
    let database = Connection::open(data.join("blackboard.db")).unwrap();
    let named = "SELECT session FROM name WHERE name = CAST('hurt' AS BLOB)";
    let session: Vec<u8> = database.query_one(named, [], |row| row.get(0)).unwrap();
    let select = format!("SELECT * FROM {table} WHERE session = ?1");
    let mut select = database.prepare(&select).unwrap();
    let names: Vec<String> = select.column_names().map(str::to_owned).collect();
    let rows = select.query_map([&session], |row| {
        (0..names.len()).map(|at| row.get(at)).collect::<Result<Vec<Value>, _>>()
    });
    let mut row: Vec<Value> = rows.unwrap().last().expect("a row").unwrap();
    let is = names.iter().map(|name| format!("{name} IS ?")).collect::<Vec<_>>().join(" AND ");
    let delete = format!("DELETE FROM {table} WHERE {is}");
    assert_eq!(database.execute(&delete, params_from_iter(&row)).unwrap(), 1);
    match &mut row[names.iter().position(|name| name == column).unwrap()] {
        Value::Integer(number) => *number ^= 1 << 6,
        Value::Blob(bytes) => {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }
        other @ (Value::Null | Value::Real(_) | Value::Text(_)) => {
            panic!("no bit can be changed in {other:?}")
        }
    }
    let places = vec!["?"; row.len()].join(", ");
    let insert = format!("INSERT INTO {table} VALUES ({places})");
    assert_eq!(database.execute(&insert, params_from_iter(&row)).unwrap(), 1);
}

fn run(command: &[&str], data: &Path) -> (bool, String) {
    let out = finished(&[command, &["--data", data.to_str().unwrap()]].concat());
    (out.status.success(), String::from_utf8([out.stdout, out.stderr].concat()).unwrap())
}

fn exported(data: &Path, session: &str) -> String {
    let (is_whole, archive) = run(&["export", session], data);
    assert!(is_whole, "{archive}");
    archive
}

/// How many sessions are damaged, by everything that tells.
async fn damaged(server: &Server) -> usize {
    let mut counts = Vec::new();
    for path in ["/healthz", "/readyz"] {
        let body: serde_json::Value = server.get(path).await.is(200).json();
        counts.push(body["damaged_sessions"].to_string());
    }
    let metrics = server.get("/metrics").await;
    let metric = value(metrics.is(200).text(), "blackboard_sessions_damaged").unwrap();
    counts.push(metric.to_string());
    let page: serde_json::Value = server.get("/v1/sessions").await.is(200).json();
    let listed = page["sessions"].as_array().unwrap().iter();
    let listed = listed.filter(|session| session["damaged"] == true).count();
    assert!(counts.iter().all(|count| *count == listed.to_string()), "{counts:?}, {listed} listed");
    listed
}

/// Changes a bit, and looks at what becomes of the store.
async fn meet(rows: Rows, table: &str, column: &str, cost: Cost, is_replaced: bool) {
    let what = format!("{rows:?}: {table}.{column}");
    let mut server = with_rows(rows).await;
    let data = server.data();
    let before = SESSIONS.map(|session| exported(&data, session));
    flip(&data, table, column);
    let (is_sound, told) = run(&["check"], &data);
    assert!(!is_sound && told.contains("hurt"), "{what}: {told}");
    let to: PathBuf = data.with_file_name("salvaged");
    let (_, told) = run(&["salvage", "--to", to.to_str().unwrap()], &data);
    for at in [0, 2] {
        assert_eq!(exported(&to, SESSIONS[at]), before[at], "{what}: {told}");
    }

    server.start_again();
    let hurt = server.board("hurt");
    let shown = hurt.get("").await;
    match cost {
        Nothing => assert!(shown.is(200).text().contains("hurt"), "{what}"),
        Session => assert!(shown.problem(503, "store-unavailable")["detail"].is_string(), "{what}"),
    }
    assert_eq!(damaged(&server).await, usize::from(cost == Session), "{what}");
    for at in [0, 2] {
        let board = server.board(SESSIONS[at]);
        assert_eq!(board.get("archive").await.is(200).text(), before[at], "{what}");
        board.post("requests", "{}").await.is(201);
    }
    if is_replaced || cost == Nothing {
        let ndjson = "application/x-ndjson";
        if cost == Nothing {
            assert_eq!(hurt.get("archive").await.is(200).text(), before[1], "{what}");
            hurt.delete("").await.is(200);
        }
        let put = hurt.typed(Method::PUT, "archive", ndjson, before[1].clone());
        ask(put).await.is(201);
        assert_eq!(hurt.get("archive").await.is(200).text(), before[1], "{what}");
    } else {
        let deleted: serde_json::Value = hurt.delete("").await.is(200).json();
        assert!(deleted["revision"].as_u64() > Some(4), "{what}: {deleted}");
        hurt.get("").await.is(404);
        hurt.post("requests", "{}").await.is(201);
    }
    let lines = hurt.lines("requests").await;
    for _ in 0..2 {
        assert_eq!(damaged(&server).await, 0, "{what}");
        assert!(server.stop().success());
        server.start_again();
        assert_eq!(server.board("hurt").lines("requests").await, lines, "{what}");
    }
    assert!(server.stop().success());
    let (is_sound, told) = run(&["check"], &data);
    assert!(is_sound, "{what}: {told}");
}

/// Meets all of them, and fails where any of them does.
async fn meet_all(rows: Rows) {
    let mut failed = Vec::new();
    for (at, (of, table, column, cost)) in FLIPS.into_iter().enumerate() {
        if of == rows && tokio::spawn(meet(rows, table, column, cost, at % 2 == 0)).await.is_err() {
            failed.push((table, column));
        }
    }
    assert!(failed.is_empty(), "{rows:?}: {failed:?}");
}

#[tokio::test]
async fn a_changed_bit_in_the_journal_costs_its_session_at_most() {
    meet_all(Unsettled).await;
}

#[tokio::test]
async fn a_changed_bit_in_a_segment_costs_its_session_at_most() {
    meet_all(Settled).await;
}

#[tokio::test]
async fn a_changed_bit_in_a_base_costs_its_session_at_most() {
    meet_all(Purged).await;
}
