//! A panic is in the log, with its place, whoever catches it.

use std::panic::catch_unwind;

use super::lines::Lines;
use super::*;

#[test]
fn a_panic_is_in_the_log() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    log_panics();
    let lines = Lines::default();
    let left = lines.clone();
    let log = tracing_subscriber::fmt().with_writer(move || lines.clone()).finish();
    let caught = tracing::subscriber::with_default(log, || catch_unwind(|| panic!("out of luck")));
    panic::set_hook(before);
    caught.unwrap_err();
    let said = left.text();
    assert!(said.contains("out of luck") && said.contains("panics_tests.rs:"), "{said}");
}
