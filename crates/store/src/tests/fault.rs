//! Tests of failing disks: each runs again in a child process, on such a disk.
//!
//! The limits are the kernel's own, so nothing stands in for SQLite or the file system. They need a shell, and for
//! the full disk `unshare` and the right to mount a tmpfs in a namespace.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::bases::{five_in, frames, put};
use super::sqlite::{ANNA, BERT, OPTIONS, open, replayed, run, stored};
use crate::*;
use blackboard_board::Digest;
use blackboard_child_test::{SHORT_FILES, child_dir, run_child};

/// In the child, the directory is a disk of its own, of 16 MiB.
const SMALL_DISK: [&str; 6] = [
    "unshare",
    "--map-root-user",
    "--mount",
    "sh",
    "-c",
    r#"mount -t tmpfs -o size=16m tmpfs "$BLACKBOARD_TEST_CHILD_DIR" && exec "$0" "$@""#,
];

/// A write that fails while the transaction is built, and one that fails in its commit.
const TOO_LONG: [usize; 2] = [6 << 20, 3 << 19];

#[test]
fn a_failed_write_poisons_the_store_until_a_restart() {
    if let Some(dir) = child_dir() {
        return poison(&dir);
    }
    let dir = TempDir::new().unwrap();
    run_child(&SHORT_FILES, dir.path());
    for bytes in TOO_LONG {
        let store = open(&dir.path().join(bytes.to_string()));
        assert_eq!(store.health(), Health::Ready);
        assert_eq!(stored(&store).len(), 10);
        assert_eq!(store.append(&[run(ANNA, 10, &["on"])]), [Outcome::Appended]);
        store.close().unwrap();
    }
}

fn poison(dir: &Path) {
    for bytes in TOO_LONG {
        let store = open(&dir.join(bytes.to_string()));
        store.put_blob(ANNA, Digest::of(b"x"), b"x").unwrap();
        for revision in 0..10 {
            let outcome = store.append(&[run(ANNA, revision, &["small"])]);
            assert_eq!(outcome, [Outcome::Appended]);
        }
        let batch = [run(BERT, 0, &["b1"]), run(ANNA, 10, &[vec![1; bytes]])];
        assert_eq!(store.append(&batch), [Outcome::Unknown; 2]);
        assert_eq!(store.health(), Health::Poisoned);

        // There is room for these, but the head is unknown.
        assert_eq!(store.append(&[run(ANNA, 10, &["a11"])]), [Outcome::Refused]);
        let put = store.put_blob(ANNA, Digest::of(b"y"), b"y");
        assert!(matches!(put, Err(StoreError::Poisoned)));
        store.idle();
        assert!(matches!(store.close(), Err(StoreError::Poisoned)));

        assert_eq!(stored(&store).len(), 10, "reads go on");
        assert_eq!(store.blob(ANNA, Digest::of(b"x")).unwrap(), b"x");
    }
}

#[test]
fn a_full_disk_takes_writes_again_once_there_is_room() {
    if let Some(dir) = child_dir() {
        return fill(&dir);
    }
    run_child(&SMALL_DISK, TempDir::new().unwrap().path());
}

fn fill(dir: &Path) {
    let ballast = dir.join("ballast");
    fs::write(&ballast, vec![0; 6 << 20]).unwrap();
    let store = open(dir);
    let body = vec![2; 300_000];
    // As deletions do, these pass by the reserve: SQLite itself meets the end of the disk.
    let append = |revision| store.append(&[Run { grows: false, ..run(ANNA, revision, &[&body]) }]);

    let mut kept = 0;
    while append(kept) == [Outcome::Appended] {
        kept += 1;
    }
    assert!(kept > 3, "{kept}");
    assert_eq!(append(kept), [Outcome::Full]);
    assert_eq!(store.health(), Health::Full);
    let image = vec![3; 2 << 20];
    let put = store.put_blob(ANNA, Digest::of(&image), &image);
    assert!(matches!(put, Err(StoreError::Full)), "{put:?}");
    let home = dir.join(format!("blobs/{ANNA}"));
    assert_eq!(fs::read_dir(home).map_or(0, Iterator::count), 0);

    fs::remove_file(&ballast).unwrap();
    assert_eq!(append(kept), [Outcome::Appended]);
    assert_eq!(store.health(), Health::Ready);
    store.put_blob(ANNA, Digest::of(&image), &image).unwrap();
    drop(store);
    let rows = stored(&open(dir));
    assert_eq!(rows.len() as u64, kept + 1);
    assert!(rows.iter().all(|row| row.3.as_ref() == Ok(&body)));
}

