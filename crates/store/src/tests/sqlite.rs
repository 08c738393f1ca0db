//! Tests of the embedded store on a sound disk.

use std::borrow::Cow;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;
use tempfile::TempDir;
use uuid::Uuid;

use crate::*;
use blackboard_board::Digest;
use blackboard_board::stored::Body;
use blackboard_board::{Frame, FrameError};

pub(crate) const ANNA: SessionId = SessionId(Uuid::from_u128(0xa));
pub(crate) const BERT: SessionId = SessionId(Uuid::from_u128(0xb));

pub(crate) const OPTIONS: SqliteOptions =
    SqliteOptions { sync: SyncLevel::Full, free_bytes_min: 0, free_part: 1 };

pub(crate) fn open(dir: &Path) -> SqliteStore {
    SqliteStore::open(dir, OPTIONS).unwrap()
}

/// A run of commits with these bodies.
pub(crate) fn run<B: AsRef<[u8]>>(session: SessionId, expected: u64, bodies: &[B]) -> Run {
    let frames = (expected + 1..)
        .zip(bodies)
        .map(|(revision, body)| {
            Frame::encode(session, Revision(revision), &Body::plain(body.as_ref())).unwrap()
        })
        .collect();
    Run {
        session,
        expected: Revision(expected),
        ends: None,
        frames,
        claim: None,
        grows: true,
        adopts: false,
        group: None,
        row: None,
    }
}

pub(crate) type Row = (u64, SessionId, u64, Result<Vec<u8>, FrameError>);

/// A part of a base: whose it is, the base's revision, its body.
pub(crate) type Part = (SessionId, u64, Result<Vec<u8>, FrameError>);

fn decode(session: SessionId, revision: Revision, frame: &[u8]) -> Result<Vec<u8>, FrameError> {
    Frame::decode(session, revision, frame).map(Cow::into_owned)
}

/// All that a replay gives, decoded; a commit that is compacted has no place in the journal, here 0.
pub(crate) fn replayed(store: &SqliteStore) -> (Vec<Part>, Vec<Row>) {
    let (mut parts, mut rows) = (Vec::new(), Vec::new());
    store
        .replay(&mut |stored| {
            match stored {
                Stored::Base { session, revision, frame } => {
                    assert!(rows.is_empty(), "bases come first");
                    parts.push((session, revision.0, decode(session, revision, frame)));
                }
                Stored::Commit(Record { journal_id, session, revision, frame }) => {
                    let body = decode(session, revision, frame);
                    rows.push((journal_id.unwrap_or_default().0, session, revision.0, body));
                }
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    (parts, rows)
}

/// The commits that a replay gives, decoded.
pub(crate) fn stored(store: &SqliteStore) -> Vec<Row> {
    replayed(store).1
}

pub(crate) fn database(dir: &TempDir) -> Connection {
    Connection::open(dir.path().join("blackboard.db")).unwrap()
}

#[test]
fn a_reopened_store_replays_what_was_appended_in_order() {
    let dir = TempDir::new().unwrap();
    let expected = vec![
        (1, ANNA, 1, Ok(b"a1".to_vec())),
        (2, ANNA, 2, Ok(b"a2".to_vec())),
        (3, BERT, 1, Ok(vec![0; 100_000])),
        (4, ANNA, 3, Ok(vec![])),
    ];
    {
        let store = open(dir.path());
        let batch = [run(ANNA, 0, &["a1", "a2"]), run(BERT, 0, &[[0; 100_000]])];
        assert_eq!(store.append(&batch), [Outcome::Appended; 2]);
        assert_eq!(store.append(&[run(ANNA, 2, &[""])]), [Outcome::Appended]);
        assert_eq!(stored(&store), expected);
    }
    let store = open(dir.path());
    assert_eq!(stored(&store), expected);
    assert_eq!(store.append(&[run(ANNA, 3, &["a4"])]), [Outcome::Appended]);
    assert_eq!(stored(&store).last().unwrap().0, 5);
}

#[test]
fn a_visitor_may_stop_a_replay() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.append(&[run(ANNA, 0, &["a1", "a2"])]);
    let mut seen = 0;
    let visit = &mut |_: Stored<'_>| {
        seen += 1;
        ControlFlow::Break(())
    };
    store.replay(visit).unwrap();
    assert_eq!(seen, 1);
}

#[test]
fn a_run_against_another_head_is_refused_alone() {
    let dir = TempDir::new().unwrap();
    let head = |head| Outcome::Conflict { head: Revision(head) };
    let store = open(dir.path());
    let batch = [run(ANNA, 0, &["a1"]), run(ANNA, 0, &["again a1"]), run(ANNA, 1, &["a2"])];
    assert_eq!(store.append(&batch), [Outcome::Appended, head(1), Outcome::Appended]);
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.append(&[run(ANNA, 1, &["a2 again"])]), [head(2)]);
    assert_eq!(stored(&store).len(), 2);
}

