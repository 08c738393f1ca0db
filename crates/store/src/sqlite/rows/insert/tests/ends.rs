//! Tests of a session's end: nothing else remains of its history.

use std::fs;

use tempfile::TempDir;

use crate::sqlite::rows::insert::*;
use crate::tests::bases::{part, put};
use crate::tests::sqlite::{ANNA, BERT, database, open, replayed, run, stored};
use crate::{EmbeddedStore as _, Outcome, SqliteStore, Store as _, StoreError, SummaryRow};
use blackboard_board::stored::Body;
use blackboard_board::{Frame, Revision, SessionId};

/// The run that deletes a session at a head, with other commits before the deletion.
pub(super) fn ending(session: SessionId, head: u64, before: &[&str]) -> Run {
    let mut deletes = run(session, head, before);
    deletes.frames = run(session, deletes.head().0, &["gone"]).frames;
    let revision = Revision(head + before.len() as u64);
    let parts = ["name", "end"]
        .map(|body| Frame::encode(session, revision, &Body::plain(body.as_bytes())).unwrap())
        .to_vec();
    Run { ends: Some(End { revision, parts }), grows: false, ..deletes }
}

fn count(dir: &TempDir, table: &str) -> i64 {
    let database = database(dir);
    database.query_one(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

fn compact_all(store: &SqliteStore) {
    while store.compact(&mut |_| Vec::new()).unwrap() {}
}

/// A session of five commits, with "secret" in every file that has something of it.
fn rich(dir: &TempDir) -> SqliteStore {
    let store = open(dir.path());
    store.append(&[run(ANNA, 0, &["secret 1", "secret 2", "secret 3"]), run(BERT, 0, &["b1"])]);
    put(&store, ANNA, 2, &["secret base"]).unwrap();
    assert_eq!(store.set_base(ANNA, Revision(2)), Outcome::Appended);
    compact_all(&store);
    let frame =
        |revision| Frame::encode(ANNA, Revision(revision), &Body::plain(b"secret")).unwrap();
    let summary = SummaryRow { session: ANNA, revision: Revision(3), frame: frame(3) };
    store.put_summaries(&[summary]).unwrap();
    store.put_snapshot(ANNA, Revision(3), &mut [frame(3)].into_iter()).unwrap();
    store.append(&[run(ANNA, 3, &["secret 4", "secret 5"])]);
    put(&store, ANNA, 5, &["secret again"]).unwrap();
    store
}

fn is_in_files(dir: &TempDir) -> bool {
    ["blackboard.db", "blackboard.db-wal"].iter().any(|file| {
        let bytes = fs::read(dir.path().join(file)).unwrap();
        bytes.windows(6).any(|some| some == b"secret")
    })
}

#[test]
fn a_deleted_session_is_its_end_and_what_it_had_is_in_no_file() {
    for (before, purged, crashes) in
        [(&[] as &[&str], false, false), (&["secret 6"], false, true), (&[], true, false)]
    {
        let dir = TempDir::new().unwrap();
        let mut store = rich(&dir);
        if purged {
            // The end is of the same revision as the base in force.
            assert_eq!(store.set_base(ANNA, Revision(5)), Outcome::Appended);
        }
        assert_eq!(store.append(&[ending(ANNA, 5, before)]), [Outcome::Appended]);
        let base = 5 + before.len() as u64;
        let check = |store: &SqliteStore| {
            let parts = vec![part(ANNA, base, "name"), part(ANNA, base, "end")];
            let (found, rows) = replayed(store);
            assert_eq!(found, parts);
            let rows: Vec<_> = rows.into_iter().map(|row| (row.1, row.2, row.3)).collect();
            let gone = (ANNA, base + 1, Ok(b"gone".to_vec()));
            assert!(rows.contains(&gone) && rows.len() == 2, "{rows:?}");
            let stored = store.sessions().into_iter().find(|found| found.session == ANNA).unwrap();
            assert_eq!(stored.head, Revision(base + 1));
        };
        check(&store);
        if crashes {
            drop(store);
            store = open(dir.path());
            check(&store);
        }
        compact_all(&store);
        while store.idle() {}
        check(&store);
        let counts = ["journal", "segment", "base", "ending", "snapshot", "session", "history"]
            .map(|table| count(&dir, table));
        assert_eq!(counts, [0, 2, 0, 2, 0, 0, 1]);
        assert!(!is_in_files(&dir));
        let late = put(&store, ANNA, base, &["late"]);
        assert!(matches!(late, Err(StoreError::Forgotten { .. })), "{late:?}");
    }
}

#[test]
fn a_history_that_is_forgotten_leaves_nothing() {
    for crashes in [false, true] {
        let dir = TempDir::new().unwrap();
        let mut store = rich(&dir);
        store.append(&[ending(ANNA, 5, &[])]);
        store.forget(&[ANNA]).unwrap();
        store.forget(&[ANNA]).unwrap();
        if crashes {
            drop(store);
            store = open(dir.path());
        }
        assert!(store.sessions().iter().all(|found| found.session != ANNA));
        compact_all(&store);
        while store.idle() {}
        assert_eq!(stored(&store).len(), 1);
        let counts = ["journal", "segment", "base", "ending", "snapshot", "session", "history"]
            .map(|table| count(&dir, table));
        assert_eq!(counts, [0, 1, 0, 0, 0, 0, 0]);
        assert!(!is_in_files(&dir));
    }
}

#[test]
fn an_end_can_come_after_the_deletion() {
    for compacts in [false, true] {
        let dir = TempDir::new().unwrap();
        let mut store = open(dir.path());
        store.append(&[run(ANNA, 0, &["secret 1", "secret 2", "gone"])]);
        if compacts {
            compact_all(&store);
        }
        let late = Run { expected: Revision(3), frames: Vec::new(), ..ending(ANNA, 2, &[]) };
        assert_eq!(store.append(&[late]), [Outcome::Appended]);
        for _ in 0..2 {
            while store.idle() {}
            let (parts, rows) = replayed(&store);
            assert_eq!((parts.len(), rows.len()), (2, 1), "compacted: {compacts}");
            assert_eq!(rows[0].3, Ok(b"gone".to_vec()));
            drop(store);
            store = open(dir.path());
        }
        assert!(!is_in_files(&dir));
    }
}

#[test]
fn runs_of_one_group_are_stored_all_or_none() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.append(&[run(ANNA, 0, &["a1"])]);
    let of = |group, run| Run { group: Some(group), ..run };
    let conflict = Outcome::Conflict { head: Revision(1) };
    let third = SessionId(uuid::Uuid::from_u128(0xc));
    let batch = [
        of(1, run(BERT, 0, &["b1"])),
        of(2, run(third, 0, &["c1"])),
        of(1, run(ANNA, 0, &["late"])),
    ];
    assert_eq!(store.append(&batch), [conflict, Outcome::Appended, conflict]);
    assert_eq!(stored(&store).iter().map(|row| row.1).collect::<Vec<_>>(), [ANNA, third]);
    let batch = [of(1, run(BERT, 0, &["b1"])), of(1, run(ANNA, 1, &["a2"]))];
    assert_eq!(store.append(&batch), [Outcome::Appended; 2]);
}
