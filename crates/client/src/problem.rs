//! Problem documents (RFC 9457), the reasons of refusals.

use hyper::StatusCode;
use serde::Deserialize;

/// The maximum size of a problem document that is read, in bytes.
pub const PROBLEM_BYTES_MAX: usize = 256 << 10;

/// A refusal with its reason, as far as the server gave one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The status.
    pub status: StatusCode,
    /// The stable code of the kind of refusal.
    pub code: Option<String>,
    /// The reason, as a sentence.
    pub detail: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    detail: Option<String>,
    #[serde(default)]
    title: Option<String>,
}

impl Problem {
    pub(super) fn read(status: StatusCode, body: &[u8]) -> Self {
        match serde_json::from_slice(body) {
            Ok(Document { code, detail, title }) => Self { status, code, detail: detail.or(title) },
            Err(_) => Self::empty(status),
        }
    }

    /// Returns a refusal without a reason.
    #[must_use]
    pub const fn empty(status: StatusCode) -> Self {
        Self { status, code: None, detail: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_gives_its_code_and_detail() {
        let read = |text: &str| {
            let problem = Problem::read(StatusCode::CONFLICT, text.as_bytes());
            (problem.code, problem.detail)
        };
        let some = |text: &str| Some(text.to_owned());
        let whole = r#"{"title":"T","detail":"D","code":"c","status":409,"more":[1]}"#;
        assert_eq!(read(whole), (some("c"), some("D")));
        assert_eq!(read(r#"{"title":"T","detail":null}"#), (None, some("T")));
        for text in ["", "[]", "{", r#"{"detail":5}"#, "{}"] {
            assert_eq!(read(text), (None, None), "{text}");
        }
    }
}
