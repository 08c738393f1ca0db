//! Tests of shared work and of the bounded map.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::thumbnails::*;

#[tokio::test]
async fn the_same_is_made_once_for_all_who_ask() {
    let (work, count) = (SharedWork::<u8, usize>::default(), AtomicUsize::new(0));
    let one = async |key| {
        let making = work.join(key);
        let make = async || {
            tokio::task::yield_now().await;
            Ok::<_, ()>(count.fetch_add(1, Ordering::Relaxed))
        };
        *making.get_or_try_init(make).await.unwrap()
    };
    let (first, second, other, third) = tokio::join!(one(1), one(1), one(2), one(1));
    assert_eq!((first, second), (third, third));
    assert_eq!(first + other, 1, "both were made once");
    // Nobody asks any more: the next one makes it anew.
    assert_eq!(one(1).await, 2);
}

#[tokio::test]
async fn who_makes_it_and_fails_leaves_it_to_the_next() {
    let work = SharedWork::<u8, usize>::default();
    let (first, second) = (work.join(1), work.join(1));
    assert_eq!(first.get_or_try_init(async || Err("gone")).await, Err("gone"));
    drop(first);
    assert_eq!(second.get_or_try_init(async || Ok::<_, ()>(7)).await, Ok(&7));
}

#[test]
fn only_so_many_wait() {
    let pool = Pool::default();
    let places: Vec<_> = (0..THUMBNAILS_WAITING_MAX).map(|_| pool.wait().unwrap()).collect();
    assert!(matches!(pool.wait(), Err(ServiceError::Overloaded)));
    drop(places);
    assert!(pool.wait().is_ok());
}

#[test]
fn the_oldest_is_forgotten() {
    let mut remembered = BoundedMap::new(2);
    remembered.insert(1, 'a');
    remembered.insert(2, 'b');
    remembered.insert(1, 'c');
    remembered.insert(3, 'd');
    assert_eq!([1, 2, 3].map(|key| remembered.get(&key)), [None, Some('b'), Some('d')]);
}
