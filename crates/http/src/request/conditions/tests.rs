//! Tests of conditional headers: known tags and the conditions parsed from them.

use uuid::Uuid;

use axum::http::HeaderValue;

use super::*;
use blackboard_board::{LogName, Revision, Seq, Version};

const EPOCH: Epoch = Epoch(1);
const SESSION: SessionId = SessionId(Uuid::from_u128(7));

fn version(changed: u64) -> Version {
    Version { session: SESSION, changed: Revision(changed) }
}

fn log() -> Resource {
    Resource::Log(LogName::Requests)
}

fn tag(changed: u64) -> Tag {
    Tag::new(EPOCH, version(changed), &log())
}

fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(name, value.parse().unwrap());
    }
    headers
}

fn if_match(value: &str) -> Result<Condition, Code> {
    let headers = headers(&[(header::IF_MATCH, value)]);
    condition(&headers, EPOCH, Some(SESSION), &log()).map_err(|problem| problem.code())
}

fn of(versions: &[u64]) -> Condition {
    let versions = versions.iter().map(|changed| version(*changed)).collect();
    Condition { matches: Some(Matches::Versions(versions)), absent: false }
}

fn known(value: &str, tag: &Tag) -> Result<bool, Code> {
    let headers = headers(&[(header::IF_NONE_MATCH, value)]);
    is_known(&headers, tag).map_err(|problem| problem.code())
}

#[test]
fn a_tag_is_the_condition_of_its_version() {
    assert_eq!(if_match(&tag(3).to_string()), Ok(of(&[3])));
    assert_eq!(if_match(&tag(u64::MAX).to_string()), Ok(of(&[u64::MAX])));
    let filtered = tag(3).rendering("steps=1", "application/x-ndjson").to_string();
    assert_eq!(if_match(&filtered), Ok(of(&[3])), "a condition is about the whole resource");
    let headers = headers(&[]);
    let none = condition(&headers, EPOCH, Some(SESSION), &log()).unwrap();
    assert_eq!(none, Condition::default());
}

#[test]
fn a_list_names_each_of_its_versions() {
    let (a, b) = (tag(3).to_string(), tag(10).rendering("keys=a", "").to_string());
    for list in
        [format!("{a},{b}"), format!("{a} ,\t {b}"), format!("  {a}, {b}  "), format!("{a},,{b},")]
    {
        assert_eq!(if_match(&list), Ok(of(&[3, 10])), "{list}");
    }
    let lines = headers(&[(header::IF_MATCH, a.as_str()), (header::IF_MATCH, b.as_str())]);
    let both = condition(&lines, EPOCH, Some(SESSION), &log()).unwrap();
    assert_eq!(both, of(&[3, 10]));
}

#[test]
fn a_foreign_tag_is_no_version() {
    let mine = tag(3).to_string();
    let entry =
        Tag::new(EPOCH, version(3), &Resource::Entry(LogName::Requests, Seq(1))).to_string();
    for foreign in [
        Tag::new(Epoch(2), version(3), &log()).to_string(),
        entry,
        Tag::of_bytes(EPOCH, b"{}").to_string(),
        format!("W/{mine}"),
        mine.replacen("\"3.", "\"03.", 1),
        mine.replacen("\"3.", "\"+3.", 1),
        mine.to_uppercase().replace("\"3.", "\"3.0"),
        "\"\"".to_owned(),
        "\"-\"".to_owned(),
        "\".\"".to_owned(),
        "\"*\"".to_owned(),
        "\"é\"".escape_default().to_string().replace('\\', ""),
    ] {
        assert_eq!(if_match(&foreign), Ok(of(&[])), "{foreign}");
    }
    let headers = headers(&[(header::IF_MATCH, mine.as_str())]);
    for session in [None, Some(SessionId(Uuid::from_u128(8)))] {
        assert_eq!(condition(&headers, EPOCH, session, &log()).unwrap(), of(&[]));
    }
}

#[test]
fn a_star_is_any() {
    for star in ["*", " * "] {
        let any = Condition { matches: Some(Matches::Any), absent: false };
        assert_eq!(if_match(star), Ok(any));
        assert_eq!(known(star, &tag(3)), Ok(true));
    }
    let none = headers(&[(header::IF_NONE_MATCH, "*")]);
    let absent = Condition { matches: None, absent: true };
    assert_eq!(condition(&none, EPOCH, None, &log()).unwrap(), absent);
    let both = headers(&[(header::IF_NONE_MATCH, "*"), (header::IF_MATCH, "*")]);
    let both = condition(&both, EPOCH, None, &log()).unwrap();
    assert_eq!(both, Condition { matches: Some(Matches::Any), absent: true });
}

#[test]
fn what_is_no_list_of_tags_is_refused() {
    let many = ["\"a\""; TAGS_MAX + 1].join(",");
    for malformed in [
        "a",
        "3",
        "\"a",
        "a\"",
        "\"a\" \"b\"",
        "\"a\",b",
        "*, \"a\"",
        "\"a\", *",
        "**",
        "w/\"a\"",
        "W/a",
        &many,
    ] {
        assert_eq!(if_match(malformed), Err(Code::InvalidParameter), "{malformed}");
        assert_eq!(known(malformed, &tag(3)), Err(Code::InvalidParameter), "{malformed}");
    }
    assert_eq!(if_match(&["\"a\""; TAGS_MAX].join(",")), Ok(of(&[])));
    let mut bytes = HeaderMap::new();
    bytes.insert(header::IF_MATCH, HeaderValue::from_bytes(b"\"\xff\"").unwrap());
    assert!(condition(&bytes, EPOCH, None, &log()).is_err());
}

#[test]
fn a_write_takes_no_tags_to_be_absent() {
    let headers = headers(&[(header::IF_NONE_MATCH, tag(3).as_str())]);
    let refused = condition(&headers, EPOCH, Some(SESSION), &log()).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidParameter);
}

#[test]
fn a_read_knows_its_own_rendering_alone_weakly() {
    let plain = tag(3);
    let filtered = tag(3).rendering("keys=a", "");
    assert_eq!(known(&plain.to_string(), &plain), Ok(true));
    assert_eq!(known(&format!("\"x\", W/{plain}"), &plain), Ok(true));
    assert_eq!(known(&filtered.to_string(), &plain), Ok(false));
    assert_eq!(known(&plain.to_string(), &filtered), Ok(false));
    assert_eq!(known(&tag(4).to_string(), &plain), Ok(false));
    assert!(!is_known(&HeaderMap::new(), &plain).unwrap());
}
