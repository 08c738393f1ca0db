//! Refusals and failures as RFC 9457 problems.
//!
//! A handler creates a [`Problem`]; the edge renders it, because only the edge knows the request's id.
//! So problems of all layers have one form, and a cause is logged but never sent.
use std::{collections::BTreeMap, error::Error, fmt, sync::Arc};

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;

use super::request_id::RequestId;
use super::{REVISION_HEADER, revision_value};
use blackboard_api::refusal::{Cause, CodeWord, Fault, Refusal};
use blackboard_board::{Code, LogName};
use blackboard_service::ServiceError;
use blackboard_store::FreeSpace;
use blackboard_suggestion::nearest;

/// The media type of a problem.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// A refusal or a failure on its way to the client.
#[derive(Clone, Debug)]
pub struct Problem(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    code: Code,
    status: StatusCode,
    detail: String,
    faults: Vec<Fault>,
    retryable: bool,
    headers: HeaderMap,
    members: BTreeMap<&'static str, Box<RawValue>>,
    cause: Option<Cause>,
    is_disk_full: bool,
    /// The reason for the log only.
    reason: Option<&'static str>,
}

/// A problem (RFC 9457). Some codes add members of their own, such as `current` or `outcome`.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemBody {
    /// The code as a URI.
    #[serde(rename = "type")]
    #[schema(example = "urn:blackboard:problem:session-not-found")]
    kind: String,
    /// The kind of problem, as a fixed phrase.
    #[schema(value_type = String, example = "Session not found")]
    title: &'static str,
    /// The status of the answer.
    #[schema(example = 404)]
    status: u16,
    /// An explanation of this occurrence, for people.
    detail: String,
    /// The request's id, as in `X-Request-Id`.
    #[schema(example = "urn:uuid:0198c0de-0000-7000-8000-000000000000")]
    instance: String,
    /// The stable code to match on.
    #[schema(value_type = CodeWord, example = "session-not-found")]
    code: &'static str,
    /// Present and true if the same request may succeed later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    retryable: bool,
    /// The faulty parts of the body, if any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<Fault>,
    #[serde(flatten)]
    #[schema(ignore)]
    members: BTreeMap<&'static str, Box<RawValue>>,
}

impl Problem {
    /// Creates a problem with the status of `code`, and with `Retry-After` where the contract promises
    /// it.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self::with_status(code, status(code), detail.into())
    }

    /// Creates a problem for a status that an inner layer chose without a code.
    pub(crate) fn of_status(status: StatusCode, detail: String) -> Self {
        Self::with_status(code_of(status), status, detail)
    }

    fn with_status(code: Code, status: StatusCode, detail: String) -> Self {
        let problem = Self(Box::new(Inner {
            code,
            status,
            detail,
            faults: Vec::new(),
            retryable: code == Code::RequestTimeout,
            headers: HeaderMap::new(),
            members: BTreeMap::new(),
            cause: None,
            is_disk_full: false,
            reason: None,
        }));
        match retry_after_seconds(code) {
            Some(seconds) => problem.retry_after(seconds),
            None => problem,
        }
    }

    /// Adds a sentence to the detail.
    #[must_use]
    pub(crate) fn remark(mut self, sentence: &str) -> Self {
        self.0.detail.push_str(". ");
        self.0.detail.push_str(sentence);
        self
    }

    /// Adds a faulty part of the body.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.0.faults.push(fault);
        self
    }

    /// Marks the problem as retryable after this many seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.0.retryable = true;
        self.header(header::RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// Sets a header of the answer.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.insert(name, value);
        self
    }

    /// Adds a member to the document. Raw JSON keeps its text.
    #[must_use]
    pub fn member(mut self, name: &'static str, value: &(impl Serialize + ?Sized)) -> Self {
        // A value that cannot be serialized, such as a map with non-string keys, must not fail a refusal.
        if let Ok(json) = to_raw_value(value) {
            self.0.members.insert(name, json);
        }
        self
    }

    /// Adds the error behind a failure, for the log.
    #[must_use]
    pub fn cause(mut self, error: impl Error + Send + Sync + 'static) -> Self {
        self.0.cause = Some(Arc::new(error));
        self
    }

    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Returns the status of the answer.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// Returns true if the disk of the store has no room.
    pub(crate) fn is_disk_full(&self) -> bool {
        self.0.is_disk_full
    }

    /// Adds the free space of a full disk.
    pub(crate) fn free_space(mut self, space: &FreeSpace) -> Self {
        self.0.detail = format!("{}; {space}", self.0.detail);
        self.member("free_bytes", &space.free_bytes)
            .member("reserve_bytes", &space.reserve_bytes)
            .member("directory", &space.directory)
    }

    /// Adds a reason that the log names, and the client must not know.
    pub(crate) fn reason(mut self, reason: &'static str) -> Self {
        self.0.reason = Some(reason);
        self
    }

    /// Returns the reason for the log.
    pub(crate) fn logged_reason(&self) -> Option<&'static str> {
        self.0.reason.or((self.0.code == Code::SessionNotFound).then_some("no such session"))
    }

    pub(crate) fn take_headers(&mut self) -> HeaderMap {
        std::mem::take(&mut self.0.headers)
    }

    pub(crate) fn take_cause(&mut self) -> Option<Cause> {
        self.0.cause.take()
    }

    /// Renders the document, with a final newline.
    pub(crate) fn into_json(self, id: RequestId) -> String {
        let body = ProblemBody {
            kind: format!("urn:blackboard:problem:{}", self.0.code.as_str()),
            title: self.0.code.title(),
            status: self.0.status.as_u16(),
            detail: self.0.detail,
            instance: format!("urn:uuid:{id}"),
            code: self.0.code.as_str(),
            retryable: self.0.retryable,
            errors: self.0.faults,
            members: self.0.members,
        };
        let mut json = serde_json::to_string(&body).unwrap_or_default();
        json.push('\n');
        json
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let facts = refusal.into_facts();
        let mut problem = Self::new(facts.code, facts.detail);
        problem.0.faults = facts.faults;
        problem.0.members = facts.members;
        problem.0.cause = facts.cause;
        problem.0.is_disk_full = facts.is_disk_full;
        match facts.revision {
            Some(revision) => problem.header(REVISION_HEADER, revision_value(revision)),
            None => problem,
        }
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        Refusal::from(error).into()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.as_str(), self.0.detail)
    }
}

