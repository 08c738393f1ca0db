//! Tests of pages of commits: complete, ordered, bounded.

use std::thread;

use tempfile::TempDir;

use crate::tests::bases::{five, put};
use crate::tests::sqlite::{ANNA, BERT, database, open, run};
use crate::*;
use blackboard_board::Frame;

const PAGE: PageMax = PageMax { commits: 256, bytes: 1 << 20 };

fn page(store: &SqliteStore, after: u64, max: PageMax) -> Vec<u64> {
    let page = store.commits(ANNA, Revision(after), max).unwrap();
    page.iter().map(|(revision, _)| revision.0).collect()
}

#[test]
fn a_page_has_as_much_as_was_asked_for_and_one_commit_at_least() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    let length = store.commits(ANNA, Revision(0), PAGE).unwrap()[0].1.len();
    let commits = |commits| PageMax { commits, ..PAGE };
    let bytes = |bytes| PageMax { bytes, ..PAGE };
    assert_eq!(page(&store, 0, PAGE), [1, 2, 3, 4, 5]);
    assert_eq!(page(&store, 2, commits(2)), [3, 4]);
    assert_eq!(page(&store, 0, commits(0)), [1]);
    assert_eq!(page(&store, 0, bytes(2 * length)), [1, 2]);
    assert_eq!(page(&store, 0, bytes(2 * length - 1)), [1]);
    assert_eq!(page(&store, 3, bytes(0)), [4]);
    assert_eq!(page(&store, 5, PAGE), [0; 0]);
    assert_eq!(page(&store, u64::MAX, PAGE), [0; 0]);
    store.close().unwrap();
    assert_eq!(page(&store, 3, PAGE), [4, 5], "reads go on");
    let nobody = SessionId(uuid::Uuid::from_u128(0xc));
    assert_eq!(store.commits(nobody, Revision(0), PAGE).unwrap(), []);
    assert_eq!(store.base(nobody).unwrap(), None);
}

#[test]
fn pages_of_commits_are_whole_during_appends() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let bodies: Vec<String> = (1..=1_000).map(|number| format!("body {number}")).collect();
    for batch in 0..20 {
        let runs = [run(ANNA, batch * 1_000, &bodies), run(BERT, batch, &["between"])];
        assert_eq!(store.append(&runs), [Outcome::Appended; 2]);
    }
    thread::scope(|threads| {
        threads.spawn(|| {
            for head in 20_000..20_500 {
                let runs = [run(BERT, head - 19_980, &["on"]), run(ANNA, head, &["on"])];
                assert_eq!(store.append(&runs), [Outcome::Appended; 2]);
            }
        });
        // More than there are connections.
        for _ in 0..6 {
            threads.spawn(|| {
                let mut head = Revision(0);
                while head < Revision(20_500) {
                    for (revision, frame) in store.commits(ANNA, head, PAGE).unwrap() {
                        assert_eq!(revision, head.next());
                        assert!(Frame::decode(ANNA, revision, &frame).is_ok());
                        head = revision;
                    }
                }
            });
        }
    });
}

#[test]
fn what_is_forgotten_is_said_to_be() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    put(&store, ANNA, 3, &["x", "y"]).unwrap();
    // The base comes in force while its forerunner is read.
    store.set_base(ANNA, Revision(3));
    put(&store, ANNA, 4, &["z"]).unwrap();
    let mut seen = 0;
    let read = store.read_base(ANNA, &mut |_| {
        seen += 1;
        assert_eq!(store.set_base(ANNA, Revision(4)), Outcome::Appended);
        while store.idle() {}
        ControlFlow::Continue(())
    });
    assert_eq!(seen, 1);
    let forgotten = |error| matches!(error, StoreError::Forgotten { base: Revision(4), .. });
    assert!(forgotten(read.unwrap_err()));
    assert!(forgotten(store.commits(ANNA, Revision(3), PAGE).unwrap_err()));
    assert_eq!(page(&store, 4, PAGE), [5]);
}

#[test]
fn a_row_that_is_another_than_it_should_be_ends_a_page() {
    for change in ["revision = 9", "session = zeroblob(16)", "session = x'0a'", "id = 99"] {
        let dir = TempDir::new().unwrap();
        let store = five(&dir);
        database(&dir).execute(&format!("UPDATE journal SET {change} WHERE id = 2"), []).unwrap();
        let damage = store.commits(ANNA, Revision(0), PAGE).unwrap_err();
        let row = JournalId(2);
        assert!(
            matches!(damage, StoreError::DamagedRow { journal_id } if journal_id == row),
            "{change}: {damage}"
        );
        assert_eq!(page(&store, 2, PAGE), [3, 4, 5], "the others are read");
    }
}
