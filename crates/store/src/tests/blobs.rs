//! Tests of blobs: durable, verified, gone with their session.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Barrier;

use tempfile::TempDir;

use super::sqlite::{ANNA, BERT, OPTIONS, open, run};
use crate::*;
use blackboard_board::Digest;

const IMAGE: &[u8] = b"an image";

fn path(dir: &TempDir, session: SessionId, digest: Digest) -> PathBuf {
    let home = dir.path().join("blobs").join(session.to_string());
    home.join(digest.to_string())
}

fn listed(store: &SqliteStore) -> Vec<(SessionId, Digest, u64)> {
    let mut listed = Vec::new();
    let visit = &mut |blob: StoredBlob| {
        listed.push((blob.session, blob.digest, blob.bytes));
        ControlFlow::Continue(())
    };
    store.blobs(visit).unwrap();
    listed.sort_unstable();
    listed
}

fn link(
    store: &SqliteStore,
    from: SessionId,
    to: SessionId,
    digest: Digest,
) -> Result<(), StoreError> {
    store.link_blobs(from, to, &mut [digest].into_iter())
}

/// The number of entries in the directory of all blobs.
fn homes(dir: &TempDir) -> usize {
    fs::read_dir(dir.path().join("blobs")).unwrap().count()
}

fn sweep(store: &SqliteStore) {
    while store.sweep_blobs().unwrap() {}
}

#[test]
fn a_blob_is_read_as_it_was_put_and_after_a_restart() {
    let dir = TempDir::new().unwrap();
    let digest = Digest::of(IMAGE);
    let store = open(dir.path());
    store.put_blob(ANNA, digest, IMAGE).unwrap();
    store.put_blob(ANNA, digest, IMAGE).unwrap();
    store.put_blob(ANNA, Digest::of(b""), b"").unwrap();
    assert_eq!(store.blob(ANNA, digest).unwrap(), IMAGE);
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.blob(ANNA, digest).unwrap(), IMAGE);
    assert_eq!(store.blob(ANNA, Digest::of(b"")).unwrap(), b"");
    assert_eq!(listed(&store).len(), 2);
}

#[test]
fn a_missing_blob_is_not_a_damaged_one() {
    let dir = TempDir::new().unwrap();
    let digest = Digest::of(IMAGE);
    let store = open(dir.path());
    let missing = |session| match store.blob(session, digest) {
        Err(StoreError::BlobMissing { session: whose, digest: which }) => {
            (whose, which) == (session, digest)
        }
        _ => false,
    };
    assert!(missing(ANNA));
    store.put_blob(ANNA, digest, IMAGE).unwrap();
    assert!(missing(BERT), "a blob is one session's");
    let linked = link(&store, BERT, SessionId(uuid::Uuid::from_u128(0xc)), digest);
    assert!(matches!(linked, Err(StoreError::BlobMissing { .. })));
}

#[test]
fn a_damaged_blob_is_found_and_another_put_mends_it() {
    let dir = TempDir::new().unwrap();
    let digest = Digest::of(IMAGE);
    let store = open(dir.path());
    for damage in [&b"an imagE"[..], b"an ima", b"", b"an image."] {
        store.put_blob(ANNA, digest, IMAGE).unwrap();
        fs::write(path(&dir, ANNA, digest), damage).unwrap();
        let found = store.blob(ANNA, digest).unwrap_err();
        assert!(matches!(found, StoreError::BlobDamaged { .. }));
    }
    store.put_blob(ANNA, digest, IMAGE).unwrap();
    assert_eq!(store.blob(ANNA, digest).unwrap(), IMAGE);
}

#[test]
fn all_who_put_one_blob_at_once_find_it_whole() {
    let dir = TempDir::new().unwrap();
    let bytes = vec![5; 300_000];
    let digest = Digest::of(&bytes);
    let store = open(dir.path());
    let start = Barrier::new(16);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                start.wait();
                store.put_blob(ANNA, digest, &bytes).unwrap();
                assert_eq!(store.blob(ANNA, digest).unwrap(), bytes);
            });
        }
    });
    assert_eq!(listed(&store), [(ANNA, digest, 300_000)]);
    let files = fs::read_dir(path(&dir, ANNA, digest).parent().unwrap()).unwrap();
    assert_eq!(files.count(), 1, "no temporary file is left");
}

#[test]
fn a_link_outlives_the_session_it_came_from() {
    let dir = TempDir::new().unwrap();
    let digest = Digest::of(IMAGE);
    let store = open(dir.path());
    store.put_blob(ANNA, digest, IMAGE).unwrap();
    link(&store, ANNA, BERT, digest).unwrap();
    link(&store, ANNA, BERT, digest).unwrap();
    store.remove_blobs(&[ANNA]).unwrap();
    store.remove_blobs(&[ANNA]).unwrap();
    assert_eq!(listed(&store), [(BERT, digest, 8)]);
    assert_eq!(store.blob(BERT, digest).unwrap(), IMAGE);
    link(&store, ANNA, BERT, digest).unwrap();
}