impl Error for Problem {}

impl IntoResponse for Problem {
    /// Returns status and headers, with the problem among the extensions for the edge to render.
    fn into_response(mut self) -> Response {
        let mut response = self.0.status.into_response();
        *response.headers_mut() = self.take_headers();
        response.extensions_mut().insert(self);
        response
    }
}

pub(crate) fn status(code: Code) -> StatusCode {
    match code {
        Code::InvalidJson
        | Code::InvalidParameter
        | Code::UnknownParameter
        | Code::InvalidName
        | Code::InvalidEncoding
        | Code::AgentRequired
        | Code::PartialContent => StatusCode::BAD_REQUEST,
        Code::Unauthorized => StatusCode::UNAUTHORIZED,
        Code::Forbidden => StatusCode::FORBIDDEN,
        Code::RouteNotFound
        | Code::SessionNotFound
        | Code::EntryNotFound
        | Code::PathNotFound
        | Code::AgentNotFound
        | Code::CheckpointNotFound
        | Code::RevisionNotFound
        | Code::BlobNotFound
        | Code::NoImage => StatusCode::NOT_FOUND,
        Code::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Code::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        Code::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Code::RangeNotSatisfiable => StatusCode::RANGE_NOT_SATISFIABLE,
        Code::UnknownHost => StatusCode::MISDIRECTED_REQUEST,
        Code::AlreadyAnswered
        | Code::AlreadyClaimed
        | Code::StaleFence
        | Code::NotAnObject
        | Code::NotANumber
        | Code::IllegalTransition
        | Code::SessionExists
        | Code::HasDependants
        | Code::BudgetExhausted => StatusCode::CONFLICT,
        Code::HistoryCompacted => StatusCode::GONE,
        Code::PreconditionFailed | Code::ConditionNotMet => StatusCode::PRECONDITION_FAILED,
        Code::BodyTooLarge | Code::ItemTooLarge | Code::CommitTooLarge => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        Code::UnsupportedItem
        | Code::UnsupportedValue
        | Code::TooDeep
        | Code::NotAnImage
        | Code::NoBlob
        | Code::DigestMismatch
        | Code::UnknownField
        | Code::InvalidField
        | Code::ArrayRequired
        | Code::IdempotencyKeyReused
        | Code::BudgetTooSmall => StatusCode::UNPROCESSABLE_ENTITY,
        Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Code::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        Code::Overloaded
        | Code::StorePoisoned
        | Code::StoreUnavailable
        | Code::RevisionNotReached => StatusCode::SERVICE_UNAVAILABLE,
        Code::SessionFull | Code::StoreFull => StatusCode::INSUFFICIENT_STORAGE,
    }
}

