//! The receiver: one message at a time, signed, sent again until it is acknowledged.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, StatusCode, Uri};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use tokio::time::timeout;

use super::message::Message;
use super::secret::Secret;
use super::stopped::Stopped;
use crate::connection::{foreign, innermost};
use crate::note;
use crate::remote::end::End;
use crate::remote::server::JSON;
use blackboard_client::{Answer, BaseUrl, Client, ConnectError, Error, InvalidBaseUrl, Limits};
use blackboard_roots::{Roots, RootsError};

/// The time for the head of an answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Time limits of an attempt.
const LIMITS: Limits = Limits { connect: Duration::from_secs(10), silence: ANSWER_TIME };

/// The maximum size of an answer's body that is read, in bytes, and the time for it. The status alone counts: the body is
/// read so that the connection can be used again.
const RESPONSE_BYTES_MAX: usize = 64 << 10;
const RESPONSE_TIME: Duration = Duration::from_secs(2);

/// The pauses between attempts: the first one, each twice as long as that before, up to the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The longest pause that a receiver may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// A receiver that cannot be sent to.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    /// The parser of arguments would print the URL with a secret in it.
    #[error("--to is not usable")]
    Url(#[from] InvalidBaseUrl),
    #[error("--to must not have a user name or a password; the signature says who sends")]
    UserInfo,
    #[error(transparent)]
    Roots(#[from] RootsError),
}

/// The receiver of messages.
#[derive(Debug)]
pub(super) struct Receiver {
    client: Client,
    url: Uri,
    /// Its scheme, host and port: a path or query may hold a secret.
    name: String,
    secret: Secret,
    attempts: u32,
    skips_refused: bool,
}

/// The end of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// The receiver has the message, or it was skipped.
    Acknowledged,
    /// Nobody needs the message any more.
    Moot,
    /// A signal came.
    Interrupted,
}

/// The outcome of an attempt.
#[derive(Debug)]
enum Outcome {
    Acknowledged,
    /// The receiver does not take the message.
    Refused(StatusCode),
    /// The message may be taken later.
    Passing {
        why: String,
        retry_after: Option<Duration>,
    },
}

impl Receiver {
    /// Makes the receiver at a URL; no connection is opened.
    pub(super) fn new(
        url: &str,
        roots: &Roots,
        secret: Secret,
        attempts: u32,
        skips_refused: bool,
    ) -> Result<Self, Unusable> {
        // A receiver's URL may have a query, and a slash at its end has a meaning.
        let base: BaseUrl = match url.split('?').next().unwrap_or_default().parse() {
            Err(InvalidBaseUrl::UserInfo) => return Err(Unusable::UserInfo),
            base => base?,
        };
        let url: Uri = url.parse().map_err(|_| InvalidBaseUrl::Malformed)?;
        if !base.is_tls() && !base.is_loopback() {
            note("warning: the events go over the network unencrypted; use https in --to");
        }
        let scheme = url.scheme_str().unwrap_or_default();
        let authority = url.authority().map(ToString::to_string).unwrap_or_default();
        let name = foreign(&format!("{scheme}://{authority}"));
        let client = Client::new(base, None, roots, LIMITS)?;
        Ok(Self { client, url, name, secret, attempts, skips_refused })
    }

    /// Sends a message until the receiver acknowledges it. Returns false if a signal came before.
    pub(super) async fn deliver(&self, message: &Message, end: &mut End) -> Result<bool, Stopped> {
        let delivered = self.deliver_unless(message, end, pending()).await?;
        Ok(delivered != Delivery::Interrupted)
    }

    /// Sends a message until the receiver acknowledges it, or it is moot between two attempts.
    pub(super) async fn deliver_unless(
        &self,
        message: &Message,
        end: &mut End,
        moot: impl Future<Output = ()>,
    ) -> Result<Delivery, Stopped> {
        let mut moot = pin!(moot);
        let mut attempt = 1;
        loop {
            let (why, retry_after) = match end.after(self.attempt(message)).await {
                Outcome::Acknowledged => return Ok(Delivery::Acknowledged),
                Outcome::Refused(status) => {
                    return self.refused(message, status).map(|()| Delivery::Acknowledged);
                }
                Outcome::Passing { why, retry_after } => (why, retry_after),
            };
            if end.has_come() {
                return Ok(Delivery::Interrupted);
            }
            if attempt >= self.attempts {
                let (to, what) = (self.name.clone(), message.name.clone());
                return Err(Stopped::Unacknowledged { to, what, attempts: attempt, why });
            }
            if attempt == 1 {
                note(format_args!("{}: {}: {why}; trying again", self.name, message.name));
            }
            let pause = pause(attempt).max(retry_after.unwrap_or_default());
            match end.or(timeout(pause, &mut moot)).await {
                None => return Ok(Delivery::Interrupted),
                Some(Ok(())) => return Ok(Delivery::Moot),
                Some(Err(_)) => attempt += 1,
            }
        }
    }

