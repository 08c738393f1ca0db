//! Tests of snapshots: they change no read of a long history.

use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;

use super::clock::{Hand, by, claim, open, put, start_at, started};
use super::cold::{corrupt, evict};
use super::service::*;
use crate::sessions::snapshots::put_parts;
use crate::*;
use blackboard_board::{Board, Revision};

const LARGE_WRITES: u64 = 40;

/// A history with many times the bytes of its board, and one of everything that a board has in it.
async fn long_history(service: &Service) {
    let text = "long ".repeat(20_000);
    service.receipt(request("s", r#"{"request_0":"open it"}"#), vec![]).await.unwrap();
    service.receipt(by("anna", write_to("s", claim("1h"))), vec![]).await.unwrap();
    for n in 0..LARGE_WRITES {
        let value = format!("{{\"n\":{n},\"text\":\"{text}\"}}");
        service.carry_out("s", put("large", &value, Some("1d"))).await.unwrap();
    }
}

fn snapshots(dir: &Path) -> i64 {
    let connection = Connection::open(dir.join("blackboard.db")).unwrap();
    connection.query_one("SELECT count(*) FROM snapshot", [], |row| row.get(0)).unwrap()
}

/// A store with such a history, at rest, and its board.
async fn stored() -> (TempDir, Hand, Arc<Board>) {
    let (dir, hand, service) = started();
    long_history(&service).await;
    let before = board(&service, "s");
    stop(service).await;
    assert!(snapshots(dir.path()) > 0);
    (dir, hand, before)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_history_is_read_from_its_snapshot() {
    let (dir, hand, before) = stored().await;
    assert!(check(&open(dir.path())).unwrap().is_sound());
    let service = start_at(dir.path(), &hand);
    // The one there is may be of an earlier commit.
    let store = &service.inner.deps.store;
    let (session, revision) = (before.id(), before.revision());
    put_parts(&before, |parts| store.embedded().unwrap().put_snapshot(session, revision, parts))
        .unwrap();
    // Whoever needed the commits before it would meet this.
    corrupt(dir.path(), "segment", "body");
    assert_eq!(board(&service, "s"), before);
    let done = service.receipt(request("s", "{}"), vec![]).await.unwrap();
    assert_eq!(done.board.revision(), Revision(LARGE_WRITES + 3));
    evict(&service, "s");
    assert_eq!(board(&service, "s"), done.board);
    stop(service).await;
    assert!(!check(&open(dir.path())).unwrap().is_sound());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_snapshot_is_told_of_and_the_history_read_instead() {
    let (dir, hand, before) = stored().await;
    corrupt(dir.path(), "snapshot", "frame");
    assert!(!check(&open(dir.path())).unwrap().is_sound());
    let service = start_at(dir.path(), &hand);
    assert!(service.damage().is_empty());
    assert_eq!(board(&service, "s"), before);
    stop(service).await;
}
