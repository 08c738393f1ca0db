//! Request bodies: read within limits of size, shared memory and time.

use crate::api::intake::fields::json_text;
use crate::api::offload::work;
use crate::api::refusal::Refusal;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body::Frame;
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use crate::board::{Code, LogName};
use crate::fairness::{Limiter, Place, Share};
use crate::http::edge::{LINGER_BYTES_MAX, RATIO_MAX, is_corrupt, is_inflated, is_late};
use crate::http::response::problem::Problem;

/// The largest body, decompressed, unless a route takes more.
pub(crate) const BODY_BYTES_MAX: usize = 8 << 20;

/// The largest body of a route that takes screenshots.
const SCREENSHOT_BODY_BYTES_MAX: usize = 32 << 20;

/// The largest body of `PUT blackboard`.
pub(crate) const BLACKBOARD_BODY_BYTES_MAX: usize = 256 << 20;

/// The largest body that is an archive; it is read as it comes, and never whole.
pub(crate) const ARCHIVE_BODY_BYTES_MAX: usize = 256 << 20;

/// What the bodies of one client's requests may hold in memory together.
const BODIES_BYTES_MAX: u64 = 256 << 20;

/// How long a whole body may take. The edge lets none keep silent for long, so that it is enough to look
/// at the clock with each piece.
const BODY_TIME_MAX: Duration = Duration::from_secs(15 * 60);

/// How long the rest of a refused body may keep silent before the answer.
const LINGER_SILENCE_MAX: Duration = Duration::from_millis(500);

/// The memory that request bodies share.
#[derive(Clone, Debug)]
pub(crate) struct BodyRoom(Limiter);

impl BodyRoom {
    /// All of it, free.
    pub(crate) fn new() -> Self {
        Self(Limiter::new(BODIES_BYTES_MAX, 0, Share::LeavesRest))
    }
}

/// A body that was read whole. It holds its share of the room until it is dropped.
pub(crate) struct BodyBytes {
    bytes: Vec<u8>,
    _room: Option<Place>,
}

impl BodyBytes {
    /// The bytes alone.
    pub(crate) fn into_vec(self) -> Vec<u8> {
        self.bytes
    }
}

impl std::ops::Deref for BodyBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The largest body of a route that takes items for this log.
pub(crate) fn items_bytes_max(log: &LogName) -> usize {
    match log {
        LogName::Screenshots => SCREENSHOT_BODY_BYTES_MAX,
        LogName::Questions | LogName::Requests | LogName::Trajectories | LogName::Memory(_) => {
            BODY_BYTES_MAX
        }
    }
}

/// Reads a body of at most `max` bytes. A length that is announced as larger is refused unread.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    max: usize,
    room: &BodyRoom,
) -> Result<BodyBytes, Problem> {
    let mut body = unless_too_large(headers, body, max).await?;
    let until = Instant::now() + BODY_TIME_MAX;
    let (mut bytes, mut held) = (Vec::new(), None);
    // One for which there will be no room is refused before it comes, and one for which there is grows only once.
    let mut reserved =
        announced(headers).map_or(0, |length| usize::try_from(length).unwrap_or(max));
    hold(room, reserved, &mut held)?;
    bytes.reserve_exact(reserved);
    while let Some(frame) = next_frame(&mut body, until).await? {
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > max {
            linger(body).await;
            return Err(too_large(max));
        }
        let needed = bytes.len() + data.len();
        if needed > reserved {
            hold(room, needed - reserved, &mut held)?;
            reserved = needed;
        }
        grow(&mut bytes, data.len(), max);
        bytes.extend_from_slice(&data);
    }
    Ok(BodyBytes { bytes, _room: held })
}

/// Makes room for `more` bytes of at most `max`: eight times as much as there was, but never beyond what the body may
/// have. Room that is not written to takes no memory yet; what each step leaves behind does, until the allocator
/// gives it back, so that doubling took twice as much in all.
fn grow(bytes: &mut Vec<u8>, more: usize, max: usize) {
    let needed = bytes.len() + more;
    if needed > bytes.capacity() {
        let wanted = bytes.capacity().saturating_mul(8).clamp(needed, max.max(needed));
        bytes.reserve_exact(wanted - bytes.len());
    }
}

/// How long the body will be, where that is told.
fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Refuses a body whose announced length is too large, unread.
async fn unless_too_large(headers: &HeaderMap, body: Body, max: usize) -> Result<Body, Problem> {
    if announced(headers).is_none_or(|length| length <= max as u64) {
        return Ok(body);
    }
    if !headers.contains_key(header::EXPECT) {
        linger(body).await;
    }
    Err(too_large(max))
}

fn too_slow() -> Problem {
    let minutes = BODY_TIME_MAX.as_secs() / 60;
    let detail = format!("the body took longer than {minutes} minutes; send it faster or in parts");
    Problem::new(Code::RequestTimeout, detail)
}

/// A body that is taken piece by piece, and never held whole.
pub(crate) struct Arriving {
    body: Body,
    max: usize,
    taken: usize,
    until: Instant,
}

