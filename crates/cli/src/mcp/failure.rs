//! Failed exchanges, as errors that tell a host what happened and what to do.

use std::fmt;

use hyper::StatusCode;
use serde::Serialize;

use super::message::{Id, RpcError, error_text};
use crate::connection::{foreign, innermost, unconnected};
use blackboard_client::{Error, Problem};

/// The error code of requests that the bridge could not pass on, the first that JSON-RPC leaves to servers.
pub(super) const SERVER_ERROR: i32 = -32000;

/// The end of a sentence about a request of which at least a part was sent.
const UNKNOWN: &str = "whether the request was carried out is unknown";

/// A request without an answer of the server's.
#[derive(Debug)]
pub(super) struct Failure {
    sentence: String,
    status: Option<u16>,
    code: Option<String>,
}

/// The facts of a failure for programs.
#[derive(Serialize)]
struct Data<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
}

impl Failure {
    pub(super) fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), status: None, code: None }
    }

    /// A request that got no whole answer.
    pub(super) fn of_error(url: &str, error: &Error) -> Self {
        Self::new(match error {
            Error::Connect(why) => unconnected(url, why),
            Error::Silent(time) => {
                let seconds = time.as_secs();
                format!("{url} was silent for {seconds} s, so the request was cancelled; {UNKNOWN}")
            }
            Error::Broken(why) => {
                let why = foreign(&innermost(&**why));
                format!(
                    "{url}: the connection broke off before the answer's end ({why}); {UNKNOWN}"
                )
            }
            Error::TooLong { max } => {
                let most = max >> 20;
                format!("{url}: the answer has more than {most} MiB; ask for less at once")
            }
            Error::Encoding => {
                format!(
                    "{url}: the answer is not UTF-8; is --url (BLACKBOARD_URL) the address of a Blackboard \
                         server?"
                )
            }
        })
    }

    /// A request that was refused. The texts are short lines already.
    pub(super) fn of_refusal(url: &str, problem: Problem, advice: &Advice) -> Self {
        let Problem { status, code, detail } = problem;
        let number = status.as_u16();
        let reason = detail.or_else(|| code.clone());
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let remedy = remedy(status, advice);
        let sentence = format!("{url} answered {number}{reason}; {remedy}");
        Self { sentence, status: Some(number), code }
    }

    /// An answer that is not a message of the protocol; its type is a short line already.
    pub(super) fn of_media_type(url: &str, status: StatusCode, media_type: &str) -> Self {
        let media_type = if media_type.is_empty() { "no type" } else { media_type };
        let number = status.as_u16();
        let sentence = format!(
            "{url} answered {number} with {media_type} instead of a message; is --url (BLACKBOARD_URL) the address of a \
             Blackboard server?"
        );
        Self { sentence, status: Some(number), code: None }
    }

    /// A stream that ended without the response.
    pub(super) fn of_early_end(url: &str) -> Self {
        Self::new(format!("{url}: the stream ended before the answer; {UNKNOWN}"))
    }

    /// Returns the error of the request with this id.
    pub(super) fn text(&self, id: &Id) -> String {
        let data = Data { status: self.status, code: self.code.as_deref() };
        let data = self.status.map(|_| data);
        error_text(Some(id), RpcError { code: SERVER_ERROR, message: &self.sentence, data })
    }
}

/// The headers of a refusal that say what to do.
#[derive(Debug)]
pub(super) struct Advice {
    pub(super) location: String,
    pub(super) retry_after: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

fn remedy(status: StatusCode, advice: &Advice) -> String {
    let fixed = match status.as_u16() {
        300..=399 => {
            let to = if advice.location.is_empty() { "elsewhere" } else { &advice.location };
            return format!("it redirects to {to}; give the final address with --url");
        }
        429 | 503 => {
            let seconds = advice.retry_after.parse::<u32>();
            return seconds.map_or_else(
                |_| "try again later".to_owned(),
                |seconds| format!("try again in {seconds} s"),
            );
        }
        401 => "set BLACKBOARD_TOKEN or --token-file to a valid token",
        403 => "use a token that has the right for this, or another --session",
        404 => "check --session, and that --url is the address of a server with MCP, without /mcp",
        405 => "this address does not serve MCP; check --url and the server's version",
        406 | 415 => "a proxy may have changed the request's headers",
        413 => "send less in one message",
        421 => "name the host among the server's --allowed-hosts",
        500..=599 => "the server or a proxy before it failed; see its log, and try again later",
        _ => "the request was not carried out",
    };
    fixed.to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use blackboard_client::ConnectError;

    const URL: &str = "http://host/mcp";

    fn refused(status: u16) -> String {
        let status = StatusCode::from_u16(status).unwrap();
        let problem = Problem { status, code: None, detail: None };
        let advice = Advice { location: "http://b/mcp".to_owned(), retry_after: "7".to_owned() };
        Failure::of_refusal(URL, problem, &advice).sentence
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        for (status, expected) in [
            (401, "BLACKBOARD_TOKEN or --token-file"),
            (403, "right"),
            (404, "--session"),
            (405, "does not serve MCP"),
            (406, "proxy"),
            (413, "send less"),
            (421, "--allowed-hosts"),
            (308, "redirects to http://b/mcp"),
            (429, "in 7 s"),
            (503, "in 7 s"),
            (502, "proxy"),
            (418, "not carried out"),
        ] {
            let sentence = refused(status);
            assert!(sentence.starts_with(&format!("{URL} answered {status}; ")), "{sentence}");
            assert!(sentence.contains(expected), "{sentence}");
        }
    }

    #[test]
    fn an_exchange_that_failed_says_whether_to_try_again() {
        let sentence = |error| Failure::of_error(URL, &error).sentence;
        let refused = sentence(Error::Connect(ConnectError::Refused));
        assert!(refused.contains("is the server running"), "{refused}");
        let tls = std::io::Error::other("invalid peer certificate: UnknownIssuer");
        let tls = sentence(Error::Connect(ConnectError::Tls(Arc::new(tls))));
        assert!(tls.contains("UnknownIssuer") && tls.contains("--ca"), "{tls}");
        let silent = sentence(Error::Silent(Duration::from_secs(75)));
        assert!(silent.contains("75 s") && silent.contains("unknown"), "{silent}");
        let long = sentence(Error::TooLong { max: 64 << 20 });
        assert!(long.contains("64 MiB"), "{long}");
    }
}
