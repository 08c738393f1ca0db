//! Tests of flipped bits in the database: each is harmless, reported or refused at startup.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;

use super::cramped::start_uncompacted;
use super::service::*;
use crate::*;
use blackboard_board::{Board, LogName};
use blackboard_clock::Clock;
use blackboard_store::SqliteStore;

const SESSIONS: [&str; 4] = ["a", "b", "c", "d"];

/// Sessions that are compacted, then more of them that are not.
async fn filled(dir: &Path) -> Vec<(SessionName, Board)> {
    let text = "x".repeat(300);
    for is_compacted in [true, false] {
        let service = if is_compacted { start(dir) } else { start_uncompacted(dir) };
        for n in 0..6 {
            for session in &SESSIONS[usize::from(!is_compacted)..] {
                let text = item(&format!("{{\"n\":{n},\"text\":\"{text}\"}}"));
                let write = append(session, LogName::Requests, vec![text]);
                service.receipt(write, vec![]).await.unwrap();
            }
        }
        if !is_compacted {
            service.receipt(request("new", "{}"), vec![]).await.unwrap();
        }
        stop(service).await;
    }
    let service = start_uncompacted(dir);
    let boards = all_published(&service);
    stop(service).await;
    boards.into_iter().map(|(name, published)| (name, Board::clone(&published.board))).collect()
}

/// What a start makes of a store: whether it serves all sessions; `None` where it refuses.
async fn served(dir: &Path, boards: &[(SessionName, Board)], what: &str) -> Option<bool> {
    let store = SqliteStore::open(dir, Default::default()).ok()?;
    let service = Service::start(Arc::new(store), POLICY, Clock::system()).ok()?;
    let mut is_whole = true;
    for (name, board) in boards {
        match service.published_here(name) {
            Ok(Some(published)) => {
                assert_eq!(*published.board, *board, "{what}: session {name} is another");
            }
            Ok(None) => panic!("{what}: session {name} is not there"),
            Err(_) => {
                is_whole = false;
                let listed = service.list(&Listing::all(name.as_str()), None, 1).unwrap();
                assert!(listed[0].is_damaged, "{what}: session {name} is not listed as damaged");
            }
        }
    }
    stop(service).await;
    Some(is_whole)
}

#[tokio::test]
async fn any_changed_bit_of_the_database_is_told_of_or_harms_nothing() {
    const FLIPS: u64 = 120;
    let dir = TempDir::new().unwrap();
    let boards = filled(dir.path()).await;
    let database = dir.path().join("blackboard.db");
    let length = fs::metadata(&database).unwrap().len();
    let (mut refused, mut partly) = (0, 0);
    for n in 0..FLIPS {
        let copy = TempDir::new().unwrap();
        let flipped = copy.path().join("blackboard.db");
        fs::copy(&database, &flipped).unwrap();
        // Every place is as likely, page headers too, and each run takes the same.
        let place = (n * length / FLIPS + n * 7919 % 4096) % length;
        let file = fs::OpenOptions::new().read(true).write(true).open(&flipped).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, place).unwrap();
        file.write_all_at(&[byte[0] ^ (1 << (n % 8))], place).unwrap();
        drop(file);
        match served(copy.path(), &boards, &format!("byte {place}")).await {
            None => refused += 1,
            Some(is_whole) => partly += u64::from(!is_whole),
        }
    }
    assert!(refused + partly > 0, "no place that matters was changed");
}

#[tokio::test]
async fn a_lost_end_of_a_session_is_told_by_its_summary() {
    let dir = TempDir::new().unwrap();
    let boards = filled(dir.path()).await;
    let database = Connection::open(dir.path().join("blackboard.db")).unwrap();
    let last = "DELETE FROM segment WHERE rowid = (SELECT max(rowid) FROM segment)";
    assert_eq!(database.execute(last, []).unwrap(), 1);
    database.execute("DELETE FROM journal", []).unwrap();
    drop(database);
    assert_eq!(served(dir.path(), &boards[..0], "").await, Some(true));
    let service = start_uncompacted(dir.path());
    assert!(service.status().damaged > 0, "nothing tells that commits are lost");
    stop(service).await;
}
