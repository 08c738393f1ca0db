//! Exchanges with a server's `/mcp`: one POST per message.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{
    ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
};
use hyper::{StatusCode, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;

use super::failure::{Advice, Failure};
use super::message::{Id, Message, Params, error_text};
use crate::connection::foreign;
use blackboard_client::{Answer, Client, Error, Events, InvalidBaseUrl, Problem, Token};

/// The maximum size of an answer that is no stream, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The time that a stream may take to end after its answer, so that its connection can be used again.
const STREAM_END_MAX: Duration = Duration::from_secs(1);

/// The header that names the agent of a request, percent-encoded.
const AGENT_HEADER: HeaderName = HeaderName::from_static("x-agent-id");

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// All that RFC 3986 does not leave free in a value.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The lines for the host.
pub(super) type Output = Sender<String>;

/// The parameters of all requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Identity<'a> {
    pub(super) session: Option<&'a str>,
    pub(super) agent: Option<&'a str>,
    /// Further parameters: names, and values that need no encoding.
    pub(super) options: &'a [(&'static str, String)],
}

/// A request of the host.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: Id,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// The server's `/mcp`, for one session and agent.
#[derive(Debug)]
pub(super) struct Endpoint {
    client: Client,
    uri: Uri,
    /// The URL for people, without the query.
    url: String,
    headers: HeaderMap,
    token: Option<Token>,
}

impl Endpoint {
    pub(super) fn new(
        client: Client,
        token: Option<Token>,
        identity: Identity<'_>,
    ) -> Result<Self, InvalidBaseUrl> {
        let uri = client.base().join(&format!("/mcp{}", query(identity)))?;
        let url = format!("{}/mcp", client.base());
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        let agent = identity.agent.map(encoded).and_then(|name| HeaderValue::try_from(name).ok());
        headers.extend(agent.map(|agent| (AGENT_HEADER, agent)));
        Ok(Self { client, uri, url, headers, token })
    }

    /// Sends a request, and passes on every message of its answer, of which the last is the response. Where the server
    /// gives none, it is an error that says why.
    pub(super) async fn call(&self, call: Call, output: &Output) {
        let (response, rest) = self.answered(&call, output).await;
        put(output, response).await;
        end(rest).await;
    }

    /// Makes the call `initialize`, of which the host gets what `shown` makes of the response, and returns the version
    /// that was agreed on.
    pub(super) async fn initialize(
        &self,
        call: Call,
        output: &Output,
        shown: fn(String) -> String,
    ) -> Option<String> {
        let (response, rest) = self.answered(&call, output).await;
        let version = Params::of_result(&response).version;
        put(output, shown(response)).await;
        end(rest).await;
        version
    }

    /// Sends a message that has no answer. A failure is logged: there is nobody to tell it.
    pub(super) async fn tell(&self, headers: HeaderMap, body: Bytes) {
        let told = async {
            let answer = self.send(headers, body).await?;
            if answer.status().is_success() { Ok(()) } else { Err(self.refusal(answer).await) }
        };
        if let Err(failure) = told.await {
            tracing::warn!("{failure}");
        }
    }

    /// Returns the response, and the rest of the stream that it came in.
    async fn answered(&self, call: &Call, output: &Output) -> (String, Option<Events>) {
        match self.response(call, output).await {
            Ok(answered) => answered,
            Err(failure) => {
                tracing::warn!("{failure}");
                (failure.text(&call.id), None)
            }
        }
    }

    async fn response(
        &self,
        call: &Call,
        output: &Output,
    ) -> Result<(String, Option<Events>), Failure> {
        let answer = self.send(call.headers.clone(), call.body.clone()).await?;
        let (status, media_type) = (answer.status(), answer.media_type());
        if media_type == JSON {
            return Ok((self.whole(&call.id, answer).await?, None));
        }
        if !status.is_success() {
            return Err(self.refusal(answer).await);
        }
        if status != StatusCode::OK || media_type != EVENTS {
            return Err(Failure::of_media_type(&self.url, status, &self.shown(&media_type)));
        }
        let mut events = answer.events();
        let response = self.last_of(&call.id, &mut events, output).await?;
        Ok((response, Some(events)))
    }

    async fn send(&self, headers: HeaderMap, body: Bytes) -> Result<Answer, Failure> {
        let request = Client::post(&self.uri).body(body);
        let mut request = request.map_err(|_| Failure::new("the message cannot be sent"))?;
        request.headers_mut().extend(self.headers.clone());
        request.headers_mut().extend(headers);
        self.client.send(request).await.map_err(|error| self.failed(&error))
    }

    /// Reads the response of a body that is one message.
    async fn whole(&self, id: &Id, answer: Answer) -> Result<String, Failure> {
        let (status, advice) = (answer.status(), self.advice(&answer));
        let body = answer.bytes(ANSWER_BYTES_MAX).await.map_err(|error| self.failed(&error))?;
        let response =
            if status.is_success() { response_of(id, &body) } else { refusal_of(id, &body) };
        match response {
            Some(response) => Ok(response),
            None if status.is_success() => Err(self.unexpected()),
            None => Err(Failure::of_refusal(&self.url, Problem::empty(status), &advice)),
        }
    }

