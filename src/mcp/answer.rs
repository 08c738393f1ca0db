//! Answers of tools: facts as JSON, readings with the board's data between marks, images, failures.

use rmcp::model::{CallToolResult, ContentBlock, ErrorData};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::api::refusal::{Facts as RefusalFacts, Refusal};
use crate::auth::Forbidden;
use crate::board::Code;
use crate::service::ServiceError;

/// The maximum size of an answer that is given as structured content too.
const STRUCTURED_BYTES_MAX: usize = 4 << 10;

/// The maximum number of faults that a failure lists.
const FAULTS_MAX: usize = 20;

/// The answer of a tool.
#[derive(Debug, Default)]
pub(super) struct Answer {
    content: Vec<ContentBlock>,
    structured: Option<Value>,
}

impl Answer {
    /// Creates an answer with a text for the model.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], structured: None }
    }

    /// Creates an answer that shows what is on the board, between marks that no data can contain.
    pub(super) fn reading(about: &str, data: &str) -> Self {
        Self::text(marked(about, data))
    }

    /// Adds an image.
    pub(super) fn image(mut self, base64: String, media_type: &str) -> Self {
        self.content.push(ContentBlock::image(base64, media_type));
        self
    }

    /// Returns the result of the call.
    pub(super) fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::success(self.content);
        result.structured_content = self.structured;
        result
    }
}

/// Puts data between marks with the hash of the data.
pub(super) fn marked(about: &str, data: &str) -> String {
    let hash = Sha256::digest(data.as_bytes());
    let mark: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{about}\n<board-data-{mark}>\n{}\n</board-data-{mark}>", data.trim_end_matches('\n'))
}

/// Facts of an answer, as the text of a JSON object in the order in which they are told.
#[derive(Clone, Debug)]
pub(super) struct Facts(String);

impl Facts {
    /// Creates an empty object.
    pub(super) fn new() -> Self {
        Self("{}".to_owned())
    }

    /// Restores the facts of an earlier answer.
    pub(super) fn again(text: &str) -> Self {
        Self(text.to_owned()).put("replayed", &true)
    }

    /// Adds a fact.
    pub(super) fn put(self, name: &str, value: &(impl Serialize + ?Sized)) -> Self {
        match serde_json::to_string(value) {
            Ok(text) => self.put_json(name, &text),
            // Only a map with keys other than strings fails.
            Err(_) => self,
        }
    }

    /// Adds a fact as JSON text.
    pub(super) fn put_json(mut self, name: &str, json: &str) -> Self {
        self.0.pop();
        if self.0.len() > 1 {
            self.0.push_str(", ");
        }
        self.0.push_str(&format!("\"{name}\": {json}}}"));
        self
    }

    /// Adds what to do next.
    pub(super) fn next(self, next: &str) -> Self {
        self.put("next", next)
    }

    /// Returns the JSON text.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Facts> for Answer {
    fn from(facts: Facts) -> Self {
        let small = facts.0.len() <= STRUCTURED_BYTES_MAX;
        let structured = if small { exact_value(&facts.0) } else { None };
        Self { content: vec![ContentBlock::text(facts.0)], structured }
    }
}

/// Parses a JSON text, unless a number in it would change.
fn exact_value(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    let numbers = |text: &str| -> Vec<u8> {
        let mut bytes: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        bytes.sort_unstable();
        bytes
    };
    (numbers(text) == numbers(&value.to_string())).then_some(value)
}

/// The reason why a call has no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// A refusal or a failure of the board, which the model is told.
    Refused(Refusal),
    /// A fault in the protocol's use.
    Protocol(ErrorData),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        Self::Refused(error.into())
    }
}

impl From<Forbidden> for Failure {
    fn from(forbidden: Forbidden) -> Self {
        Self::Refused(Refusal::new(Code::Forbidden, forbidden.to_string()))
    }
}

impl From<ErrorData> for Failure {
    fn from(error: ErrorData) -> Self {
        Self::Protocol(error)
    }
}