/// The document with all routes, for a refusal of a path.
const ALL_ROUTES: &str = "/docs and /openapi.json list all routes";

/// Refuses a path that matches no route.
pub(crate) fn no_route(path: &str) -> Problem {
    let mut detail = "no such route".to_owned();
    if path.len() > 1 && path.ends_with('/') {
        detail.push_str("; try it without the slash at the end");
    }
    let first = path.split('/').nth(1).unwrap_or_default();
    if ["sessions", "questions", "requests", "search", "events"].contains(&first) {
        detail.push_str(&format!("; it begins with /v1/{first}"));
    }
    Problem::new(Code::RouteNotFound, format!("{detail}; {ALL_ROUTES}"))
}

/// Refuses a part of a session that does not exist.
pub(crate) fn no_part(name: &str) -> Problem {
    let logs = LogName::BOARD.map(|log| log.to_string());
    let logs: Vec<&str> = logs.iter().map(String::as_str).collect();
    let end = match nearest(name, &logs) {
        Some(near) => format!(", did you mean '{near}'? {ALL_ROUTES}"),
        None => format!("; {ALL_ROUTES}"),
    };
    Problem::new(Code::RouteNotFound, format!("a session has no part of this name{end}"))
}

/// Returns the value of `Retry-After`, where the contract promises one.
fn retry_after_seconds(code: Code) -> Option<u64> {
    if status(code) != StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    // A poisoned store needs a restart; other failures pass by themselves.
    Some(if code == Code::StorePoisoned { 30 } else { 1 })
}

fn code_of(status: StatusCode) -> Code {
    match status.as_u16() {
        401 => Code::Unauthorized,
        403 => Code::Forbidden,
        404 => Code::RouteNotFound,
        405 => Code::MethodNotAllowed,
        408 => Code::RequestTimeout,
        412 => Code::PreconditionFailed,
        413 => Code::BodyTooLarge,
        415 => Code::UnsupportedMediaType,
        416 => Code::RangeNotSatisfiable,
        421 => Code::UnknownHost,
        422 => Code::InvalidField,
        429 => Code::RateLimited,
        503 => Code::Overloaded,
        500.. => Code::Internal,
        _ => Code::InvalidParameter,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn json_of(problem: Problem) -> Value {
        let text = problem.into_json(RequestId::new());
        assert!(text.ends_with("}\n"));
        serde_json::from_str(&text).expect("a problem is JSON")
    }

    #[test]
    fn a_problem_has_the_members_of_the_contract() {
        let id = RequestId::new();
        let problem = Problem::new(Code::SessionNotFound, "There is no session \"a\".");
        let json: Value = serde_json::from_str(&problem.into_json(id)).expect("JSON");
        assert_eq!(
            json,
            json!({
                "type": "urn:blackboard:problem:session-not-found",
                "title": "Session not found",
                "status": 404,
                "detail": "There is no session \"a\".",
                "instance": format!("urn:uuid:{id}"),
                "code": "session-not-found",
            })
        );
    }

    #[test]
    fn faults_and_members_stand_in_the_document() {
        let current = RawValue::from_string("{\"b\":1E5, \"a\":1.0}".into()).expect("JSON");
        let refusal = Refusal::new(Code::UnsupportedItem, "No.")
            .fault(Fault { pointer: Some("/1".into()), line: None, detail: "A number.".into() })
            .member("current", &current)
            .member("outcome", "unknown");
        let text = Problem::from(refusal).into_json(RequestId::new());
        assert!(text.contains(r#""current":{"b":1E5, "a":1.0}"#), "{text}");
        assert!(text.contains(r#""outcome":"unknown""#), "{text}");
        assert!(text.contains(r#""errors":[{"pointer":"/1","detail":"A number."}]"#));
    }

    #[test]
    fn every_503_says_when_to_come_back() {
        for code in [
            Code::Overloaded,
            Code::StorePoisoned,
            Code::StoreUnavailable,
            Code::RevisionNotReached,
        ] {
            let problem = Problem::new(code, "Later.");
            assert_eq!(json_of(problem.clone())["retryable"], true);
            let response = problem.into_response();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert!(response.headers().contains_key(header::RETRY_AFTER));
        }
        let full = Problem::new(Code::StoreFull, "Full.").into_response();
        assert_eq!(full.status(), StatusCode::INSUFFICIENT_STORAGE);
    }

    #[test]
    fn a_cause_never_leaves() {
        let problem =
            Problem::new(Code::Internal, "Failed.").cause(std::io::Error::other("secret"));
        assert!(!problem.into_json(RequestId::new()).contains("secret"));
    }
}