impl Arriving {
    /// A body of at most `max` bytes. A length that is announced as larger is refused unread.
    pub(crate) async fn begin(
        headers: &HeaderMap,
        body: Body,
        max: usize,
    ) -> Result<Self, Problem> {
        let body = unless_too_large(headers, body, max).await?;
        Ok(Self { body, max, taken: 0, until: Instant::now() + BODY_TIME_MAX })
    }

    /// The next piece; `None` at its end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let frame = next_frame(&mut self.body, self.until).await?;
            let Some(frame) = frame else { return Ok(None) };
            let Ok(data) = frame.into_data() else { continue };
            self.taken += data.len();
            if self.taken > self.max {
                self.linger().await;
                return Err(too_large(self.max));
            }
            return Ok(Some(data));
        }
    }

    /// Throws away what a client still sends of it: it is refused.
    pub(crate) async fn linger(&mut self) {
        linger(std::mem::take(&mut self.body)).await;
    }
}

async fn next_frame(body: &mut Body, until: Instant) -> Result<Option<Frame<Bytes>>, Problem> {
    let frame = body.frame().await.transpose();
    if Instant::now() > until {
        return Err(too_slow());
    }
    frame.map_err(|error| {
        if is_late(&error) {
            return Problem::new(
                Code::RequestTimeout,
                "the body stalled; send it again without pauses",
            );
        }
        if is_inflated(&error) {
            return inflated();
        }
        let detail = if is_corrupt(&error) {
            "the body does not match its Content-Encoding"
        } else {
            "the body broke off"
        };
        Problem::new(Code::InvalidEncoding, detail)
    })
}

/// Throws away what a client still sends of a body that is refused. A connection that is closed under
/// a client that writes takes the answer with it; but what is never read need not be waited for.
pub(crate) async fn linger(mut body: Body) {
    let mut bytes = 0;
    while bytes < LINGER_BYTES_MAX {
        let frame = tokio::time::timeout(LINGER_SILENCE_MAX, body.frame()).await;
        let Ok(Some(Ok(frame))) = frame else { return };
        bytes += frame.data_ref().map_or(0, Bytes::len);
    }
}

fn hold(room: &BodyRoom, bytes: usize, held: &mut Option<Place>) -> Result<(), Problem> {
    if bytes == 0 {
        return Ok(());
    }
    let more = room.0.now(bytes as u64).ok_or_else(|| {
        Problem::new(Code::Overloaded, "request bodies fill the server's memory limit; retry later")
    })?;
    match held {
        Some(held) => held.merge(more),
        None => *held = Some(more),
    }
    Ok(())
}

fn inflated() -> Problem {
    let detail = format!(
        "the body expands to more than {RATIO_MAX} times its compressed size; send it uncompressed"
    );
    // The rest is not read.
    let close = HeaderValue::from_static("close");
    Problem::new(Code::BodyTooLarge, detail).header(header::CONNECTION, close)
}

fn too_large(max: usize) -> Problem {
    let mib = max >> 20;
    let detail =
        format!("the body exceeds {mib} MiB ({max} bytes) after decompression; send less at once");
    // What the client still sends is not read.
    let close = HeaderValue::from_static("close");
    Problem::new(Code::BodyTooLarge, detail).header(header::CONNECTION, close)
}

/// Makes something of a body that is one JSON document.
pub(crate) async fn from_json<T: Send + 'static>(
    bytes: BodyBytes,
    read: impl FnOnce(&str) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    work(bytes.len(), move || read(json_text(&bytes)?)).await
}

/// The refusal of a media type that a patch does not have (RFC 5789 has those that it may in
/// `Accept-Patch`).
pub(crate) fn unpatchable(found: &str, accepted: &'static str, hint: &str) -> Problem {
    unsupported(found, accepted, hint)
        .header(HeaderName::from_static("accept-patch"), HeaderValue::from_static(accepted))
}

/// The media type of a body, without its parameters, in lower case.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.unwrap_or_default().split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// Refuses every body that is not said to be JSON.
pub(crate) fn only_json(headers: &HeaderMap) -> Result<(), Problem> {
    match media_type(headers).as_str() {
        "application/json" => Ok(()),
        sent => Err(unsupported(sent, "application/json", "for example with curl --json")),
    }
}

/// The JSON document of a body that may be left out: an absent one is an empty object.
pub(crate) fn json_or_nothing(headers: &HeaderMap, body: BodyBytes) -> Result<BodyBytes, Problem> {
    if body.is_empty() && matches!(media_type(headers).as_str(), "" | "application/json") {
        return Ok(BodyBytes { bytes: b"{}".to_vec(), _room: None });
    }
    only_json(headers)?;
    Ok(body)
}

/// The refusal of a media type: it says what to send instead.
pub(crate) fn unsupported(found: &str, accepted: &'static str, hint: &str) -> Problem {
    let sent = match found {
        "" => "no Content-Type was sent".to_owned(),
        found => format!("'{found}' is not taken here"),
    };
    let detail = format!("{sent}; send {accepted}, {hint}");
    let accepted = HeaderValue::from_static(accepted);
    Problem::new(Code::UnsupportedMediaType, detail)
        .header(HeaderName::from_static("accept-post"), accepted)
}
