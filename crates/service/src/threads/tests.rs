//! Tests of supervised threads: panics, ends and signals.

use std::sync::mpsc;

use super::*;

#[test]
fn a_thread_restarts_after_each_panic_and_ends_when_told() {
    let threads = Threads::default();
    let (ran, runs) = mpsc::channel();
    let mut times = 0;
    let work = move |signal: &Signal| {
        times += 1;
        ran.send(times).unwrap();
        assert!(times > 2, "it panics twice");
        while signal.rest(Duration::MAX) {}
    };
    threads.start("one", Arc::default(), work).unwrap();
    assert_eq!(runs.iter().take(3).collect::<Vec<i32>>(), [1, 2, 3]);
    while threads.states() != [("one", true)] {
        thread::yield_now();
    }
    assert!(threads.stop(&["one"]));
    assert!(runs.recv().is_err(), "it ended");
    assert!(!threads.failed().is_cancelled());
}

#[test]
fn a_thread_that_pauses_after_a_panic_is_shown_as_down() {
    let threads = Threads::default();
    let signal = Arc::new(Signal::default());
    threads.start("fails", Arc::clone(&signal), |_| panic!("always")).unwrap();
    let works =
        threads.start("works", Arc::default(), |signal| while signal.rest(Duration::MAX) {});
    while threads.states() != [("fails", false), ("works", true)] {
        thread::yield_now();
    }
    works.unwrap();
    assert!(threads.stop(&["works", "fails"]) && !threads.stop(&[]));
}

#[test]
fn a_thread_that_returns_without_being_told_works_again() {
    let (ran, runs) = mpsc::channel();
    let threads = Threads::default();
    threads.start("one", Arc::default(), move |_| ran.send(()).unwrap()).unwrap();
    assert_eq!(runs.iter().take(2).count(), 2);
    assert!(threads.stop(&["one"]));
}

#[test]
fn a_panic_of_a_vital_thread_fails_the_service() {
    let threads = Threads::default();
    threads.start_vital("ends", || (), || ()).unwrap();
    assert!(threads.stop(&["ends"]));
    assert!(!threads.failed().is_cancelled());
    threads.start_vital("fails", || (), || panic!("once")).unwrap();
    assert!(threads.stop(&["fails"]));
    assert!(threads.failed().is_cancelled());
    assert_eq!(threads.states(), [("ends", true), ("fails", false)]);
}

#[test]
fn a_wake_up_is_kept_for_the_next_rest_and_a_pause_takes_none() {
    let signal = Signal::default();
    signal.wake();
    assert!(signal.pause(Duration::ZERO));
    assert!(signal.rest(Duration::MAX));
    assert!(signal.rest(Duration::ZERO));
    signal.stop();
    assert!(!signal.rest(Duration::MAX) && !signal.pause(PAUSE_MAX) && signal.is_stopped());
}
