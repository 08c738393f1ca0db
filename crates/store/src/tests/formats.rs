//! Tests of formats: an earlier one is taken to the present; a later one and data from before the first release are
//! rejected and not changed.
//!
//! No format has been released, so the step from one to the next is made up.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tempfile::TempDir;

use super::sqlite::{ANNA, BERT, OPTIONS, Row, run, stored};
use crate::sqlite::schema::{STEPS, Steps};
use crate::*;

/// The step from the present format to the next.
const STEP: &str = "CREATE TABLE note (session BLOB NOT NULL, note TEXT NOT NULL) STRICT;
    CREATE INDEX note_session ON note (session);";

/// The format after the present one.
fn next() -> Steps {
    [STEPS, &[STEP]].concat().leak()
}

const DATABASE: &str = "blackboard.db";
const LOG: &str = "blackboard.db-wal";

/// SQLite's header of the log, and a frame in it.
const LOG_HEADER_BYTES: usize = 32;
const FRAME_BYTES: usize = 24 + 4096;

fn open(dir: &Path, steps: Steps) -> Result<SqliteStore, StoreError> {
    SqliteStore::open_with(dir, OPTIONS, true, steps)
}

fn set(dir: &Path, pragma: &str) {
    let database = Connection::open(dir.join(DATABASE)).unwrap();
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    database.execute_batch(&format!("PRAGMA {pragma}")).unwrap();
}

fn format(dir: &Path) -> u32 {
    let database = Connection::open(dir.join(DATABASE)).unwrap();
    database.pragma_query_one(None, "user_version").unwrap()
}

/// A copy of a store's files as they are now.
fn copied(dir: &Path) -> TempDir {
    let to = TempDir::new().unwrap();
    for name in [DATABASE, LOG, "last-commit"] {
        fs::copy(dir.join(name), to.path().join(name)).unwrap();
    }
    to
}

fn number(steps: Steps) -> u32 {
    u32::try_from(steps.len()).unwrap()
}

fn files(dir: &Path) -> [Vec<u8>; 2] {
    [DATABASE, LOG].map(|name| fs::read(dir.join(name)).unwrap())
}

/// What a killed server of this format left, and its commits.
fn killed(steps: Steps) -> (TempDir, Vec<Row>) {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path(), steps).unwrap();
    assert_eq!(store.append(&[run(ANNA, 0, &["a1", "a2"])]), [Outcome::Appended]);
    assert_eq!(store.append(&[run(BERT, 0, &["b1"])]), [Outcome::Appended]);
    (copied(dir.path()), stored(&store))
}

/// Each format that is taken to the next.
fn formats() -> impl Iterator<Item = Steps> {
    (1..=STEPS.len()).map(|format| &STEPS[..format])
}

#[test]
fn an_earlier_format_is_taken_to_the_present() {
    for steps in formats() {
        let (dir, commits) = killed(steps);
        assert_eq!(format(dir.path()), number(steps));
        let later = open(dir.path(), next()).unwrap();
        assert_eq!(stored(&later), commits);
        assert_eq!(later.append(&[run(BERT, 1, &["b2"])]), [Outcome::Appended]);
        later.close().unwrap();
        drop(later);
        assert_eq!(format(dir.path()), number(next()));
        assert_eq!(stored(&open(dir.path(), next()).unwrap()).len(), commits.len() + 1);
    }
}

#[test]
fn an_upgrade_that_was_cut_off_is_done_or_not_done() {
    for steps in formats() {
        cut_off(steps);
    }
}

fn cut_off(steps: Steps) {
    let (dir, commits) = killed(steps);
    set(dir.path(), "wal_checkpoint(TRUNCATE)");
    // The log of the upgrade is synced before any of it is written into the database.
    let database = fs::read(dir.path().join(DATABASE)).unwrap();
    let later = open(dir.path(), next()).unwrap();
    let upgraded = copied(dir.path());
    drop(later);
    let log = fs::read(upgraded.path().join(LOG)).unwrap();
    let mut found = Vec::new();
    for end in (LOG_HEADER_BYTES..=log.len()).step_by(FRAME_BYTES) {
        let cut = copied(upgraded.path());
        fs::write(cut.path().join(DATABASE), &database).unwrap();
        fs::write(cut.path().join(LOG), &log[..end]).unwrap();
        found.push(format(copied(cut.path()).path()));
        let store = open(cut.path(), next()).unwrap();
        assert_eq!(stored(&store), commits, "cut at {end} of {}", log.len());
        drop(store);
        assert_eq!(format(cut.path()), number(next()));
    }
    let ends = (found.first().copied(), found.last().copied());
    assert_eq!(ends, (Some(number(steps)), Some(number(next()))));
    assert!(found.is_sorted(), "{found:?}");
}

#[test]
fn a_later_format_is_refused_and_not_changed() {
    let (dir, _) = killed(next());
    let before = files(dir.path());
    for refused in
        [open(dir.path(), STEPS).unwrap_err(), SqliteStore::look(dir.path()).unwrap_err()]
    {
        let StoreError::NewerFormat { found, known, .. } = refused else { panic!("{refused}") };
        assert_eq!((found, known), (number(next()), number(STEPS)));
        assert!(refused.to_string().contains("upgrade blackboard"), "{refused}");
    }
    assert!(files(dir.path()) == before);
}

#[test]
fn data_from_before_the_first_release_is_refused() {
    for version in 1..=7 {
        let (dir, _) = killed(STEPS);
        set(dir.path(), &format!("application_id = 0x{:x}", u32::from_be_bytes(*b"bbrd")));
        set(dir.path(), &format!("user_version = {version}"));
        let before = files(dir.path());
        for refused in
            [open(dir.path(), STEPS).unwrap_err(), SqliteStore::look(dir.path()).unwrap_err()]
        {
            assert!(matches!(refused, StoreError::BeforeRelease { .. }), "{refused}");
            assert!(refused.to_string().contains("before the first release"), "{refused}");
        }
        assert!(files(dir.path()) == before);
    }
}

#[test]
fn a_format_that_no_one_writes_is_damage_and_can_be_salvaged() {
    for version in [0, i32::MIN + 1] {
        let (dir, commits) = killed(STEPS);
        set(dir.path(), &format!("user_version = {version}"));
        let before = files(dir.path());
        let refused = open(dir.path(), STEPS).unwrap_err();
        assert!(matches!(refused, StoreError::DamagedFormat { .. }), "{refused}");
        assert!(files(dir.path()) == before);
        let to = TempDir::new().unwrap();
        let wreckage = take_out(dir.path(), to.path()).unwrap();
        let told =
            wreckage.places.iter().filter(|place| place.contains("which no blackboard writes"));
        assert_eq!(told.count(), 1, "{:?}", wreckage.places);
        assert_eq!(stored(&open(to.path(), STEPS).unwrap()), commits);
    }
}