    /// Passes on the messages of a stream up to its response, which is returned.
    async fn last_of(
        &self,
        id: &Id,
        events: &mut Events,
        output: &Output,
    ) -> Result<String, Failure> {
        while let Some(event) = events.next().await.map_err(|error| self.failed(&error))? {
            // An event without data only has an id.
            if event.data.trim().is_empty() {
                continue;
            }
            match Message::read(event.data.as_bytes()) {
                Ok(Message::Answer { .. }) => {
                    let response = response_of(id, event.data.as_bytes());
                    return response.ok_or_else(|| self.unexpected());
                }
                Ok(Message::Request { .. } | Message::Notification { .. }) => {
                    put(output, event.data).await;
                }
                Err(_) => return Err(self.unexpected()),
            }
        }
        Err(Failure::of_early_end(&self.url))
    }

    async fn refusal(&self, answer: Answer) -> Failure {
        let advice = self.advice(&answer);
        let Problem { status, code, detail } = answer.problem().await;
        let shown = |text: Option<String>| text.map(|text| self.shown(&text));
        let problem = Problem { status, code: shown(code), detail: shown(detail) };
        Failure::of_refusal(&self.url, problem, &advice)
    }

    fn advice(&self, answer: &Answer) -> Advice {
        let shown = |name: HeaderName| self.shown(answer.header(name.as_str()));
        Advice { location: shown(LOCATION), retry_after: shown(RETRY_AFTER) }
    }

    /// Returns a text of the server as a short line. A server or a proxy may have repeated the token in it.
    fn shown(&self, text: &str) -> String {
        match &self.token {
            Some(token) => foreign(&token.removed_from(text)),
            None => foreign(text),
        }
    }

    fn failed(&self, error: &Error) -> Failure {
        Failure::of_error(&self.url, error)
    }

    fn unexpected(&self) -> Failure {
        let url = &self.url;
        Failure::new(format!("{url} sent something other than the answer; is it an MCP server?"))
    }
}

/// Passes a message on. Without a reader the bridge ends.
pub(super) async fn put(output: &Output, message: String) {
    output.send(message).await.ok();
}

/// Reads the rest of a stream, if it ends soon: its connection can then be used again.
async fn end(rest: Option<Events>) {
    if let Some(mut events) = rest {
        let read = async { while let Ok(Some(_)) = events.next().await {} };
        timeout(STREAM_END_MAX, read).await.ok();
    }
}

/// Returns the text of the response to a request. A server that did not get as far as the id answers without one.
fn response_of(id: &Id, text: &[u8]) -> Option<String> {
    match Message::read(text).ok()? {
        Message::Answer { id: Some(other), .. } if other.key() == id.key() => {
            String::from_utf8(text.to_owned()).ok()
        }
        Message::Answer { id: None, error: Some(error) } => Some(error_text(Some(id), error)),
        Message::Answer { .. } | Message::Request { .. } | Message::Notification { .. } => None,
    }
}

/// Returns the error in the body of a refusal, whose id need not be the request's: some servers make up one.
fn refusal_of(id: &Id, text: &[u8]) -> Option<String> {
    match Message::read(text).ok()? {
        Message::Answer { id: Some(other), error: Some(error) } if other.key() != id.key() => {
            Some(error_text(Some(id), error))
        }
        Message::Answer { .. } | Message::Request { .. } | Message::Notification { .. } => {
            response_of(id, text)
        }
    }
}

fn query(identity: Identity<'_>) -> String {
    let session = identity.session.map(|name| format!("session={}", encoded(name)));
    let options = identity.options.iter().map(|(name, value)| format!("{name}={value}"));
    let parameters: Vec<String> = session.into_iter().chain(options).collect();
    if parameters.is_empty() { String::new() } else { format!("?{}", parameters.join("&")) }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, VALUE).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_and_options_are_parameters() {
        let of = |session, options: &[_]| query(Identity { session, agent: Some("a"), options });
        let (tools, size) = (("tools", "all".to_owned()), ("max_tokens", "500".to_owned()));
        assert_eq!(of(None, &[]), "");
        assert_eq!(of(Some("a b/é&"), &[]), "?session=a%20b%2F%C3%A9%26");
        assert_eq!(of(Some("s"), &[tools.clone(), size]), "?session=s&tools=all&max_tokens=500");
        assert_eq!(of(None, &[tools]), "?tools=all");
    }

    #[test]
    fn a_response_is_that_of_its_request() {
        let Ok(Message::Request { id, .. }) = Message::read(br#"{"id":"a","method":"m"}"#) else {
            panic!("a request")
        };
        let of = |text: &str| response_of(&id, text.as_bytes());
        let exact = r#" {"result":{"n":1.0},"id":"\u0061"}"#;
        assert_eq!(of(exact).as_deref(), Some(exact));
        let unknown = of(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700, "x":1.0}}"#);
        let expected = r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32700, "x":1.0}}"#;
        assert_eq!(unknown.as_deref(), Some(expected));
        for text in [r#"{"id":"b","result":1}"#, r#"{"id":"a","method":"m"}"#, "[]", "<html>"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
