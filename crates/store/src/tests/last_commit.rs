//! Tests of a store that has lost its latest commits.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use uuid::Uuid;

use super::sqlite::{ANNA, OPTIONS, open, run, stored};
use super::{bases, wal};
use crate::*;

const COMMITS: u64 = 6;
const PAGE: u64 = 4096;

fn database(dir: &Path) -> PathBuf {
    dir.join("blackboard.db")
}

fn log_of(dir: &Path) -> PathBuf {
    dir.join("blackboard.db-wal")
}

/// Copies the files of a running store, as a kill leaves them.
fn copied(from: &Path) -> TempDir {
    let to = TempDir::new().unwrap();
    for path in [database(from), log_of(from), from.join("last-commit")] {
        if path.exists() {
            fs::copy(&path, to.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    to
}

/// The length of the log, without what an earlier one left behind it.
fn length(dir: &Path) -> u64 {
    wal::length(&fs::read(log_of(dir)).unwrap()) as u64
}

/// A running store, and the length of its log after each commit.
fn running(dir: &Path, options: SqliteOptions) -> (SqliteStore, Vec<u64>) {
    let store = SqliteStore::open(dir, options).unwrap();
    let append = |revision| {
        assert_eq!(store.append(&[run(ANNA, revision, &[[7; 20]])]), [Outcome::Appended]);
        length(dir)
    };
    let lengths = (0..COMMITS).map(append).collect();
    (store, lengths)
}

fn cut(dir: &Path, length: u64) {
    let log = fs::OpenOptions::new().write(true).open(log_of(dir)).unwrap();
    log.set_len(length).unwrap();
}

/// Changes a bit of the last page before this length.
fn flip(dir: &Path, length: u64) {
    let mut log = fs::read(log_of(dir)).unwrap();
    log[usize::try_from(length).unwrap() - 100] ^= 1;
    fs::write(log_of(dir), log).unwrap();
}

fn is_refused(dir: &Path) -> bool {
    let looked = SqliteStore::look(dir).map(drop);
    match SqliteStore::open(dir, OPTIONS) {
        Err(StoreError::CommitsMissing { last, noted, .. }) => {
            assert!(last < noted);
            assert!(matches!(looked, Err(StoreError::CommitsMissing { .. })));
            true
        }
        Err(other) => panic!("{other}"),
        Ok(_) => {
            assert!(looked.is_ok());
            false
        }
    }
}

#[test]
fn a_log_cut_behind_any_commit_is_refused() {
    let dir = TempDir::new().unwrap();
    let (_store, lengths) = running(dir.path(), OPTIONS);
    let (whole, shorter) = lengths.split_last().unwrap();
    for length in shorter {
        let cut_off = copied(dir.path());
        cut(cut_off.path(), *length);
        let before = fs::read(log_of(cut_off.path())).unwrap();
        assert!(is_refused(cut_off.path()), "{length}");
        assert_eq!(fs::read(log_of(cut_off.path())).unwrap(), before, "nothing is changed");
        let salvaged = TempDir::new().unwrap();
        let places = take_out(cut_off.path(), salvaged.path()).unwrap().places;
        assert!(
            places.iter().any(|place| place.ends_with("of the journal are missing")),
            "{places:?}"
        );
        assert!(!stored(&open(salvaged.path())).is_empty());
    }
    let sound = copied(dir.path());
    cut(sound.path(), *whole);
    assert!(!is_refused(sound.path()));
}

#[test]
fn a_lost_log_and_a_damaged_last_commit_are_refused() {
    let dir = TempDir::new().unwrap();
    let (_store, lengths) = running(dir.path(), OPTIONS);
    let gone = copied(dir.path());
    fs::remove_file(log_of(gone.path())).unwrap();
    assert!(is_refused(gone.path()));
    let flipped = copied(dir.path());
    flip(flipped.path(), *lengths.last().unwrap());
    assert!(is_refused(flipped.path()));
}

/// A copy of a store that was killed in this commit: its last frame has a header, which tells of a commit, and no page.
fn killed_in_a_commit(store: &SqliteStore, dir: &Path, revision: u64) -> TempDir {
    let killed = copied(dir);
    assert_eq!(store.append(&[run(ANNA, revision, &[[8; 20]])]), [Outcome::Appended]);
    fs::copy(log_of(dir), log_of(killed.path())).unwrap();
    cut(killed.path(), length(dir) - PAGE);
    killed
}

#[test]
fn a_commit_that_a_kill_cut_off_leaves_the_tags() {
    let dir = TempDir::new().unwrap();
    let (store, _) = running(dir.path(), OPTIONS);
    let killed = killed_in_a_commit(&store, dir.path(), COMMITS);
    assert_eq!(SqliteStore::log_breaks_at(killed.path()).unwrap(), None);
    let again = open(killed.path());
    assert_eq!((stored(&again).len() as u64, again.epoch()), (COMMITS, store.epoch()));
}

#[test]
fn a_log_that_breaks_off_before_a_boot_changes_the_tags() {
    let dir = TempDir::new().unwrap();
    let (store, _) = running(dir.path(), OPTIONS);
    let cut_off = killed_in_a_commit(&store, dir.path(), COMMITS);
    let path = cut_off.path().join("last-commit");
    let mut note = fs::read(&path).unwrap();
    let (fields, sum) = note.split_at_mut(40);
    fields[30] ^= 1;
    sum.copy_from_slice(&crc32fast::hash(fields).to_le_bytes());
    fs::write(&path, note).unwrap();
    assert!(SqliteStore::log_breaks_at(cut_off.path()).unwrap().is_some());
    let again = open(cut_off.path());
    assert_eq!(stored(&again).len() as u64, COMMITS);
    assert_ne!(again.epoch(), store.epoch());
}

#[test]
fn an_unsynced_log_that_breaks_off_changes_the_tags() {
    let dir = TempDir::new().unwrap();
    running(dir.path(), OPTIONS).0.close().unwrap();
    // The note of the run before names a commit that is there.
    let normal = SqliteOptions { sync: SyncLevel::Normal, ..OPTIONS };
    let store = SqliteStore::open(dir.path(), normal).unwrap();
    assert_eq!(store.append(&[run(ANNA, COMMITS, &[[7; 20]])]), [Outcome::Appended]);
    let killed = killed_in_a_commit(&store, dir.path(), COMMITS + 1);
    let again = open(killed.path());
    assert_eq!(stored(&again).len() as u64, COMMITS + 1);
    assert_ne!(again.epoch(), store.epoch());
}

#[test]
fn a_salvage_tells_how_many_frames_of_the_log_are_damaged() {
    let dir = TempDir::new().unwrap();
    let (_store, lengths) = running(dir.path(), OPTIONS);
    let told = |bits| {
        let (damaged, salvaged) = (copied(dir.path()), TempDir::new().unwrap());
        let mut log = fs::read(log_of(damaged.path())).unwrap();
        let end = usize::try_from(lengths[2]).unwrap();
        log[end - 100..][..bits].iter_mut().for_each(|byte| *byte ^= 1);
        fs::write(log_of(damaged.path()), log).unwrap();
        let places = take_out(damaged.path(), salvaged.path()).unwrap().places;
        places.into_iter().filter(|place| place.contains("write-ahead log")).collect::<Vec<_>>()
    };
    assert_eq!([told(0), told(1)], [vec![""; 0], vec![]], "a single bit is corrected");
    assert_eq!(told(2), ["1 frames of the write-ahead log are damaged"]);
}

#[test]
fn an_older_copy_of_the_database_is_refused() {
    let dir = TempDir::new().unwrap();
    running(dir.path(), OPTIONS).0.close().unwrap();
    let older = fs::read(database(dir.path())).unwrap();
    let store = open(dir.path());
    assert_eq!(store.append(&[run(ANNA, COMMITS, &[[8; 20]])]), [Outcome::Appended]);
    store.close().unwrap();
    drop(store);
    let latest = fs::read(database(dir.path())).unwrap();
    fs::write(database(dir.path()), older).unwrap();
    assert!(is_refused(dir.path()));
    fs::write(database(dir.path()), latest).unwrap();
    assert!(!is_refused(dir.path()));
}

#[test]
fn a_lost_revocation_is_found_too() {
    let dir = TempDir::new().unwrap();
    let (store, _) = running(dir.path(), OPTIONS);
    let token = Uuid::from_u128(1);
    store.put_token(token, Some(b"rights")).unwrap();
    let granted = length(dir.path());
    store.put_token(token, None).unwrap();
    let cut_off = copied(dir.path());
    cut(cut_off.path(), granted);
    assert!(is_refused(cut_off.path()));
    assert!(!is_refused(copied(dir.path()).path()));
}

#[test]
fn a_lost_purge_is_found_too() {
    let dir = TempDir::new().unwrap();
    let (store, _) = running(dir.path(), OPTIONS);
    bases::put(&store, ANNA, 3, &["x"]).unwrap();
    let put = length(dir.path());
    assert_eq!(store.set_base(ANNA, Revision(3)), Outcome::Appended);
    let cut_off = copied(dir.path());
    cut(cut_off.path(), put);
    assert!(is_refused(cut_off.path()));
    let flipped = copied(dir.path());
    flip(flipped.path(), length(dir.path()));
    assert!(is_refused(flipped.path()));
    assert!(!is_refused(copied(dir.path()).path()));
}

#[test]
fn a_backup_in_the_place_of_a_store_is_no_loss() {
    let dir = TempDir::new().unwrap();
    let (store, _) = running(dir.path(), OPTIONS);
    let parent = TempDir::new().unwrap();
    let backup = parent.path().join("backup");
    let never: IsOver = std::sync::Arc::new(|| false);
    store.back_up(&backup, &never, &Progress::default()).unwrap();
    assert_eq!(store.append(&[run(ANNA, COMMITS, &[[8; 20]])]), [Outcome::Appended]);
    store.close().unwrap();
    drop(store);
    fs::copy(database(&backup), database(dir.path())).unwrap();
    let restored = open(dir.path());
    assert_eq!(stored(&restored).len() as u64, COMMITS);
}

#[test]
fn no_note_and_a_damaged_one_prove_nothing() {
    let normal = SqliteOptions { sync: SyncLevel::Normal, ..OPTIONS };
    let dir = TempDir::new().unwrap();
    let (_store, lengths) = running(dir.path(), normal);
    let cut_off = copied(dir.path());
    cut(cut_off.path(), lengths[2]);
    assert!(!is_refused(cut_off.path()));

    let dir = TempDir::new().unwrap();
    let (_store, lengths) = running(dir.path(), OPTIONS);
    for note in [&b""[..], b"short", &[0; 28], &[0; 4096]] {
        let cut_off = copied(dir.path());
        cut(cut_off.path(), lengths[2]);
        fs::write(cut_off.path().join("last-commit"), note).unwrap();
        assert!(!is_refused(cut_off.path()));
    }
}
