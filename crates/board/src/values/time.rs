//! Timestamps in UTC milliseconds, and durations.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use jiff::fmt::StdFmtWrite;
use jiff::fmt::temporal::{DateTimePrinter, Pieces};
use serde::{Deserialize, Serialize};

/// Prints timestamps with milliseconds.
const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// The first moment that RFC 3339 has a form for, 0000-01-01T00:00:00Z.
const FIRST_MS: i64 = -62_167_219_200_000;

/// The last moment that RFC 3339 has a form for.
const LAST: &str = "9999-12-31T23:59:59.999Z";
const LAST_MS: i64 = 253_402_300_799_999;

/// The last day of the library's moments.
const LAST_DAY: Date = jiff::civil::date(9999, 12, 30);

/// Milliseconds since 1970-01-01T00:00:00Z; shown as RFC 3339, stored as a number.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Adds a time to live, saturating at the maximum.
    #[must_use]
    pub fn after(self, ttl: Ttl) -> Self {
        Self(self.0.saturating_add(ttl.ms()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => {
                let printed = PRINTER.print_timestamp(&moment, StdFmtWrite(f));
                printed.map_err(|_| fmt::Error)
            }
            Err(_) => f.write_str(LAST),
        }
    }
}

/// The text is not a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an RFC 3339 timestamp, such as 2026-11-21T07:03:11.123Z")]
pub struct InvalidTimestamp;

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        match text.parse::<jiff::Timestamp>() {
            // An offset may lead beyond the years that can be shown.
            Ok(moment) if moment.as_millisecond() < FIRST_MS => Err(InvalidTimestamp),
            Ok(moment) => Ok(Self(moment.as_millisecond())),
            Err(_) if is_beyond(text) => Ok(Self(LAST_MS)),
            Err(_) => Err(InvalidTimestamp),
        }
    }
}

/// Returns true for a time of the last days of the year 9999, by which programs say that something never ends. The library
/// knows moments up to the 30th of December.
fn is_beyond(text: &str) -> bool {
    let Ok(pieces) = Pieces::parse(text) else { return false };
    let is_moment = pieces.time().is_some() && pieces.to_numeric_offset().is_some();
    is_moment && pieces.date() >= LAST_DAY
}

/// The maximum time to live, in days.
pub const TTL_DAYS_MAX: i64 = 36_500;

/// A time to live: a whole number of a unit, such as `30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ttl {
    count: i64,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Unit {
    name: &'static str,
    ms: i64,
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A unit precedes any other whose name is its suffix: `ms` comes before `s`.
const UNITS: [Unit; 5] = [
    Unit { name: "ms", ms: 1 },
    Unit { name: "s", ms: 1000 },
    Unit { name: "m", ms: 60 * 1000 },
    Unit { name: "h", ms: 60 * 60 * 1000 },
    Unit { name: "d", ms: DAY_MS },
];

/// The text is not a time to live, or a longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be a whole number followed by ms, s, m, h or d, such as 30s, from 1ms to {days_max}d"
)]
pub struct InvalidTtl {
    /// The longest that is accepted, in days.
    days_max: i64,
}

impl Ttl {
    /// One minute.
    pub const MINUTE: Self = Self { count: 60, unit: Unit { name: "s", ms: 1000 } };

    /// Returns the duration in milliseconds.
    #[must_use]
    pub const fn ms(self) -> i64 {
        self.count * self.unit.ms
    }

    /// Reads a time to live of at most so many days.
    ///
    /// # Errors
    ///
    /// The text is none, or a longer one.
    pub fn within(days_max: i64, text: &str) -> Result<Self, InvalidTtl> {
        Self::read(text).filter(|ttl| ttl.ms() <= days_max * DAY_MS).ok_or(InvalidTtl { days_max })
    }

