//! Tests of staged histories: adopted by a run, or gone at the next start.

use tempfile::TempDir;

use crate::tests::bases::{part, put};
use crate::tests::sqlite::{ANNA, BERT, database, open, replayed, run, stored};
use crate::*;

fn adopting(session: SessionId, expected: u64, bodies: &[&str]) -> Run {
    Run { adopts: true, ..run(session, expected, bodies) }
}

fn conflict(head: u64) -> [Outcome; 1] {
    [Outcome::Conflict { head: Revision(head) }]
}

/// A store in which a history of Anna's is staged: a base at 10, and two commits.
fn staged(dir: &TempDir) -> SqliteStore {
    let store = open(dir.path());
    store.append(&[run(BERT, 0, &["b1"])]);
    store.stage(ANNA).unwrap();
    put(&store, ANNA, 10, &["x", "y"]).unwrap();
    assert_eq!(store.append(&[run(ANNA, 0, &["no"])]), conflict(10));
    assert_eq!(store.append(&[run(ANNA, 10, &["a11", "a12"])]), [Outcome::Appended]);
    store
}

fn counts(dir: &TempDir) -> (u64, u64, u64) {
    let count = |table: &str| -> u64 {
        let select = format!("SELECT count(*) FROM {table}");
        database(dir).query_one(&select, [], |row| row.get::<_, i64>(0)).unwrap().cast_unsigned()
    };
    (count("journal"), count("base"), count("history"))
}

#[test]
fn an_adopted_history_is_the_sessions() {
    let dir = TempDir::new().unwrap();
    let store = staged(&dir);
    assert_eq!(store.base(ANNA).unwrap(), None);
    assert_eq!(stored(&store).len(), 1, "a staged history is in no replay");
    assert_eq!(store.append(&[adopting(ANNA, 12, &["a13"])]), [Outcome::Appended]);
    let after = |store: &SqliteStore| {
        assert_eq!(store.base(ANNA).unwrap(), Some(Revision(10)));
        let (parts, rows) = replayed(store);
        assert_eq!(parts, [part(ANNA, 10, "x"), part(ANNA, 10, "y")]);
        let rows: Vec<_> = rows.iter().map(|row| (row.1, row.2)).collect();
        assert_eq!(rows, [(BERT, 1), (ANNA, 11), (ANNA, 12), (ANNA, 13)]);
    };
    after(&store);
    drop(store);
    let store = open(dir.path());
    while store.idle() {}
    after(&store);
    assert_eq!(store.append(&[adopting(ANNA, 13, &["again"])]), conflict(13));
    assert_eq!(store.append(&[run(ANNA, 13, &["a14"])]), [Outcome::Appended]);
}

#[test]
fn an_adoption_goes_on_after_the_last_revision_of_the_name() {
    let dir = TempDir::new().unwrap();
    let store = staged(&dir);
    assert_eq!(store.append(&[adopting(ANNA, 11, &["no"])]), conflict(12));
    assert_eq!(store.append(&[adopting(ANNA, 40, &["a41"])]), [Outcome::Appended]);
    assert_eq!(store.append(&[run(ANNA, 41, &["a42"])]), [Outcome::Appended]);
    let max = PageMax { commits: 9, bytes: 999 };
    let revisions = |after| -> Vec<u64> {
        let page = store.commits(ANNA, Revision(after), max).unwrap();
        page.iter().map(|(revision, _)| revision.0).collect()
    };
    assert_eq!(revisions(10), [11, 12, 41, 42]);
    assert_eq!(revisions(12), [41, 42]);
    assert_eq!(revisions(30), [41, 42]);
    assert_eq!(revisions(41), [42]);
}

#[test]
fn a_history_can_be_staged_and_adopted_without_a_base() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.stage(ANNA).unwrap();
    let batch = [run(ANNA, 0, &["a1"]), adopting(ANNA, 1, &["a2"]), run(ANNA, 2, &["a3"])];
    assert_eq!(store.append(&batch), [Outcome::Appended; 3]);
    drop(store);
    let store = open(dir.path());
    assert_eq!(stored(&store).len(), 3);
    assert_eq!(counts(&dir), (3, 0, 0));
}

#[test]
fn what_nobody_adopted_is_gone_after_a_restart() {
    let dir = TempDir::new().unwrap();
    drop(staged(&dir));
    // A start that has no idle moment leaves it to the next one.
    drop(open(dir.path()));
    let store = open(dir.path());
    assert_eq!(replayed(&store), (vec![], stored(&store)));
    assert_eq!(stored(&store).len(), 1);
    assert_eq!(store.append(&[adopting(ANNA, 12, &["too late"])]), conflict(0));
    assert_eq!(store.append(&[run(ANNA, 12, &["too late"])]), conflict(0));
    while store.idle() {}
    assert_eq!(counts(&dir), (1, 0, 0));
    assert_eq!(store.append(&[run(BERT, 1, &["b2"])]), [Outcome::Appended]);
    assert_eq!(stored(&store)[1].0, 4, "the ids of the rows that are gone are not used again");
}

#[test]
fn a_discarded_history_is_gone_at_once() {
    let dir = TempDir::new().unwrap();
    let store = staged(&dir);
    store.discard(ANNA).unwrap();
    store.discard(ANNA).unwrap();
    store.discard(BERT).unwrap();
    assert_eq!(store.append(&[adopting(ANNA, 12, &["too late"])]), conflict(12));
    assert!(matches!(put(&store, ANNA, 20, &["x"]), Err(StoreError::NoHistory { .. })));
    let page = store.commits(ANNA, Revision(0), PageMax { commits: 9, bytes: 999 });
    assert_eq!(page.unwrap(), []);
    while store.idle() {}
    assert_eq!(counts(&dir), (1, 0, 0));
    // A history can be staged again under an id of which nothing is left.
    store.stage(ANNA).unwrap();
    assert_eq!(store.append(&[adopting(ANNA, 0, &["a1"])]), [Outcome::Appended]);
}

#[test]
fn only_unknown_ids_are_staged_and_only_staged_ones_adopted() {
    let dir = TempDir::new().unwrap();
    let store = staged(&dir);
    for known in [ANNA, BERT] {
        let refused = store.stage(known);
        assert!(matches!(refused, Err(StoreError::HistoryExists { session }) if session == known));
    }
    assert_eq!(store.append(&[adopting(BERT, 1, &["no"])]), conflict(1));
    let nobody = SessionId(uuid::Uuid::from_u128(0xc));
    assert_eq!(store.append(&[adopting(nobody, 1, &["no"])]), conflict(0));
    assert_eq!(store.set_base(ANNA, Revision(10)), conflict(12)[0], "that is for the adoption");
}
