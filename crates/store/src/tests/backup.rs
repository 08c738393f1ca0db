//! Tests of backups: complete, a store of its own, nothing when interrupted.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use super::bases::put;
use super::compaction::{PAGE, compact_all, read};
use super::sqlite::{ANNA, BERT, OPTIONS, open, replayed, run, stored};
use crate::*;
use blackboard_board::Digest;

fn never() -> IsOver {
    Arc::new(|| false)
}

/// A store with two sessions, an image each and one of both, in a directory of its own.
fn filled() -> (TempDir, Arc<SqliteStore>) {
    let dir = TempDir::new().unwrap();
    let store = open(&dir.path().join("data"));
    for session in [ANNA, BERT] {
        for bytes in [session.to_string().into_bytes(), b"both".to_vec()] {
            store.put_blob(session, Digest::of(&bytes), &bytes).unwrap();
        }
        assert_eq!(store.append(&[run(session, 0, &["one", "two"])]), [Outcome::Appended]);
    }
    (dir, Arc::new(store))
}

fn blobs(store: &SqliteStore) -> Vec<(SessionId, Digest)> {
    let mut found = Vec::new();
    let visit = &mut |blob: StoredBlob| {
        store.blob(blob.session, blob.digest).unwrap();
        found.push((blob.session, blob.digest));
        ControlFlow::Continue(())
    };
    store.blobs(visit).unwrap();
    found.sort_unstable();
    found
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn a_copy_counts_how_far_it_has_come() {
    let (dir, store) = filled();
    let progress = Arc::new(Progress::default());
    let (looked, seen) = (Arc::clone(&progress), Arc::new(parking_lot::Mutex::new(Vec::new())));
    let stages = Arc::clone(&seen);
    let looks: IsOver = Arc::new(move || {
        stages.lock().push(looked.reached());
        false
    });
    store.back_up(&dir.path().join("copy"), &looks, &progress).unwrap();
    let seen = seen.lock();
    let bytes = seen.iter().filter(|reached| reached.stage == Stage::Database);
    let bytes: Vec<u64> = bytes.map(|reached| reached.done).collect();
    assert!(bytes.is_sorted() && bytes.last().is_some_and(|last| *last > 0), "{seen:?}");
    let end = Reached { stage: Stage::SessionImages, done: 2, total: 2 };
    assert_eq!(progress.reached(), end);
}

#[test]
fn a_copy_has_all_and_is_another_store() {
    let (dir, store) = filled();
    let signed = store.signing_key().sign(b"x");
    let to = dir.path().join("copy");
    fs::create_dir(&to).unwrap();
    fs::write(dir.path().join("data").join("admin-token"), "bb_x").unwrap();
    let copied = store.back_up(&to, &never(), &Progress::default()).unwrap();
    assert_eq!(copied.blobs, 4);
    assert_eq!(names(&to), ["blackboard.db", "blobs"]);
    assert_eq!(names(dir.path()), ["copy", "data"]);
    assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o700);
    let database = fs::metadata(to.join("blackboard.db")).unwrap();
    assert_eq!((database.permissions().mode() & 0o777, database.len()), (0o600, copied.bytes));

    let copy = open(&to);
    assert_eq!((stored(&copy), blobs(&copy)), (stored(&store), blobs(&store)));
    assert_ne!(copy.epoch(), store.epoch());
    assert!(!copy.signing_key().has_signed(b"x", &signed));
    // Both go on by themselves.
    copy.append(&[run(ANNA, 2, &["three"])]);
    copy.remove_blobs(&[BERT]).unwrap();
    assert_eq!((stored(&store).len(), blobs(&store).len()), (4, 4));
}

#[test]
fn every_server_that_opens_a_copy_first_has_an_epoch_of_its_own() {
    let (dir, store) = filled();
    let to = dir.path().join("copy");
    store.back_up(&to, &never(), &Progress::default()).unwrap();
    // An unserved opening draws no epoch.
    drop(SqliteStore::open_unserved(&to).unwrap());
    let again = dir.path().join("again");
    SqliteStore::open_unserved(&to)
        .unwrap()
        .back_up(&again, &never(), &Progress::default())
        .unwrap();
    let (one, two) = (open(&to).epoch(), open(&again).epoch());
    assert!(one != two && one != store.epoch() && two != store.epoch());
    assert_eq!(open(&to).epoch(), one);
    drop(SqliteStore::open_unserved(&to).unwrap());
    assert_eq!(open(&to).epoch(), one);
}