/// Returns the result that tells a model of a refusal, and what to do next.
pub(super) fn refused(refusal: Refusal) -> CallToolResult {
    let RefusalFacts { code, detail, faults, members, cause, .. } = refusal.into_facts();
    if let Some(cause) = cause {
        tracing::error!(%cause, code = code.as_str(), "a tool failed");
    }
    let detail = found(&SENTENCES, code).map_or(detail, str::to_owned);
    let mut facts = Facts::new().put("error", code.as_str()).put("detail", &detail);
    if faults.len() > 1 {
        let listed: Vec<_> = faults.iter().take(FAULTS_MAX).collect();
        facts = facts.put("faults", &listed);
    }
    for (name, value) in &members {
        facts = facts.put_json(name, value.get());
    }
    facts = facts.next(found(&NEXT_STEPS, code).unwrap_or(CORRECT));
    let answer = Answer::from(facts);
    let mut result = CallToolResult::error(answer.content);
    result.structured_content = answer.structured;
    result
}

/// Returns the error that tells a client of a refusal outside a tool.
pub(super) fn refused_request(refusal: Refusal) -> ErrorData {
    let RefusalFacts { code, detail, cause, .. } = refusal.into_facts();
    if let Some(cause) = cause {
        tracing::error!(%cause, code = code.as_str(), "a request failed");
    }
    let data = Some(serde_json::json!({ "code": code.as_str() }));
    let is_failure = matches!(code, Code::Internal | Code::StorePoisoned | Code::StoreUnavailable);
    let is_missing = matches!(
        code,
        Code::SessionNotFound | Code::EntryNotFound | Code::NoImage | Code::PathNotFound
    );
    if is_failure {
        ErrorData::internal_error(detail, data)
    } else if is_missing {
        ErrorData::resource_not_found(detail, data)
    } else {
        ErrorData::invalid_params(detail, data)
    }
}

impl From<Failure> for ErrorData {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(refusal) => refused_request(refusal),
            Failure::Protocol(error) => error,
        }
    }
}

/// What a model can do about a refusal, where the sentence itself does not say it.
const NEXT_STEPS: [(Code, &str); 20] = [
    (Code::IdempotencyKeyReused, "use a new idempotency_key for each new write"),
    (
        Code::SessionNotFound,
        "call board_overview without 'session' to list the sessions, or append_items to begin this one",
    ),
    (Code::AgentRequired, "pass your name as 'agent'"),
    (Code::PreconditionFailed, "read again with get_state, then repeat with the new tag"),
    (Code::AlreadyClaimed, "claim another request with claim_request"),
    (Code::StaleFence, "the claim was lost: stop this work, and claim again with claim_request"),
    (Code::AlreadyAnswered, "read the answer with read_log (log questions)"),
    (Code::Overloaded, RETRY),
    (Code::StoreUnavailable, RETRY),
    (Code::RateLimited, RETRY),
    (Code::Forbidden, "ask a person for a token with this right"),
    (Code::EntryNotFound, LOOK),
    (Code::PathNotFound, "call get_state without 'path' to see what is there"),
    (Code::CheckpointNotFound, "use a revision, or name a point with checkpoint_board first"),
    (Code::RevisionNotFound, LOOK),
    (Code::HistoryCompacted, "use a later revision: earlier ones are not kept"),
    (Code::NoImage, LOOK),
    (Code::SessionFull, "tell a person: the session has no room for more"),
    (Code::Internal, TELL),
    (Code::StorePoisoned, TELL),
];

const RETRY: &str = "wait a few seconds, then repeat the call";

const LOOK: &str = "look at what is there with board_overview or read_log, then call again";

const TELL: &str = "the server has a fault: tell a person, and try again later";

/// The step after any other refusal.
const CORRECT: &str = "correct the call as 'detail' says, then repeat it";

/// Sentences for models, instead of those that name parts of HTTP.
const SENTENCES: [(Code, &str); 3] = [
    (
        Code::IdempotencyKeyReused,
        "this idempotency_key was used for another call; nothing was written",
    ),
    (Code::AgentRequired, "this tool needs to know which agent calls"),
    (
        Code::PreconditionFailed,
        "nothing was written: the value is no longer as expected_tag says, or is there although 'absent' was expected",
    ),
];

fn found(table: &[(Code, &'static str)], code: Code) -> Option<&'static str> {
    table.iter().find(|(of, _)| *of == code).map(|(_, text)| *text)
}
