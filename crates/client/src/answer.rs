//! Answers: status, headers, and a body that is read within a bound or as events.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Response, StatusCode};

use super::body::Body;
use super::error::Error;
use super::problem::{PROBLEM_BYTES_MAX, Problem};
use super::sse::Events;

/// An answer whose body is not read yet. Dropped, it closes its connection.
#[derive(Debug)]
pub struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Body,
}

impl Answer {
    pub(super) fn new(response: Response<Incoming>, silence: Duration) -> Self {
        let (head, incoming) = response.into_parts();
        Self { status: head.status, headers: head.headers, body: Body::new(incoming, silence) }
    }

    /// Returns the status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the text of a header, or an empty one.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the media type in lower case, without parameters.
    #[must_use]
    pub fn media_type(&self) -> String {
        let value = self.header(CONTENT_TYPE.as_str());
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Reads the whole body.
    ///
    /// # Errors
    ///
    /// The body is longer than `max` bytes, or was not received.
    pub async fn bytes(mut self, max: usize) -> Result<Bytes, Error> {
        let mut whole = BytesMut::new();
        while let Some(piece) = self.body.next().await? {
            if piece.len() > max - whole.len() {
                return Err(Error::TooLong { max });
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    /// Reads the body as server-sent events.
    #[must_use]
    pub fn events(self) -> Events {
        Events::new(self.body)
    }

    /// Reads the reason of a refusal; a body that is no problem document has none.
    pub async fn problem(self) -> Problem {
        let (status, media_type) = (self.status, self.media_type());
        let is_problem = media_type == "application/problem+json";
        match if is_problem { self.bytes(PROBLEM_BYTES_MAX).await.ok() } else { None } {
            Some(body) => Problem::read(status, &body),
            None => Problem::empty(status),
        }
    }
}