#[test]
fn the_reserve_lets_deletions_through_and_fills_up_again() {
    if let Some(dir) = child_dir() {
        return use_the_reserve(&dir);
    }
    run_child(&SMALL_DISK, TempDir::new().unwrap().path());
}

fn use_the_reserve(dir: &Path) {
    let options = SqliteOptions { free_bytes_min: 4 << 20, ..OPTIONS };
    let store = SqliteStore::open(dir, options).unwrap();
    assert_eq!(store.health(), Health::Ready);
    let ballast = dir.join("ballast");
    fs::write(&ballast, vec![0; 13 << 20]).unwrap();
    let deletion = Run { grows: false, ..run(BERT, 0, &["gone"]) };
    let batch = [run(ANNA, 0, &["a1"]), deletion];
    assert_eq!(store.append(&batch), [Outcome::Full, Outcome::Appended]);
    assert_eq!(store.health(), Health::Full);
    fs::remove_file(&ballast).unwrap();
    assert_eq!(store.health(), Health::Ready);
    assert_eq!(store.append(&[run(ANNA, 0, &["a1"])]), [Outcome::Appended]);
}

#[test]
fn another_process_cannot_open_the_directory() {
    if let Some(dir) = child_dir() {
        let refused = SqliteStore::open(&dir, OPTIONS).unwrap_err();
        assert!(matches!(refused, StoreError::InUse { .. }), "{refused}");
        return;
    }
    let dir = TempDir::new().unwrap();
    let _store = open(dir.path());
    run_child(&["env"], dir.path());
}

/// Asserts that a poisoned store does nothing.
fn assert_poisoned(store: &SqliteStore) {
    assert_eq!(store.health(), Health::Poisoned);
    assert!(matches!(put(store, BERT, 1, &["x"]), Err(StoreError::Poisoned)));
    assert_eq!(store.set_base(BERT, Revision(1)), Outcome::Refused);
    let nobody = SessionId(uuid::Uuid::from_u128(0xc));
    assert!(matches!(store.stage(nobody), Err(StoreError::Poisoned)));
    assert!(matches!(store.discard(nobody), Err(StoreError::Poisoned)));
    assert_eq!(store.append(&[run(BERT, 2, &["b3"])]), [Outcome::Refused]);
    assert!(!store.idle());
    let page = store.commits(BERT, Revision(0), PageMax { commits: 9, bytes: 999 });
    assert_eq!(page.unwrap().len(), 2, "reads go on");
}

/// An operation on a store in a directory.
type Deed = fn(&SqliteStore, &Path);

/// Operations that fail on a disk that admits no long file, after `five`.
const FAULTS: [(&str, Deed); 5] = [
    ("a base", |store, _| {
        let refused = put(store, ANNA, 5, &[vec![1; 6 << 20]]);
        assert!(matches!(refused, Err(StoreError::Poisoned)), "{refused:?}");
    }),
    ("a new base", |store, dir| {
        put(store, ANNA, 5, &["x"]).unwrap();
        lengthen_log(dir);
        assert_eq!(store.set_base(ANNA, Revision(5)), Outcome::Unknown);
    }),
    ("an adoption", |store, _| {
        let staged = SessionId(uuid::Uuid::from_u128(0xc));
        store.stage(staged).unwrap();
        put(store, staged, 5, &["x"]).unwrap();
        let adoption = Run { adopts: true, ..run(staged, 5, &[vec![1; 6 << 20]]) };
        assert_eq!(store.append(&[adoption]), [Outcome::Unknown]);
        assert_eq!(store.base(staged).unwrap(), None);
    }),
    ("compaction", |store, dir| {
        lengthen_log(dir);
        let compacted = store.compact(&mut |_| Vec::new());
        assert!(matches!(compacted, Err(StoreError::Poisoned)), "{compacted:?}");
    }),
    ("housekeeping", |store, dir| {
        put(store, ANNA, 5, &["x"]).unwrap();
        assert_eq!(store.set_base(ANNA, Revision(5)), Outcome::Appended);
        lengthen_log(dir);
        assert!(!store.idle());
    }),
];

