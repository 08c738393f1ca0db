//! Tests of the thumbnail cache: hits, eviction, damage and a full disk.

use tempfile::TempDir;

use super::*;

fn made(length: usize) -> Thumbnail {
    let bytes = Bytes::from(vec![7; length]);
    Thumbnail { media_type: "image/jpeg", bytes, size: (640, 360) }
}

fn key(session: u128, number: u8) -> Key {
    (SessionId(Uuid::from_u128(session)), Digest([number; 32]), Bounds::px(Some(300)))
}

fn opened(dir: &TempDir, bytes_max: u64) -> Cache {
    let cache = Cache::in_dir(dir.path().join("cache").join("thumbnails"), bytes_max, 0);
    cache.index();
    cache
}

fn files(cache: &Cache) -> usize {
    let homes = fs::read_dir(&cache.root).into_iter().flatten();
    homes.map(|home| fs::read_dir(home.unwrap().path()).unwrap().count()).sum()
}

#[test]
fn what_was_put_is_there_after_a_restart_too() {
    let dir = tempfile::tempdir().unwrap();
    let cache = opened(&dir, 1 << 20);
    let own = (key(1, 1).0, Digest([9; 32]), Bounds::default());
    assert_eq!(cache.get(own), None);
    cache.put(own, &made(100));
    cache.put(key(1, 1), &Thumbnail { media_type: "image/png", ..made(5000) });
    for cache in [cache, opened(&dir, 1 << 20)] {
        assert_eq!(cache.get(own), Some(made(100)));
        assert_eq!(cache.get(key(1, 1)).unwrap().media_type, "image/png");
        assert_eq!(cache.get(key(1, 2)), None);
        assert_eq!(cache.index().lock().bytes, 4096 + 8192);
    }
}

#[test]
fn a_file_that_changed_by_a_bit_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let cache = opened(&dir, 1 << 20);
    cache.put(key(1, 1), &made(10));
    let whole = fs::read(cache.path(key(1, 1))).unwrap();
    for at in 0..=whole.len() {
        cache.put(key(1, 1), &made(10));
        let mut other = whole.clone();
        match other.get_mut(at) {
            Some(byte) => *byte ^= 1,
            None => other.truncate(at - 1),
        }
        fs::write(cache.path(key(1, 1)), &other).unwrap();
        assert_eq!((cache.get(key(1, 1)), cache.index().lock().bytes), (None, 0), "byte {at}");
    }
    // One that stands under another's name is not that one.
    cache.put(key(1, 1), &made(10));
    cache.put(key(1, 2), &made(10));
    fs::copy(cache.path(key(1, 1)), cache.path(key(1, 2))).unwrap();
    assert_eq!(cache.get(key(1, 2)), None);
    fs::remove_file(cache.path(key(1, 1))).unwrap();
    assert_eq!(cache.get(key(1, 1)), None);
}

#[test]
fn those_that_were_used_longest_ago_go() {
    let dir = tempfile::tempdir().unwrap();
    let cache = opened(&dir, 3 * BLOCK_BYTES);
    for number in 1..=3 {
        cache.put(key(1, number), &made(10));
    }
    assert!(cache.get(key(1, 1)).is_some());
    cache.put(key(2, 4), &made(10));
    assert_eq!(cache.get(key(1, 2)), None);
    for kept in [key(1, 1), key(1, 3), key(2, 4)] {
        assert!(cache.get(kept).is_some());
    }
    cache.put(key(2, 5), &made(4 * 4096));
    assert_eq!((cache.get(key(2, 5)), files(&cache)), (None, 3), "larger than all");
}

#[test]
fn nothing_is_kept_that_would_take_from_the_reserve() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::in_dir(dir.path().join("thumbnails"), 1 << 20, u64::MAX);
    cache.put(key(1, 1), &made(10));
    assert_eq!((cache.get(key(1, 1)), cache.root.exists()), (None, false));
}

#[test]
fn what_cannot_be_written_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let cache = opened(&dir, 1 << 20);
    fs::write(dir.path().join("cache"), "in the way").unwrap();
    cache.put(key(1, 1), &made(10));
    assert_eq!(cache.get(key(1, 1)), None);
}

#[test]
fn a_session_takes_its_thumbnails_along() {
    let dir = tempfile::tempdir().unwrap();
    let cache = opened(&dir, 1 << 20);
    for session in 1..=3 {
        cache.put(key(session, 1), &made(10));
        cache.put(key(session, 2), &made(10));
    }
    cache.forget(key(2, 0).0);
    assert_eq!((cache.get(key(2, 1)), files(&cache)), (None, 4));
    let cache = opened(&dir, 1 << 20);
    cache.keep(&HashSet::from([key(3, 0).0]));
    assert_eq!((cache.get(key(1, 1)), files(&cache)), (None, 2));
    assert!(cache.get(key(3, 1)).is_some());
}

#[test]
fn a_directory_with_anything_else_in_it_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    for odd in ["0.tmp", "x", "X-300"] {
        let cache = opened(&dir, 1 << 20);
        cache.put(key(1, 1), &made(10));
        fs::write(cache.path(key(1, 1)).with_file_name(odd), "").unwrap();
        assert_eq!(files(&opened(&dir, 1 << 20)), 0, "{odd}");
    }
    let cache = opened(&dir, 1 << 20);
    cache.put(key(1, 1), &made(10));
    fs::write(cache.root.join("stray"), "").unwrap();
    assert_eq!(opened(&dir, 1 << 20).get(key(1, 1)), None);
}

#[test]
fn whatever_lies_in_a_thumbnails_place_is_replaced() {
    let dir = TempDir::new().unwrap();
    let cache = opened(&dir, 1 << 20);
    cache.put(key(1, 1), &made(100));
    fs::remove_file(cache.path(key(1, 1))).unwrap();
    fs::create_dir_all(cache.path(key(1, 1)).join("within")).unwrap();
    assert_eq!(cache.get(key(1, 1)), None);
    cache.put(key(1, 1), &made(100));
    assert_eq!(cache.get(key(1, 1)), Some(made(100)));
    // A file in place of a session's directory, then of all of them.
    for place in [cache.root.join(key(2, 1).0.to_string()), cache.root.clone()] {
        fs::remove_dir_all(&place).ok();
        fs::write(&place, "text").unwrap();
        let cache = opened(&dir, 1 << 20);
        assert_eq!(cache.get(key(1, 1)), None);
        cache.put(key(1, 1), &made(100));
        assert_eq!(cache.get(key(1, 1)), Some(made(100)));
    }
}
