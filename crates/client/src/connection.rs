//! Requests to one server, over connections that are used again.

use std::error::Error as _;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Uri};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{sleep, timeout};

use super::answer::Answer;
use super::base_url::BaseUrl;
use super::connector::{ConnectError, Connector};
use super::error::Error;
use super::tls;
use super::token::Token;
use blackboard_roots::{Roots, RootsError};

/// The maximum size of an answer's head, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// The maximum number of idle connections.
const IDLE_CONNECTIONS_MAX: usize = 8;

/// The time after which an idle connection is closed; the server's own limit is 60 s.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// The pauses between tries of a request whose connection was refused, as while a server restarts.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
    Duration::from_millis(1_600),
];

/// Time limits of an exchange. There is none for the whole: a stream lasts as long as the server sends.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For a connection, with TLS.
    pub connect: Duration,
    /// For the server's silence: before the head of an answer, and between two pieces of its body.
    pub silence: Duration,
}

/// Sends requests to one server.
#[derive(Clone, Debug)]
pub struct Client {
    base: BaseUrl,
    authorization: Option<HeaderValue>,
    http: legacy::Client<Connector, Full<Bytes>>,
    silence: Duration,
}

impl Client {
    /// Makes a client; no connection is opened. Roots are loaded for `https` only, since that takes longer than a
    /// request.
    ///
    /// # Errors
    ///
    /// The root certificates cannot be loaded.
    pub fn new(
        base: BaseUrl,
        token: Option<&Token>,
        roots: &Roots,
        limits: Limits,
    ) -> Result<Self, RootsError> {
        let tls = base.is_tls().then(|| tls::connector(roots)).transpose()?;
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .http1_max_buf_size(HEAD_BYTES_MAX)
            .build(Connector::new(tls, limits.connect));
        let authorization = token.and_then(Token::authorization);
        Ok(Self { base, authorization, http, silence: limits.silence })
    }

    /// Returns the server's URL.
    #[must_use]
    pub const fn base(&self) -> &BaseUrl {
        &self.base
    }

    /// Sends a request, with the token of this client, and returns the head of its answer. Only a refused connection is
    /// tried again: what was sent may have been done. Dropped, the future closes the connection.
    ///
    /// # Errors
    ///
    /// No connection was made, it broke off, or the server was silent.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Answer, Error> {
        for pause in PAUSES {
            match self.send_once(&request).await {
                Err(error) if error.is_refused() => sleep(pause).await,
                sent => return sent,
            }
        }
        self.send_once(&request).await
    }

    /// Sends a request as [`Client::send`] does, and tries nothing again.
    ///
    /// # Errors
    ///
    /// No connection was made, it broke off, or the server was silent.
    pub async fn send_once(&self, request: &Request<Bytes>) -> Result<Answer, Error> {
        let mut request = request.clone();
        let headers = request.headers_mut();
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("blackboard/", env!("CARGO_PKG_VERSION"))),
        );
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let answered = self.http.request(request.map(Full::new));
        match timeout(self.silence, answered).await {
            Ok(Ok(response)) => Ok(Answer::new(response, self.silence)),
            Ok(Err(error)) => Err(failure(error)),
            Err(_) => Err(Error::Silent(self.silence)),
        }
    }

    /// Returns a request to a URL, to be given headers and a body.
    #[must_use]
    pub fn post(url: &Uri) -> hyper::http::request::Builder {
        Request::builder().method(Method::POST).uri(url.clone())
    }
}

/// Tells a connection that was not made from one that broke off.
fn failure(error: legacy::Error) -> Error {
    match error.source().and_then(|source| source.downcast_ref::<ConnectError>()) {
        Some(why) => Error::Connect(why.clone()),
        None => Error::Broken(Box::new(error)),
    }
}

#[cfg(test)]
mod tests;
