//! Refusals and failures: codes, facts, pointers.
//!
//! Each protocol renders a refusal in its own form. The cause of a failure is logged, and never sent.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use blackboard_board::json;
use blackboard_board::json::Kind;
use blackboard_board::{
    BlobPlace, Board, Branch, Code, Digest, Extent, InvalidItem, LogName, Rejected, Revision, Seq,
    SessionName, StatePath,
};
use blackboard_service::{ServiceError, SessionHandle};
use blackboard_store::StoreError;
use blackboard_suggestion::known_names;

/// The error that caused a failure, for the log only.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// A faulty part of a request's body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Fault {
    /// A JSON pointer (RFC 6901) to the part, into the body or into the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The line of an NDJSON body, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The fault, as a sentence.
    pub detail: String,
}

/// A refusal or a failure, in no protocol's form.
#[derive(Clone, Debug)]
pub struct Refusal(Box<Facts>);

/// The facts of a refusal.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The stable code.
    pub code: Code,
    /// What is wrong, by which limit, and what to do.
    pub detail: String,
    /// The parts of the body at fault.
    pub faults: Vec<Fault>,
    /// Further members of the problem, by name.
    pub members: BTreeMap<&'static str, Box<RawValue>>,
    /// The revision of the session at which the request was decided, if any.
    pub revision: Option<Revision>,
    /// The cause of a failure, for the log alone.
    pub cause: Option<Cause>,
    /// True if the disk of the store has no room.
    pub is_disk_full: bool,
    /// True if the sentence names statuses of a session, which others may have added.
    pub names_statuses: bool,
}

impl Refusal {
    /// Creates a refusal with this code and a sentence that states the fact and the remedy.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(Facts {
            code,
            detail: detail.into(),
            faults: Vec::new(),
            members: BTreeMap::new(),
            revision: None,
            cause: None,
            is_disk_full: false,
            names_statuses: false,
        }))
    }

    /// Marks the refusal as one for want of room on the disk, so that a door can add how much is free.
    pub(crate) fn disk_full(mut self) -> Self {
        self.0.is_disk_full = true;
        self
    }

    /// Marks the rejection as one whose sentence names statuses of a session.
    fn naming_statuses(mut self, names_statuses: bool) -> Self {
        self.0.names_statuses = names_statuses;
        self
    }

    /// Adds a remedy to the sentence.
    pub(crate) fn hint(mut self, remedy: &str) -> Self {
        self.0.detail.push_str("; ");
        self.0.detail.push_str(remedy);
        self
    }

    /// Adds a faulty part of the body.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.0.faults.push(fault);
        self
    }

    /// Prefixes each pointer, since the faulty value is part of a larger one.
    pub fn below(mut self, pointer: &str) -> Self {
        for fault in &mut self.0.faults {
            let inner = fault.pointer.take().unwrap_or_default();
            fault.pointer = Some(format!("{pointer}{inner}"));
        }
        self.0.detail = format!("{pointer}: {}", self.0.detail);
        self
    }

    /// Adds a member. Raw JSON keeps its text.
    pub fn member(mut self, name: &'static str, value: &(impl Serialize + ?Sized)) -> Self {
        // Only a map with keys other than strings fails, and is not worth failing a refusal.
        if let Ok(json) = to_raw_value(value) {
            self.0.members.insert(name, json);
        }
        self
    }

    /// Adds the error that caused a failure, for the log.
    pub(crate) fn cause(mut self, error: impl Error + Send + Sync + 'static) -> Self {
        self.0.cause = Some(Arc::new(error));
        self
    }

    /// Adds the revision of the session at which the request was decided.
    fn at(mut self, revision: Revision) -> Self {
        self.0.revision = Some(revision);
        self
    }

    /// Returns the sentence.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Returns the stable code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Returns all facts, for a protocol to render.
    pub fn into_facts(self) -> Facts {
        *self.0
    }
}

/// The schema of a problem's code.
pub struct CodeWord;

impl ToSchema for CodeWord {
    fn name() -> Cow<'static, str> {
        "Code".into()
    }
}

impl PartialSchema for CodeWord {
    fn schema() -> RefOr<Schema> {
        let told = "The stable code of an error";
        let words = Code::ALL.iter().map(|code| code.as_str());
        let schema = ObjectBuilder::new().schema_type(Type::String).description(Some(told));
        schema.enum_values(Some(words)).into()
    }
}

