//! Problems in the OpenAPI document: the codes of each kind of route, by status.
//!
//! A problem's schema names the codes of its status, so that an answer with another one is outside the
//! document.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use utoipa::IntoResponses;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::Operation;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr};

use super::headers::{required, revision_header, text_header};
use crate::board::Code;
use crate::http::response::problem;

/// A refusal that several routes share: a status with its codes.
pub(crate) struct Refusal {
    name: &'static str,
    codes: &'static [Code],
}

macro_rules! refusals {
    ($($name:ident = [$($code:ident),+];)+) => {
        $(
            #[expect(non_upper_case_globals, reason = "the name is the document's")]
            const $name: Refusal = Refusal { name: stringify!($name), codes: &[$(Code::$code),+] };
        )+

        const REFUSALS: &[Refusal] = &[$($name),+];
    };
}

refusals! {
    InvalidQuery = [InvalidParameter, UnknownParameter, InvalidEncoding];
    InvalidRequest = [InvalidName, InvalidParameter, UnknownParameter, InvalidEncoding];
    InvalidBody = [InvalidJson, InvalidName, InvalidParameter, UnknownParameter, InvalidEncoding];
    NotAllowed = [Forbidden];
    NoToken = [Unauthorized];
    TooManyRequests = [RateLimited];
    NoSession = [SessionNotFound];
    NoLog = [SessionNotFound, RouteNotFound];
    NoEntry = [SessionNotFound, EntryNotFound];
    NoLogEntry = [SessionNotFound, EntryNotFound, RouteNotFound];
    NoState = [SessionNotFound, PathNotFound];
    NoAgent = [SessionNotFound, AgentNotFound];
    NoPart = [SessionNotFound, EntryNotFound, PathNotFound, AgentNotFound];
    NoPastLog = [SessionNotFound, RevisionNotFound, CheckpointNotFound, RouteNotFound];
    NoPastEntry = [SessionNotFound, RevisionNotFound, CheckpointNotFound, EntryNotFound];
    NoPastLogEntry = [SessionNotFound, RevisionNotFound, CheckpointNotFound, EntryNotFound, RouteNotFound];
    NoPastImage = [SessionNotFound, RevisionNotFound, CheckpointNotFound, EntryNotFound, NoImage];
    NoPastState = [SessionNotFound, RevisionNotFound, CheckpointNotFound, PathNotFound];
    NoPastAgent = [SessionNotFound, RevisionNotFound, CheckpointNotFound, AgentNotFound];
    NotMet = [ConditionNotMet];
    Anonymous = [InvalidName, InvalidParameter, UnknownParameter, InvalidEncoding, AgentRequired];
    AnonymousBody = [InvalidJson, InvalidName, InvalidParameter, UnknownParameter, InvalidEncoding, AgentRequired];
    BodyTimeout = [RequestTimeout];
    LostClaim = [StaleFence];
    Blocked = [StaleFence, NotAnObject];
    BlockedOrNoNumber = [StaleFence, NotAnObject, NotANumber];
    Claimed = [StaleFence, AlreadyClaimed];
    WrongMove = [StaleFence, IllegalTransition];
    NoCheckpoint = [SessionNotFound, CheckpointNotFound];
    NoPoint = [SessionNotFound, RevisionNotFound, CheckpointNotFound];
    Answered = [StaleFence, AlreadyAnswered];
    Exists = [StaleFence, SessionExists];
    Compacted = [HistoryCompacted];
    Conflict = [StaleFence, NotAnObject, NotANumber, AlreadyClaimed, AlreadyAnswered, IllegalTransition];
    KeyReused = [IdempotencyKeyReused];
    TooDeepPath = [TooDeep, IdempotencyKeyReused];
    Precondition = [PreconditionFailed];
    PreconditionOrTest = [PreconditionFailed, ConditionNotMet];
    TooLarge = [BodyTooLarge, ItemTooLarge, CommitTooLarge];
    TooLargeToCommit = [CommitTooLarge];
    MediaType = [UnsupportedMediaType];
    NoSuchRange = [RangeNotSatisfiable];
    NotShowable = [NotAnImage];
    ForeignHost = [UnknownHost];
    InvalidItem = [UnsupportedItem, UnsupportedValue, TooDeep, IdempotencyKeyReused];
    InvalidItems = [UnsupportedItem, UnsupportedValue, TooDeep, NotAnImage, UnknownField, InvalidField, IdempotencyKeyReused];
    InvalidList = [UnsupportedItem, UnsupportedValue, TooDeep, ArrayRequired, IdempotencyKeyReused];
    InvalidPatch = [UnsupportedItem, UnsupportedValue, TooDeep, InvalidField, IdempotencyKeyReused];
    InvalidValue = [UnsupportedValue, TooDeep, InvalidField, IdempotencyKeyReused];
    InvalidOperation = [UnsupportedValue, TooDeep, UnknownField, InvalidField, ArrayRequired, IdempotencyKeyReused];
    InvalidProfile = [UnsupportedValue, TooDeep, InvalidField, IdempotencyKeyReused];
    InvalidTerms = [UnknownField, InvalidField, IdempotencyKeyReused];
    InvalidOutcome = [UnsupportedValue, TooDeep, UnknownField, InvalidField, IdempotencyKeyReused];
    InvalidDocument = [UnsupportedItem, UnsupportedValue, TooDeep, UnknownField, InvalidField, ArrayRequired, IdempotencyKeyReused];
    Unreadable = [Overloaded, StoreUnavailable];
    NoPlace = [Overloaded];
    Fault = [Internal];
    NotReady = [StorePoisoned];
    NotReadable = [Overloaded, StoreUnavailable, RevisionNotReached];
    OverBudget = [BudgetTooSmall];
    NotWritable = [Overloaded, StorePoisoned, StoreUnavailable];
    Full = [SessionFull, StoreFull];
}

