//! Exchanges with a server: JSON within bounds, repeated where that is safe.
//!
//! A write carries an `Idempotency-Key`, so repeating it after a connection that broke off does it once.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{
    ACCEPT, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH, RETRY_AFTER,
};
use hyper::{Method, Request, StatusCode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::refusal::Refusal;
use super::repeat::Key;
use crate::connection::{Connected, foreign};
use blackboard_address::segment;
use blackboard_board::AgentName;
use blackboard_client::{Answer, Client, Error, Events, Limits, Problem, Token};

/// Time limits of exchanges. A read waits for at most 60 s, and a stream has a frame every 15 s.
pub(super) const LIMITS: Limits =
    Limits { connect: Duration::from_secs(10), silence: Duration::from_secs(75) };

/// The maximum size of an answer, in bytes: a prompt may hold all images of a board.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// The pauses before a request is repeated.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1)];

/// The longest time that a server may ask to wait before a request is repeated; the command fails beyond it.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3);

const AGENT_HEADER: HeaderName = HeaderName::from_static("x-agent-id");
const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const REVISION: &str = "blackboard-revision";

pub(super) const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// A server, and who writes to it.
#[derive(Debug)]
pub(super) struct Server {
    client: Client,
    token: Option<Token>,
    agent: Option<AgentName>,
}

/// A write, without its key.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) method: Method,
    pub(super) address: String,
    pub(super) media_type: Cow<'static, str>,
    pub(super) body: Bytes,
}

impl Write {
    pub(super) fn json(method: Method, address: String, body: String) -> Self {
        Self { method, address, media_type: Cow::Borrowed(JSON), body: body.into() }
    }

    pub(super) const fn delete(address: String) -> Self {
        Self::empty(Method::DELETE, address)
    }

    /// A write whose address says all.
    pub(super) const fn put(address: String) -> Self {
        Self::empty(Method::PUT, address)
    }

    const fn empty(method: Method, address: String) -> Self {
        let media_type = Cow::Borrowed("");
        Self { method, address, media_type, body: Bytes::new() }
    }
}

/// An answer that is no refusal.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) status: StatusCode,
    /// JSON, or another text that was asked for.
    pub(super) text: String,
    /// The tag, or an empty text.
    pub(super) etag: String,
    /// The revision of the session that the answer shows.
    pub(super) revision: Option<u64>,
    url: String,
}

impl Received {
    /// Reads the answer's members.
    pub(super) fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Refusal> {
        self.read_text(&self.text)
    }

    /// Reads the members of a part of the answer.
    pub(super) fn part<'a, T: Deserialize<'a>>(&self, part: &'a RawValue) -> Result<T, Refusal> {
        self.read_text(part.get())
    }

    fn read_text<'a, T: Deserialize<'a>>(&self, text: &'a str) -> Result<T, Refusal> {
        serde_json::from_str(text)
            .map_err(|_| Refusal::Foreign { url: self.url.clone(), status: self.status })
    }
}

impl Server {
    pub(super) fn new(connected: Connected) -> Self {
        let Connected { client, token, agent, .. } = connected;
        Self { client, token, agent }
    }

    /// Returns who writes, if it is named.
    pub(super) const fn agent(&self) -> Option<&AgentName> {
        self.agent.as_ref()
    }

    /// Reads JSON at an address.
    pub(super) async fn get(&self, address: &str) -> Result<Received, Refusal> {
        self.get_as(address, JSON).await
    }

    /// Reads a text of this media type at an address.
    pub(super) async fn get_as(
        &self,
        address: &str,
        media_type: &'static str,
    ) -> Result<Received, Refusal> {
        let request = self.request(&Method::GET, address)?;
        let request = request.header(ACCEPT, media_type);
        self.exchange(address, built(address, request.body(Bytes::new()))?, media_type).await
    }

    /// Reads the bytes at an address, of any media type.
    pub(super) async fn bytes(&self, address: &str) -> Result<Bytes, Refusal> {
        let request = self.request(&Method::GET, address)?;
        let answer = self.answered(address, built(address, request.body(Bytes::new()))?).await?;
        if answer.status() != StatusCode::OK {
            return Err(self.refusal(address, answer).await);
        }
        let bytes = answer.bytes(ANSWER_BYTES_MAX).await;
        bytes.map_err(|error| self.unreached(address, error))
    }

    /// Reads JSON at an address, or nothing if it still has this tag. With `wait`, it may change meanwhile.
    pub(super) async fn get_newer(
        &self,
        address: &str,
        etag: &str,
    ) -> Result<Option<Received>, Refusal> {
        let request = self.request(&Method::GET, address)?.header(ACCEPT, JSON);
        let request = request.header(IF_NONE_MATCH, etag);
        let request = built(address, request.body(Bytes::new()))?;
        let answer = self.once(address, request).await?;
        if answer.status() == StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        self.received(address, answer, JSON).await.map(Some)
    }

    /// Writes, once, however often the connection breaks off.
    pub(super) async fn write(&self, write: Write, key: &Key) -> Result<Received, Refusal> {
        self.write_by(write, key, self.agent.as_ref()).await
    }

