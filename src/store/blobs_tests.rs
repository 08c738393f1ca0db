//! Blobs: durable when a put returns, verified when read, gone with their session.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Barrier;

use tempfile::TempDir;

use super::sqlite_tests::{ANNA, BERT, open};
use super::*;
use crate::board::Digest;

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
    let linked = store.link_blob(BERT, SessionId(uuid::Uuid::from_u128(0xc)), digest);
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
    store.link_blob(ANNA, BERT, digest).unwrap();
    store.link_blob(ANNA, BERT, digest).unwrap();
    store.remove_blobs(ANNA).unwrap();
    store.remove_blobs(ANNA).unwrap();
    assert_eq!(listed(&store), [(BERT, digest, 8)]);
    assert_eq!(store.blob(BERT, digest).unwrap(), IMAGE);
    store.link_blob(ANNA, BERT, digest).unwrap();
}

#[test]
fn a_damaged_file_in_the_way_of_a_link_is_replaced() {
    let dir = TempDir::new().unwrap();
    let digest = Digest::of(IMAGE);
    let store = open(dir.path());
    store.put_blob(ANNA, digest, IMAGE).unwrap();
    store.put_blob(BERT, digest, IMAGE).unwrap();
    fs::write(path(&dir, BERT, digest), b"not it").unwrap();
    store.link_blob(ANNA, BERT, digest).unwrap();
    assert_eq!(store.blob(BERT, digest).unwrap(), IMAGE);
}

#[test]
fn a_start_keeps_the_blobs_of_the_living_and_nothing_half_written() {
    let dir = TempDir::new().unwrap();
    let digest = Digest::of(IMAGE);
    let store = open(dir.path());
    store.put_blob(ANNA, digest, IMAGE).unwrap();
    store.put_blob(BERT, digest, IMAGE).unwrap();
    drop(store);
    let temporary = path(&dir, ANNA, digest).with_extension("tmp");
    fs::write(&temporary, b"half").unwrap();
    let foreign = dir.path().join("blobs/lost+found");
    fs::create_dir(&foreign).unwrap();

    let store = open(dir.path());
    store.keep_blobs_of(&HashSet::from([ANNA])).unwrap();
    assert_eq!(listed(&store), [(ANNA, digest, 8)]);
    assert!(!temporary.exists());
    assert!(foreign.exists());
    store.put_blob(BERT, digest, IMAGE).unwrap();
    assert_eq!(store.blob(BERT, digest).unwrap(), IMAGE);
}
