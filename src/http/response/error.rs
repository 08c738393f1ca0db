//! How the refusals and failures of the layers below become problems.

use super::problem::{Fault, Problem};
use crate::board::json;
use crate::board::json::Kind;
use crate::board::{
    Board, Branch, Code, InvalidItem, LogName, Rejected, Revision, Seq, SessionName,
};
use crate::service::ServiceError;
use crate::store::StoreError;

use axum::http::{HeaderName, HeaderValue};

/// The header that tells which revision of a session an answer shows.
pub(crate) const REVISION_HEADER: HeaderName = HeaderName::from_static("blackboard-revision");

/// Where in a body something stands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// The index of an item in an array.
    pub(crate) index: Option<usize>,
    /// The line of an NDJSON body, from 1.
    pub(crate) line: Option<usize>,
    /// The member of the body's object that holds the array.
    pub(crate) member: Option<&'static str>,
}

impl Place {
    fn pointer(self, inner: &str) -> String {
        let member = self.member.map(|member| format!("/{member}")).unwrap_or_default();
        let index = self.index.map(|index| format!("/{index}")).unwrap_or_default();
        format!("{member}{index}{inner}")
    }
}

/// The JSON pointer (RFC 6901) of a member, given its name's literal.
pub(crate) fn child(parent: &str, name: &str) -> String {
    let name = json::decode(name).replace('~', "~0").replace('/', "~1");
    format!("{parent}/{name}")
}

/// An item that is none.
pub(crate) fn invalid_item(invalid: &InvalidItem, place: Place) -> Problem {
    let (inner, why) = match invalid {
        InvalidItem::Unsupported(unsupported) => {
            (unsupported.pointer.as_str(), unsupported.reason.to_string())
        }
        InvalidItem::NotAnItem { .. }
        | InvalidItem::TooLarge { .. }
        | InvalidItem::ImageTooLarge { .. } => ("", invalid.to_string()),
    };
    let pointer = place.pointer(inner);
    let at = [
        place.line.map(|line| format!("line {line}")),
        (!pointer.is_empty()).then(|| pointer.clone()),
    ];
    let at: Vec<String> = at.into_iter().flatten().collect();
    let detail = if at.is_empty() { why.clone() } else { format!("{}: {why}", at.join(", ")) };
    let fault = Fault { pointer: Some(pointer), line: place.line, detail: why };
    Problem::new(invalid.code(), detail).fault(fault)
}

/// A member of a body's object that is not known.
pub(crate) fn unknown_field(pointer: String) -> Problem {
    let detail = format!("{pointer}: there is no such member here");
    let fault =
        Fault { pointer: Some(pointer), line: None, detail: "there is no such member".to_owned() };
    Problem::new(Code::UnknownField, detail).fault(fault)
}

/// A member of a body's object that is not as it should be.
pub(crate) fn invalid_field(pointer: String, why: impl Into<String>) -> Problem {
    at_fault(Code::InvalidField, pointer, why.into())
}

/// A part of a body that must be an array of items.
pub(crate) fn array_required(pointer: String, found: Kind) -> Problem {
    let why = format!("an array of items is needed here, this is {}", found.with_article());
    at_fault(Code::ArrayRequired, pointer, why)
}

/// A part of a body that must be an object.
pub(crate) fn object_required(pointer: String, found: Kind) -> Problem {
    let why = format!("an object is needed here, this is {}", found.with_article());
    invalid_field(pointer, why)
}

fn at_fault(code: Code, pointer: String, why: String) -> Problem {
    let detail = if pointer.is_empty() { why.clone() } else { format!("{pointer}: {why}") };
    Problem::new(code, detail).fault(Fault { pointer: Some(pointer), line: None, detail: why })
}

/// There is no session of the name that was asked for.
pub(crate) fn no_session(session: &SessionName) -> Problem {
    refused(&Rejected::NoSession { session: session.clone() }, None)
}

