//! Tests of compaction: every commit is stored exactly once at every step.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tempfile::TempDir;

use super::bases::{five, image, put};
use super::sqlite::{ANNA, BERT, database, open, run, stored};
use crate::sqlite::segments;
use crate::*;
use blackboard_board::Frame;

/// Compacts a piece, without summaries.
pub(crate) fn compact(store: &SqliteStore) -> bool {
    store.compact(&mut |_| Vec::new()).unwrap()
}

/// Compacts all that is there.
pub(crate) fn compact_all(store: &SqliteStore) {
    while compact(store) {}
    assert_eq!(store.uncompacted_bytes(), 0);
}

pub(crate) fn count(dir: &TempDir, table: &str) -> i64 {
    let select = format!("SELECT count(*) FROM {table}");
    database(dir).query_one(&select, [], |row| row.get(0)).unwrap()
}

/// All of a session's commits after a revision, read in pages.
pub(crate) fn read(
    store: &SqliteStore,
    session: SessionId,
    after: u64,
    max: PageMax,
) -> Vec<(u64, Vec<u8>)> {
    let (mut read, mut after) = (Vec::new(), Revision(after));
    loop {
        let page = store.commits(session, after, max).unwrap();
        let Some((last, _)) = page.last() else { return read };
        after = *last;
        read.extend(page.into_iter().map(|(revision, frame)| {
            (revision.0, Frame::decode(session, revision, &frame).unwrap().to_vec())
        }));
    }
}

pub(crate) const PAGE: PageMax = PageMax { commits: 7, bytes: 100_000 };

#[test]
fn what_is_compacted_is_read_as_before() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    let before = (read(&store, ANNA, 0, PAGE), read(&store, BERT, 0, PAGE));
    assert!(store.uncompacted_bytes() > 0);
    let mut asked = Vec::new();
    let more = store.compact(&mut |sessions| {
        // No lock is held.
        assert_eq!(store.append(&[run(BERT, 2, &["b3"])]), [Outcome::Appended]);
        asked.extend_from_slice(sessions);
        Vec::new()
    });
    assert!(more.unwrap(), "one came meanwhile");
    asked.sort();
    assert_eq!(asked, [ANNA, BERT]);
    assert_eq!((count(&dir, "journal"), count(&dir, "segment")), (1, 2));
    compact_all(&store);
    assert_eq!((count(&dir, "journal"), count(&dir, "segment")), (0, 2));
    let after =
        |store: &SqliteStore| {
            assert_eq!(read(store, ANNA, 0, PAGE), before.0);
            assert_eq!(read(store, BERT, 0, PAGE)[..2], before.1);
            assert_eq!(read(store, ANNA, 3, PAGE), before.0[3..]);
            let rows = stored(store);
            let rows: Vec<_> = rows.iter().map(|row| (row.0, row.1, row.2)).collect();
            let expected = [(ANNA, 1), (ANNA, 2), (ANNA, 3), (ANNA, 4), (ANNA, 5)]
                .into_iter()
                .chain([(BERT, 1), (BERT, 2), (BERT, 3)]);
            assert_eq!(rows, expected.map(|row| (0, row.0, row.1)).collect::<Vec<_>>());
            let mut sessions = store.sessions();
            sessions.sort_by_key(|found| found.session);
            let session =
                |session, head| StoredSession { session, head, compacted: head, is_damaged: false };
            assert_eq!(sessions, [session(ANNA, Revision(5)), session(BERT, Revision(3))]);
            store.replay_journal(&mut |record| panic!("{record:?}")).unwrap();
        };
    after(&store);
    drop(store);
    let store = open(dir.path());
    after(&store);
    let conflict = Outcome::Conflict { head: Revision(5) };
    assert_eq!(store.append(&[run(ANNA, 4, &["no"])]), [conflict]);
    assert_eq!(store.append(&[run(ANNA, 5, &["a6"])]), [Outcome::Appended]);
    assert_eq!(stored(&store).last().unwrap().0, 9, "ids are not used again");
    assert_eq!(read(&store, ANNA, 0, PAGE).len(), 6);
    compact_all(&store);
    assert_eq!(count(&dir, "segment"), 2, "short segments are written anew");
}

/// Ends the chain of a value's overflow pages early, so that SQLite calls it malformed.
fn break_chain(dir: &TempDir, value: &[u8]) {
    let path = dir.path().join("blackboard.db");
    let mut file = fs::read(&path).unwrap();
    let is_of_value = |page: &[u8]| value.windows(64).any(|some| some == &page[4..68]);
    let mut ended = 0;
    for page in file.chunks_exact_mut(4096).filter(|page| is_of_value(page)) {
        ended += usize::from(page[..4] != [0; 4]);
        page[..4].fill(0);
    }
    assert_ne!(ended, 0, "a page had a next one");
    fs::write(path, file).unwrap();
}

