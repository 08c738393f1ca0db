//! Request ids: UUIDs of version 7, one for each exchange.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// How long the text of an id is.
pub(crate) const ID_BYTES: usize = uuid::fmt::Hyphenated::LENGTH;

/// How many ids one millisecond has room for; those beyond are of the next one.
const COUNT_BITS: u32 = 12;

/// The name of one exchange, in its answer, its problem and its log line; a client's own `X-Request-Id`
/// is not taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(Uuid);

impl RequestId {
    #[expect(
        clippy::new_without_default,
        reason = "every one is new; a default would pretend otherwise"
    )]
    /// An id that nothing else has; later ones sort behind earlier ones.
    #[must_use]
    pub fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let now = u64::try_from(now).unwrap_or_default() << COUNT_BITS;
        // At least one more than the last, so that later ones sort behind it within a millisecond, and
        // where the clock was set back.
        let next = |last: u64| now.max(last.saturating_add(1));
        let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        let place = next(last.unwrap_or_else(|last| last));
        // A UUID of version 7 (RFC 9562). Its random bits come from keys that are drawn once a thread:
        // asking the system for each costs more than all else here.
        let (ms, count) = (place >> COUNT_BITS, place & ((1 << COUNT_BITS) - 1));
        let random = RandomState::new().hash_one(place) >> 2;
        Self(Uuid::from_u64_pair(ms << 16 | 0x7000 | count, 1 << 63 | random))
    }

    /// Puts it on an answer.
    pub(crate) fn put_on(self, headers: &mut HeaderMap) {
        let mut text = [0; ID_BYTES];
        if let Ok(value) = HeaderValue::from_str(self.write(&mut text)) {
            headers.insert(X_REQUEST_ID, value);
        }
    }

    /// Its text, written into a buffer: neither a header nor a log line needs a string of its own.
    pub(crate) fn write(self, text: &mut [u8; ID_BYTES]) -> &str {
        self.0.hyphenated().encode_lower(text)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
