//! `Idempotency-Key`, and the fingerprint that identifies a retry.
//!
//! A repeat agrees with the first request in method, path, query, conditions, media type, body and
//! author.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};

use crate::response::problem::Problem;
use blackboard_api::fingerprint::Fingerprint;
use blackboard_board::{AgentName, Code, Digest, KEY_CHARS_MAX, Key};

const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// The headers that are part of the fingerprint.
const TELLING: [HeaderName; 3] = [header::IF_MATCH, header::IF_NONE_MATCH, header::CONTENT_TYPE];

/// A request's key, and the hash of its parts so far.
#[derive(Clone)]
pub(crate) struct Repeat {
    key: String,
    said: Fingerprint,
}

impl Repeat {
    /// Reads the key of a request, if any, and hashes its head.
    pub(crate) fn of(parts: &Parts) -> Result<Option<Self>, Problem> {
        let Some(key) = key(&parts.headers)? else { return Ok(None) };
        let mut repeat = Self { key, said: Fingerprint::default() };
        repeat.said.say(parts.method.as_str().as_bytes());
        repeat.said.say(parts.uri.path().as_bytes());
        repeat.said.say(parts.uri.query().unwrap_or_default().as_bytes());
        for name in TELLING {
            let values = parts.headers.get_all(name);
            repeat.said.say(&values.iter().count().to_be_bytes());
            values.iter().for_each(|value| repeat.said.say(value.as_bytes()));
        }
        Ok(Some(repeat))
    }

    /// Adds the request's body.
    pub(crate) fn with_body(mut self, body: &[u8]) -> Self {
        self.said.say(body);
        self
    }

    /// Adds the digest of a body that was streamed.
    pub(crate) fn with_digest(self, body: Digest) -> Self {
        self.with_body(&body.0)
    }

    /// Returns the key with the fingerprint of the whole request and its author.
    /// `identity` tells callers apart that write under the same name.
    pub(crate) fn key(&self, author: Option<&AgentName>, identity: Option<[u8; 16]>) -> Key {
        let mut all = self.said.clone();
        all.say(&[u8::from(author.is_some())]);
        all.say(author.map_or("", AgentName::as_str).as_bytes());
        identity.iter().for_each(|identity| all.say(identity));
        Key { key: self.key.as_str().into(), fingerprint: all.digest() }
    }
}

fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(KEY_HEADER).into_iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key = std::str::from_utf8(value.as_bytes()).ok().map(str::trim);
    let visible = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    let fits = |key: &&str| (1..=KEY_CHARS_MAX).contains(&key.len()) && key.bytes().all(visible);
    match (key.filter(fits), values.next()) {
        (Some(key), None) => Ok(Some(key.to_owned())),
        (_, _) => {
            let detail = format!(
                "Idempotency-Key must be one value of 1 to {KEY_CHARS_MAX} printable ASCII characters"
            );
            Err(Problem::new(Code::InvalidParameter, detail))
        }
    }
}
