//! Tests of changed bits in segments: detected, limited to one session, caches distrusted.

use std::borrow::Cow;

use rusqlite::types::Value;
use tempfile::TempDir;

use crate::tests::bases::{five, frames};
use crate::tests::compaction::compact_all;
use crate::tests::sqlite::{ANNA, BERT, database, open, replayed, run, stored};
use crate::tests::{bases, compaction};
use crate::*;
use blackboard_board::Frame;
use blackboard_board::stored::Body;

const ALL: PageMax = PageMax { commits: 99, bytes: 1 << 20 };

/// Flips a bit of Anna's row of a table, behind the store's back.
fn flip(dir: &TempDir, table: &str, column: &str, byte: usize) {
    let database = database(dir);
    let whose = [ANNA.0.as_bytes().as_slice()];
    let select = format!("SELECT {column} FROM {table} WHERE session = ?1");
    let mut value = database.query_one(&select, whose, |row| row.get(0)).unwrap();
    match &mut value {
        Value::Blob(bytes) => {
            let byte = byte.min(bytes.len() - 1);
            bytes[byte] ^= 4;
        }
        Value::Integer(number) => *number ^= 4,
        Value::Null | Value::Real(_) | Value::Text(_) => panic!("{value:?}"),
    }
    let update = format!("UPDATE {table} SET {column} = ?2 WHERE session = ?1");
    assert_eq!(database.execute(&update, (whose[0], value)).unwrap(), 1);
}

/// A store in which Anna's five commits and Bert's two are compacted.
fn compacted(dir: &TempDir) -> SqliteStore {
    let store = five(dir);
    compact_all(&store);
    store
}

#[test]
fn a_flipped_bit_in_any_column_of_a_segment_is_found() {
    // Each commit has a checksum of its own, so those that hold are read.
    for (column, byte, kept) in [
        ("session", 15, 0),
        ("first", 0, 5),
        ("last", 0, 5),
        ("commits", 0, 5),
        ("bytes", 0, 5),
        ("crc", 0, 5),
        ("body", 0, 5),
        ("body", 2, 5),
        ("body", 7, 0),
        // A flag of zstd's frame, which the blocks do not need.
        ("body", 9, 5),
        ("body", usize::MAX, 4),
    ] {
        let dir = TempDir::new().unwrap();
        drop(compacted(&dir));
        flip(&dir, "segment", column, byte);
        let store = open(dir.path());
        let (_, rows) = replayed(&store);
        let (sound, damaged): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.3.is_ok());
        let sound: Vec<_> = sound.into_iter().map(|row| (row.1, row.2)).collect();
        let annas: Vec<_> = sound.iter().filter(|row| row.0 == ANNA).map(|row| row.1).collect();
        assert_eq!(annas, (1..=kept).collect::<Vec<_>>(), "{column}, byte {byte}");
        assert_eq!(sound.len() - annas.len(), 2, "{column}");
        assert_eq!(damaged.len(), 1, "{column}");
        assert_eq!(store.commits(BERT, Revision(0), ALL).unwrap().len(), 2);
        let annas = store.commits(ANNA, Revision(0), ALL);
        if kept > 0 {
            assert_eq!(annas.unwrap().len() as u64, kept, "{column}, byte {byte}");
        }
        let annas = store.commits(ANNA, Revision(kept), ALL);
        match column {
            // Another session has it, which has no beginning.
            "session" => {
                assert_eq!(annas.unwrap(), []);
                assert_ne!(damaged[0].1, ANNA);
                assert!(store.commits(damaged[0].1, Revision(0), ALL).is_err());
            }
            _ if kept == 5 => assert_eq!(annas.unwrap(), []),
            _ => assert!(
                matches!(annas, Err(StoreError::DamagedSegment { session: Some(ANNA), .. })),
                "{column}: {annas:?}"
            ),
        }
    }
}

