//! Tests of garbage: deleted in pieces, overwritten, ids never reused.

use std::fs;
use std::time::Instant;

use tempfile::TempDir;

use crate::sqlite::rows::journal;
use crate::sqlite::schema;
use crate::tests::bases::{five, put};
use crate::tests::sqlite::{ANNA, BERT, database, open, run, stored};
use crate::*;

fn rows(dir: &TempDir) -> i64 {
    database(dir).query_one("SELECT count(*) FROM journal", [], |row| row.get(0)).unwrap()
}

/// A store in which Anna's history has 3,000 commits, all forgotten but not deleted.
fn forgotten(dir: &TempDir) -> SqliteStore {
    let store = open(dir.path());
    store.append(&[run(ANNA, 0, &vec!["a commit"; 3_000])]);
    put(&store, ANNA, 3_000, &["x"]).unwrap();
    assert_eq!(store.set_base(ANNA, Revision(3_000)), Outcome::Appended);
    store
}

#[test]
fn an_idle_moment_deletes_a_little_and_a_restart_goes_on() {
    let dir = TempDir::new().unwrap();
    let store = forgotten(&dir);
    assert_eq!(rows(&dir), 3_000);
    assert!(store.idle());
    assert_eq!(rows(&dir), 2_000);
    drop(store);
    let store = open(dir.path());
    assert_eq!(stored(&store), []);
    assert!(store.idle());
    assert_eq!(rows(&dir), 1_000);
    store.idle();
    assert_eq!(rows(&dir), 0);
    while store.idle() {}
    drop(store);
    // No row is left that would tell which ids there were; the base has one too.
    let store = open(dir.path());
    store.append(&[run(BERT, 0, &["b1"])]);
    assert_eq!(stored(&store)[0].0, 3_002);
}

#[test]
fn a_writer_that_is_never_idle_deletes_too() {
    let dir = TempDir::new().unwrap();
    let store = forgotten(&dir);
    for head in 0..48 {
        assert_eq!(store.append(&[run(BERT, head, &["on"])]), [Outcome::Appended]);
    }
    assert_eq!(rows(&dir), 48);
}

#[test]
fn long_rows_are_few_at_once() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.append(&[run(ANNA, 0, &vec![vec![1; 700_000]; 5])]);
    put(&store, ANNA, 5, &["x"]).unwrap();
    store.set_base(ANNA, Revision(5));
    let mut left = Vec::new();
    while store.idle() {
        left.push(rows(&dir));
    }
    left.retain(|left| *left > 0);
    assert_eq!(left, [3, 1]);
    assert_eq!(rows(&dir), 0);
}

#[test]
fn the_file_shrinks_though_commits_wait_to_be_compacted() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.append(&[run(ANNA, 0, &vec![vec![1; 1 << 20]; 40])]);
    put(&store, ANNA, 40, &["x"]).unwrap();
    store.set_base(ANNA, Revision(40));
    store.append(&[run(BERT, 0, &["not compacted"])]);
    while store.idle() {}
    let length = fs::metadata(dir.path().join("blackboard.db")).unwrap().len();
    assert!(length < 18 << 20, "{length}");
    assert_eq!(stored(&store).len(), 1);
}

#[test]
fn what_a_reader_kept_in_the_log_is_moved_beside_the_writer() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.append(&[run(ANNA, 0, &["a1"])]);
    let reader = database(&dir);
    reader.execute_batch("BEGIN; SELECT count(*) FROM journal").unwrap();
    for head in 1..9 {
        store.append(&[run(ANNA, head, &[vec![1; 4 << 20]])]);
    }
    store.maintain();
    reader.execute_batch("COMMIT").unwrap();
    let length = |file: &str| fs::metadata(dir.path().join(file)).unwrap().len();
    let before = length("blackboard.db");
    assert!(length("blackboard.db-wal") > 32 << 20);
    for head in 9..11 {
        store.append(&[run(ANNA, head, &[vec![1; 4 << 20]])]);
    }
    assert_eq!(length("blackboard.db"), before, "an append has moved all of it");
    store.maintain();
    assert!(length("blackboard.db") > 40 << 20);
    // The log is short since: the next checkpoint ends it, and the next append restarts it.
    for head in 11..14 {
        store.append(&[run(ANNA, head, &[vec![1; 4 << 20]])]);
    }
    assert!(length("blackboard.db-wal") < 32 << 20);
    assert_eq!(stored(&store).len(), 14);
}

#[test]
fn nothing_grows_while_a_long_log_waits_to_be_moved() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.maintain();
    store.append(&[run(ANNA, 0, &[vec![1; 2 << 20]])]);
    // Pretends that this much was written.
    store.journal.lock().as_mut().unwrap().database.log.grow(300 << 20);
    let length = || fs::metadata(dir.path().join("blackboard.db")).unwrap().len();
    let before = length();
    let shrinks = Run { grows: false, ..run(BERT, 0, &["b1"]) };
    let outcomes = store.append(&[run(ANNA, 1, &["a2"]), shrinks]);
    assert_eq!(outcomes, [Outcome::Overloaded, Outcome::Appended]);
    assert_eq!(length(), before, "an append has moved all of it");
    store.maintain();
    assert!(length() > before + (1 << 20));
    assert_eq!(store.append(&[run(ANNA, 1, &["a2"])]), [Outcome::Appended]);
}

#[test]
fn what_is_deleted_is_in_no_file_any_more() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    let long = "a long secret ".repeat(10_000);
    store.append(&[run(ANNA, 5, &["a short secret", &long])]);
    put(&store, ANNA, 6, &[&long]).unwrap();
    for (base, body) in [(6, long.as_str()), (7, "x")] {
        put(&store, ANNA, base, &[body]).unwrap();
        assert_eq!(store.set_base(ANNA, Revision(base)), Outcome::Appended);
    }
    while store.idle() {}
    for file in ["blackboard.db", "blackboard.db-wal"] {
        let bytes = fs::read(dir.path().join(file)).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"secret"), "{file}");
    }
}

#[test]
#[ignore = "it measures"]
fn appends_with_and_without_overwriting() {
    for secure in ["ON", "OFF"] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("blackboard.db");
        let connection = schema::open(&path, None, schema::STEPS).unwrap();
        connection.execute_batch(&format!("PRAGMA secure_delete = {secure}")).unwrap();
        let mut journal = journal::Journal::open(connection, &path, None).unwrap();
        let body = vec![b'x'; 500];
        let begun = Instant::now();
        for batch in 0..2_000 {
            let run = run(ANNA, batch * 16, &[&body; 16]);
            journal.write(std::iter::once(&run)).unwrap();
            journal.checkpoint_if_long().unwrap();
        }
        println!("secure_delete {secure}: {:?} for 2,000 batches of 16", begun.elapsed());
    }
}
