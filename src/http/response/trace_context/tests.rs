//! Tests of well-formed and malformed trace headers.

use super::*;

const ID: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

fn of(values: &[&str]) -> Option<Trace> {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(TRACEPARENT, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    Trace::of(&headers)
}

#[test]
fn a_trace_goes_on_under_a_span_of_our_own() {
    for (flags, passed, sampled) in
        [("00", "00", false), ("01", "01", true), ("03", "03", true), ("ff", "03", true)]
    {
        let trace = of(&[&format!("00-{ID}-{SPAN}-{flags}")]).unwrap();
        assert_eq!((trace.id().to_string().as_str(), trace.parent().as_str()), (ID, SPAN));
        assert_eq!(trace.is_sampled(), sampled);
        let value = trace.value().unwrap();
        assert_eq!(value, format!("00-{ID}-{}-{passed}", trace.span()));
        assert_ne!(trace.span(), SPAN);
        assert_eq!(trace.span().len(), 16);
    }
}

#[test]
fn a_later_version_is_read_as_far_as_it_is_known() {
    for value in
        [format!("01-{ID}-{SPAN}-01"), format!("cc-{ID}-{SPAN}-01-what the future will be like")]
    {
        let trace = of(&[&value]).unwrap();
        assert_eq!(trace.id().to_string(), ID);
        assert!(trace.value().unwrap().to_str().unwrap().starts_with("00-"));
    }
}

#[test]
fn what_is_not_well_formed_is_no_trace() {
    for value in [
        String::new(),
        "00".to_owned(),
        format!("ff-{ID}-{SPAN}-01"),
        format!("0-{ID}-{SPAN}-01"),
        format!("00-{ID}-{SPAN}-01-more"),
        format!("00-{ID}-{SPAN}-011"),
        format!("00-{ID}-{SPAN}-1"),
        format!("00-{ID}-{SPAN}"),
        format!("01-{ID}-{SPAN}-01more"),
        format!("00-{}-{SPAN}-01", ID.to_uppercase()),
        format!("00-{}-{SPAN}-01", "0".repeat(32)),
        format!("00-{ID}-{}-01", "0".repeat(16)),
        format!("00-{}-{SPAN}-01", &ID[1..]),
        format!("00-{ID}-{SPAN}-0g"),
        format!("00-{ID}-{SPAN}-+1"),
        format!("00_{ID}_{SPAN}_01"),
        format!(" 00-{ID}-{SPAN}-01"),
        format!("00-{ID}-{SPAN}-é1"),
        format!("00-{ID}-{}-{}-01", &SPAN[..7], &SPAN[..8]),
    ] {
        assert_eq!(of(&[&value]), None, "{value:?}");
    }
}

#[test]
fn two_of_them_are_none() {
    let one = format!("00-{ID}-{SPAN}-01");
    assert_eq!(of(&[&one, &one]), None);
    assert_eq!(of(&[]), None);
}
