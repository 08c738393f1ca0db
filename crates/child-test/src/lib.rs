//! Tests that run again in a child process, under limits of the kernel: for the tests of other crates alone.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails and says why")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const CHILD_DIR: &str = "BLACKBOARD_TEST_CHILD_DIR";

/// The directory to work in, if this is the child.
#[must_use]
pub fn child_dir() -> Option<PathBuf> {
    env::var_os(CHILD_DIR).map(PathBuf::from)
}

/// Runs this test again by way of `wrapper`, whose last word runs its arguments.
///
/// # Panics
///
/// The child fails, or runs no test.
pub fn run_child(wrapper: &[&str], dir: &Path) {
    let test = std::thread::current().name().unwrap().to_owned();
    let (program, arguments) = wrapper.split_first().unwrap();
    let child = Command::new(program)
        .args(arguments)
        .arg(env::current_exe().unwrap())
        .args(["--exact", &test, "--nocapture"])
        .env(CHILD_DIR, dir)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && said.contains("1 passed"),
        "{wrapper:?} failed: {said}{}",
        String::from_utf8_lossy(&child.stderr)
    );
}

/// No file in the child may become longer than this many half or whole KiB, as shells differ.
pub const SHORT_FILES: [&str; 3] = ["sh", "-c", r#"trap "" XFSZ; ulimit -f 1024; exec "$0" "$@""#];
