//! Tests of bases: without effect until set, across crashes.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::sqlite::{ANNA, BERT, OPTIONS, Part, database, open, replayed, run, stored};
use crate::*;
use blackboard_board::stored::Body;
use blackboard_board::{Frame, FrameError};

/// The frames of a base with these bodies.
pub(crate) fn frames<B: AsRef<[u8]>>(session: SessionId, base: u64, bodies: &[B]) -> Vec<Vec<u8>> {
    let frame =
        |body: &B| Frame::encode(session, Revision(base), &Body::plain(body.as_ref())).unwrap();
    bodies.iter().map(frame).collect()
}

pub(crate) fn put<B: AsRef<[u8]>>(
    store: &SqliteStore,
    session: SessionId,
    base: u64,
    bodies: &[B],
) -> Result<(), StoreError> {
    let mut parts = frames(session, base, bodies).into_iter();
    store.put_base(session, Revision(base), 0, &mut parts)
}

pub(crate) fn part(session: SessionId, base: u64, body: &str) -> Part {
    (session, base, Ok(body.into()))
}

/// The bodies of a session's base.
fn read(store: &SqliteStore, session: SessionId) -> Result<Vec<Vec<u8>>, StoreError> {
    let (mut bodies, base) = (Vec::new(), store.base(session).unwrap().unwrap_or_default());
    store.read_base(session, &mut |frame| {
        bodies.push(Frame::decode(session, base, frame).unwrap().to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(bodies)
}

fn revisions(store: &SqliteStore) -> Vec<(SessionId, u64)> {
    stored(store).into_iter().map(|(_, session, revision, _)| (session, revision)).collect()
}

/// A store in which Anna's history has five commits and Bert's two.
pub(crate) fn five(dir: &TempDir) -> SqliteStore {
    five_in(dir.path())
}

pub(crate) fn five_in(dir: &Path) -> SqliteStore {
    let store = open(dir);
    let batch = [
        run(ANNA, 0, &["a1", "a2", "a3"]),
        run(BERT, 0, &["b1", "b2"]),
        run(ANNA, 3, &["a4", "a5"]),
    ];
    assert_eq!(store.append(&batch), [Outcome::Appended; 3]);
    store
}

#[test]
fn a_history_begins_with_the_base_that_is_set() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    put(&store, ANNA, 3, &["x", "y"]).unwrap();
    assert_eq!(store.base(ANNA).unwrap(), None);
    assert_eq!(revisions(&store).len(), 7, "a base that is only put changes nothing");
    assert_eq!(store.set_base(ANNA, Revision(3)), Outcome::Appended);
    let after = |store: &SqliteStore| {
        assert_eq!(store.base(ANNA).unwrap(), Some(Revision(3)));
        assert_eq!(read(store, ANNA).unwrap(), [b"x", b"y"]);
        let (parts, rows) = replayed(store);
        assert_eq!(parts, [part(ANNA, 3, "x"), part(ANNA, 3, "y")]);
        assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [4, 5, 6, 7]);
    };
    after(&store);
    drop(store);
    let store = open(dir.path());
    after(&store);
    while store.idle() {}
    after(&store);
    assert_eq!(store.set_base(ANNA, Revision(3)), Outcome::Appended, "it is set already");
    let count = "SELECT count(*) FROM journal";
    assert_eq!(database(&dir).query_one(count, [], |row| row.get(0)), Ok(4));
    assert_eq!(store.append(&[run(ANNA, 5, &["a6"])]), [Outcome::Appended]);
}

#[test]
fn a_session_with_nothing_but_a_base_has_its_revision_as_head() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    put(&store, ANNA, 5, &["x"]).unwrap();
    assert_eq!(store.set_base(ANNA, Revision(5)), Outcome::Appended);
    drop(store);
    let store = open(dir.path());
    let conflict = Outcome::Conflict { head: Revision(5) };
    assert_eq!(store.append(&[run(ANNA, 4, &["no"])]), [conflict]);
    assert_eq!(store.append(&[run(ANNA, 5, &["a6"])]), [Outcome::Appended]);
    drop(store);
    assert_eq!(revisions(&open(dir.path())), [(BERT, 1), (BERT, 2), (ANNA, 6)]);
}

#[test]
fn a_later_base_takes_the_place_of_an_earlier_one() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    for (base, bodies) in [(2, ["w", "x"]), (4, ["y", "z"])] {
        put(&store, ANNA, base, &bodies).unwrap();
        assert_eq!(store.set_base(ANNA, Revision(base)), Outcome::Appended);
    }
    assert!(matches!(
        put(&store, ANNA, 2, &["again"]),
        Err(StoreError::Forgotten { session: ANNA, base: Revision(4) })
    ));
    assert_eq!(store.set_base(ANNA, Revision(2)), Outcome::Conflict { head: Revision(5) });
    while store.idle() {}
    drop(store);
    let store = open(dir.path());
    assert_eq!(replayed(&store).0, [part(ANNA, 4, "y"), part(ANNA, 4, "z")]);
    assert_eq!(revisions(&store), [(BERT, 1), (BERT, 2), (ANNA, 5)]);
    let count = "SELECT count(*) FROM base";
    assert_eq!(database(&dir).query_one(count, [], |row| row.get(0)), Ok(2));
}