/// A place in a body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// The index of an item in an array.
    pub(crate) index: Option<usize>,
    /// The line of an NDJSON body, from 1.
    pub(crate) line: Option<usize>,
    /// The member of the body's object that holds the array.
    pub(crate) member: Option<&'static str>,
}

impl Place {
    pub(crate) fn pointer(self, inner: &str) -> String {
        let member = self.member.map(|member| format!("/{member}")).unwrap_or_default();
        let index = self.index.map(|index| format!("/{index}")).unwrap_or_default();
        format!("{member}{index}{inner}")
    }
}

/// Returns the JSON pointer (RFC 6901) of a member, given the literal of its name.
pub fn child(parent: &str, name: &str) -> String {
    let name = json::decode(name);
    match name.contains(['~', '/']) {
        true => [parent, "/", &name.replace('~', "~0").replace('/', "~1")].concat(),
        false => [parent, "/", &name].concat(),
    }
}

/// Refuses an invalid item.
pub fn invalid_item(invalid: &InvalidItem, place: Place) -> Refusal {
    let (inner, why) = match invalid {
        InvalidItem::Unsupported(unsupported) => {
            (unsupported.pointer.as_str(), unsupported.reason.to_string())
        }
        InvalidItem::NotAnItem { .. }
        | InvalidItem::TooLarge { .. }
        | InvalidItem::UrlTooLarge { .. }
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
    Refusal::new(invalid.code(), detail).fault(fault)
}

/// Refuses an unknown member of a body's object.
pub fn unknown_field(pointer: String, known: &[&str]) -> Refusal {
    let given = pointer.rsplit('/').next().unwrap_or_default();
    let detail = format!("{pointer}: unknown member; {}", known_names(given, known));
    let fault = Fault { pointer: Some(pointer), line: None, detail: "unknown member".to_owned() };
    Refusal::new(Code::UnknownField, detail).fault(fault)
}

/// Refuses the value of a member of a body's object.
pub fn invalid_field(pointer: String, why: impl Into<String>) -> Refusal {
    at_fault(Code::InvalidField, pointer, why.into())
}

/// Refuses a part of a body that must be an array of items.
pub fn array_required(pointer: String, found: Kind) -> Refusal {
    let hint = if found == Kind::Object { "; to append one item, POST it" } else { "" };
    let why = format!("expected an array of items, found {}{hint}", found.with_article());
    at_fault(Code::ArrayRequired, pointer, why)
}

/// Refuses a part of a body that must be an object.
pub(crate) fn object_required(pointer: String, found: Kind) -> Refusal {
    let why = format!("expected an object, found {}", found.with_article());
    invalid_field(pointer, why)
}

fn at_fault(code: Code, pointer: String, why: String) -> Refusal {
    let detail = if pointer.is_empty() { why.clone() } else { format!("{pointer}: {why}") };
    Refusal::new(code, detail).fault(Fault { pointer: Some(pointer), line: None, detail: why })
}

/// Refuses a request for a session that does not exist.
pub fn no_session(session: &SessionName) -> Refusal {
    refused(&Rejected::NoSession { session: session.clone() }, None)
}

/// Returns the extent of a session that must exist.
pub fn existing(session: &SessionHandle) -> Result<Extent, Refusal> {
    session.extent()?.ok_or_else(|| no_session(session.name()))
}

impl From<ServiceError> for Refusal {
    fn from(error: ServiceError) -> Self {
        let (code, detail) = (error.code(), error.to_string());
        match error {
            ServiceError::Rejected { rejected, revision } => refused(&rejected, revision),
            ServiceError::Item(invalid) => invalid_item(&invalid, Place::default()),
            ServiceError::Patch { error, revision } => patch_refused(code, &error).at(revision),
            ServiceError::RevisionNotReached { head, .. } => Self::new(code, detail).at(head),
            ServiceError::Archive { line, fault } => Self::new(code, detail).fault(Fault {
                pointer: None,
                line: Some(line),
                detail: fault.to_string(),
            }),
            ServiceError::Compacted { oldest } => {
                Self::new(code, detail).member("oldest_revision", &oldest)
            }
            ServiceError::Poisoned { outcome_unknown: true } | ServiceError::InDoubt => {
                Self::new(code, detail).member("outcome", "unknown")
            }
            ServiceError::StoreFull | ServiceError::Store(StoreError::Full) => {
                Self::new(code, detail).disk_full()
            }
            ServiceError::Store(cause) => {
                Self::new(code, "the store failed to read or write; the server's log has the cause")
                    .cause(cause)
            }
            ServiceError::CommitTooLarge { .. }
            | ServiceError::Overloaded
            | ServiceError::SearchOff
            | ServiceError::SearchTooLong { .. }
            | ServiceError::SearchNotReady
            | ServiceError::Poisoned { .. }
            | ServiceError::Busy
            | ServiceError::Failed(_)
            | ServiceError::Unreachable
            | ServiceError::FailedOver
            | ServiceError::Malformed
            | ServiceError::Damaged
            | ServiceError::Undecodable(_)
            | ServiceError::Stopping
            | ServiceError::Fault => Self::new(code, detail),
        }
    }
}

/// Returns the refusal by a rule of the board, with the revision at which the request was decided.
pub fn refused(rejected: &Rejected, revision: Option<Revision>) -> Refusal {
    let why = match known_statuses(rejected) {
        Some(known) => format!("{rejected}; {known}"),
        None => rejected.to_string(),
    };
    let refusal = match part_at_fault(rejected) {
        Some(pointer) => at_fault(rejected.code(), pointer, why),
        None => Refusal::new(rejected.code(), why),
    };
    let refusal = refusal.naming_statuses(names_statuses(rejected));
    let refusal = match why_not_claimable(rejected) {
        Some(why) => refusal.member("why", why),
        None => refusal,
    };
    match revision {
        Some(revision) => refusal.at(revision),
        None => refusal,
    }
}

/// Returns why a request cannot be claimed, in one word.
fn why_not_claimable(rejected: &Rejected) -> Option<&'static str> {
    let rejected = innermost(rejected);
    if let Rejected::NotClaimable { why, .. } = rejected {
        return Some(why.word());
    }
    matches!(rejected, Rejected::AlreadyFailed { .. }).then_some("failed")
}