#[test]
fn the_old_key_is_nowhere_in_a_copy() {
    let (dir, store) = filled();
    let database = store.source.connect().unwrap();
    let sql = "SELECT epoch, signing_key FROM meta";
    let (epoch, key): (Vec<u8>, Vec<u8>) =
        database.query_one(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let to = dir.path().join("copy");
    store.back_up(&to, &never(), &Progress::default()).unwrap();
    let bytes = fs::read(to.join("blackboard.db")).unwrap();
    for secret in [epoch, key] {
        assert!(!bytes.windows(secret.len()).any(|window| window == secret));
    }
}

#[test]
fn what_is_removed_while_a_copy_is_made_is_in_it() {
    let (dir, store) = filled();
    let before = blobs(&store);
    let (removing, times) = (Arc::clone(&store), AtomicUsize::new(0));
    // Called before each blob is copied, and after some steps of SQLite.
    let removes: IsOver = Arc::new(move || {
        match times.fetch_add(1, Ordering::SeqCst) {
            0 => {
                assert!(removing.remove_blob(ANNA, Digest::of(b"both"), &|| true).unwrap());
                assert!(!removing.remove_blob(BERT, Digest::of(b"both"), &|| false).unwrap());
            }
            1 => removing.remove_blobs(&[BERT]).unwrap(),
            2 => removing.remove_blobs(&[ANNA]).unwrap(),
            _ => {}
        }
        false
    });
    let to = dir.path().join("copy");
    store.back_up(&to, &removes, &Progress::default()).unwrap();
    assert_eq!(blobs(&open(&to)), before);
    assert_eq!(blobs(&store), []);
    assert_eq!(names(&dir.path().join("data").join("blobs")), [] as [&str; 0]);
}

/// Copies the store, and calls `act` each time the copy is about to continue.
fn copy_while(
    dir: &TempDir,
    store: &SqliteStore,
    act: impl Fn(usize) + Send + Sync + 'static,
) -> SqliteStore {
    let times = AtomicUsize::new(0);
    let acts: IsOver = Arc::new(move || {
        act(times.fetch_add(1, Ordering::SeqCst));
        false
    });
    let to = dir.path().join("copy");
    store.back_up(&to, &acts, &Progress::default()).unwrap();
    open(&to)
}

#[test]
fn the_log_stays_short_while_a_copy_is_made() {
    let (dir, store) = filled();
    for head in (2..).step_by(1_000).take(8) {
        store.append(&[run(ANNA, head, &vec![vec![7; 4_000]; 1_000])]);
    }
    let longest = Arc::new(AtomicUsize::new(0));
    let (writing, seen) = (Arc::clone(&store), Arc::clone(&longest));
    let copy = copy_while(&dir, &store, move |times| {
        if times < 30 {
            let body = vec![8; 4 << 20];
            let outcome = writing.append(&[run(BERT, 2 + times as u64, &[body])]);
            assert_eq!(outcome, [Outcome::Appended]);
            let log = usize::try_from(writing.file_bytes().log).unwrap();
            seen.fetch_max(log, Ordering::SeqCst);
        }
    });
    let longest = longest.load(Ordering::SeqCst);
    assert!(longest < 40 << 20, "{longest}");
    assert_eq!(stored(&copy).iter().filter(|row| row.1 == ANNA).count(), 8_002);
}

#[test]
fn a_copy_has_each_commit_once_during_compaction() {
    for moment in 0..6 {
        let (dir, store) = filled();
        for head in 2..5 {
            store.append(&[run(ANNA, head, &[vec![7; 700_000]])]);
        }
        put(&store, BERT, 1, &["base"]).unwrap();
        put(&store, ANNA, 4, &["base"]).unwrap();
        let changing = Arc::clone(&store);
        let copy = copy_while(&dir, &store, move |times| {
            if times == moment {
                compact_all(&changing);
            }
            if times == moment + 1 {
                assert_eq!(changing.set_base(ANNA, Revision(4)), Outcome::Appended);
                assert_eq!(changing.set_base(BERT, Revision(1)), Outcome::Appended);
                while changing.idle() {}
            }
        });
        let (parts, rows) = replayed(&copy);
        for (session, head) in [(ANNA, 5), (BERT, 2)] {
            let base = parts.iter().find(|part| part.0 == session).map_or(0, |part| part.1);
            let of_session = rows.iter().filter(|row| row.1 == session);
            let revisions: Vec<u64> = of_session.map(|row| row.2).collect();
            assert_eq!(revisions, (base + 1..=head).collect::<Vec<_>>(), "at {moment}");
        }
        assert!(rows.iter().all(|row| row.3.is_ok()));
        assert_eq!(copy.append(&[run(ANNA, 5, &["on"])]), [Outcome::Appended]);
    }
}

#[test]
fn a_copy_keeps_damage_and_loss_recognisable() {
    for lost in ["journal", "segment"] {
        for sql in ["DELETE FROM $", "UPDATE $ SET session = x'00'"] {
            let (dir, store) = filled();
            if lost == "segment" {
                compact_all(&store);
            }
            let sql = format!("{} WHERE session = ?1", sql.replace('$', lost));
            let behind = rusqlite::Connection::open(&store.path).unwrap();
            assert!(behind.execute(&sql, [BERT.0.as_bytes()]).unwrap() > 0);
            drop(behind);
            let copy = copy_while(&dir, &store, |_| {});
            let rows = stored(&copy);
            assert!(rows.iter().any(|row| row.1 == BERT && row.3.is_err()), "{sql}: {rows:?}");
            assert_eq!(rows.iter().filter(|row| row.1 == ANNA && row.3.is_ok()).count(), 2);
        }
        let (dir, store) = filled();
        if lost == "segment" {
            compact_all(&store);
        }
        let column = if lost == "journal" { "frame" } else { "body" };
        let behind = rusqlite::Connection::open(&store.path).unwrap();
        let sql = format!("UPDATE {lost} SET {column} = x'0102' WHERE session = ?1");
        behind.execute(&sql, [BERT.0.as_bytes()]).unwrap();
        drop(behind);
        let rows = stored(&copy_while(&dir, &store, |_| {}));
        assert!(rows.iter().any(|row| row.1 == BERT && row.3.is_err()), "{lost}: {rows:?}");
    }
}

#[test]
fn what_begins_while_a_copy_is_made_is_not_in_it() {
    let (dir, store) = filled();
    let writing = Arc::clone(&store);
    let late = SessionId(uuid::Uuid::from_u128(0xc));
    let copy = copy_while(&dir, &store, move |times| {
        if times == 0 {
            assert_eq!(writing.append(&[run(late, 0, &["late"])]), [Outcome::Appended]);
            compact_all(&writing);
        }
    });
    assert_eq!((copy.sessions().len(), store.sessions().len()), (2, 3));
    assert_eq!(stored(&copy).len(), 4);
}

#[test]
fn what_comes_to_nothing_leaves_nothing() {
    let (dir, store) = filled();
    let over: IsOver = Arc::new(|| true);
    let to = dir.path().join("copy");
    assert!(matches!(store.back_up(&to, &over, &Progress::default()), Err(StoreError::Closed)));
    fs::create_dir(dir.path().join("full")).unwrap();
    fs::write(dir.path().join("full").join("x"), "").unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    for occupied in ["full", "file", "data"] {
        let refused = store.back_up(&dir.path().join(occupied), &never(), &Progress::default());
        assert!(
            matches!(refused, Err(StoreError::Occupied { .. } | StoreError::Within { .. })),
            "{occupied}: {refused:?}"
        );
    }
    for within in ["data/copy", "data/blobs/copy", "data/../data/copy"] {
        let refused = store.back_up(&dir.path().join(within), &never(), &Progress::default());
        assert!(matches!(refused, Err(StoreError::Within { .. })), "{within}: {refused:?}");
    }
    let nowhere =
        store.back_up(&dir.path().join("no").join("copy"), &never(), &Progress::default());
    assert!(matches!(nowhere, Err(StoreError::Io { .. })), "{nowhere:?}");
    assert_eq!(names(dir.path()), ["data", "file", "full"]);
    let again = Arc::clone(&store);
    let second: IsOver = Arc::new(move || {
        let refused =
            again.back_up(Path::new("x"), &(Arc::new(|| false) as IsOver), &Progress::default());
        assert!(matches!(refused, Err(StoreError::Copying)), "{refused:?}");
        false
    });
    store.back_up(&to, &second, &Progress::default()).unwrap();
}

#[test]
fn no_room_is_said_before_anything_is_written() {
    let (dir, store) = filled();
    drop(store);
    let options = SqliteOptions { free_bytes_min: 1 << 60, ..OPTIONS };
    let store = SqliteStore::open(&dir.path().join("data"), options).unwrap();
    let refused = store.back_up(&dir.path().join("copy"), &never(), &Progress::default());
    assert!(matches!(refused, Err(StoreError::Full)), "{refused:?}");
    assert_eq!(names(dir.path()), ["data"]);
}

#[test]
fn an_unfinished_copy_is_not_opened() {
    let (dir, store) = filled();
    let parent = dir.path().to_owned();
    let kept = dir.path().join("as-after-a-crash");
    let to_keep = kept.clone();
    // As a crash would leave it while the blobs are copied.
    let keeps: IsOver = Arc::new(move || {
        let is_draft = |path: &PathBuf| path.extension().is_some_and(|end| end == "partial");
        let mut entries = fs::read_dir(&parent).unwrap().map(|entry| entry.unwrap().path());
        if let Some(draft) = entries.find(is_draft)
            && !to_keep.exists()
        {
            fs::create_dir(&to_keep).unwrap();
            let name = "blackboard.db.partial";
            fs::copy(draft.join(name), to_keep.join(name)).unwrap();
        }
        false
    });
    store.back_up(&dir.path().join("copy"), &keeps, &Progress::default()).unwrap();
    assert!(matches!(SqliteStore::open(&kept, OPTIONS), Err(StoreError::Unfinished { .. })));
    assert!(!SqliteStore::is_in(&kept).unwrap());
}

#[test]
fn a_copy_has_more_segments_than_are_read_at_once() {
    const COMMITS: u64 = 30;
    // Text that packing cannot hide.
    let body = |revision: u64| {
        let digests = (0..3_000_u64)
            .map(|part| Digest::of(&[revision, part].map(u64::to_le_bytes).concat()).0);
        digests.flatten().collect::<Vec<u8>>()
    };
    let dir = TempDir::new().unwrap();
    let store = open(&dir.path().join("data"));
    for revision in 0..COMMITS {
        store.append(&[run(ANNA, revision, &[body(revision)])]);
    }
    compact_all(&store);
    let sql = "SELECT count(*), (SELECT last FROM segment WHERE first = 1) FROM segment";
    let (count, last): (i64, i64) =
        store.source.connect().unwrap().query_one(sql, [], |row| row.try_into()).unwrap();
    assert!(count > 8 && last > 1, "{count} of 256 KiB, the first up to {last}");
    for base in [0, 1] {
        if base > 0 {
            put(&store, ANNA, base, &["base"]).unwrap();
            assert_eq!(store.set_base(ANNA, Revision(base)), Outcome::Appended);
        }
        let to = dir.path().join(format!("copy-{base}"));
        store.back_up(&to, &never(), &Progress::default()).unwrap();
        let commits = read(&open(&to), ANNA, base, PAGE);
        let revisions: Vec<u64> = commits.iter().map(|(revision, _)| *revision).collect();
        assert_eq!(revisions, (base + 1..=COMMITS).collect::<Vec<_>>());
    }
}

#[test]
fn blobs_are_linked() {
    let (dir, store) = filled();
    let to = dir.path().join("copy");
    store.back_up(&to, &never(), &Progress::default()).unwrap();
    let blob = |data: &Path| {
        let home = data.join("blobs").join(ANNA.to_string());
        fs::metadata(home.join(Digest::of(b"both").to_string())).unwrap().ino()
    };
    assert_eq!(blob(&to), blob(&dir.path().join("data")));
}

#[test]
fn a_copy_to_look_at_is_gone_afterwards_also_after_a_crash() {
    let (dir, store) = filled();
    let data = dir.path().join("data");
    let mut seen = 0;
    let (left, scratch) = (names(&data), TempDir::new().unwrap());
    let look = &mut |copy: &dyn EmbeddedStore| {
        seen = copy.sessions().len();
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    };
    store.look_at(Some(scratch.path()), &never(), look).unwrap();
    assert_eq!(seen, 2);
    assert_eq!((names(&data), fs::read_dir(scratch.path()).unwrap().count()), (left.clone(), 0));
    let within = store.look_at(Some(&data), &never(), &mut |_| {});
    assert!(matches!(within, Err(StoreError::Within { .. })), "{within:?}");
    drop(store);
    fs::create_dir(data.join("blobs").join("removed")).unwrap();
    let store = open(&data);
    store.clear_blobs(&[ANNA, BERT].into(), &|| true).unwrap();
    assert_eq!((names(&data), blobs(&store).len()), (left, 4));
    assert!(!data.join("blobs").join("removed").exists());
}