#[test]
fn only_a_base_that_was_put_last_can_be_set() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    let conflict = Outcome::Conflict { head: Revision(5) };
    assert_eq!(store.set_base(ANNA, Revision(3)), conflict, "nothing was put");
    put(&store, ANNA, 3, &["x"]).unwrap();
    put(&store, ANNA, 4, &["y"]).unwrap();
    assert_eq!(store.set_base(ANNA, Revision(3)), conflict);
    put(&store, ANNA, 9, &["z"]).unwrap();
    assert_eq!(store.set_base(ANNA, Revision(9)), conflict, "it is above the head");
    put::<&str>(&store, ANNA, 4, &[]).unwrap();
    assert_eq!(store.set_base(ANNA, Revision(4)), conflict, "without parts it is none");
    let nobody = SessionId(uuid::Uuid::from_u128(0xc));
    assert!(matches!(put(&store, nobody, 1, &["x"]), Err(StoreError::NoHistory { .. })));
    assert_eq!(store.set_base(nobody, Revision(0)), Outcome::Conflict { head: Revision(0) });
    while store.idle() {}
    assert_eq!(replayed(&store).0, []);
    assert_eq!(revisions(&store).len(), 7);
}

#[test]
fn a_base_that_is_put_again_has_its_later_parts_only() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    put(&store, ANNA, 3, &["one", "two", "three"]).unwrap();
    put(&store, ANNA, 4, &["four"]).unwrap();
    put(&store, ANNA, 3, &["x", "y"]).unwrap();
    while store.idle() {}
    assert_eq!(store.set_base(ANNA, Revision(3)), Outcome::Appended);
    assert_eq!(read(&store, ANNA).unwrap(), [b"x", b"y"]);
    // The base in force stays as it is, without a call for parts.
    let mut parts = std::iter::from_fn(|| panic!("no part is needed"));
    store.put_base(ANNA, Revision(3), 0, &mut parts).unwrap();
}

#[test]
fn a_base_that_nobody_set_is_gone_after_a_restart() {
    let dir = TempDir::new().unwrap();
    put(&five(&dir), ANNA, 3, &["x"]).unwrap();
    let store = open(dir.path());
    assert_eq!(store.set_base(ANNA, Revision(3)), Outcome::Conflict { head: Revision(5) });
    while store.idle() {}
    assert_eq!(replayed(&store).0, []);
    let count = "SELECT count(*) FROM base";
    assert_eq!(database(&dir).query_one(count, [], |row| row.get(0)), Ok(0));
}

#[test]
fn appends_go_on_while_a_base_is_put() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    let body = vec![7; 400_000];
    let mut head = 5;
    // No lock is held while a part is requested.
    let mut parts = frames(ANNA, 5, &[&body; 20]).into_iter().inspect(|_| {
        assert_eq!(store.append(&[run(ANNA, head, &["on"])]), [Outcome::Appended]);
        head += 1;
    });
    store.put_base(ANNA, Revision(5), 0, &mut parts).unwrap();
    assert_eq!(store.set_base(ANNA, Revision(5)), Outcome::Appended);
    drop(store);
    let store = open(dir.path());
    assert!(read(&store, ANNA).unwrap().iter().all(|part| *part == body));
    let annas = revisions(&store).into_iter().filter(|row| row.0 == ANNA);
    assert_eq!(annas.map(|row| row.1).collect::<Vec<_>>(), (6..=25).collect::<Vec<_>>());
}

#[test]
fn the_reserve_takes_no_base_but_lets_one_be_set() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    put(&store, ANNA, 5, &["x"]).unwrap();
    drop(store);
    let options = SqliteOptions { free_bytes_min: u64::MAX / 2, ..OPTIONS };
    let store = SqliteStore::open(dir.path(), options).unwrap();
    assert!(matches!(put(&store, ANNA, 5, &["x"]), Err(StoreError::Full)));
    assert_eq!(store.set_base(ANNA, Revision(5)), Outcome::Conflict { head: Revision(5) });
    while store.idle() {}
    assert_eq!(replayed(&store).0, []);
}

/// Copies what a power cut would leave at this moment: all that was synced.
pub(crate) fn image(dir: &TempDir) -> TempDir {
    let copy = TempDir::new().unwrap();
    for file in ["blackboard.db", "blackboard.db-wal"] {
        fs::copy(dir.path().join(file), copy.path().join(file)).unwrap();
    }
    copy
}