/// A commit's body, which is compressed to a third.
fn words(revision: u64) -> String {
    let word = |n: u64| format!("word{}", (revision * 31 + n * n) % 997);
    (0..40).map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_flipped_bit_costs_little_of_what_is_before_it() {
    let bodies: Vec<String> = (1..=300).map(words).collect();
    let whole = TempDir::new().unwrap();
    let store = open(whole.path());
    store.append(&[run(ANNA, 0, &bodies)]);
    compact_all(&store);
    drop(store);
    assert_eq!(compaction::count(&whole, "segment"), 1);
    let select = "SELECT length(body), bytes FROM segment";
    let (packed, raw): (i64, i64) =
        database(&whole).query_one(select, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert!(packed < raw / 2, "{packed} of {raw}");
    let packed = usize::try_from(packed).unwrap();
    let mut damaged = 0;
    for eighth in 1..8 {
        let dir = TempDir::new().unwrap();
        std::fs::copy(whole.path().join("blackboard.db"), dir.path().join("blackboard.db"))
            .unwrap();
        flip(&dir, "segment", "body", packed * eighth / 8);
        let store = open(dir.path());
        let (mut kept, mut page) = (0, store.commits(ANNA, Revision(0), ALL));
        while let Ok(commits) = &page
            && let Some((last, _)) = commits.last()
        {
            kept = last.0;
            page = store.commits(ANNA, Revision(kept), ALL);
        }
        assert!(kept >= 300 * eighth as u64 / 8 / 2, "{kept} of 300 before {eighth}/8");
        // A bit that no commit needs, such as one that fills up a byte, costs nothing.
        if kept < 300 {
            assert!(matches!(page, Err(StoreError::DamagedSegment { .. })), "{page:?}");
            damaged += 1;
        }
    }
    assert!(damaged > 3, "{damaged}");
}

#[test]
fn a_segment_that_does_not_say_whose_it_is_ends_a_replay() {
    let dir = TempDir::new().unwrap();
    drop(compacted(&dir));
    let change = "UPDATE segment SET session = x'0a' WHERE first = 1 AND last = 5";
    assert_eq!(database(&dir).execute(change, []).unwrap(), 1);
    let damage = open(dir.path()).replay(&mut |_| ControlFlow::Continue(())).unwrap_err();
    assert!(matches!(damage, StoreError::DamagedSegment { session: None, .. }), "{damage}");
}

#[test]
fn a_segment_that_is_gone_is_missed() {
    let dir = TempDir::new().unwrap();
    let store = compacted(&dir);
    database(&dir).execute("DELETE FROM segment WHERE last = 5", []).unwrap();
    let missing = store.commits(ANNA, Revision(0), ALL);
    assert!(matches!(missing, Err(StoreError::DamagedSegment { .. })), "{missing:?}");
}

#[test]
fn a_damaged_segment_is_not_packed_with_what_follows() {
    let dir = TempDir::new().unwrap();
    let store = compacted(&dir);
    flip(&dir, "segment", "body", 7);
    store.append(&[run(ANNA, 5, &["a6"])]);
    compact_all(&store);
    let sound = store.commits(ANNA, Revision(5), ALL).unwrap();
    assert_eq!(sound[0].0, Revision(6));
    assert!(store.commits(ANNA, Revision(4), ALL).is_err());
    // Nor can it be cut where a base begins.
    bases::put(&store, ANNA, 3, &["x"]).unwrap();
    assert_eq!(store.set_base(ANNA, Revision(3)), Outcome::Appended);
    while store.idle() {}
    assert!(store.commits(ANNA, Revision(3), ALL).is_err());
    assert_eq!(store.health(), Health::Ready);
}

#[test]
fn a_row_damaged_before_compaction_stays_to_be_found() {
    for change in ["revision = 9", "session = x'0a'", "session = zeroblob(16)"] {
        let dir = TempDir::new().unwrap();
        let store = five(&dir);
        database(&dir).execute(&format!("UPDATE journal SET {change} WHERE id = 2"), []).unwrap();
        while store.compact(&mut |_| Vec::new()).unwrap() {}
        // Bert's are compacted, and nothing of Anna's: what is before and after it belongs together.
        assert_eq!(compaction::count(&dir, "segment"), 1, "{change}");
        assert_eq!(compaction::count(&dir, "journal"), 5, "{change}");
        let damaged = store.commits(ANNA, Revision(0), ALL).unwrap_err();
        let row = JournalId(2);
        assert!(matches!(damaged, StoreError::DamagedRow { journal_id } if journal_id == row));
        assert_eq!(store.commits(ANNA, Revision(2), ALL).unwrap().len(), 3);
    }
}

fn summary(session: SessionId, revision: u64, text: &str) -> SummaryRow {
    let revision = Revision(revision);
    SummaryRow {
        session,
        revision,
        frame: Frame::encode(session, revision, &Body::plain(text.as_bytes())).unwrap(),
    }
}

fn summaries(store: &SqliteStore) -> Vec<SummaryRow> {
    let mut found = Vec::new();
    store
        .summaries(&mut |summary| {
            found.push(summary.clone());
            ControlFlow::Continue(())
        })
        .unwrap();
    found.sort_by_key(|summary| summary.session);
    found
}

#[test]
fn a_summary_is_the_last_one_of_a_history_that_is_there() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    let nobody = SessionId(uuid::Uuid::from_u128(0xc));
    store.stage(nobody).unwrap();
    let given = [summary(ANNA, 5, "five"), summary(BERT, 3, "to come"), summary(nobody, 0, "no")];
    while store.compact(&mut |_| given.to_vec()).unwrap() {}
    assert_eq!(summaries(&store), given[..1]);
    store.put_summaries(&[summary(ANNA, 4, "older"), summary(BERT, 2, "two")]).unwrap();
    assert_eq!(summaries(&store), [given[0].clone(), summary(BERT, 2, "two")]);
    store.put_summaries(&[summary(ANNA, 5, "again")]).unwrap();
    drop(store);
    let store = open(dir.path());
    assert_eq!(summaries(&store), [summary(ANNA, 5, "again"), summary(BERT, 2, "two")]);
    // A summary from before a base is deleted with that history.
    bases::put(&store, BERT, 2, &["x"]).unwrap();
    store.append(&[run(ANNA, 5, &["a6"])]);
    bases::put(&store, ANNA, 6, &["x"]).unwrap();
    for (session, base) in [(ANNA, 6), (BERT, 2)] {
        assert_eq!(store.set_base(session, Revision(base)), Outcome::Appended);
    }
    store.put_summaries(&[summary(ANNA, 5, "forgotten")]).unwrap();
    assert_eq!(summaries(&store), [summary(BERT, 2, "two")]);
}

#[test]
fn a_changed_summary_reads_as_none_and_the_next_takes_its_place() {
    for (column, byte) in [("frame", 10), ("frame", 5), ("session", 15), ("revision", 0)] {
        let dir = TempDir::new().unwrap();
        let store = five(&dir);
        store.put_summaries(&[summary(ANNA, 2, "two")]).unwrap();
        flip(&dir, "session", column, byte);
        let found = &summaries(&store)[0];
        assert!(Frame::decode(found.session, found.revision, &found.frame).is_err(), "{column}");
        store.put_summaries(&[summary(ANNA, 5, "five")]).unwrap();
        assert!(summaries(&store).contains(&summary(ANNA, 5, "five")), "{column}");
    }
}

fn put_snapshot(store: &SqliteStore, revision: u64, bodies: &[&str]) -> Result<(), StoreError> {
    let mut parts = frames(ANNA, revision, bodies).into_iter();
    store.put_snapshot(ANNA, Revision(revision), &mut parts)
}

/// The snapshot's revision, and the bodies of its parts that are sound.
fn snapshot(store: &SqliteStore, up_to: u64) -> (Option<u64>, Vec<String>) {
    let mut bodies = Vec::new();
    let read = store.read_snapshot(ANNA, Revision(up_to), &mut |revision, frame| {
        let body = Frame::decode(ANNA, revision, frame).map(Cow::into_owned);
        bodies.extend(body.ok().map(|body| String::from_utf8(body).unwrap()));
        ControlFlow::Continue(())
    });
    (read.unwrap().map(|revision| revision.0), bodies)
}

#[test]
fn a_snapshot_is_the_last_one_put_that_is_not_below_the_base() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    assert_eq!(snapshot(&store, 5), (None, vec![]));
    put_snapshot(&store, 2, &["two", "parts"]).unwrap();
    assert_eq!(snapshot(&store, 5), (Some(2), vec!["two".to_owned(), "parts".to_owned()]));
    assert_eq!(snapshot(&store, 1).0, None);
    put_snapshot(&store, 4, &["four"]).unwrap();
    assert_eq!(snapshot(&store, u64::MAX), (Some(4), vec!["four".to_owned()]));
    drop(store);
    let store = open(dir.path());
    assert_eq!(snapshot(&store, 4), (Some(4), vec!["four".to_owned()]));
    while store.idle() {}
    assert_eq!(compaction::count(&dir, "snapshot"), 1);
    put_snapshot(&store, 4, &["again"]).unwrap();
    assert_eq!(snapshot(&store, 4), (Some(4), vec!["again".to_owned()]));
    bases::put(&store, ANNA, 5, &["x"]).unwrap();
    assert_eq!(store.set_base(ANNA, Revision(5)), Outcome::Appended);
    assert_eq!(snapshot(&store, 9), (None, vec![]));
    assert!(matches!(put_snapshot(&store, 4, &["no"]), Err(StoreError::Forgotten { .. })));
    drop(store);
    let store = open(dir.path());
    while store.idle() {}
    assert_eq!(compaction::count(&dir, "snapshot"), 0);
    assert_eq!(stored(&store).len(), 2);
}

#[test]
fn a_snapshot_before_the_last_one_is_deleted_without_a_restart() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    put_snapshot(&store, 2, &["two"]).unwrap();
    put_snapshot(&store, 4, &["four"]).unwrap();
    while store.idle() {}
    assert_eq!(compaction::count(&dir, "snapshot"), 1);
    assert_eq!(snapshot(&store, 5), (Some(4), vec!["four".to_owned()]));
}

#[test]
fn a_changed_snapshot_has_a_part_that_is_none() {
    for (column, byte) in [("frame", 0), ("frame", 3), ("frame", 8), ("revision", 0)] {
        let dir = TempDir::new().unwrap();
        let store = five(&dir);
        put_snapshot(&store, 3, &["three"]).unwrap();
        flip(&dir, "snapshot", column, byte);
        assert_eq!(snapshot(&store, 9).1, [""; 0], "{column}");
    }
}