/// Fills the log to where nothing can follow, behind the store's back.
fn lengthen_log(dir: &Path) {
    let reader = rusqlite::Connection::open(dir.join("blackboard.db")).unwrap();
    reader.execute_batch("PRAGMA wal_autocheckpoint = 0; CREATE TABLE ballast (x)").unwrap();
    let fill = |bytes: i32| {
        while reader.execute("INSERT INTO ballast VALUES (zeroblob(?1))", [bytes]).is_ok() {}
    };
    fill(50_000);
    fill(1);
}

#[test]
fn a_fault_during_a_history_change_poisons_and_keeps_it_whole() {
    if let Some(dir) = child_dir() {
        for (fault, meet) in FAULTS {
            let store = five_in(&dir.join(fault));
            meet(&store, &dir.join(fault));
            assert_poisoned(&store);
        }
        return;
    }
    let dir = TempDir::new().unwrap();
    run_child(&SHORT_FILES, dir.path());
    for (fault, _) in FAULTS {
        let store = open(&dir.path().join(fault));
        let (parts, rows) = replayed(&store);
        let set = fault == "housekeeping";
        assert_eq!((parts.len(), rows.len()), if set { (1, 2) } else { (0, 7) }, "{fault}");
        while store.idle() {}
        assert_eq!(replayed(&store), (parts, rows));
        assert_eq!(store.append(&[run(ANNA, 5, &["on"])]), [Outcome::Appended]);
    }
}

#[test]
fn compaction_without_room_changes_nothing_and_goes_on_later() {
    if let Some(dir) = child_dir() {
        let ballast = dir.join("ballast");
        fs::write(&ballast, vec![0; 12 << 20]).unwrap();
        let store = five_in(&dir);
        // Bytes that compress to half at best.
        let digest = |n: u64| Digest::of(&n.to_le_bytes()).to_string().into_bytes();
        let mut head = 5;
        let noise =
            |head: u64| (0..3_000).flat_map(|n| digest(head << 32 | n)).collect::<Vec<u8>>();
        let append = |head| {
            let run = Run { grows: false, ..run(ANNA, head, &[noise(head)]) };
            store.append(&[run]) == [Outcome::Appended]
        };
        while append(head) {
            head += 1;
        }
        let before = replayed(&store);
        let compacted = store.compact(&mut |_| Vec::new());
        assert!(matches!(compacted, Err(StoreError::Full)), "{compacted:?}");
        assert_eq!(store.health(), Health::Full);
        assert_eq!(replayed(&store), before);
        assert!(store.uncompacted_bytes() > 0);
        fs::remove_file(&ballast).unwrap();
        assert!(append(head));
        while store.compact(&mut |_| Vec::new()).unwrap() {}
        // A checkpoint may have met the end of the disk since; what follows does not.
        assert_eq!(store.append(&[run(ANNA, head + 1, &["on"])]), [Outcome::Appended]);
        assert_eq!(store.health(), Health::Ready);
        let rows = stored(&store);
        assert_eq!(rows.len(), before.1.len() + 2);
        assert!(rows.iter().all(|row| row.3.is_ok()));
        return;
    }
    run_child(&SMALL_DISK, TempDir::new().unwrap().path());
}

#[test]
fn a_base_without_room_leaves_nothing_and_can_be_put_again() {
    if let Some(dir) = child_dir() {
        let ballast = dir.join("ballast");
        fs::write(&ballast, vec![0; 6 << 20]).unwrap();
        let store = five_in(&dir);
        let part = vec![1; 700_000];
        let refused = put(&store, ANNA, 5, &[&part; 20]);
        assert!(matches!(refused, Err(StoreError::Full)), "{refused:?}");
        assert_eq!(store.set_base(ANNA, Revision(5)), Outcome::Conflict { head: Revision(5) });
        fs::remove_file(&ballast).unwrap();
        while store.idle() {}
        assert_eq!(replayed(&store).0, []);
        put(&store, ANNA, 5, &[&part; 2]).unwrap();
        assert_eq!(store.set_base(ANNA, Revision(5)), Outcome::Appended);
        assert_eq!(store.health(), Health::Ready);
        assert_eq!(replayed(&store).0.len(), 2);
        return;
    }
    run_child(&SMALL_DISK, TempDir::new().unwrap().path());
}

