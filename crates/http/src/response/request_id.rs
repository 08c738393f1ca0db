//! Request ids: UUIDs of version 7, one for each exchange.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The length of an id's text.
pub(crate) const ID_BYTES: usize = uuid::fmt::Hyphenated::LENGTH;

/// The bits of the counter within a millisecond. An overflow continues in the next millisecond.
const COUNT_BITS: u32 = 12;

/// The id of one exchange, in its answer, its problem and its log line. A client's own `X-Request-Id`
/// is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(Uuid);

impl RequestId {
    #[expect(
        clippy::new_without_default,
        reason = "every id is new; a default would suggest otherwise"
    )]
    /// Creates a unique id. Later ids sort after earlier ones.
    #[must_use]
    pub fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let now = u64::try_from(now).unwrap_or_default() << COUNT_BITS;
        // At least one more than the last id, so that ids stay sorted within a millisecond and when the
        // clock is set back.
        let next = |last: u64| now.max(last.saturating_add(1));
        let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        let place = next(last.unwrap_or_else(|last| last));
        // A UUID of version 7 (RFC 9562). Its random bits come from keys drawn once per thread: a system
        // call for each id would cost more than all else here.
        let (ms, count) = (place >> COUNT_BITS, place & ((1 << COUNT_BITS) - 1));
        let random = RandomState::new().hash_one(place) >> 2;
        Self(Uuid::from_u64_pair(ms << 16 | 0x7000 | count, 1 << 63 | random))
    }

    /// Sets `X-Request-Id` of an answer.
    pub(crate) fn put_on(self, headers: &mut HeaderMap) {
        let mut text = [0; ID_BYTES];
        if let Ok(value) = HeaderValue::from_str(self.write(&mut text)) {
            headers.insert(X_REQUEST_ID, value);
        }
    }

    /// Writes the id into a buffer, so that headers and log lines need no `String`.
    pub(crate) fn write(self, text: &mut [u8; ID_BYTES]) -> &str {
        self.0.hyphenated().encode_lower(text)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