#[test]
fn a_crash_between_two_steps_leaves_one_whole_history() {
    let dir = TempDir::new().unwrap();
    let store = five(&dir);
    let mut images = vec![image(&dir)];
    let body = vec![7; 700_000];
    let mut parts = frames(ANNA, 4, &[&body; 4]).into_iter().inspect(|_| images.push(image(&dir)));
    store.put_base(ANNA, Revision(4), 0, &mut parts).unwrap();
    images.push(image(&dir));
    let before = images.len();
    assert_eq!(store.set_base(ANNA, Revision(4)), Outcome::Appended);
    images.push(image(&dir));
    while store.idle() {
        images.push(image(&dir));
    }
    images.push(image(&dir));
    for (number, image) in images.iter().enumerate() {
        // Twice, since the first start has deleted something.
        for _ in 0..2 {
            let store = open(image.path());
            let (parts, rows) = replayed(&store);
            let (bases, commits) = if number < before { (0, 7) } else { (4, 3) };
            assert_eq!((parts.len(), rows.len()), (bases, commits), "image {number}");
            assert!(parts.iter().all(|part| part.2.as_ref() == Ok(&body)));
            assert_eq!(
                store.append(&[run(ANNA, 4, &["no"])])[0],
                Outcome::Conflict { head: Revision(5) }
            );
            store.idle();
        }
    }
}

#[test]
fn a_changed_bit_in_a_historys_row_sets_only_that_aside() {
    for change in [
        "base = base + 1",
        "base = NULL",
        "parts = 0",
        "forgotten = forgotten + 1",
        "staged = 1",
        "session = zeroblob(16)",
        "sum = sum + 1",
    ] {
        let dir = TempDir::new().unwrap();
        let store = five(&dir);
        put(&store, ANNA, 3, &["x"]).unwrap();
        store.set_base(ANNA, Revision(3));
        drop(store);
        database(&dir).execute(&format!("UPDATE history SET {change}"), []).unwrap();
        for _ in 0..2 {
            let store = open(dir.path());
            let damaged =
                |id| store.sessions().iter().any(|one| one.session == id && one.is_damaged);
            assert!(damaged(ANNA) && !damaged(BERT), "{change}");
            assert_eq!(
                store.append(&[run(ANNA, 5, &["no"])])[0],
                Outcome::Conflict { head: Revision(5) }
            );
            while store.compact(&mut |_| Vec::new()).unwrap() {}
        }
        let rows = "SELECT (SELECT count(*) FROM base) + (SELECT count(*) FROM journal)";
        let left = || database(&dir).query_one(rows, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(left(), 6, "{change}: what is damaged stays as it is");
        let store = open(dir.path());
        store.forget(&[ANNA]).unwrap();
        while store.idle() {}
        drop(store);
        assert_eq!(left(), 0, "{change}");
        let store = open(dir.path());
        assert!(store.sessions().iter().all(|one| one.session == BERT), "{change}");
    }
}

#[test]
fn a_row_of_a_history_that_may_be_anybodys_is_no_start() {
    for change in ["session = x'0b'", "session = x'0123456789abcdef0123456789abcdef'"] {
        let dir = TempDir::new().unwrap();
        let store = five(&dir);
        put(&store, ANNA, 3, &["x"]).unwrap();
        store.set_base(ANNA, Revision(3));
        drop(store);
        database(&dir).execute(&format!("UPDATE history SET {change}"), []).unwrap();
        let refused = SqliteStore::open(dir.path(), OPTIONS).unwrap_err();
        assert!(matches!(refused, StoreError::DamagedHistory), "{change}: {refused}");
    }
}

#[test]
fn a_changed_or_missing_part_costs_only_its_session() {
    for change in [
        "UPDATE base SET frame = zeroblob(12) WHERE part = 1",
        "UPDATE base SET revision = 2 WHERE part = 1",
        "UPDATE base SET part = 5 WHERE part = 1",
        "UPDATE base SET session = x'0b' WHERE part = 1",
        "DELETE FROM base WHERE part = 1",
    ] {
        let dir = TempDir::new().unwrap();
        let store = five(&dir);
        put(&store, ANNA, 3, &["x", "y", "z"]).unwrap();
        store.set_base(ANNA, Revision(3));
        drop(store);
        database(&dir).execute(change, []).unwrap();
        let store = open(dir.path());
        let (parts, rows) = replayed(&store);
        assert_eq!((parts.len(), rows.len()), (3, 4), "{change}");
        assert_eq!((&parts[0], &parts[2]), (&part(ANNA, 3, "x"), &part(ANNA, 3, "z")));
        assert!(parts[1].2.is_err(), "{change}");
        if !change.contains("frame") {
            assert_eq!(parts[1].2, Err(FrameError::Truncated { expected: 11, found: 0 }));
            let missing = read(&store, ANNA);
            assert!(matches!(missing, Err(StoreError::DamagedBase { part: 1, .. })));
        }
    }
}
