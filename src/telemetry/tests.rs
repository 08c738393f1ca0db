//! Tests of logged panics: each with its place, without quoted client data.

use std::panic::catch_unwind;

use parking_lot::Mutex;

use super::lines::Lines;
use super::*;

/// What the log says of a panic of this.
fn said_of(panics: fn()) -> String {
    // The hook is the whole process's.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock();
    let before = panic::take_hook();
    log_panics();
    let lines = Lines::default();
    let left = lines.clone();
    let log = tracing_subscriber::fmt().with_writer(move || lines.clone()).finish();
    let caught = tracing::subscriber::with_default(log, || catch_unwind(panics));
    panic::set_hook(before);
    caught.unwrap_err();
    left.text()
}

#[test]
fn a_panic_is_in_the_log() {
    let said = said_of(|| panic!("out of luck"));
    assert!(said.contains("out of luck") && said.contains("tests.rs:"), "{said}");
}

#[test]
fn what_a_panic_quotes_is_not() {
    let secrets: [fn(); 3] = [
        || panic!("{} is secret", std::hint::black_box("secret")),
        || drop(std::hint::black_box("secret \u{e9}")[..8].to_owned()),
        || drop("x".parse::<u8>().map_err(|_| "secret").unwrap().to_string()),
    ];
    for panics in secrets {
        let said = said_of(panics);
        assert!(said.contains("panicked") && !said.contains("secret"), "{said}");
    }
}

#[test]
fn the_documented_filter_takes_in_every_crate() {
    let lines = Lines::default();
    let left = lines.clone();
    let filter: EnvFilter = "warn,blackboard=debug".parse().unwrap();
    let log = tracing_subscriber::fmt().with_env_filter(filter);
    let log = log.with_writer(move || lines.clone()).finish();
    tracing::subscriber::with_default(log, || {
        tracing::debug!("one");
        tracing::debug!(target: "blackboard_store::sqlite", "two");
        tracing::debug!(target: "hyper", "three");
    });
    let said = left.text();
    assert!(said.contains("one") && said.contains("two") && !said.contains("three"), "{said}");
}
