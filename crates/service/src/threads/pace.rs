//! Pace of the indexer and the compaction: they leave the processors to requests while these keep them busy.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use blackboard_clock::steady::length;
use blackboard_clock::worked;
use blackboard_fairness::processors;

/// The processors are busy when the other threads use this fraction of their time (one in three).
const BUSY_PART: u32 = 3;

/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(1);

/// Tells the rest after each piece of work.
pub(crate) struct Pace {
    processors: u32,
    /// The fraction of busy processors' time that the thread uses (one in so many).
    part: u32,
    last: Used,
}

/// Processor time used until now.
#[derive(Clone, Copy)]
struct Used {
    at: Instant,
    /// By this thread.
    own: Duration,
    /// By all threads.
    all: Duration,
}

impl Used {
    fn now() -> Self {
        Self {
            at: Instant::now(),
            own: worked(),
            all: length(clock_gettime(ClockId::ProcessCPUTime)),
        }
    }
}

impl Pace {
    /// Begins on the thread that does the work, which uses one in `part` of busy processors' time.
    pub(crate) fn begin(part: u32) -> Self {
        let processors = u32::try_from(processors()).unwrap_or(u32::MAX);
        Self { processors, part, last: Used::now() }
    }

    /// Returns the rest after a piece of work.
    pub(crate) fn rest(&mut self) -> Duration {
        let now = Used::now();
        let last = std::mem::replace(&mut self.last, now);
        let own = now.own.saturating_sub(last.own);
        let others = now.all.saturating_sub(last.all).saturating_sub(own);
        let passed = now.at.saturating_duration_since(last.at);
        rest(self.part, self.processors, passed, own, others)
    }
}

fn rest(part: u32, processors: u32, passed: Duration, own: Duration, others: Duration) -> Duration {
    if others * BUSY_PART < passed * processors {
        return Duration::ZERO;
    }
    (own * part / processors).saturating_sub(own).min(REST_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn there_is_no_rest_beside_idle_processors() {
        assert_eq!(rest(32, 2, 100 * MS, 50 * MS, 60 * MS), Duration::ZERO);
    }

    #[test]
    fn the_share_beside_busy_processors_is_a_32nd() {
        assert_eq!(rest(32, 1, 100 * MS, 10 * MS, 70 * MS), 310 * MS);
        assert_eq!(rest(32, 2, 100 * MS, 20 * MS, 70 * MS), 300 * MS);
        assert_eq!(rest(32, 32, 100 * MS, 50 * MS, 1500 * MS), Duration::ZERO);
        assert_eq!(rest(32, 1, 1000 * MS, 500 * MS, 500 * MS), REST_MAX);
    }

    #[test]
    fn the_pace_counts_the_work_of_this_thread_as_its_own() {
        let mut pace = Pace { processors: 2, part: 32, last: Used::now() };
        let begun = pace.last;
        while Used::now().own < begun.own + 5 * MS {}
        pace.rest();
        assert!(pace.last.own >= begun.own + 5 * MS);
    }
}