#[test]
fn a_batch_without_room_stores_what_only_shrinks() {
    if let Some(dir) = child_dir() {
        let store = five_in(&dir);
        let grows = run(ANNA, 5, &[vec![1; 20 << 20]]);
        let deletion = Run { grows: false, ..run(BERT, 2, &["gone"]) };
        assert_eq!(store.append(&[grows, deletion]), [Outcome::Full, Outcome::Appended]);
        assert_eq!(store.append(&[run(ANNA, 5, &["on"])]), [Outcome::Appended]);
        return;
    }
    run_child(&SMALL_DISK, TempDir::new().unwrap().path());
}

#[test]
fn deletions_succeed_though_another_program_filled_the_disk() {
    if let Some(dir) = child_dir() {
        let options = SqliteOptions { free_bytes_min: 4 << 20, ..OPTIONS };
        let open = || SqliteStore::open(&dir, options).unwrap();
        let store = open();
        let session = |n: u8| SessionId(uuid::Uuid::from_u128(u128::from(n)));
        for n in 0..20 {
            let body = vec![n; 200_000];
            assert_eq!(store.append(&[run(session(n), 0, &[body])]), [Outcome::Appended]);
        }
        while store.idle() {}
        assert_eq!(fs::metadata(dir.join("reserve")).unwrap().len(), 4 << 20);
        let mut taken = fs::File::create(dir.join("ballast")).unwrap();
        let mut fill = || {
            for bytes in [1 << 20, 1 << 10, 1] {
                while std::io::Write::write_all(&mut taken, &vec![0; bytes]).is_ok() {}
            }
        };
        fill();
        assert_eq!(store.health(), Health::Full, "no byte is free beside the reserve");
        // An end and a start need some pages, too.
        store.close().unwrap();
        drop(store);
        fill();
        let store = open();
        assert_eq!(store.health(), Health::Full);
        assert_eq!(store.append(&[run(session(0), 1, &["more"])]), [Outcome::Full]);
        for n in 0..20 {
            let deletion = Run { grows: false, ..run(session(n), 1, &["gone"]) };
            assert_eq!(store.append(&[deletion]), [Outcome::Appended], "{n}");
        }
        taken.set_len(0).unwrap();
        while store.idle() {}
        assert_eq!(fs::metadata(dir.join("reserve")).unwrap().len(), 4 << 20);
        assert_eq!(store.append(&[run(session(0), 2, &["more"])]), [Outcome::Appended]);
        return;
    }
    run_child(&SMALL_DISK, TempDir::new().unwrap().path());
}

#[test]
fn a_purge_and_compaction_shrink_a_full_disk() {
    if let Some(dir) = child_dir() {
        let options = SqliteOptions { free_bytes_min: 4 << 20, ..OPTIONS };
        let store = SqliteStore::open(&dir, options).unwrap();
        for (session, head) in (0..8).flat_map(|head| [(ANNA, head), (BERT, head)]) {
            let body = vec![1; 200_000];
            assert_eq!(store.append(&[run(session, head, &[body])]), [Outcome::Appended]);
        }
        while store.idle() {}
        let mut taken = fs::File::create(dir.join("ballast")).unwrap();
        while std::io::Write::write_all(&mut taken, &[0; 1 << 10]).is_ok() {}
        assert_eq!(store.append(&[run(ANNA, 8, &["more"])]), [Outcome::Full]);
        let base = |frees| {
            let mut parts = frames(ANNA, 8, &[vec![2; 100_000]]).into_iter();
            store.put_base(ANNA, Revision(8), frees, &mut parts)
        };
        assert!(matches!(base(0), Err(StoreError::Full)), "it would end larger");
        base(1_600_000).unwrap();
        assert_eq!(store.set_base(ANNA, Revision(8)), Outcome::Appended);
        while store.compact(&mut |_| Vec::new()).unwrap() {}
        assert_eq!(store.uncompacted_bytes(), 0);
        assert_eq!((replayed(&store).0.len(), stored(&store).len()), (1, 8));
        return;
    }
    run_child(&SMALL_DISK, TempDir::new().unwrap().path());
}
