//! Tests of supervised threads: panics, ends and signals.

use std::sync::mpsc;

use super::*;

#[test]
fn a_thread_restarts_after_each_panic_and_ends_when_told() {
    let supervisor = Supervisor::default();
    let (ran, runs) = mpsc::channel();
    let mut times = 0;
    let work = move |signal: &Signal| {
        times += 1;
        ran.send(times).unwrap();
        assert!(times > 2, "it panics twice");
        while signal.rest(Duration::MAX) {}
    };
    let thread = supervisor.start("one", Arc::default(), work).unwrap();
    assert_eq!(runs.iter().take(3).collect::<Vec<i32>>(), [1, 2, 3]);
    while supervisor.threads() != [("one", true)] {
        thread::yield_now();
    }
    thread.stop();
    assert!(runs.recv().is_err(), "it ended");
    assert!(!supervisor.failed().is_cancelled());
}

#[test]
fn a_thread_that_pauses_after_a_panic_is_shown_as_down() {
    let supervisor = Supervisor::default();
    let signal = Arc::new(Signal::default());
    let fails = supervisor.start("fails", Arc::clone(&signal), |_| panic!("always")).unwrap();
    let works =
        supervisor.start("works", Arc::default(), |signal| while signal.rest(Duration::MAX) {});
    while supervisor.threads() != [("fails", false), ("works", true)] {
        thread::yield_now();
    }
    fails.stop();
    works.unwrap().stop();
}

#[test]
fn a_thread_that_returns_without_being_told_works_again() {
    let (ran, runs) = mpsc::channel();
    let supervisor = Supervisor::default();
    let thread = supervisor.start("one", Arc::default(), move |_| ran.send(()).unwrap()).unwrap();
    assert_eq!(runs.iter().take(2).count(), 2);
    thread.stop();
}

#[test]
fn a_panic_of_a_vital_thread_fails_the_service() {
    let supervisor = Supervisor::default();
    supervisor.start_vital("ends", || ()).unwrap().stop();
    assert!(!supervisor.failed().is_cancelled());
    supervisor.start_vital("fails", || panic!("once")).unwrap().stop();
    assert!(supervisor.failed().is_cancelled());
    assert_eq!(supervisor.threads(), [("ends", true), ("fails", false)]);
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
