//! Damage of the search index, met by a write, a query or a start: the index is rebuilt whole.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::harness::{Server, encoded};
use crate::metrics::value;

const ITEMS: u64 = 20;

const PAGE: usize = 4096;

/// What the log says of each damage.
const DAMAGED: &str = "it is made anew after a pause";

fn index(server: &Server) -> PathBuf {
    server.data().join("cache/search.db")
}

async fn append(server: &Server, n: u64) -> Answer {
    let item = json!({"t": format!("common w{n}")}).to_string();
    server.board("s").post("requests", &item).await
}

/// The number of items that are found once the index has them.
async fn found(server: &Server, written: &Answer) -> usize {
    let query = encoded("common");
    let (revision, more) = (written.revision(), "&limit=100&session=s&wait=60s");
    let found = server.get(&format!("/v1/search?q={query}{more}&min_revision={revision}")).await;
    found.is(200).json()["hits"].as_array().unwrap().len()
}

async fn filled() -> Server {
    let server = Server::start();
    let mut last = append(&server, 1).await;
    for n in 2..=ITEMS {
        last = append(&server, n).await;
    }
    assert_eq!(found(&server, &last).await as u64, ITEMS);
    server
}

/// Overwrites the first page of the words' table: the positions of the sessions can still be read.
fn spoil_words(index: &Path) {
    let database = Connection::open(index).unwrap();
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let select = "SELECT rootpage FROM sqlite_master WHERE name = 'blocks'";
    let page: u32 = database.query_row(select, [], |row| row.get(0)).unwrap();
    drop(database);
    let file = fs::OpenOptions::new().write(true).open(index).unwrap();
    file.write_all_at(&[0xff; PAGE], u64::from(page - 1) * PAGE as u64).unwrap();
}

async fn damages(server: &Server) -> f64 {
    let metrics = server.get("/metrics").await;
    value(metrics.is(200).text(), "blackboard_search_index_damages_total").unwrap_or_default()
}

#[tokio::test]
async fn damage_that_a_write_meets_is_mended_once() {
    let mut server = filled().await;
    assert!(server.stop().success());
    spoil_words(&index(&server));
    server.start_again();
    let last = append(&server, ITEMS + 1).await;
    assert_eq!(found(&server, &last).await as u64, ITEMS + 1);
    assert_eq!(server.said(DAMAGED).matches(DAMAGED).count(), 1);
    assert_eq!(damages(&server).await, 1.0);
    let ready: Value = server.get("/readyz").await.is(200).json();
    assert_eq!((&ready["status"], ready.get("search")), (&"ok".into(), None));
    server.kill();
    server.start_again();
    let last = append(&server, ITEMS + 2).await;
    assert_eq!(found(&server, &last).await as u64, ITEMS + 2);
    assert_eq!(damages(&server).await, 0.0);
}

#[tokio::test]
async fn damage_that_a_query_meets_cannot_reach_the_new_file() {
    let mut server = filled().await;
    assert!(server.stop().success());
    spoil_words(&index(&server));
    server.start_again();
    let met = server.get("/v1/search?q=common&session=s&min_revision=1&wait=60s").await;
    met.problem(503, "overloaded");
    let last = append(&server, ITEMS + 1).await;
    assert_eq!(found(&server, &last).await as u64, ITEMS + 1);
    // A connection to the file before, when it closes, does not remove the log of this one.
    let reader =
        Connection::open_with_flags(index(&server), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let last: i64 =
        reader.query_row("SELECT max(last_seq) FROM segments", [], |row| row.get(0)).unwrap();
    assert_eq!(last.cast_unsigned(), ITEMS + 1);
    assert_eq!(damages(&server).await, 1.0);
}

/// Overwrites all of the index and its log while the server has them open.
fn spoil_all(index: &Path) {
    for (file, after) in [(index.to_owned(), 0), (index.with_extension("db-wal"), 32)] {
        let Ok(file) = fs::OpenOptions::new().write(true).open(file) else { continue };
        let bytes = file.metadata().unwrap().len().saturating_sub(after);
        file.write_all_at(&vec![0xff; usize::try_from(bytes).unwrap()], after).unwrap();
    }
}

#[tokio::test]
async fn repeated_damage_waits_and_is_shown_by_readyz() {
    let server = filled().await;
    let (mut n, mut is_shown) = (ITEMS, false);
    while !is_shown {
        assert!(n < ITEMS + 100, "no rebuilding was seen");
        spoil_all(&index(&server));
        n += 1;
        append(&server, n).await.is(201);
        for _ in 0..20 {
            let ready: Value = server.get("/readyz").await.is(200).json();
            is_shown |= ready["search"] == "rebuilding" && ready["status"] == "degraded";
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    // Writes go on meanwhile.
    let last = append(&server, n + 1).await;
    assert_eq!(found(&server, &last).await as u64, (n + 1).min(100));
    let said = server.said(DAMAGED).matches(DAMAGED).count();
    assert!(said as u64 <= n - ITEMS + 1, "{said} lines for {} damages", n - ITEMS);
    let ready: Value = server.get("/readyz").await.is(200).json();
    assert_eq!((&ready["status"], ready.get("search")), (&"ok".into(), None));
}

fn execute(index: &Path, sql: &str) {
    Connection::open(index).unwrap().execute_batch(sql).unwrap();
}

/// Does something to the index at a path.
type Harm = &'static dyn Fn(&Path);

#[tokio::test]
async fn whatever_lies_in_the_place_of_the_index_is_replaced() {
    let mut server = filled().await;
    let (index, mut n) = (index(&server), ITEMS);
    let harms: [(&str, Harm); 9] = [
        ("no database", &|index| fs::write(index, vec![7; 1 << 16]).unwrap()),
        ("an empty file", &|index| fs::write(index, "").unwrap()),
        ("a directory", &|index| {
            fs::remove_file(index).unwrap();
            fs::create_dir_all(index.join("within")).unwrap();
        }),
        ("a directory as its log", &|index| {
            let log = index.with_extension("db-wal");
            fs::remove_file(&log).ok();
            fs::create_dir_all(log.join("within")).unwrap();
        }),
        ("cut off", &|index| {
            execute(index, "PRAGMA wal_checkpoint(TRUNCATE)");
            let file = fs::OpenOptions::new().write(true).open(index).unwrap();
            file.set_len(file.metadata().unwrap().len() / 2).unwrap();
        }),
        ("another type", &|index| execute(index, "UPDATE sessions SET session = 'text'")),
        ("no origin", &|index| execute(index, "DELETE FROM origin")),
        ("no words", &|index| execute(index, "DROP TABLE blocks")),
        ("other bytes", &|index| execute(index, "UPDATE blocks SET data = zeroblob(100)")),
    ];
    for (what, harm) in harms {
        assert!(server.stop().success(), "{what}");
        harm(&index);
        server.start_again();
        n += 1;
        let last = append(&server, n).await;
        assert_eq!(found(&server, &last).await as u64, n, "{what}");
        server.get("/v1/search?q=common").await.is(200);
    }
}