/// Returns the known statuses beside an unknown one.
fn known_statuses(rejected: &Rejected) -> Option<String> {
    let Rejected::UnknownStatus { status, known } = innermost(rejected) else { return None };
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Some(known_names(status.as_str(), &known))
}

/// Returns true if the sentence names statuses of a session, which somebody has added.
fn names_statuses(rejected: &Rejected) -> bool {
    let rejected = innermost(rejected);
    matches!(rejected, Rejected::UnknownStatus { .. } | Rejected::IllegalTransition { .. })
}

/// Returns the reason itself, without the operations that it stands in.
fn innermost(rejected: &Rejected) -> &Rejected {
    let mut reason = rejected;
    while let Rejected::InOperation { rejected, .. } = reason {
        reason = rejected;
    }
    reason
}

/// Returns the pointer of the part of the body that a rule refuses, if any.
fn part_at_fault(rejected: &Rejected) -> Option<String> {
    Some(match rejected {
        Rejected::NotAtCreation => "/qa_pairs".to_owned(),
        Rejected::TooManyLabels { .. } => "/labels".to_owned(),
        Rejected::UnknownStatus { .. } | Rejected::NoStatus => "/status".to_owned(),
        Rejected::AgentField { name, .. } => format!("/{name}"),
        Rejected::SumTooLarge => "/add".to_owned(),
        Rejected::VerdictWithoutFence { .. } => "/fence".to_owned(),
        Rejected::NotAnOption { is_default: false, .. } => "/answer".to_owned(),
        Rejected::RootNotAnObject | Rejected::Item(_) => String::new(),
        Rejected::NoBlocker { index, .. } | Rejected::TooManyDependants { index, .. } => {
            format!("/after/{index}")
        }
        Rejected::NoBlob { place, pointer, .. } => blob_pointer(place, pointer),
        Rejected::InOperation { branch, index, rejected } => {
            let branch = if *branch == Branch::Then { "then" } else { "else" };
            format!("/{branch}/{index}{}", pointer_in_operation(rejected))
        }
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
        | Rejected::TooManyUnacked { .. }
        | Rejected::AgentRequired
        | Rejected::ForeignClaim { .. }
        | Rejected::ForeignStatus { .. }
        | Rejected::ForeignHost { .. }
        | Rejected::AlreadyClaimed { .. }
        | Rejected::AlreadyDone { .. }
        | Rejected::AlreadyFailed { .. }
        | Rejected::NotClaimable { .. }
        | Rejected::NotInReview { .. }
        | Rejected::OwnResult { .. }
        | Rejected::NotClaimed { .. }
        | Rejected::HasDependants { .. }
        | Rejected::BudgetExhausted { .. }
        | Rejected::TooManyExamined { .. }
        | Rejected::DeadlineTooEarly { .. }
        | Rejected::NotAnOption { is_default: true, .. }
        | Rejected::StaleFence { .. }
        | Rejected::AlreadyAnswered { .. }
        | Rejected::SessionExists { .. }
        | Rejected::NoCheckpoint { .. }
        | Rejected::TooManyCheckpoints
        | Rejected::TooManyBlobs
        | Rejected::NoRevision { .. }
        | Rejected::KeyReused => return None,
    })
}

