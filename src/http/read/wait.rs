//! Wait deadlines of reads: `min_revision`, `wait` and their loop.
//!
//! A reader looks at what is published, waits for a change, and looks again. What wakes it carries
//! nothing, and no board is held meanwhile: boards are big.

use std::str::FromStr;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use tokio::time::Instant;

use super::Early;
use crate::api::params::{Params, invalid};
use crate::board::Revision;
use crate::http::response::problem::Problem;
use crate::http::response::tag::Rendering;
use crate::service::{Published, ServiceError};

/// How long a read may wait.
const WAIT_MS_MAX: u64 = 60_000;

/// How long a read waits for the revision that it names, unless it says so.
const REVISION_WAIT_MAX: Duration = Duration::from_secs(2);

/// What a read shows of a session, and waits for.
pub(crate) trait Sought: Send {
    /// Whether it may not be there yet, so that there is something to wait for besides a new tag.
    fn may_come(&self) -> bool {
        false
    }

    /// What is shown now, of a session that may not be; `None` where it is not there yet.
    fn look(
        &mut self,
        now: Option<&Published>,
    ) -> impl Future<Output = Result<Option<Rendering>, Early>> + Send;

    /// What is shown where there is no time left to wait.
    fn at_last(&mut self, now: Option<&Published>) -> Result<Rendering, Early>;
}

/// How long a read waits.
pub(crate) struct Patience {
    begun: Instant,
    wait: Option<Duration>,
    revision: Option<Revision>,
}

impl Patience {
    /// Takes `min_revision` and `wait`, which needs something to wait for.
    pub(crate) fn params(
        params: &mut Params,
        headers: &HeaderMap,
        may_come: bool,
    ) -> Result<Self, Problem> {
        let revision = params.number("min_revision", 0..=u64::MAX)?.map(Revision);
        let waits_for_something = may_come || revision.is_some();
        let wait = wait_param(params, headers, waits_for_something)?;
        Ok(Self { begun: Instant::now(), wait, revision })
    }

    /// The revision that the session has to reach yet, if it is at `head`.
    fn missing(&self, head: Revision) -> Option<Revision> {
        self.revision.filter(|wanted| *wanted > head)
    }

    /// Until when a reader waits who finds the session so.
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

/// The parameter `wait`; with a tag there is always something to wait for.
pub(crate) fn wait_param(
    params: &mut Params,
    headers: &HeaderMap,
    waits_for_something: bool,
) -> Result<Option<Duration>, Problem> {
    let wait: Option<Wait> = params.parsed("wait")?;
    if wait.is_some() && !waits_for_something && !headers.contains_key(header::IF_NONE_MATCH) {
        let goes_with = "needs the header If-None-Match, with 'after' on a log, with 'until' on the \
            state or a session, or with 'min_revision'";
        return Err(invalid("wait", goes_with).into());
    }
    Ok(wait.map(|Wait(wait)| wait))
}

/// How long to wait, as a query says it: unlike a time to live it may be nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wait(Duration);

/// Why a text is no time to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a whole number with ms, s, m, h or d, such as 30s, and at most 60s")]
struct InvalidWait;

/// The units in milliseconds; the longer name first where another one ends it.
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