    /// Passes over a message, or stops before it.
    fn refused(&self, message: &Message, status: StatusCode) -> Result<(), Stopped> {
        let (to, what) = (self.name.clone(), message.name.clone());
        if status == StatusCode::GONE {
            return Err(Stopped::Gone { to, what });
        }
        if !status.is_client_error() {
            return Err(Stopped::Redirected { to, what, status });
        }
        if !self.skips_refused {
            return Err(Stopped::Refused { to, what, status });
        }
        note(format_args!("{to} rejected {what} with {status}; skipped"));
        Ok(())
    }

    async fn attempt(&self, message: &Message) -> Outcome {
        match self.client.send_once(&self.request(message)).await {
            Ok(answer) => outcome(answer).await,
            Err(error) => Outcome::Passing { why: reason(&error), retry_after: None },
        }
    }

    /// Makes the request of one attempt, whose time is signed too.
    fn request(&self, message: &Message) -> Request<Bytes> {
        let seconds = Timestamp::now().as_second();
        let signature = self.secret.signature(&message.id, seconds, &message.body);
        let mut request = Request::new(message.body.clone());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(TIMESTAMP, HeaderValue::from(seconds));
        for (name, text) in [(ID, message.id.clone()), (SIGNATURE, signature)] {
            // Hexadecimal digits and base64 fit a header.
            headers.extend(HeaderValue::try_from(text).ok().map(|value| (name, value)));
        }
        request
    }
}

async fn outcome(answer: Answer) -> Outcome {
    let (status, retry_after) = (answer.status(), retry_after(answer.header(RETRY_AFTER.as_str())));
    timeout(RESPONSE_TIME, answer.bytes(RESPONSE_BYTES_MAX)).await.ok();
    let is_passing = matches!(status.as_u16(), 408 | 425 | 429) || status.is_server_error();
    if status.is_success() {
        Outcome::Acknowledged
    } else if is_passing {
        Outcome::Passing { why: format!("the receiver answered {status}"), retry_after }
    } else {
        Outcome::Refused(status)
    }
}

/// Reads the header `Retry-After`: seconds, or a date.
fn retry_after(text: &str) -> Option<Duration> {
    let seconds = text.trim().parse().ok().map(Duration::from_secs);
    let until = || {
        let at = rfc2822::parse(text.trim()).ok()?.timestamp();
        Some(at.duration_since(Timestamp::now()).try_into().unwrap_or_default())
    };
    seconds.or_else(until).map(|time| time.min(RETRY_AFTER_MAX))
}

/// Returns the pause after an attempt, shortened by up to a half, so that senders do not come all at once.
fn pause(attempt: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
    let whole = PAUSE_FIRST.saturating_mul(doubled).min(PAUSE_MAX);
    let random = getrandom::u32().unwrap_or(u32::MAX);
    whole.mul_f64(0.5 + f64::from(random) / f64::from(u32::MAX) / 2.0)
}

/// Returns why an attempt had no answer.
fn reason(error: &Error) -> String {
    match error {
        Error::Connect(ConnectError::Tls(why)) => {
            format!(
                "TLS failed ({}); give a private authority's root with --to-ca",
                foreign(&why.to_string())
            )
        }
        Error::Connect(ConnectError::Unreachable(why)) => {
            format!("the host cannot be reached ({})", foreign(&innermost(&**why)))
        }
        Error::Silent(time) => format!("no answer within {} s", time.as_secs()),
        Error::Connect(_) | Error::Broken(_) | Error::TooLong { .. } | Error::Encoding => {
            error.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_grows_to_its_bound_and_differs() {
        for (attempt, whole) in [(1, 500), (2, 1_000), (5, 8_000), (8, 60_000), (10_000, 60_000)] {
            let whole = Duration::from_millis(whole);
            let pause = pause(attempt);
            assert!(pause >= whole / 2 && pause <= whole, "{attempt}: {pause:?}");
        }
        let pauses: std::collections::BTreeSet<_> = (0..8).map(|_| pause(8)).collect();
        assert!(pauses.len() > 1);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(retry_after("7"), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("7000"), Some(RETRY_AFTER_MAX));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        let later = Timestamp::now() + Duration::from_secs(60);
        let date = rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&later).unwrap();
        let pause = retry_after(&date).unwrap();
        assert!(pause > Duration::from_secs(50) && pause <= Duration::from_secs(60), "{pause:?}");
        for text in ["", "-1", "soon"] {
            assert_eq!(retry_after(text), None, "{text}");
        }
    }

    #[test]
    fn a_receiver_is_named_without_its_path() {
        let secret = || "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let receiver = |url: &str| Receiver::new(url, &Roots::System, secret(), 1, false);
        let hook = receiver("http://127.0.0.1:1/hooks/hidden/?key=hidden").unwrap();
        assert_eq!(hook.name, "http://127.0.0.1:1");
        assert_eq!(hook.url, "http://127.0.0.1:1/hooks/hidden/?key=hidden");
        assert!(matches!(receiver("http://a:hidden@host"), Err(Unusable::UserInfo)));
        assert!(matches!(receiver("ftp://host"), Err(Unusable::Url(_))));
        assert!(receiver("http://127.0.0.1/a b").is_err());
    }
}