    /// Writes as this agent, once, however often the connection breaks off.
    pub(super) async fn write_by(
        &self,
        write: Write,
        key: &Key,
        agent: Option<&AgentName>,
    ) -> Result<Received, Refusal> {
        let Write { method, address, media_type, body } = write;
        let mut request = self.request(&method, &address)?.header(ACCEPT, JSON);
        if !media_type.is_empty() {
            request = request.header(CONTENT_TYPE, &*media_type);
        }
        let agent = agent.map(|agent| segment(agent.as_str()));
        if let Some(agent) = agent.and_then(|agent| HeaderValue::try_from(agent).ok()) {
            request = request.header(AGENT_HEADER, agent);
        }
        let request = built(&address, request.header(KEY_HEADER, key.as_str()).body(body))?;
        match self.exchange(&address, request, JSON).await {
            Err(Refusal::Unreached { url, error }) if !matches!(error, Error::Connect(_)) => {
                Err(Refusal::Unanswered { url, error, key: key.as_str().to_owned() })
            }
            written => written,
        }
    }

    /// Opens a stream of events after this revision, or from now on.
    pub(super) async fn events(
        &self,
        address: &str,
        after: Option<u64>,
    ) -> Result<Events, Refusal> {
        let mut request = self.request(&Method::GET, address)?.header(ACCEPT, EVENTS);
        if let Some(after) = after {
            request = request.header(LAST_EVENT_ID, after);
        }
        let request = built(address, request.body(Bytes::new()))?;
        let answer = self.once(address, request).await?;
        if answer.status() != StatusCode::OK {
            return Err(self.refusal(address, answer).await);
        }
        if answer.media_type() != EVENTS {
            return Err(Refusal::Foreign { url: self.url(address), status: answer.status() });
        }
        Ok(answer.events())
    }

    fn request(
        &self,
        method: &Method,
        address: &str,
    ) -> Result<hyper::http::request::Builder, Refusal> {
        let url = self.client.base().join(address);
        let url = url.map_err(|_| Refusal::Address { path: address.to_owned() })?;
        Ok(Request::builder().method(method).uri(url))
    }

    async fn exchange(
        &self,
        address: &str,
        request: Request<Bytes>,
        media_type: &str,
    ) -> Result<Received, Refusal> {
        let answer = self.answered(address, request).await?;
        self.received(address, answer, media_type).await
    }

    /// Repeats a request while the connection breaks off or the server asks to wait a little.
    async fn answered(&self, address: &str, request: Request<Bytes>) -> Result<Answer, Refusal> {
        for pause in PAUSES {
            match self.once(address, request.clone()).await {
                Ok(answer) => match Self::retry_after(&answer) {
                    Some(time) if time <= RETRY_AFTER_MAX => sleep(time.max(pause)).await,
                    _ => return Ok(answer),
                },
                Err(Refusal::Unreached { error: Error::Broken(_), .. }) => sleep(pause).await,
                Err(refusal) => return Err(refusal),
            }
        }
        self.once(address, request).await
    }

    async fn once(&self, address: &str, request: Request<Bytes>) -> Result<Answer, Refusal> {
        self.client.send(request).await.map_err(|error| self.unreached(address, error))
    }

    /// Returns the time after which a refused request may succeed.
    fn retry_after(answer: &Answer) -> Option<Duration> {
        let is_passing = matches!(answer.status().as_u16(), 429 | 503);
        let seconds = answer.header(RETRY_AFTER.as_str()).parse().ok();
        seconds.filter(|_| is_passing).map(Duration::from_secs)
    }

    async fn received(
        &self,
        address: &str,
        answer: Answer,
        media_type: &str,
    ) -> Result<Received, Refusal> {
        let status = answer.status();
        if !status.is_success() {
            return Err(self.refusal(address, answer).await);
        }
        let url = self.url(address);
        let is_expected = answer.media_type() == media_type || status == StatusCode::NO_CONTENT;
        let etag = answer.header(ETAG.as_str()).to_owned();
        let revision = answer.header(REVISION).parse().ok();
        let body = answer.bytes(ANSWER_BYTES_MAX).await;
        let body = body.map_err(|error| self.unreached(address, error))?;
        match String::from_utf8(body.into()) {
            Ok(text) if is_expected && (media_type != JSON || is_whole(status, &text)) => {
                Ok(Received { status, text, etag, revision, url })
            }
            Ok(_) | Err(_) => Err(Refusal::Foreign { url, status }),
        }
    }

    async fn refusal(&self, address: &str, answer: Answer) -> Refusal {
        let (status, url) = (answer.status(), self.url(address));
        let Problem { code, detail, .. } = answer.problem().await;
        match (code, detail) {
            (Some(code), detail) => {
                let detail = detail.unwrap_or_else(|| "the server rejected it".to_owned());
                Refusal::Refused { status, name: self.shown(&code), detail: self.shown(&detail) }
            }
            (None, _) => Refusal::Foreign { url, status },
        }
    }

    fn unreached(&self, address: &str, error: Error) -> Refusal {
        Refusal::Unreached { url: self.url(address), error }
    }

    /// Returns the URL for people, without the query.
    pub(super) fn url(&self, address: &str) -> String {
        let path = address.split('?').next().unwrap_or_default();
        foreign(&format!("{}{path}", self.client.base()))
    }

    /// Returns a text of the server as a short line. A server or a proxy may have repeated the token in it.
    fn shown(&self, text: &str) -> String {
        match &self.token {
            Some(token) => foreign(&token.removed_from(text)),
            None => foreign(text),
        }
    }
}

fn built(
    address: &str,
    request: Result<Request<Bytes>, hyper::http::Error>,
) -> Result<Request<Bytes>, Refusal> {
    request.map_err(|_| Refusal::Address { path: address.to_owned() })
}

/// Returns true if an answer is JSON, or has nothing to say.
fn is_whole(status: StatusCode, text: &str) -> bool {
    status == StatusCode::NO_CONTENT || serde_json::from_str::<IgnoredAny>(text).is_ok()
}
