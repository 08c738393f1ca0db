//! The limit of file descriptors, with a share reserved for the store, which a failed open may poison.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors reserved for the store, its blobs and the runtime.
const RESERVED: u64 = 256;

/// Raises the limit as far as the system allows, and returns the number of connections that fit, at most `wanted`.
#[must_use]
pub fn fit_connections(wanted: u32) -> usize {
    let limit = raise().unwrap_or(u64::MAX);
    let fitting = limit.saturating_sub(RESERVED).max(1).min(wanted.into());
    if fitting < wanted.into() {
        tracing::warn!(
            connections_max = fitting,
            descriptors_max = limit,
            "the open-file limit (ulimit -n) is too low for the configured connections; allowing fewer"
        );
    }
    usize::try_from(fitting).unwrap_or(usize::MAX)
}

/// Returns the limit in force; `None` if unlimited.
fn raise() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    }
}
