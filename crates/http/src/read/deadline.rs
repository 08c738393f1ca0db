//! Deadlines of waiting reads: the parameters `min_revision` and `wait`.
//!
//! The loops that wait are in the module above.

use std::str::FromStr;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use tokio::time::Instant;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::{Early, RevisionQuery};
use crate::response::problem::Problem;
use blackboard_api::intake::query::{Form as _, Of, Shaped};
use blackboard_api::params::{Params, invalid};
use blackboard_api::schema::pattern;
use blackboard_api::schema::shapes::WAIT;
use blackboard_api::tag::Rendering;
use blackboard_board::Revision;
use blackboard_service::{Published, ServiceError};

/// The maximum of `wait`, in milliseconds.
const WAIT_MS_MAX: u64 = 60_000;

/// The time that a read waits for `min_revision` by default.
pub(crate) const REVISION_WAIT_MAX: Duration = Duration::from_secs(2);

/// The part of a session that a read shows, and may wait for.
pub(crate) trait Sought: Send {
    /// Returns true if the read has a condition, so that `wait` needs no tag.
    fn may_come(&self) -> bool {
        false
    }

    /// Returns what to show now, of a session that may not exist; `None` to wait.
    fn look(
        &mut self,
        now: Option<&Published>,
    ) -> impl Future<Output = Result<Option<Rendering>, Early>> + Send;

    /// Returns what to show at the deadline.
    fn at_last(
        &mut self,
        now: Option<&Published>,
    ) -> impl Future<Output = Result<Rendering, Early>> + Send;
}

/// The deadline of a read that waits, from its parameters `wait` and `min_revision`.
pub(crate) struct WaitDeadline {
    begun: Instant,
    wait: Option<Duration>,
    revision: Option<Revision>,
}

impl WaitDeadline {
    /// Takes `min_revision` and `wait`. `wait` needs something to wait for.
    pub(crate) fn params(
        params: &mut Params,
        headers: &HeaderMap,
        may_come: bool,
    ) -> Result<Self, Problem> {
        let RevisionQuery { min_revision: revision } = RevisionQuery::take(params)?;
        let waits_for_something = may_come || revision.is_some();
        let wait = wait_param(params, headers, waits_for_something)?;
        Ok(Self { begun: Instant::now(), wait, revision })
    }

    /// Returns the requested revision if `head` has not reached it.
    fn missing(&self, head: Revision) -> Option<Revision> {
        self.revision.filter(|wanted| *wanted > head)
    }

    /// Returns the deadline of a reader that finds this published.
    pub(crate) fn deadline(&self, now: Option<&Published>) -> Instant {
        let missing = now.and_then(|now| self.missing(now.board.revision()));
        let otherwise = if missing.is_some() { REVISION_WAIT_MAX } else { Duration::ZERO };
        self.begun + self.wait.unwrap_or(otherwise)
    }

    /// Refuses to show a session that has not reached the revision.
    pub(crate) fn reached(&self, now: Option<&Published>) -> Result<(), ServiceError> {
        let Some(now) = now else { return Ok(()) };
        let head = now.board.revision();
        match self.missing(head) {
            Some(wanted) => Err(ServiceError::RevisionNotReached { head, wanted }),
            None => Ok(()),
        }
    }
}

/// Takes the parameter `wait`, which needs `If-None-Match` or something else to wait for.
pub(crate) fn wait_param(
    params: &mut Params,
    headers: &HeaderMap,
    waits_for_something: bool,
) -> Result<Option<Duration>, Problem> {
    let wait = Of::<Wait>::take(params, "wait")?;
    if wait.is_some() && !waits_for_something && !headers.contains_key(header::IF_NONE_MATCH) {
        let goes_with = "needs If-None-Match, 'after', 'until' or 'min_revision'; if you sent If-None-Match, a cache in between removed it";
        return Err(invalid("wait", goes_with).into());
    }
    Ok(wait.map(|Wait(wait)| wait))
}

/// The value of `wait`. Unlike a time to live it may be 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait(Duration);

impl Shaped for Wait {
    fn schema() -> RefOr<Schema> {
        pattern(WAIT).into()
    }
}

/// An invalid value of `wait`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a whole number followed by ms, s, m, h or d, such as 30s, and at most 60s")]
pub(crate) struct InvalidWait;

/// The units in milliseconds; a name comes before any other name that is its suffix.
const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl FromStr for Wait {
    type Err = InvalidWait;

    fn from_str(text: &str) -> Result<Self, InvalidWait> {
        let parts = |(name, ms)| Some((text.strip_suffix(name)?, ms));
        let (digits, unit) = UNITS.into_iter().find_map(parts).ok_or(InvalidWait)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(InvalidWait);
        }
        let count: u64 = digits.parse().map_err(|_| InvalidWait)?;
        let ms = count.checked_mul(unit).filter(|ms| *ms <= WAIT_MS_MAX);
        ms.map(|ms| Self(Duration::from_millis(ms))).ok_or(InvalidWait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_a_number_with_its_unit_of_at_most_a_minute() {
        for (text, ms) in [("0s", 0), ("0d", 0), ("1ms", 1), ("60s", 60_000), ("01m", 60_000)] {
            assert_eq!(text.parse(), Ok(Wait(Duration::from_millis(ms))), "{text}");
        }
        let wrong = ["", "s", "0", "30", "-1s", "+1s", "1.5s", "1 s", "1S", "61s", "60001ms"];
        for text in wrong.into_iter().chain(["2m", "1h", "1d", "٣s", "99999999999999999999d"]) {
            assert_eq!(text.parse::<Wait>(), Err(InvalidWait), "{text}");
        }
    }
}
