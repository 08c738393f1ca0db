//! Addresses of sessions, logs, entries, agents and places in the state.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::board::{AgentName, CheckpointName, InvalidPath, LogName, Seq, SessionName, StatePath};

/// Everything but the unreserved characters of RFC 3986.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How long most addresses are at most.
const URL_BYTES: usize = 96;

/// The address of a session, as a path.
pub(crate) fn session_url(session: &SessionName) -> String {
    // Room for what follows in most cases: every append answers with such an address.
    let mut url = String::with_capacity(URL_BYTES);
    url.push_str("/v1/sessions/");
    url.extend(utf8_percent_encode(session.as_str(), SEGMENT));
    url
}

/// The address of a log, as a path.
pub(crate) fn log_url(session: &SessionName, log: &LogName) -> String {
    let (mut url, path) = (session_url(session), log_path(log));
    url.push('/');
    url.push_str(&path);
    url
}

/// The address of a log within its session.
pub(crate) fn log_path(log: &LogName) -> String {
    match log {
        LogName::Memory(agent) => format!("{}/memory", agent_path(agent)),
        LogName::Questions | LogName::Requests | LogName::Trajectories | LogName::Screenshots => {
            log.to_string()
        }
    }
}

/// The address of an agent, as a path.
pub(crate) fn agent_url(session: &SessionName, agent: &AgentName) -> String {
    format!("{}/{}", session_url(session), agent_path(agent))
}

/// The address of an agent within its session.
pub(crate) fn agent_path(agent: &AgentName) -> String {
    format!("agents/{}", utf8_percent_encode(agent.as_str(), SEGMENT))
}

/// The address of a checkpoint, as a path.
pub(crate) fn checkpoint_url(session: &SessionName, checkpoint: &CheckpointName) -> String {
    let checkpoint = utf8_percent_encode(checkpoint.as_str(), SEGMENT);
    format!("{}/checkpoints/{checkpoint}", session_url(session))
}

/// The address of a place in the state, as a path.
pub(crate) fn state_url(session: &SessionName, path: &StatePath) -> String {
    let below = place_path(path);
    let slash = if below.is_empty() { "" } else { "/" };
    format!("{}/state{slash}{below}", session_url(session))
}

/// The address of a place within the state; of the whole it is empty.
pub(crate) fn place_path(path: &StatePath) -> String {
    let segments = path.segments().iter().map(|name| segment(name));
    segments.collect::<Vec<_>>().join("/")
}

/// A name as a segment of an address.
pub(crate) fn segment(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

/// The address of an entry, as a path.
pub(crate) fn entry_url(session: &SessionName, log: &LogName, seq: Seq) -> String {
    let mut url = log_url(session, log);
    url.push('/');
    url.push_str(&seq.to_string());
    url
}

/// The address of a screenshot's image, as a path.
pub(crate) fn image_url(session: &SessionName, seq: Seq) -> String {
    format!("{}/image", entry_url(session, &LogName::Screenshots, seq))
}

/// Decodes percent-encoded UTF-8; `None` where a `%` has no two hex digits behind it, or what comes out
/// is not UTF-8.
pub(crate) fn percent_decode(raw: &[u8]) -> Option<String> {
    let is_escaped = raw.split(|byte| *byte == b'%').skip(1).all(|rest| {
        let digits = rest.iter().take(2).filter(|byte| byte.is_ascii_hexdigit());
        digits.count() == 2
    });
    let decoded = percent_encoding::percent_decode(raw).decode_utf8().ok()?;
    is_escaped.then(|| decoded.into_owned())
}

/// Why a text names no place in the state.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidStatePath {
    /// Its percent-encoding is none, or does not give UTF-8.
    #[error("the path is not percent-encoded UTF-8")]
    Encoding,
    /// Its segments make no path.
    #[error("the path in the state is invalid: {0}")]
    Path(#[from] InvalidPath),
}

/// A path as addresses have it: split at slashes, then percent-decoded.
pub(crate) fn state_path(raw: &str) -> Result<StatePath, InvalidStatePath> {
    let segments = raw.split('/').map(|segment| percent_decode(segment.as_bytes()));
    let segments = segments.collect::<Option<Vec<_>>>().ok_or(InvalidStatePath::Encoding)?;
    Ok(StatePath::from_segments(segments)?)
}

/// The session that a path names, if it names one.
pub(crate) fn session_of(path: &str) -> Option<SessionName> {
    let name = path.strip_prefix("/v1/sessions/")?.split('/').next()?;
    percent_decode(name.as_bytes())?.parse().ok()
}
