//! Trace context of a request, from `traceparent` (W3C Trace Context).
//!
//! A header that is not strictly well-formed is ignored: many programs send the header, and few check it.

use std::hash::{BuildHasher as _, RandomState};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use blackboard_board::TraceId;

/// The header that names the trace and parent span of a request.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The length of the header in version 00. Later versions begin with the same fields.
const LENGTH: usize = 55;

/// The defined flags: the trace is sampled, and its id is random.
const FLAGS: u8 = 0b11;

/// The flag of a sampled trace.
const SAMPLED: u8 = 0b01;

/// A request's place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    id: TraceId,
    parent: u64,
    span: u64,
    flags: u8,
}

impl Trace {
    /// Reads the headers and creates a child span; `None` unless there is exactly one well-formed header.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut sent = headers.get_all(TRACEPARENT).iter();
        let (Some(sent), None) = (sent.next(), sent.next()) else { return None };
        let (id, parent, flags) = parse(sent.to_str().ok()?)?;
        Some(Self { id, parent, span: new_span(), flags: flags & FLAGS })
    }

    /// Returns the trace's id.
    pub(crate) const fn id(&self) -> TraceId {
        self.id
    }

    /// Returns the id of the client's span.
    pub(crate) fn parent(&self) -> String {
        format!("{:016x}", self.parent)
    }

    /// Returns the id of this request's span.
    pub(crate) fn span(&self) -> String {
        format!("{:016x}", self.span)
    }

    /// Returns true if the client samples the trace.
    pub(crate) const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Returns the header to send, with this request's span.
    pub(crate) fn value(&self) -> Option<HeaderValue> {
        let text = format!("00-{}-{:016x}-{:02x}", self.id, self.span, self.flags);
        HeaderValue::from_str(&text).ok()
    }
}

/// Parses the trace's id, the client's span and the flags.
fn parse(text: &str) -> Option<(TraceId, u64, u8)> {
    let (head, more) = text.split_at_checked(LENGTH)?;
    let mut parts = head.split('-');
    let [version, id, parent, flags] = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    let version = u8::try_from(hex(version, 2)?).ok()?;
    // A later version may have more fields after a dash.
    let fits = match version {
        0 => more.is_empty(),
        0xff => false,
        _ => more.is_empty() || more.starts_with('-'),
    };
    let id = id.parse().ok()?;
    let parent = u64::try_from(hex(parent, 16)?).ok()?;
    let flags = u8::try_from(hex(flags, 2)?).ok()?;
    (fits && parts.next().is_none() && parent != 0).then_some((id, parent, flags))
}

/// Parses exactly `digits` hexadecimal digits in lower case.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_hex = text.len() == digits && text.bytes().all(is_digit);
    is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

/// Returns a random id; 0 is invalid.
fn new_span() -> u64 {
    RandomState::new().hash_one(()).max(1)
}

#[cfg(test)]
mod tests {
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
        for value in [
            format!("01-{ID}-{SPAN}-01"),
            format!("cc-{ID}-{SPAN}-01-what the future will be like"),
        ] {
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
}
