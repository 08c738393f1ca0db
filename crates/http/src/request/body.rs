//! Request bodies, limited in size, memory and time.
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body::Frame;
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use crate::access::broken_off;
use crate::edge::{LINGER_BYTES_MAX, RATIO_MAX, is_corrupt, is_inflated, is_late};
use crate::response::problem::Problem;
use blackboard_api::intake::fields::json_text;
use blackboard_api::offload::work;
use blackboard_api::refusal::Refusal;
use blackboard_board::{Code, LogName};
use blackboard_fairness::{Place, Share, SharedPlaces};

/// The maximum size of a body, decompressed, unless a route allows more.
pub(crate) const BODY_BYTES_MAX: usize = 8 << 20;

/// The maximum size of a body on routes for screenshots.
const SCREENSHOT_BODY_BYTES_MAX: usize = 32 << 20;

/// The maximum size of a request to another protocol's door, which may have a screenshot.
pub(crate) const DOOR_BODY_BYTES_MAX: usize = SCREENSHOT_BODY_BYTES_MAX;

/// The maximum size of a body of `PUT blackboard`.
pub(crate) const BLACKBOARD_BODY_BYTES_MAX: usize = 256 << 20;

/// The maximum size of an archive. Archives are streamed, never held whole.
pub(crate) const ARCHIVE_BODY_BYTES_MAX: usize = 256 << 20;

/// The maximum memory that the bodies of one client's requests hold together.
const BODIES_BYTES_MAX: u64 = 256 << 20;

/// The time limit of a whole body. The edge ends silent bodies, so checking the clock at each frame is
/// enough.
const BODY_TIME_MAX: Duration = Duration::from_secs(15 * 60);

/// The longest silence while the rest of a refused body is drained before the answer.
const LINGER_SILENCE_MAX: Duration = Duration::from_millis(500);

/// The memory that request bodies share.
#[derive(Clone, Debug)]
pub(crate) struct BodyRoom(SharedPlaces);

impl BodyRoom {
    /// Creates the limit, with all memory free.
    pub(crate) fn new() -> Self {
        Self(SharedPlaces::new(BODIES_BYTES_MAX, 0, Share::LeavesRest))
    }
}

/// A body that was read whole. It holds its share of the shared memory until it is dropped.
pub(crate) struct BodyBytes {
    bytes: Vec<u8>,
    _room: Option<Place>,
}