/// What the edge refuses, whatever the route. An unknown `Content-Encoding` is among it.
const EDGE: [&Refusal; 4] = [&NotAllowed, &MediaType, &ForeignHost, &Fault];

/// What every route may meet that is not for everybody.
const GUARDED: [&Refusal; 3] = [&NoToken, &NotAllowed, &TooManyRequests];

/// What every write may meet.
const WRITE: [&Refusal; 2] = [&NotWritable, &Full];

/// What a write may meet that has no other conflict, and no body.
const ALONE: [&Refusal; 2] = [&LostClaim, &KeyReused];

/// What every route with a body may meet.
const BODY: [&Refusal; 3] = [&InvalidBody, &BodyTimeout, &TooLarge];

/// The answer to a reader that has the present copy.
const NOT_MODIFIED: &str = "NotModified";

/// The answer to a request that never reached the router.
const HEAD_TOO_LARGE: &str = "HeadTooLarge";

macro_rules! sets {
    ($($(#[$doc:meta])* $set:ident $(($known:ident))? = [$($refusal:ident),*] $(+ $more:ident)*;)+) => {$(
        $(#[$doc])*
        pub(in crate::http) struct $set;

        impl IntoResponses for $set {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                let mut all = referred([$(&$refusal),*].into_iter().chain(EDGE)$(.chain($more))*);
                $(all.insert("304".to_owned(), Ref::from_response_name($known).into());)?
                all.insert("431".to_owned(), Ref::from_response_name(HEAD_TOO_LARGE).into());
                all
            }
        }
    )+};
}

sets! {
    /// Of a route about no session.
    ServerRefusals = [InvalidQuery];
    /// Of following all sessions.
    NoticesRefusals = [InvalidQuery, NoPlace];
    /// Of the readiness.
    ReadinessRefusals = [InvalidQuery, NotReady];
    /// Of the list of sessions.
    ListRefusals(NOT_MODIFIED) = [InvalidQuery];
    /// Of describing a session.
    DescribeRefusals(NOT_MODIFIED) = [InvalidRequest, NoSession, NotMet, NotReadable];
    /// Of reading something of a session that has no past.
    ReadNowRefusals(NOT_MODIFIED) = [InvalidRequest, NoSession, NotReadable];
    /// Of reading something of a session.
    ReadRefusals(NOT_MODIFIED) = [InvalidRequest, NoPoint, Compacted, NotReadable];
    /// Of reading a prompt.
    ReadPromptRefusals(NOT_MODIFIED) = [InvalidRequest, NoPoint, Compacted, OverBudget, NotReadable];
    /// Of following a session.
    FollowRefusals(NOT_MODIFIED) = [InvalidRequest, Unreadable];
    /// Of reading who wrote what.
    AuditRefusals(NOT_MODIFIED) = [InvalidRequest, NoSession, Compacted, NotReadable];
    /// Of comparing two revisions.
    DiffRefusals(NOT_MODIFIED) = [InvalidRequest, NoPoint, Compacted, NotReadable];
    /// Of reading a log.
    ReadLogRefusals(NOT_MODIFIED) = [InvalidRequest, NoPastLog, Compacted, NotReadable];
    /// Of reading an entry.
    ReadEntryRefusals(NOT_MODIFIED) = [InvalidRequest, NoPastLogEntry, Compacted, NotReadable];
    /// Of reading an image.
    ReadImageRefusals(NOT_MODIFIED) = [InvalidRequest, NoPastImage, Compacted, NoSuchRange, NotShowable, NotReadable];
    /// Of reading the state.
    ReadStateRefusals(NOT_MODIFIED) = [InvalidRequest, NoPastState, Compacted, NotMet, TooDeepPath, NotReadable];
    /// Of reading an agent.
    ReadAgentRefusals(NOT_MODIFIED) = [InvalidRequest, NoPastAgent, Compacted, NotReadable];
    /// Of making or changing a session, or its dictionary.
    PutRefusals = [NoSession, LostClaim, Precondition, InvalidDocument] + BODY + WRITE;
    /// Of removing a session, or the items of its dictionary.
    RemoveRefusals = [InvalidRequest, NoSession, Precondition, TooLargeToCommit] + ALONE + WRITE;
    /// Of appending to a log.
    AppendRefusals = [NoLog, LostClaim, Precondition, InvalidItems] + BODY + WRITE;
    /// Of replacing a log.
    ReplaceRefusals = [NoLog, LostClaim, Precondition, InvalidList] + BODY + WRITE;
    /// Of removing entries of a log.
    RemoveEntriesRefusals = [InvalidRequest, NoLog, Precondition, TooLargeToCommit] + ALONE + WRITE;
    /// Of replacing an entry's item.
    PutEntryRefusals = [NoLogEntry, LostClaim, Precondition, InvalidItem] + BODY + WRITE;
    /// Of patching an entry's item.
    PatchEntryRefusals = [NoLogEntry, LostClaim, PreconditionOrTest, InvalidPatch] + BODY + WRITE;
    /// Of removing an entry.
    RemoveEntryRefusals = [InvalidRequest, NoLogEntry, Precondition, TooLargeToCommit] + ALONE + WRITE;
    /// Of setting a value of the state.
    PutStateRefusals = [NoSession, Blocked, Precondition, InvalidValue] + BODY + WRITE;
    /// Of patching a value of the state.
    PatchStateRefusals = [NoSession, BlockedOrNoNumber, Precondition, InvalidOperation] + BODY + WRITE;
    /// Of removing a value of the state.
    RemoveStateRefusals = [InvalidRequest, NoState, LostClaim, Precondition, TooDeepPath, TooLargeToCommit] + WRITE;
    /// Of registering an agent.
    PutAgentRefusals = [NoSession, WrongMove, Precondition, InvalidProfile] + BODY + WRITE;
    /// Of changing an agent.
    PatchAgentRefusals = [NoAgent, WrongMove, Precondition, InvalidProfile] + BODY + WRITE;
    /// Of removing an agent.
    RemoveAgentRefusals = [InvalidRequest, NoAgent, Precondition, TooLargeToCommit] + ALONE + WRITE;
    /// Of claiming a request.
    ClaimRefusals = [AnonymousBody, NoEntry, Claimed, BodyTimeout, TooLarge, Precondition, InvalidTerms] + WRITE;
    /// Of giving a claim back.
    ReleaseRefusals = [Anonymous, NoEntry, Claimed, Precondition, TooLargeToCommit, KeyReused] + WRITE;
    /// Of finishing a request.
    FinishRefusals = [NoEntry, Claimed, Precondition, InvalidOutcome] + BODY + WRITE;
    /// Of answering a question.
    AnswerRefusals = [NoEntry, Answered, Precondition, InvalidOutcome] + BODY + WRITE;
    /// Of making a checkpoint.
    CheckpointRefusals = [NoSession, LostClaim, Precondition, InvalidTerms] + BODY + WRITE;
    /// Of removing a checkpoint.
    RemoveCheckpointRefusals = [InvalidRequest, NoCheckpoint, Precondition, TooLargeToCommit] + ALONE + WRITE;
    /// Of forking a session.
    ForkRefusals = [NoPoint, Exists, Compacted, Precondition, InvalidTerms] + BODY + WRITE;
    /// Of letting a session be as it was.
    RestoreRefusals = [NoPoint, LostClaim, Compacted, Precondition, InvalidTerms] + BODY + WRITE;
    /// Of forgetting a session's history.
    PurgeRefusals = [InvalidRequest, NoSession, LostClaim, Precondition] + WRITE;
    /// Of taking an archive out.
    ReadArchiveRefusals(NOT_MODIFIED) = [InvalidRequest, NoSession, Compacted, NotReadable];
    /// Of taking an archive in.
    PutArchiveRefusals = [Exists, Precondition, InvalidTerms] + BODY + WRITE;
    /// Of a transaction.
    TransactRefusals = [AnonymousBody, NoPart, Conflict, BodyTimeout, TooLarge, Precondition, InvalidItems] + WRITE;
}

/// Adds what a route refuses that is not for everybody, with a session in its path or not.
pub(in crate::http) fn guarded(operation: &mut Operation, in_session: bool) {
    let session = in_session.then_some(&NoSession);
    let responses = &mut operation.responses.responses;
    for refusal in GUARDED.into_iter().chain(session) {
        let status = refusal.status().as_u16().to_string();
        responses.entry(status).or_insert_with(|| reference(refusal));
    }
}

/// The same refusal where the path names no log, so that it is always a route.
pub(crate) fn without_names(response: &mut RefOr<Response>) {
    let reads = [(&NoPastLog, &NoPoint), (&NoPastLogEntry, &NoPastEntry)];
    in_place_of(response, &[(&NoLog, &NoSession), (&NoLogEntry, &NoEntry)]);
    in_place_of(response, &reads);
}

/// The same refusal where the path names the whole state, which is always there.
pub(crate) fn without_paths(response: &mut RefOr<Response>) {
    in_place_of(response, &[(&NoState, &NoSession), (&TooDeepPath, &KeyReused)]);
    in_place_of(response, &[(&NoPastState, &NoPoint)]);
}

/// The same refusal where no image is taken.
pub(crate) fn without_images(response: &mut RefOr<Response>) {
    in_place_of(response, &[(&InvalidItems, &InvalidItem)]);
}

fn in_place_of(response: &mut RefOr<Response>, changes: &[(&Refusal, &Refusal)]) {
    let found = changes.iter().find(|(from, _)| *response == reference(from));
    if let Some((_, to)) = found {
        *response = reference(to);
    }
}

/// All refusals, each under its name.
pub(in crate::http) fn components() -> BTreeMap<String, RefOr<Response>> {
    let head = ResponseBuilder::new()
        .description("The request's line and headers are too large; there is no body, and the connection ends")
        .build();
    let refusals =
        REFUSALS.iter().map(|refusal| (refusal.name.to_owned(), refusal.response().into()));
    let known = ResponseBuilder::new()
        .description("The client's copy is the present one")
        .header("ETag", text_header("Its tag"))
        .header("Blackboard-Revision", revision_header())
        .build();
    refusals
        .chain([(NOT_MODIFIED.to_owned(), known.into()), (HEAD_TOO_LARGE.to_owned(), head.into())])
        .collect()
}

fn reference(refusal: &Refusal) -> RefOr<Response> {
    Ref::from_response_name(refusal.name).into()
}

fn referred<'a>(refusals: impl Iterator<Item = &'a Refusal>) -> BTreeMap<String, RefOr<Response>> {
    refusals.map(|refusal| (refusal.status().as_u16().to_string(), reference(refusal))).collect()
}

