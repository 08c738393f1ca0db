//! Addresses of sessions, logs, entries, agents and state values.

use std::fmt::Write as _;

use blackboard_board::{
    AgentName, CheckpointName, Digest, InvalidPath, LogName, Seq, SessionName, StatePath,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters to encode: all but the unreserved ones of RFC 3986.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The characters to encode in several segments.
const PATH: &AsciiSet = &SEGMENT.remove(b'/');

/// The capacity of a new address, enough for most.
const URL_BYTES: usize = 96;

/// Returns the URL path of a session.
#[must_use]
pub fn session_url(session: &SessionName) -> String {
    // Avoids growing in most cases: every append answers with an address.
    let mut url = String::with_capacity(URL_BYTES);
    url.push_str("/v1/sessions/");
    url.extend(utf8_percent_encode(session.as_str(), SEGMENT));
    url
}

/// Returns the URL path of a log.
#[must_use]
pub fn log_url(session: &SessionName, log: &LogName) -> String {
    match log {
        LogName::Memory(agent) => format!("{}/memory", agent_url(session, agent)),
        LogName::Messages(agent) => format!("{}/messages", agent_url(session, agent)),
        LogName::Questions | LogName::Requests | LogName::Trajectories | LogName::Screenshots => {
            let mut url = session_url(session);
            // Writing to a String does not fail.
            write!(url, "/{log}").ok();
            url
        }
    }
}

/// Returns the path of a log within its session, not percent-encoded.
#[must_use]
pub fn log_path(log: &LogName) -> String {
    match log {
        LogName::Memory(agent) => format!("{}/memory", agent_path(agent)),
        LogName::Messages(agent) => format!("{}/messages", agent_path(agent)),
        LogName::Questions | LogName::Requests | LogName::Trajectories | LogName::Screenshots => {
            log.to_string()
        }
    }
}

/// Parses the path of a log within its session, not percent-encoded.
#[must_use]
pub fn parse_log_path(path: &str) -> Option<LogName> {
    LogName::of_board(path).or_else(|| {
        let (agent, kind) = path.strip_prefix("agents/")?.rsplit_once('/')?;
        let agent = || agent.parse().ok();
        match kind {
            "memory" => agent().map(LogName::Memory),
            "messages" => agent().map(LogName::Messages),
            _ => None,
        }
    })
}

/// Returns the URL path of an agent.
#[must_use]
pub fn agent_url(session: &SessionName, agent: &AgentName) -> String {
    format!("{}/agents/{}", session_url(session), segment(agent.as_str()))
}

/// Returns the path of an agent within its session, not percent-encoded.
#[must_use]
pub fn agent_path(agent: &AgentName) -> String {
    format!("agents/{agent}")
}

/// Returns the URL path of a checkpoint.
#[must_use]
pub fn checkpoint_url(session: &SessionName, checkpoint: &CheckpointName) -> String {
    let checkpoint = utf8_percent_encode(checkpoint.as_str(), SEGMENT);
    format!("{}/checkpoints/{checkpoint}", session_url(session))
}

/// Returns the URL path of a value in the state.
#[must_use]
pub fn state_url(session: &SessionName, path: &StatePath) -> String {
    let (slash, path) = if path.is_root() { ("", String::new()) } else { ("/", path.to_string()) };
    format!("{}/state{slash}{}", session_url(session), utf8_percent_encode(&path, PATH))
}

/// Encodes a name as a path segment.
#[must_use]
pub fn segment(name: &str) -> String {
    utf8_percent_encode(name, SEGMENT).to_string()
}

/// Returns the URL path of an entry.
#[must_use]
pub fn entry_url(session: &SessionName, log: &LogName, seq: Seq) -> String {
    let mut url = log_url(session, log);
    write!(url, "/{seq}").ok();
    url
}

/// Returns the address of a blob.
#[must_use]
pub fn blob_url(session: &SessionName, sha256: &Digest) -> String {
    format!("{}/blobs/{sha256}", session_url(session))
}

/// Returns the URL path of a screenshot's image.
#[must_use]
pub fn image_url(session: &SessionName, seq: Seq) -> String {
    format!("{}/image", entry_url(session, &LogName::Screenshots, seq))
}

/// Decodes percent-encoded UTF-8. Returns `None` if two hex digits do not follow a `%`, or the result is not
/// UTF-8.
#[must_use]
pub fn percent_decode(raw: &[u8]) -> Option<String> {
    let is_escaped = raw.split(|byte| *byte == b'%').skip(1).all(|rest| {
        let digits = rest.iter().take(2).filter(|byte| byte.is_ascii_hexdigit());
        digits.count() == 2
    });
    let decoded = percent_encoding::percent_decode(raw).decode_utf8().ok()?;
    is_escaped.then(|| decoded.into_owned())
}

/// The reason why a text is not a path in the state.
#[derive(Debug, thiserror::Error)]
pub enum InvalidStatePath {
    /// The percent-encoding is malformed, or not of UTF-8.
    #[error("the path is not percent-encoded UTF-8")]
    Encoding,
    /// The segments are not a path.
    #[error("the path in the state is invalid: {0}")]
    Path(#[from] InvalidPath),
}

/// Parses a path in the state from an address: percent-decoded, then split at slashes. Generated clients encode the
/// slash.
///
/// # Errors
///
/// The encoding is malformed, or the segments are no path.
pub fn state_path(raw: &str) -> Result<StatePath, InvalidStatePath> {
    let path = percent_decode(raw.as_bytes()).ok_or(InvalidStatePath::Encoding)?;
    Ok(path.parse::<StatePath>()?)
}

/// Returns the session in a URL path, if any.
#[must_use]
pub fn session_of(path: &str) -> Option<SessionName> {
    let name = path.strip_prefix("/v1/sessions/")?.split('/').next()?;
    percent_decode(name.as_bytes())?.parse().ok()
}