#[test]
fn commits_after_an_unreadable_segment_stay_in_the_journal() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let noise: Vec<u8> = (0..800_u128)
        .flat_map(|n| {
            n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).wrapping_pow(3).to_le_bytes()
        })
        .collect();
    store.append(&[run(ANNA, 0, &[&noise])]);
    compact_all(&store);
    store.close().unwrap();
    drop(store);
    break_chain(&dir, &noise);
    let store = open(dir.path());
    let written = store.append(&[run(ANNA, 1, &["a2", "a3"]), run(BERT, 0, &["b1"])]);
    assert_eq!(written, [Outcome::Appended, Outcome::Appended]);
    while compact(&store) {}
    assert_eq!((count(&dir, "journal"), count(&dir, "segment")), (2, 2));
    let read = read(&store, ANNA, 1, PAGE);
    assert_eq!(read, [(2, b"a2".to_vec()), (3, b"a3".to_vec())]);
}

#[test]
fn a_crash_at_any_step_of_compaction_leaves_every_commit_once() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let body = vec![7; 900_000];
    let mut images = vec![];
    for head in 0..12 {
        let runs = [run(ANNA, head, &[&body]), run(BERT, head, &["b"])];
        assert_eq!(store.append(&runs), [Outcome::Appended; 2]);
    }
    loop {
        images.push(image(&dir));
        let more = store.compact(&mut |_| {
            images.push(image(&dir));
            Vec::new()
        });
        if !more.unwrap() {
            break;
        }
    }
    images.push(image(&dir));
    assert!(images.len() > 6);
    for image in &images {
        // Twice, since the first has compacted something.
        for _ in 0..2 {
            let store = open(image.path());
            let annas: Vec<_> = read(&store, ANNA, 0, PAGE).into_iter().map(|row| row.0).collect();
            assert_eq!(annas, (1..=12).collect::<Vec<_>>());
            assert_eq!(read(&store, BERT, 0, PAGE).len(), 12);
            assert_eq!(stored(&store).len(), 24);
            assert_eq!(store.sessions().len(), 2);
            compact(&store);
        }
    }
}

#[test]
fn whoever_reads_while_commits_are_compacted_sees_each_once() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let done = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| {
            for head in 0..600 {
                let runs = [run(ANNA, head, &["on"]), run(BERT, head, &[vec![1; 3_000]])];
                assert_eq!(store.append(&runs), [Outcome::Appended; 2]);
            }
            done.store(true, Ordering::Release);
        });
        threads.spawn(|| {
            while !done.load(Ordering::Acquire) || compact(&store) {
                compact(&store);
            }
        });
        for session in [ANNA, BERT] {
            threads.spawn({
                let (store, done) = (&store, &done);
                move || loop {
                    let over = done.load(Ordering::Acquire);
                    let read = read(store, session, 0, PAGE);
                    assert!(read.iter().zip(1..).all(|(row, revision)| row.0 == revision));
                    if over {
                        assert_eq!(read.len(), 600);
                        return;
                    }
                }
            });
        }
    });
}

#[test]
fn what_is_compacted_and_forgotten_is_in_no_file_any_more() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    // Text that packing cannot hide.
    let bodies: Vec<String> =
        (0..300_u64).map(|n| format!("secret {n} {:x}", n * 7_919 * 7_919)).collect();
    for (body, head) in bodies.iter().zip(5..) {
        store.append(&[run(ANNA, head, &[body])]);
    }
    compact_all(&store);
    put(&store, ANNA, 200, &["x"]).unwrap();
    assert_eq!(store.set_base(ANNA, Revision(200)), Outcome::Appended);
    drop(store);
    let store = open(dir.path());
    assert_eq!(read(&store, ANNA, 200, PAGE).len(), 105);
    let straddles = database(&dir);
    let before: Vec<u8> = straddles
        .query_one("SELECT body FROM segment WHERE session = ?1", [ANNA.0.as_bytes()], |row| {
            row.get(0)
        })
        .unwrap();
    drop(straddles);
    while store.idle() {}
    assert_eq!(read(&store, ANNA, 200, PAGE).len(), 105);
    let ranges = segments::ranges(&database(&dir)).unwrap();
    assert_eq!(ranges[0], (ANNA, Revision(201), Revision(305)));
    for file in ["blackboard.db", "blackboard.db-wal"] {
        let bytes = fs::read(dir.path().join(file)).unwrap();
        let piece = &before[40..56];
        assert!(!bytes.windows(piece.len()).any(|window| window == piece), "{file}");
        assert!(!bytes.windows(9).any(|window| window == b"secret 10"), "{file}");
    }
}

#[test]
fn the_file_is_as_long_as_what_is_in_it() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    for head in 0..40 {
        store.append(&[run(ANNA, head, &[vec![7; 100_000]])]);
    }
    compact_all(&store);
    let length = |file: &str| fs::metadata(dir.path().join(file)).unwrap().len();
    assert!(length("blackboard.db") < 500_000, "{}", length("blackboard.db"));
    assert_eq!(length("blackboard.db-wal"), 0);
}
