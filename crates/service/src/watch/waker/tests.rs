//! Tests of the waker: wake-ups are bounded, and adding one never waits.

use tokio::sync::broadcast::error::TryRecvError;

use super::*;
use crate::sessions::session::{Published, Shown};

fn session(name: &str) -> Arc<Session> {
    Arc::new(Session::new(name.parse().unwrap(), Shown::Hot(Published::nothing())))
}

fn notice(session: &Session, revision: u64) -> Option<Notice> {
    let (session, revision) = (session.name().clone(), Revision(revision));
    Some(Notice { session, revision, kinds: Arc::default() })
}

#[test]
fn a_waker_that_is_held_up_never_holds_up_the_writer() {
    let (wake_ups, channels) = (Arc::new(WakeUps::default()), Arc::new(Channels::new()));
    let waker = Waker { wake_ups: Arc::clone(&wake_ups), channels: Arc::clone(&channels) };
    let (watched, mut heard, mut lists) = (session("s"), channels.notices(), channels.lists());
    let mut ticks = watched.subscribe();
    // More than ever waited in a queue, and nobody takes any.
    for revision in 1..100_000 {
        let notice = notice(&watched, revision);
        wake_ups.add(WakeUp {
            session: Some(Arc::clone(&watched)),
            notice,
            asked: false,
            requested: false,
        });
    }
    let waiting = wake_ups.waiting.lock();
    assert_eq!((waiting.sessions.len(), waiting.notices.len()), (1, NOTICES_MAX));
    drop(waiting);
    waker.tell();
    assert!(ticks.has_changed().unwrap() && lists.has_changed().unwrap());
    ticks.mark_unchanged();
    lists.mark_unchanged();
    // Who follows all sessions is told that notices are missing.
    assert!(matches!(heard.try_recv(), Err(TryRecvError::Lagged(1))));
    let mut last = None;
    while let Ok(next) = heard.try_recv() {
        last = Some(next);
    }
    assert!(matches!(last, Some(Heard::Gap)), "{last:?}");
    waker.tell();
    assert!(!ticks.has_changed().unwrap() && !lists.has_changed().unwrap(), "nothing new");
}