impl Refusal {
    fn status(&self) -> StatusCode {
        self.codes.first().map_or(StatusCode::INTERNAL_SERVER_ERROR, |code| problem::status(*code))
    }

    fn response(&self) -> Response {
        let codes: Vec<&str> = self.codes.iter().map(|code| code.as_str()).collect();
        let words: Vec<String> = codes.iter().map(|code| format!("`{code}`")).collect();
        let code = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(codes));
        let mut own = ObjectBuilder::new().property("code", code);
        let current = if self.codes.contains(&Code::PreconditionFailed) {
            Some("What was to be written, as it is: an entry, an agent or a value of the state")
        } else if self.codes.contains(&Code::ConditionNotMet) {
            Some("The value of the state, as it is")
        } else {
            None
        };
        if let Some(told) = current {
            let any = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
            own = own.property("current", any.description(Some(told)));
        }
        if self.codes.contains(&Code::HistoryCompacted) {
            let oldest = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
            let told = "The oldest revision that the history can show";
            own = own.property("oldest_revision", oldest.description(Some(told)));
        }
        if self.codes.contains(&Code::StorePoisoned) && self.codes.len() > 1 {
            let unknown = ObjectBuilder::new()
                .schema_type(Type::String)
                .enum_values(Some(["unknown"]))
                .description(Some("Present where the write may have happened all the same"));
            own = own.property("outcome", unknown);
        }
        let schema = AllOfBuilder::new().item(Ref::from_schema_name("ProblemBody")).item(own);
        let content = ContentBuilder::new().schema(Some(Schema::from(schema))).build();
        let response = ResponseBuilder::new()
            .description(words.join(", "))
            .content(problem::MEDIA_TYPE, content);
        self.headers()
            .into_iter()
            .fold(response, |all, (name, header)| all.header(name, header))
            .build()
    }

    fn headers(&self) -> Vec<(&'static str, Header)> {
        let about_session = self.codes.iter().any(|code| is_about_session(*code));
        let mut headers = Vec::new();
        if about_session {
            headers.push(("Blackboard-Revision", revision_header()));
        }
        match self.status() {
            StatusCode::PRECONDITION_FAILED if self.codes.contains(&Code::PreconditionFailed) => {
                headers.push(("ETag", text_header("The present tag of what was to be written")));
            }
            StatusCode::UNSUPPORTED_MEDIA_TYPE => headers.extend([
                ("Accept-Post", text_header("The media types that a body may have here")),
                ("Accept-Patch", text_header("The media types that a patch may have here")),
                ("Accept-Encoding", text_header("The codings that a body may have")),
            ]),
            StatusCode::RANGE_NOT_SATISFIABLE => {
                headers.push(("Content-Range", text_header("How many bytes there are")));
            }
            StatusCode::UNAUTHORIZED => {
                let challenge = text_header("`Bearer` (RFC 6750), with why a token is not taken");
                headers.push(("WWW-Authenticate", required(challenge)));
            }
            StatusCode::FORBIDDEN => {
                let challenge = text_header("The scope that the token has not, where that is why");
                headers.push(("WWW-Authenticate", challenge));
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1));
                let told = "When to come back, in seconds";
                let header = HeaderBuilder::new().schema(Some(seconds)).description(Some(told));
                headers.push(("Retry-After", required(header.build())));
            }
            _ => {}
        }
        headers
    }
}

/// Whether the refusal was decided against a session.
fn is_about_session(code: Code) -> bool {
    matches!(
        code,
        Code::EntryNotFound
            | Code::PathNotFound
            | Code::AgentNotFound
            | Code::CheckpointNotFound
            | Code::RevisionNotFound
            | Code::HistoryCompacted
            | Code::AlreadyAnswered
            | Code::SessionExists
            | Code::StaleFence
            | Code::ConditionNotMet
            | Code::PreconditionFailed
            | Code::RevisionNotReached
            | Code::SessionFull
            | Code::CommitTooLarge
            | Code::InvalidField
    )
}
