//! The log of server failures with their causes.
//!
//! Refusals that repeat because of the store's state are logged at intervals, with a count.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::response::problem::Problem;
use crate::response::request_id::RequestId;
use blackboard_board::Code;
use blackboard_error_chain::Chain;

/// The minimum interval between two lines about the same state.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// States of the store that refuse many requests alike.
const STATES: [Code; 3] = [Code::StoreFull, Code::StorePoisoned, Code::StoreUnavailable];

/// The last line about each state of the store.
#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<BTreeMap<&'static str, Told>>);

#[derive(Debug)]
struct Told {
    at: Instant,
    /// The number of refusals not logged since.
    more: u64,
}

impl Faults {
    /// Logs a failure with its cause. Causes are logged nowhere else.
    pub(super) fn tell(&self, problem: &mut Problem, id: RequestId) {
        let cause = problem.take_cause();
        let code = problem.code();
        let is_state = cause.is_none() && STATES.contains(&code);
        let repeated = if is_state { self.due(code, Instant::now()) } else { Some(0) };
        let Some(repeated) = repeated else { return };
        let repeated = (repeated > 0).then_some(repeated);
        let cause = cause.as_ref().map(|error| Chain(error).to_string());
        tracing::error!(code = code.as_str(), cause, repeated, request_id = %id, "failed: {problem}");
    }

    /// Returns the number of refusals not logged since the last line; `None` if the next line is not yet due.
    fn due(&self, code: Code, now: Instant) -> Option<u64> {
        let mut told = self.0.lock();
        let Some(last) = told.get_mut(code.as_str()) else {
            told.insert(code.as_str(), Told { at: now, more: 0 });
            return Some(0);
        };
        if now.duration_since(last.at) < TOLD_EVERY {
            last.more += 1;
            return None;
        }
        last.at = now;
        Some(std::mem::take(&mut last.more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_told_again_after_a_while_with_how_many_there_were() {
        let (faults, begin) = (Faults::default(), Instant::now());
        let full = |after: Duration| faults.due(Code::StoreFull, begin + after);
        assert_eq!(full(Duration::ZERO), Some(0));
        for _ in 0..5 {
            assert_eq!(full(TOLD_EVERY / 2), None);
        }
        assert_eq!(faults.due(Code::StorePoisoned, begin), Some(0));
        assert_eq!((full(TOLD_EVERY), full(TOLD_EVERY)), (Some(5), None));
        assert_eq!(full(TOLD_EVERY * 3), Some(1));
    }
}
