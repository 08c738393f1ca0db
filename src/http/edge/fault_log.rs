//! The fault log: server failures with their causes. Repeated store failures are logged at intervals, with a count.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::board::Code;
use crate::error_chain::Chain;
use crate::http::response::problem::Problem;
use crate::http::response::request_id::RequestId;

/// How long the same state is not told again.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// The states of the store that refuse one request like the other.
const STATES: [Code; 3] = [Code::StoreFull, Code::StorePoisoned, Code::StoreUnavailable];

/// What was told of the store's states.
#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<BTreeMap<&'static str, Told>>);

#[derive(Debug)]
struct Told {
    at: Instant,
    /// How many were not told since.
    more: u64,
}

impl Faults {
    /// The one place where the cause of a failure is told.
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

    /// How many were not told since the last one that was; nothing where it is not yet time for another.
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