#[test]
fn a_new_session_may_begin_where_the_last_one_of_its_name_ended() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    assert_eq!(store.append(&[run(BERT, 7, &["b8"])]), [Outcome::Appended]);
    assert_eq!(
        store.append(&[run(BERT, 0, &["b1"]), run(BERT, 8, &["b9"])]),
        [Outcome::Conflict { head: Revision(8) }, Outcome::Appended]
    );
}

#[test]
fn the_reserve_is_kept_for_what_frees_space() {
    let dir = TempDir::new().unwrap();
    let options = SqliteOptions { free_bytes_min: u64::MAX / 2, ..OPTIONS };
    let store = SqliteStore::open(dir.path(), options).unwrap();
    let deletion = Run { grows: false, ..run(BERT, 0, &["gone"]) };
    let outcomes = store.append(&[run(ANNA, 0, &["a1"]), deletion]);
    assert_eq!(outcomes, [Outcome::Full, Outcome::Appended]);
    assert_eq!(store.health(), Health::Full);
    let image = store.put_blob(ANNA, Digest::of(b"image"), b"image");
    assert!(matches!(image, Err(StoreError::Full)));
    assert_eq!(stored(&store), [(1, BERT, 1, Ok(b"gone".to_vec()))]);
}

/// Flips a bit of the second row, behind the store's back.
fn flip(dir: &TempDir, column: &str, byte: usize) {
    let database = database(dir);
    let select = format!("SELECT {column} FROM journal WHERE id = 2");
    let mut value = database.query_one(&select, [], |row| row.get(0)).unwrap();
    match &mut value {
        Value::Blob(bytes) => bytes[byte] ^= 4,
        Value::Integer(number) => *number ^= 4,
        Value::Null | Value::Real(_) | Value::Text(_) => panic!("{value:?}"),
    }
    let update = format!("UPDATE journal SET {column} = ?1 WHERE id = 2");
    assert_eq!(database.execute(&update, [value]).unwrap(), 1);
}

#[test]
fn a_flipped_bit_in_any_column_is_found() {
    for (column, byte) in [("frame", 7), ("frame", 12), ("session", 15), ("revision", 7)] {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        store.append(&[run(ANNA, 0, &["a1", "a2"])]);
        flip(&dir, column, byte);
        let rows = stored(&store);
        assert_eq!(rows[0].3, Ok(b"a1".to_vec()));
        assert!(
            matches!(rows[1].3, Err(FrameError::ChecksumMismatch { .. })),
            "{column}: {rows:?}"
        );
    }
}

#[test]
fn a_row_that_does_not_say_whose_it_is_ends_a_replay() {
    let dir = TempDir::new().unwrap();
    open(dir.path()).append(&[run(ANNA, 0, &["a1", "a2"])]);
    database(&dir).execute("UPDATE journal SET session = x'0a' WHERE id = 2", []).unwrap();
    let store = open(dir.path());
    let damage = store.replay(&mut |_| ControlFlow::Continue(())).unwrap_err();
    assert!(matches!(damage, StoreError::DamagedRow { journal_id: JournalId(2) }));
}

