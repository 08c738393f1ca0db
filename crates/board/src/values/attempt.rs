//! Attempts at a request that ended without success, and cancellations.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{AgentName, Json, Timestamp, json};

/// The maximum number of past attempts that a request shows.
pub const PAST_ATTEMPTS_MAX: usize = 10;

/// The maximum size of a past attempt's reason, in bytes. A longer one is cut.
pub const PAST_REASON_BYTES_MAX: usize = 2 << 10;

/// The longest time that an agent may ask for between two attempts, in days.
pub const RETRY_IN_DAYS_MAX: i64 = 7;

/// The time for which a cancelled request's claim can be renewed, in milliseconds.
pub const CANCEL_GRACE_MS: i64 = 5 * 60 * 1000;

/// An attempt that ended without success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastAttempt {
    /// The agent that made the attempt, if named.
    pub agent: Option<AgentName>,
    /// The time at which the claim was won.
    pub from: Timestamp,
    /// The time at which the attempt ended.
    pub to: Timestamp,
    /// The end.
    pub outcome: Outcome,
    /// The reason, if one was given.
    pub reason: Option<Json>,
}

/// The end of an attempt without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The agent, or the request's deadline, failed it.
    Failed,
    /// The claim expired.
    Lapsed,
    /// The claim was given back, or ended by a cancellation, restore or fork.
    Released,
    /// The result was not accepted.
    Refused,
}

/// The cancellation of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// The agent that cancelled it, if named.
    pub agent: Option<AgentName>,
    /// The time of the cancellation.
    pub at: Timestamp,
    /// The reason, if given.
    pub reason: Option<Json>,
}

impl PastAttempt {
    /// Returns these attempts with one more, which is the last.
    pub(crate) fn added(past: &Arc<[Self]>, last: Self) -> Arc<[Self]> {
        let skipped = (past.len() + 1).saturating_sub(PAST_ATTEMPTS_MAX);
        past.iter().skip(skipped).cloned().chain([last]).collect()
    }

    /// Returns true if the attempts are within their limits.
    pub(crate) fn are_sound(past: &[Self]) -> bool {
        let fits = |reason: &Json| reason.text().len() <= PAST_REASON_BYTES_MAX;
        past.len() <= PAST_ATTEMPTS_MAX
            && past.iter().all(|attempt| attempt.reason.as_ref().is_none_or(fits))
    }

    /// Returns the size of the reason in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.reason.as_ref().map_or(0, Json::bytes)
    }
}

impl Cancel {
    /// Returns the size of the reason in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.reason.as_ref().map_or(0, Json::bytes)
    }
}

/// Returns a reason as a past attempt keeps it: a longer one is cut, and is a string then.
pub(crate) fn cut(reason: &Json) -> Json {
    let text = reason.text();
    if text.len() <= PAST_REASON_BYTES_MAX {
        return reason.clone();
    }
    let plain =
        if json::kind(text) == json::Kind::String { json::decode(text) } else { text.into() };
    let mut quoted = String::new();
    // Escapes make it longer.
    let mut end = plain.len().min(PAST_REASON_BYTES_MAX);
    loop {
        end = plain.floor_char_boundary(end);
        quoted.clear();
        json::quote(plain.get(..end).unwrap_or_default(), &mut quoted);
        let excess = quoted.len().saturating_sub(PAST_REASON_BYTES_MAX);
        if excess == 0 {
            return Json::of(&quoted);
        }
        end = end.saturating_sub(excess.div_ceil(6).max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> Json {
        Json::of(text)
    }

    #[test]
    fn a_long_reason_is_cut_to_its_limit() {
        let short = reason("{\"code\":7}");
        assert_eq!(cut(&short), short);
        for long in [
            format!("\"{}\"", "a".repeat(5_000)),
            format!("\"{}\"", "\\u0001".repeat(5_000)),
            format!("\"x{}\"", "é".repeat(5_000)),
            format!("[{}1]", "1,".repeat(5_000)),
        ] {
            let kept = cut(&reason(&long));
            let text = kept.text();
            assert!((PAST_REASON_BYTES_MAX - 12..=PAST_REASON_BYTES_MAX).contains(&text.len()));
            assert_eq!(json::kind(text), json::Kind::String);
            assert!(json::syntax(text.as_bytes()).is_ok());
        }
    }

    #[test]
    fn the_last_attempts_are_remembered() {
        let attempt = |at: i64| PastAttempt {
            agent: None,
            from: Timestamp(at),
            to: Timestamp(at + 1),
            outcome: Outcome::Lapsed,
            reason: None,
        };
        let past = (0..25).fold(Arc::default(), |past, at| PastAttempt::added(&past, attempt(at)));
        assert!(past.iter().map(|attempt| attempt.from.0).eq(15..25));
    }
}
