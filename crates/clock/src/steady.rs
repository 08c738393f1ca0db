//! The steady clock: it is never set, and advances while the machine sleeps.
//!
//! Times of day are compared with it. The time of another machine goes on by it from one answer to the next.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A clock that advances while the machine sleeps, as the wall clock does.
#[cfg(target_os = "linux")]
const STEADY: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const STEADY: ClockId = ClockId::Monotonic;

/// Returns the time since a moment before this process, the same one for all calls.
#[must_use]
pub fn steady() -> Duration {
    length(clock_gettime(STEADY))
}

/// Returns a time of one of the system's clocks as a length.
#[must_use]
pub fn length(time: Timespec) -> Duration {
    let (seconds, rest) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    Duration::from_secs(seconds.unwrap_or(0)) + Duration::from_nanos(rest.unwrap_or(0))
}

/// Returns a length in milliseconds.
#[must_use]
pub fn ms(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}