#[test]
fn the_id_of_a_deleted_row_is_not_used_again() {
    let dir = TempDir::new().unwrap();
    open(dir.path()).append(&[run(ANNA, 0, &["a1"])]);
    database(&dir).execute_batch("DELETE FROM journal; UPDATE meta SET journal_mark = 1").unwrap();
    let store = open(dir.path());
    store.append(&[run(BERT, 0, &["b1"])]);
    assert_eq!(stored(&store)[0].0, 2);
}

#[test]
fn a_directory_has_one_store_at_a_time() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    match SqliteStore::open(dir.path(), OPTIONS) {
        Err(StoreError::InUse { dir: named }) => assert_eq!(named, dir.path()),
        other => panic!("{other:?}"),
    }
    drop(store);
    open(dir.path());
}

#[test]
fn a_store_keeps_its_own_hidden_signing_key() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = open(dir.path());
    let signature = store.signing_key().sign(b"a");
    assert!(store.signing_key().has_signed(b"a", &signature));
    assert!(!store.signing_key().has_signed(b"b", &signature));
    assert!(!store.signing_key().has_signed(b"a", &signature[..31]));
    assert!(!open(other.path()).signing_key().has_signed(b"a", &signature));
    assert_eq!(format!("{:?}", store.signing_key()), "SigningKey");
    drop(store);
    assert_eq!(open(dir.path()).signing_key().sign(b"a"), signature);
    database(&dir).execute("UPDATE meta SET signing_key = x'00'", []).unwrap();
    let damaged = SqliteStore::open(dir.path(), OPTIONS);
    assert!(matches!(damaged, Err(StoreError::DamagedMeta)));
}

#[test]
fn the_database_of_another_program_is_left_alone() {
    let dir = TempDir::new().unwrap();
    database(&dir).execute_batch("CREATE TABLE journal (id)").unwrap();
    let before = fs::read(dir.path().join("blackboard.db")).unwrap();
    let refused = SqliteStore::open(dir.path(), OPTIONS).unwrap_err();
    assert!(matches!(refused, StoreError::NotABlackboard { found: 0, .. }));
    assert_eq!(fs::read(dir.path().join("blackboard.db")).unwrap(), before);
}

#[test]
fn a_store_whose_creation_was_cut_off_is_created_again() {
    // As SQLite begins its first journal: no page was there before, and a sector is 512 bytes.
    let numbers = [0, 7, 0, 512, 4096_u32].map(u32::to_be_bytes).concat();
    let mut journal = [b"\xD9\xD5\x05\xF9\x20\xA1\x63\xD7".as_slice(), &numbers].concat();
    journal.resize(512, 0);
    let cut_off = |bytes: usize| {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("blackboard.db");
        let beside = path.with_extension("db-journal");
        fs::write(&path, vec![0; bytes]).unwrap();
        fs::write(&beside, &journal).unwrap();
        (dir, path, beside)
    };
    for bytes in [0, 512, 1024, 4096] {
        let (dir, _, beside) = cut_off(bytes);
        let looked = SqliteStore::look(dir.path()).map(drop);
        assert!(matches!(looked, Err(StoreError::DatabaseEmpty { .. })), "{bytes}: {looked:?}");
        assert_eq!(
            open(dir.path()).append(&[run(ANNA, 0, &["a"])]),
            [Outcome::Appended],
            "{bytes}"
        );
        assert_eq!(replayed(&open(dir.path())).1.len(), 1);
        assert!(!beside.exists());
    }
    let (dir, path, beside) = cut_off(8192);
    let refused = SqliteStore::open(dir.path(), OPTIONS).map(drop);
    assert!(refused.is_err(), "a store has more than a page once it has a log");
    assert_eq!(
        (fs::read(&path).unwrap().len(), fs::read(&beside).unwrap()),
        (8192, journal.clone())
    );
}

