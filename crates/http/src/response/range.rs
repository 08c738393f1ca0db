//! Byte ranges: `Range` and `If-Range` (RFC 9110, section 14).
//!
//! A single byte range gets a partial response. Several ranges, another unit or an invalid form are ignored, which
//! the RFC allows. A range whose condition does not hold is ignored too.

use std::ops::Range;

use axum::http::{HeaderMap, HeaderValue, Method, header};

use crate::response::problem::Problem;
use blackboard_board::Code;

/// The requested part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The whole body.
    Whole,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// Bytes beyond the end of the body.
    Beyond,
}

impl Asked {
    /// Reads the range that a request asks for, of a body of this length with this strong tag.
    pub(crate) fn of(method: &Method, headers: &HeaderMap, tag: &HeaderValue, length: u64) -> Self {
        if method != Method::GET || !holds(headers, tag) {
            return Self::Whole;
        }
        let mut ranges = headers.get_all(header::RANGE).into_iter();
        match (ranges.next(), ranges.next()) {
            (Some(range), None) => range.to_str().map_or(Self::Whole, |text| asked(text, length)),
            (Some(_) | None, _) => Self::Whole,
        }
    }
}

/// Returns true if `If-Range` permits a range. Tags are compared strongly, and no date is exact enough.
fn holds(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let mut conditions = headers.get_all(header::IF_RANGE).into_iter();
    conditions.next().is_none_or(|condition| condition == tag) && conditions.next().is_none()
}

fn asked(text: &str, length: u64) -> Asked {
    let Some((unit, range)) = text.split_once('=') else { return Asked::Whole };
    let Some((first, last)) = range.trim_matches([' ', '\t']).split_once('-') else {
        return Asked::Whole;
    };
    if !unit.eq_ignore_ascii_case("bytes") {
        return Asked::Whole;
    }
    match (first, last) {
        ("", last) => match position(last) {
            None => Asked::Whole,
            Some(0) => Asked::Beyond,
            Some(count) => part(length.saturating_sub(count)..length),
        },
        (first, "") => match position(first) {
            None => Asked::Whole,
            Some(first) => part(first..length),
        },
        (first, last) => match position(first).zip(position(last)) {
            Some((first, last)) if first <= last => part(first..last.saturating_add(1).min(length)),
            Some(_) | None => Asked::Whole,
        },
    }
}

fn part(range: Range<u64>) -> Asked {
    if range.is_empty() { Asked::Beyond } else { Asked::Part(range) }
}

/// Parses a position. A number too large for `u64` is past every end.
fn position(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Renders `Content-Range` of a part.
pub(crate) fn content_range(part: &Range<u64>, length: u64) -> Result<HeaderValue, Problem> {
    let last = part.end.saturating_sub(1);
    value(&format!("bytes {}-{last}/{length}", part.start))
}

/// Refuses a range beyond the end of the body.
pub(crate) fn beyond(length: u64) -> Problem {
    let detail = format!("the range is outside the {length} bytes");
    let problem = Problem::new(Code::RangeNotSatisfiable, detail);
    match value(&format!("bytes */{length}")) {
        Ok(value) => problem.header(header::CONTENT_RANGE, value),
        Err(problem) => problem,
    }
}

fn value(text: &str) -> Result<HeaderValue, Problem> {
    let failed =
        |error| Problem::new(Code::Internal, "cannot build the Content-Range header").cause(error);
    HeaderValue::from_str(text).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: HeaderValue = HeaderValue::from_static("\"a\"");

    fn headers(all: &[(header::HeaderName, &'static str)]) -> HeaderMap {
        let pairs = all.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        let mut headers = HeaderMap::new();
        pairs.for_each(|(name, value)| {
            headers.append(name, value);
        });
        headers
    }

    fn of(all: &[(header::HeaderName, &'static str)]) -> Asked {
        Asked::of(&Method::GET, &headers(all), &TAG, 10)
    }

    fn range(text: &'static str) -> Asked {
        of(&[(header::RANGE, text)])
    }

    #[test]
    fn one_range_is_a_part() {
        for (text, part) in [
            ("bytes=0-0", 0..1),
            ("bytes=2-5", 2..6),
            ("bytes=2-", 2..10),
            ("bytes=-3", 7..10),
            ("bytes=-30", 0..10),
            ("bytes=9-99999999999999999999999999", 9..10),
            ("BYTES= 2-5 ", 2..6),
        ] {
            assert_eq!(range(text), Asked::Part(part), "{text}");
        }
    }

    #[test]
    fn what_is_past_the_end_is_beyond() {
        for text in ["bytes=10-", "bytes=10-10", "bytes=-0", "bytes=99999999999999999999999999-"] {
            assert_eq!(range(text), Asked::Beyond, "{text}");
        }
    }

    #[test]
    fn what_is_no_single_range_is_passed_over() {
        for text in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=5-2",
            "bytes=0-1,3-4",
            "bytes=a-b",
            "bytes=1",
            "items=0-1",
            "bytes=+1-2",
            "bytes=1--2",
            "bytes = 0-1",
            "0-1",
        ] {
            assert_eq!(range(text), Asked::Whole, "{text}");
        }
        assert_eq!(of(&[(header::RANGE, "bytes=0-1"), (header::RANGE, "bytes=0-1")]), Asked::Whole);
        assert_eq!(of(&[]), Asked::Whole);
        let head = headers(&[(header::RANGE, "bytes=0-1")]);
        assert_eq!(Asked::of(&Method::HEAD, &head, &TAG, 10), Asked::Whole);
    }

    #[test]
    fn if_range_holds_for_the_strong_tag_alone() {
        let with = |condition| of(&[(header::RANGE, "bytes=0-1"), (header::IF_RANGE, condition)]);
        assert_eq!(with("\"a\""), Asked::Part(0..2));
        for other in ["W/\"a\"", "\"b\"", "a", "*", "", "Sat, 21 Nov 2026 07:03:11 GMT"] {
            assert_eq!(with(other), Asked::Whole, "{other}");
        }
    }
}