#[test]
fn a_damaged_file_in_the_way_of_a_link_is_replaced() {
    let dir = TempDir::new().unwrap();
    let digest = Digest::of(IMAGE);
    let store = open(dir.path());
    store.put_blob(ANNA, digest, IMAGE).unwrap();
    store.put_blob(BERT, digest, IMAGE).unwrap();
    fs::write(path(&dir, BERT, digest), b"not it").unwrap();
    link(&store, ANNA, BERT, digest).unwrap();
    assert_eq!(store.blob(BERT, digest).unwrap(), IMAGE);
}

#[test]
fn what_an_earlier_run_left_goes_while_others_put() {
    let dir = TempDir::new().unwrap();
    let (digest, cara) = (Digest::of(IMAGE), SessionId(uuid::Uuid::from_u128(0xc)));
    let store = open(dir.path());
    store.put_blob(ANNA, digest, IMAGE).unwrap();
    store.put_blob(BERT, digest, IMAGE).unwrap();
    drop(store);
    let temporary = path(&dir, ANNA, digest).with_extension("tmp");
    fs::write(&temporary, b"half").unwrap();
    let foreign = dir.path().join("blobs/lost+found");
    fs::create_dir(&foreign).unwrap();

    let store = open(dir.path());
    store.put_blob(cara, digest, IMAGE).unwrap();
    store.clear_blobs(&HashSet::from([ANNA]), &|| false).unwrap();
    assert_eq!(listed(&store).len(), 3, "it was told to stop");
    store.clear_blobs(&HashSet::from([ANNA]), &|| true).unwrap();
    assert_eq!(listed(&store), [(ANNA, digest, 8), (cara, digest, 8)]);
    assert!(!temporary.exists());
    assert!(foreign.exists());
    sweep(&store);
    assert_eq!(homes(&dir), 3);
    store.put_blob(BERT, digest, IMAGE).unwrap();
    assert_eq!(store.blob(BERT, digest).unwrap(), IMAGE);
}

#[test]
fn many_blobs_are_out_of_sight_at_once_and_go_in_pieces() {
    const FILES: usize = 2_500;
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let home = dir.path().join("blobs").join(ANNA.to_string());
    fs::create_dir(&home).unwrap();
    for n in 0..FILES {
        fs::write(home.join(n.to_string()), b"").unwrap();
    }
    store.remove_blobs(&[BERT, ANNA]).unwrap();
    assert!(!home.exists());
    let left = || {
        let kept = fs::read_dir(dir.path().join("blobs/trash")).into_iter().flatten();
        kept.map(|home| fs::read_dir(home.unwrap().path()).unwrap().count()).sum::<usize>()
    };
    assert_eq!(left(), FILES);
    assert!(store.sweep_blobs().unwrap());
    assert_eq!(left(), FILES - 1_000);
    // A crash comes; another one came while a copy was made.
    drop(store);
    let aside = dir.path().join("blobs/removed").join(BERT.to_string());
    fs::create_dir_all(&aside).unwrap();
    fs::write(aside.join("image"), b"").unwrap();
    sweep(&open(dir.path()));
    assert_eq!(homes(&dir), 0);
}

/// The log cannot be synced by its name while it has another one.
#[test]
fn blobs_go_only_once_it_is_on_disk_that_nobody_needs_them() {
    for sync in [SyncLevel::Normal, SyncLevel::Full] {
        let dir = TempDir::new().unwrap();
        let store = SqliteStore::open(dir.path(), SqliteOptions { sync, ..OPTIONS }).unwrap();
        let digest = Digest::of(IMAGE);
        let (log, elsewhere) = (dir.path().join("blackboard.db-wal"), dir.path().join("elsewhere"));
        let remove = |session| {
            store.remove_blob(session, digest, &|| true).is_ok()
                && store.remove_blobs(&[session]).is_ok()
        };
        for session in [ANNA, BERT] {
            store.put_blob(session, digest, IMAGE).unwrap();
            assert_eq!(
                store.append(&[run(session, 0, &["created", "deleted"])]),
                [Outcome::Appended]
            );
        }
        // A start syncs the last run's remains once.
        store.clear_blobs(&HashSet::from([ANNA, BERT]), &|| true).unwrap();
        let last = run(ANNA, 2, &["deleted again"]);
        assert_eq!(store.append(&[last]), [Outcome::Appended]);
        fs::rename(&log, &elsewhere).unwrap();
        let is_synced = sync == SyncLevel::Full;
        assert_eq!(store.remove_blobs(&[BERT]).is_ok(), is_synced);
        assert_eq!(remove(ANNA), is_synced);
        assert_eq!(listed(&store).len(), if is_synced { 0 } else { 2 }, "{sync:?}");
        fs::rename(&elsewhere, &log).unwrap();
        assert!(remove(ANNA) && remove(BERT));
        assert_eq!(listed(&store), []);
    }
}

#[test]
fn the_first_blob_of_a_session_waits_for_no_other_session() {
    let dir = TempDir::new().unwrap();
    let (store, digest) = (open(dir.path()), Digest::of(IMAGE));
    // As long as the directory's sync takes.
    let making = store.blobs.making.take(ANNA);
    store.put_blob(BERT, digest, IMAGE).unwrap();
    drop(making);
    store.put_blob(ANNA, digest, IMAGE).unwrap();
}