    fn read(text: &str) -> Option<Self> {
        let parts = |unit: Unit| Some((text.strip_suffix(unit.name)?, unit));
        let (digits, unit) = UNITS.into_iter().find_map(parts)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let count: i64 = digits.parse().ok()?;
        count.checked_mul(unit.ms).filter(|ms| *ms > 0).map(|_| Self { count, unit })
    }
}

impl FromStr for Ttl {
    type Err = InvalidTtl;

    fn from_str(text: &str) -> Result<Self, InvalidTtl> {
        Self::within(TTL_DAYS_MAX, text)
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.count, self.unit.name)
    }
}

impl TryFrom<String> for Ttl {
    type Error = InvalidTtl;

    fn try_from(text: String) -> Result<Self, InvalidTtl> {
        text.parse()
    }
}

impl From<Ttl> for String {
    fn from(ttl: Ttl) -> Self {
        ttl.to_string()
    }
}

/// A time, or a time to live that counts from the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The time.
    At(Timestamp),
    /// So long after the decision.
    In(Ttl),
}

/// The text is neither a timestamp nor a time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be a time or a duration: RFC 3339, such as 2026-11-21T07:03:11.123Z, or a whole number followed by ms, s, m, h \
     or d, such as 30s, up to {TTL_DAYS_MAX}d"
)]
pub struct InvalidWhen;

impl When {
    /// Returns the time of a decision made at `now`, at most [`TTL_DAYS_MAX`] ahead.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Timestamp {
        let last = Timestamp(now.0.saturating_add(TTL_DAYS_MAX * DAY_MS));
        match self {
            Self::At(at) => at.min(last),
            Self::In(ttl) => now.after(ttl),
        }
    }
}

impl FromStr for When {
    type Err = InvalidWhen;

    fn from_str(text: &str) -> Result<Self, InvalidWhen> {
        let ttl = text.parse().map(Self::In);
        ttl.or_else(|_| text.parse().map(Self::At)).map_err(|_| InvalidWhen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_shown_with_milliseconds() {
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp(1_795_244_591_123).to_string(), "2026-11-21T07:03:11.123Z");
        assert_eq!(Timestamp(i64::MAX).to_string(), LAST);
    }

    #[test]
    fn a_moment_is_read_as_it_is_shown() {
        for (text, moment) in [
            ("2026-11-21T07:03:11.123Z", 1_795_244_591_123),
            ("2026-11-21T08:03:11.1239+01:00", 1_795_244_591_123),
            ("1970-01-01T00:00:00Z", 0),
            ("0000-01-01T00:00:00Z", FIRST_MS),
            ("9999-12-30T22:00:00Z", 253_402_207_200_000),
            (LAST, LAST_MS),
            ("9999-12-31T23:59:59Z", LAST_MS),
            ("9999-12-31T23:59:59-11:00", LAST_MS),
        ] {
            assert_eq!(text.parse(), Ok(Timestamp(moment)), "{text}");
        }
        for text in [
            "",
            "2026-11-21",
            "2026-11-21T07:03:11",
            "1795244591123",
            "yesterday",
            "9999-12-31",
            "9999-12-31T23:59:59",
            "0000-01-01T00:00:00+00:01",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(InvalidTimestamp), "{text}");
        }
    }

    #[test]
    fn a_time_to_live_is_a_number_with_its_unit() {
        for (text, ms) in [
            ("1ms", 1),
            ("60s", 60_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
            ("36500d", 36_500 * DAY_MS),
        ] {
            let ttl: Ttl = text.parse().unwrap();
            assert_eq!((ttl.ms(), ttl.to_string().as_str()), (ms, text));
        }
        for text in [
            "",
            "s",
            "0s",
            "-1s",
            "+1s",
            "1",
            "1.5s",
            "1 s",
            "1S",
            "1w",
            "36501d",
            "1e3s",
            "٣s",
            "99999999999999999999ms",
            "9223372036854775807d",
        ] {
            assert_eq!(text.parse::<Ttl>(), Err(InvalidTtl { days_max: TTL_DAYS_MAX }), "{text}");
        }
    }
}