impl BodyBytes {
    /// Returns the bytes, and releases their share of the memory.
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

impl AsRef<[u8]> for BodyBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns the maximum size of a body with items for this log.
pub(crate) fn items_bytes_max(log: &LogName) -> usize {
    match log {
        LogName::Screenshots => SCREENSHOT_BODY_BYTES_MAX,
        LogName::Questions
        | LogName::Requests
        | LogName::Trajectories
        | LogName::Memory(_)
        | LogName::Messages(_) => BODY_BYTES_MAX,
    }
}

/// Reads a body of at most `max` bytes. A body whose announced length is larger is refused unread.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    max: usize,
    room: &BodyRoom,
) -> Result<BodyBytes, Problem> {
    let mut body = unless_too_large(headers, body, max).await?;
    let until = Instant::now() + BODY_TIME_MAX;
    let (mut bytes, mut held) = (Vec::new(), None);
    // A body of announced length is refused before it arrives if memory is short, and else allocated only once.
    let mut reserved =
        announced(headers).map_or(0, |length| usize::try_from(length).unwrap_or(max));
    hold(room, reserved, &mut held)?;
    bytes.reserve_exact(reserved);
    while let Some(frame) = next_frame(&mut body, until).await? {
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > max {
            Box::pin(linger(body)).await;
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

/// Makes room for `more` bytes, by a factor of eight up to `max`. Capacity that is not written to takes no memory
/// yet. The smaller buffers left behind do, until the allocator returns them to the system, so that doubling took
/// twice as much memory in all.
fn grow(bytes: &mut Vec<u8>, more: usize, max: usize) {
    let needed = bytes.len() + more;
    if needed > bytes.capacity() {
        let wanted = bytes.capacity().saturating_mul(8).clamp(needed, max.max(needed));
        bytes.reserve_exact(wanted - bytes.len());
    }
}

/// Returns the announced length of the body, if any.
fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Refuses a body whose announced length is too large, unread.
async fn unless_too_large(headers: &HeaderMap, body: Body, max: usize) -> Result<Body, Problem> {
    if announced(headers).is_none_or(|length| length <= max as u64) {
        return Ok(body);
    }
    if !headers.contains_key(header::EXPECT) {
        Box::pin(linger(body)).await;
    }
    Err(too_large(max))
}

fn too_slow() -> Problem {
    let minutes = BODY_TIME_MAX.as_secs() / 60;
    let detail = format!("the body took longer than {minutes} minutes; send it faster or in parts");
    Problem::new(Code::RequestTimeout, detail)
}

/// A body that is streamed, never held whole.
pub(crate) struct Arriving {
    body: Body,
    max: usize,
    taken: usize,
    until: Instant,
}

impl Arriving {
    /// Begins a body of at most `max` bytes. A body whose announced length is larger is refused unread.
    pub(crate) async fn begin(
        headers: &HeaderMap,
        body: Body,
        max: usize,
    ) -> Result<Self, Problem> {
        let body = unless_too_large(headers, body, max).await?;
        Ok(Self { body, max, taken: 0, until: Instant::now() + BODY_TIME_MAX })
    }

    /// Returns the next piece; `None` at the end of the body.
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

    /// Discards the rest of a refused body.
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
        if let Some(unauthorized) = broken_off(&error) {
            return unauthorized;
        }
        let detail = if is_corrupt(&error) {
            "the body does not match its Content-Encoding"
        } else {
            "the body ended early"
        };
        Problem::new(Code::InvalidEncoding, detail)
    })
}

/// Discards the rest of a refused body. A client that still writes to a closed connection loses the answer;
/// a client that stops sending is not waited for.
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
    // The rest of the body is not read.
    let close = HeaderValue::from_static("close");
    Problem::new(Code::BodyTooLarge, detail).header(header::CONNECTION, close)
}

fn too_large(max: usize) -> Problem {
    let mib = max >> 20;
    let detail =
        format!("the body exceeds {mib} MiB ({max} bytes) after decompression; send less at once");
    // The rest of the body is not read.
    let close = HeaderValue::from_static("close");
    Problem::new(Code::BodyTooLarge, detail).header(header::CONNECTION, close)
}

/// Parses a body that is one JSON document.
pub(crate) async fn from_json<T: Send + 'static>(
    bytes: BodyBytes,
    read: impl FnOnce(&str) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    work(bytes.len(), move || read(json_text(&bytes)?)).await
}

/// Refuses the media type of a patch, and names the supported ones in `Accept-Patch` as well
/// (RFC 5789).
pub(crate) fn unpatchable(found: &str, accepted: &'static str, hint: &str) -> Problem {
    unsupported(found, accepted, hint)
        .header(HeaderName::from_static("accept-patch"), HeaderValue::from_static(accepted))
}

/// Returns the media type of a body, without parameters and in lower case.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.unwrap_or_default().split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// Refuses a body whose media type is not JSON.
pub(crate) fn only_json(headers: &HeaderMap) -> Result<(), Problem> {
    match media_type(headers).as_str() {
        "application/json" => Ok(()),
        sent => Err(unsupported(sent, "application/json", "for example with curl --json")),
    }
}

/// Returns the JSON document of an optional body; a missing body is an empty object.
pub(crate) fn json_or_nothing(headers: &HeaderMap, body: BodyBytes) -> Result<BodyBytes, Problem> {
    if body.is_empty() && matches!(media_type(headers).as_str(), "" | "application/json") {
        return Ok(BodyBytes { bytes: b"{}".to_vec(), _room: None });
    }
    only_json(headers)?;
    Ok(body)
}

/// Refuses a media type, and names the supported ones.
pub(crate) fn unsupported(found: &str, accepted: &'static str, hint: &str) -> Problem {
    let sent = match found {
        "" => "no Content-Type was sent".to_owned(),
        found => format!("'{found}' is not supported here"),
    };
    let detail = format!("{sent}; send {accepted}, {hint}");
    let accepted = HeaderValue::from_static(accepted);
    Problem::new(Code::UnsupportedMediaType, detail)
        .header(HeaderName::from_static("accept-post"), accepted)
}