/// Refuses a reference to a blob in an item at this place.
pub fn no_blob_at(
    rejected: &Rejected,
    revision: Option<Revision>,
    place: Place,
    pointer: &str,
) -> Refusal {
    let (why, pointer) = (rejected.to_string(), place.pointer(pointer));
    let at = place.line.map(|line| format!("line {line}, ")).unwrap_or_default();
    let detail = format!("{at}{pointer}: {why}");
    let fault = Fault { pointer: Some(pointer), line: place.line, detail: why };
    let refusal = Refusal::new(rejected.code(), detail).fault(fault);
    match revision {
        Some(revision) => refusal.at(revision),
        None => refusal,
    }
}

/// Returns the pointer of a reference to a blob, in a body that may be an array of items.
fn blob_pointer(place: &BlobPlace, pointer: &str) -> String {
    match place {
        BlobPlace::Item(index) => format!("/{index}{pointer}"),
        BlobPlace::LogItem(log, index) => format!("/{log}/{index}{pointer}"),
        BlobPlace::QaPair(index) => format!("/qa_pairs/{index}{pointer}"),
        BlobPlace::Value => pointer.to_owned(),
        BlobPlace::Element(index) => format!("/append/{index}{pointer}"),
        BlobPlace::State => format!("/state{pointer}"),
        BlobPlace::Result => format!("/result{pointer}"),
        BlobPlace::Reason => format!("/reason{pointer}"),
    }
}

/// Returns the pointer of the part of a transaction's operation that a rule refuses.
fn pointer_in_operation(rejected: &Rejected) -> String {
    let Rejected::NoBlob { place, pointer, .. } = rejected else { return String::new() };
    match place {
        BlobPlace::Item(_) => format!("/item{pointer}"),
        BlobPlace::Value => format!("/value{pointer}"),
        BlobPlace::LogItem(..)
        | BlobPlace::QaPair(_)
        | BlobPlace::Element(_)
        | BlobPlace::State
        | BlobPlace::Result
        | BlobPlace::Reason => blob_pointer(place, pointer),
    }
}

/// Refuses a read of a path without a value.
pub fn no_value(path: &StatePath, revision: Revision) -> Refusal {
    refused(&Rejected::NoPath { path: path.clone() }, Some(revision))
}

/// Refuses a read of an entry that does not exist.
pub(crate) fn no_entry(board: &Board, log: &LogName, seq: Seq) -> Refusal {
    refused(&Rejected::NoEntry { log: log.clone(), seq }, Some(board.revision()))
}

/// Refuses a read of a blob that does not exist.
pub fn no_blob(board: &Board, sha256: &Digest) -> Refusal {
    let detail = format!("the session has no blob {sha256}");
    Refusal::new(Code::BlobNotFound, detail).at(board.revision())
}

fn patch_refused(code: Code, error: &json::PatchError) -> Refusal {
    let pointer = match error {
        json::PatchError::Refused { index, .. } => format!("/{index}"),
        json::PatchError::NotAnArray
        | json::PatchError::TargetTooDeep
        | json::PatchError::TooLarge { .. } => String::new(),
    };
    let fault = Fault { pointer: Some(pointer), line: None, detail: error.to_string() };
    Refusal::new(code, error.to_string()).fault(fault)
}
