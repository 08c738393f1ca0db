//! Trace context of a request, from `traceparent` (W3C Trace Context).
//!
//! What is not well-formed to the letter is no trace: a header that is sent by many programs and read by few
//! goes no further than it can be trusted.

use std::hash::{BuildHasher as _, RandomState};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Names the trace and the span that a request comes from.
pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// How long it is in version 00, with which every later one begins.
const LENGTH: usize = 55;

/// The flags that mean something: that the trace is recorded, and that its id is random.
const FLAGS: u8 = 0b11;

/// That the trace is recorded.
const SAMPLED: u8 = 0b01;

/// A request's place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trace {
    id: u128,
    parent: u64,
    span: u64,
    flags: u8,
}

impl Trace {
    /// What the headers say, with a span of our own below it; `None` where they say nothing that is well-formed.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut sent = headers.get_all(TRACEPARENT).iter();
        let (Some(sent), None) = (sent.next(), sent.next()) else { return None };
        let (id, parent, flags) = parse(sent.to_str().ok()?)?;
        Some(Self { id, parent, span: new_span(), flags: flags & FLAGS })
    }

    /// The trace's id.
    pub(super) fn id(&self) -> String {
        format!("{:032x}", self.id)
    }

    /// The id of the client's span.
    pub(super) fn parent(&self) -> String {
        format!("{:016x}", self.parent)
    }

    /// The id of this request's span.
    pub(super) fn span(&self) -> String {
        format!("{:016x}", self.span)
    }

    /// Whether the client records it.
    pub(super) const fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// What is passed on.
    pub(super) fn value(&self) -> Option<HeaderValue> {
        let text = format!("00-{:032x}-{:016x}-{:02x}", self.id, self.span, self.flags);
        HeaderValue::from_str(&text).ok()
    }
}

/// The trace's id, the client's span and the flags.
fn parse(text: &str) -> Option<(u128, u64, u8)> {
    let (head, more) = text.split_at_checked(LENGTH)?;
    let mut parts = head.split('-');
    let [version, id, parent, flags] = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    let version = u8::try_from(hex(version, 2)?).ok()?;
    // A later version may go on behind a dash.
    let fits = match version {
        0 => more.is_empty(),
        0xff => false,
        _ => more.is_empty() || more.starts_with('-'),
    };
    let id = hex(id, 32)?;
    let parent = u64::try_from(hex(parent, 16)?).ok()?;
    let flags = u8::try_from(hex(flags, 2)?).ok()?;
    (fits && parts.next().is_none() && id != 0 && parent != 0).then_some((id, parent, flags))
}

/// So many digits, none of them in upper case.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_hex = text.len() == digits && text.bytes().all(is_digit);
    is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

/// Random, and never 0, which is no id.
fn new_span() -> u64 {
    RandomState::new().hash_one(()).max(1)
}

#[cfg(test)]
mod tests;
