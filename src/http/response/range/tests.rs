//! Tests of byte ranges of a ten-byte body.

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