#[test]
fn the_epoch_changes_only_when_something_may_be_lost() {
    use SyncLevel::{Full, Normal};
    for (sync, clean, same) in
        [(Full, true, true), (Full, false, true), (Normal, true, true), (Normal, false, false)]
    {
        let dir = TempDir::new().unwrap();
        let first = SqliteStore::open(dir.path(), SqliteOptions { sync, ..OPTIONS }).unwrap();
        assert_eq!(first.append(&[run(ANNA, 0, &["a1"])]), [Outcome::Appended]);
        let epoch = first.epoch();
        if clean {
            first.close().unwrap();
        }
        drop(first);
        // The level of the last run counts, not that of the opening.
        let second = open(dir.path());
        assert_eq!(second.epoch() == epoch, same, "{sync:?}, clean: {clean}");
        drop(second);
        let third = open(dir.path());
        assert_eq!(third.epoch() == epoch, same, "a changed epoch stays");
    }
}

#[test]
fn two_stores_have_two_epochs() {
    let (one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    assert_ne!(open(one.path()).epoch(), open(two.path()).epoch());
}

#[test]
fn nothing_is_written_after_a_clean_stop() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    store.append(&[run(ANNA, 0, &["a1"])]);
    store.close().unwrap();
    store.close().unwrap();
    assert_eq!(store.append(&[run(ANNA, 1, &["a2"])]), [Outcome::Refused]);
    assert_eq!(stored(&store).len(), 1);
    let log = fs::metadata(dir.path().join("blackboard.db-wal")).unwrap();
    assert_eq!(log.len(), 0, "the database alone is the whole store");
}

#[test]
fn a_lock_of_another_program_is_no_damage() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    assert_eq!(store.append(&[run(ANNA, 0, &["a1"])]), [Outcome::Appended]);
    let other = database(&dir);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(store.append(&[run(ANNA, 1, &["a2"]), run(BERT, 0, &["b1"])]), [Outcome::Busy; 2]);
    assert!(matches!(store.stage(BERT), Err(StoreError::Busy)));
    assert!(matches!(store.compact(&mut |_| Vec::new()), Err(StoreError::Busy)));
    assert_eq!(store.health(), Health::Ready);
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(store.append(&[run(ANNA, 1, &["a2"])]), [Outcome::Appended]);
    assert_eq!(stored(&store).len(), 2, "nothing of what was refused");
}

#[test]
fn what_a_crash_left_in_the_log_is_durable_before_it_is_read() {
    let (dir, copy) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    open(dir.path()).append(&[run(ANNA, 0, &["a1"])]);
    let _store = open(dir.path());
    let database = |dir: &TempDir| dir.path().join("blackboard.db");
    fs::copy(database(&dir), database(&copy)).unwrap();
    assert_eq!(stored(&open(copy.path())).len(), 1, "without its log");
}

#[test]
fn the_log_is_kept_short_and_loses_nothing() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let body = vec![7; 1 << 20];
    for revision in 0..40 {
        let outcome = store.append(&[run(ANNA, revision, &[&body])]);
        assert_eq!(outcome, [Outcome::Appended]);
        if revision % 3 == 0 {
            store.idle();
        }
    }
    let log = fs::metadata(dir.path().join("blackboard.db-wal")).unwrap();
    assert!(log.len() < 8 << 20, "{} bytes", log.len());
    assert!(stored(&store).iter().all(|row| row.3.as_ref() == Ok(&body)));
    assert_eq!(stored(&store).len(), 40);
}

#[test]
fn only_the_owner_may_read_what_is_stored() {
    let parent = TempDir::new().unwrap();
    let dir = parent.path().join("some/data");
    let store = open(&dir);
    store.append(&[run(ANNA, 0, &["a1"])]);
    store.put_blob(ANNA, Digest::of(b"x"), b"x").unwrap();
    let mode = |path: &str| {
        let path = dir.join(path);
        fs::metadata(&path).unwrap().permissions().mode() & 0o777
    };
    let blob = format!("blobs/{ANNA}/{}", Digest::of(b"x"));
    for file in ["blackboard.db", "blackboard.db-wal", "lock", &blob] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
    for directory in ["", "blobs", &format!("blobs/{ANNA}")] {
        assert_eq!(mode(directory), 0o700, "{directory}");
    }
}