/// A session's revision as a header's value.
pub(crate) fn revision_value(revision: Revision) -> HeaderValue {
    HeaderValue::from(revision.0)
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        let (code, detail) = (error.code(), error.to_string());
        match error {
            ServiceError::Rejected { rejected, revision } => refused(&rejected, revision),
            ServiceError::Item(invalid) => invalid_item(&invalid, Place::default()),
            ServiceError::Patch { error, revision } => {
                patch_problem(code, &error).header(REVISION_HEADER, revision_value(revision))
            }
            ServiceError::RevisionNotReached { head, .. } => {
                Self::new(code, detail).header(REVISION_HEADER, revision_value(head))
            }
            ServiceError::Archive { line, fault } => Self::new(code, detail).fault(Fault {
                pointer: None,
                line: Some(line),
                detail: fault.to_string(),
            }),
            ServiceError::Compacted { oldest } => {
                Self::new(code, detail).member("oldest_revision", &oldest)
            }
            ServiceError::Poisoned { outcome_unknown: true } => {
                Self::new(code, detail).member("outcome", "unknown")
            }
            ServiceError::Store(StoreError::Full) => Self::new(code, detail),
            ServiceError::Store(cause) => {
                Self::new(code, "the store could not read or write").cause(cause)
            }
            ServiceError::CommitTooLarge { .. }
            | ServiceError::Overloaded
            | ServiceError::Poisoned { .. }
            | ServiceError::StoreFull
            | ServiceError::Busy
            | ServiceError::Malformed
            | ServiceError::Damaged
            | ServiceError::Undecodable(_)
            | ServiceError::Stopping
            | ServiceError::Fault => Self::new(code, detail),
        }
    }
}

/// A refusal by a rule of the board, with the revision that it was decided against.
pub(crate) fn refused(rejected: &Rejected, revision: Option<Revision>) -> Problem {
    let why = rejected.to_string();
    let problem = match part_at_fault(rejected) {
        Some(pointer) => at_fault(rejected.code(), pointer, why),
        None => Problem::new(rejected.code(), why),
    };
    match revision {
        Some(revision) => problem.header(REVISION_HEADER, revision_value(revision)),
        None => problem,
    }
}

/// The pointer of the part of the body that a rule refuses, where it is one.
fn part_at_fault(rejected: &Rejected) -> Option<String> {
    Some(match rejected {
        Rejected::NotAtCreation => "/qa_pairs".to_owned(),
        Rejected::TooManyLabels { .. } => "/labels".to_owned(),
        Rejected::UnknownStatus { .. } | Rejected::NoStatus => "/status".to_owned(),
        Rejected::AgentField { name, .. } => format!("/{name}"),
        Rejected::SumTooLarge => "/add".to_owned(),
        Rejected::RootNotAnObject | Rejected::Item(_) => String::new(),
        Rejected::InOperation { branch: Branch::Then, index, .. } => format!("/then/{index}"),
        Rejected::InOperation { branch: Branch::Else, index, .. } => format!("/else/{index}"),
        Rejected::NoSession { .. }
        | Rejected::NoEntry { .. }
        | Rejected::Precondition { .. }
        | Rejected::Stale
        | Rejected::TooManyItems { .. }
        | Rejected::SessionFull { .. }
        | Rejected::ImagesFull { .. }
        | Rejected::TooManyEntries { .. }
        | Rejected::TooManySessions { .. }
        | Rejected::NoPath { .. }
        | Rejected::NotAnObject { .. }
        | Rejected::NotANumber { .. }
        | Rejected::NotAnArray { .. }
        | Rejected::StateFull { .. }
        | Rejected::NoAgent { .. }
        | Rejected::ProfileTooLarge { .. }
        | Rejected::IllegalTransition { .. }
        | Rejected::TooManyAgents
        | Rejected::AgentRequired
        | Rejected::AlreadyClaimed { .. }
        | Rejected::AlreadyDone { .. }
        | Rejected::StaleFence { .. }
        | Rejected::AlreadyAnswered { .. }
        | Rejected::SessionExists { .. }
        | Rejected::NoCheckpoint { .. }
        | Rejected::TooManyCheckpoints
        | Rejected::NoRevision { .. }
        | Rejected::KeyReused => return None,
    })
}

/// An entry that is not there.
pub(crate) fn no_entry(board: &Board, log: &LogName, seq: Seq) -> Problem {
    refused(&Rejected::NoEntry { log: log.clone(), seq }, Some(board.revision()))
}

fn patch_problem(code: Code, error: &json::PatchError) -> Problem {
    let pointer = match error {
        json::PatchError::Refused { index, .. } => format!("/{index}"),
        json::PatchError::NotAnArray
        | json::PatchError::TargetTooDeep
        | json::PatchError::TooLarge { .. } => String::new(),
    };
    let fault = Fault { pointer: Some(pointer), line: None, detail: error.to_string() };
    Problem::new(code, error.to_string()).fault(fault)
}
