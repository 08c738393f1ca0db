//! Problems of the OpenAPI document, by route and status.
//!
//! A problem's schema names the codes of its status, so that a response with any other code violates the document.

use std::collections::{BTreeMap, HashSet};

use axum::http::StatusCode;
use utoipa::IntoResponses;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, PathItem, Paths};
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr};

use super::headers::{TAG, required, revision_header, tag_header, text_header};
use crate::response::problem;
use blackboard_board::Code;

/// A refusal that routes share: a status with its codes.
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
    InvalidBody = [InvalidJson, InvalidName, InvalidParameter, UnknownParameter, InvalidEncoding, PartialContent];
    InvalidWrite = [InvalidName, InvalidParameter, UnknownParameter, InvalidEncoding, PartialContent];
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
    NoPastBlob = [SessionNotFound, RevisionNotFound, CheckpointNotFound, BlobNotFound];
    NoPastState = [SessionNotFound, RevisionNotFound, CheckpointNotFound, PathNotFound];
    NoPastAgent = [SessionNotFound, RevisionNotFound, CheckpointNotFound, AgentNotFound];
    Anonymous = [InvalidName, InvalidParameter, UnknownParameter, InvalidEncoding, AgentRequired];
    AnonymousBody = [InvalidJson, InvalidName, InvalidParameter, UnknownParameter, InvalidEncoding, AgentRequired, PartialContent];
    BodyTimeout = [RequestTimeout];
    LostClaim = [StaleFence];
    SpentBudget = [StaleFence, BudgetExhausted];
    NoNewClaim = [StaleFence, AlreadyClaimed, IllegalTransition, BudgetExhausted];
    Blocked = [StaleFence, NotAnObject];
    BlockedOrNoNumber = [StaleFence, NotAnObject, NotANumber];
    Claimed = [StaleFence, AlreadyClaimed];
    NotClaimable = [StaleFence, AlreadyClaimed, IllegalTransition];
    Awaited = [StaleFence, HasDependants];
    WrongMove = [StaleFence, IllegalTransition];
    NoCheckpoint = [SessionNotFound, CheckpointNotFound];
    NoPoint = [SessionNotFound, RevisionNotFound, CheckpointNotFound];
    Answered = [StaleFence, AlreadyAnswered];
    Exists = [StaleFence, SessionExists];
    Compacted = [HistoryCompacted];
    Conflict = [StaleFence, NotAnObject, NotANumber, AlreadyClaimed, AlreadyAnswered, IllegalTransition, BudgetExhausted];
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
    InvalidItem = [UnsupportedItem, UnsupportedValue, TooDeep, NoBlob, IdempotencyKeyReused];
    InvalidItems = [UnsupportedItem, UnsupportedValue, TooDeep, NotAnImage, UnknownField, InvalidField, NoBlob, IdempotencyKeyReused];
    InvalidList = [UnsupportedItem, UnsupportedValue, TooDeep, ArrayRequired, NoBlob, IdempotencyKeyReused];
    InvalidPatch = [UnsupportedItem, UnsupportedValue, TooDeep, InvalidField, NoBlob, IdempotencyKeyReused];
    InvalidValue = [UnsupportedValue, TooDeep, InvalidField, NoBlob, IdempotencyKeyReused];
    InvalidOperation = [UnsupportedValue, TooDeep, UnknownField, InvalidField, ArrayRequired, NoBlob, IdempotencyKeyReused];
    InvalidProfile = [UnsupportedValue, TooDeep, InvalidField, IdempotencyKeyReused];
    InvalidBlob = [DigestMismatch, IdempotencyKeyReused];
    InvalidTerms = [UnknownField, InvalidField, IdempotencyKeyReused];
    InvalidOutcome = [UnsupportedValue, TooDeep, UnknownField, InvalidField, NoBlob, IdempotencyKeyReused];
    InvalidDocument = [UnsupportedItem, UnsupportedValue, TooDeep, UnknownField, InvalidField, ArrayRequired, NoBlob, IdempotencyKeyReused];
    Unreadable = [Overloaded, StoreUnavailable];
    NoPlace = [Overloaded];
    Fault = [Internal];
    NotReady = [StorePoisoned];
    NotReadable = [Overloaded, StoreUnavailable, RevisionNotReached];
    OverBudget = [BudgetTooSmall];
    NotWritable = [Overloaded, StorePoisoned, StoreUnavailable];
    Full = [SessionFull, StoreFull];
}

/// Refusals of the edge, on all routes. An unknown `Content-Encoding` is one of them.
const EDGE: [&Refusal; 4] = [&NotAllowed, &MediaType, &ForeignHost, &Fault];

/// Refusals of all routes that need a token.
const GUARDED: [&Refusal; 3] = [&NoToken, &NotAllowed, &TooManyRequests];

/// Refusals of all writes.
const WRITE: [&Refusal; 2] = [&NotWritable, &Full];

/// Refusals of writes without a body and without other conflicts.
const ALONE: [&Refusal; 2] = [&LostClaim, &KeyReused];

/// Refusals of all routes with a body.
const BODY: [&Refusal; 3] = [&InvalidBody, &BodyTimeout, &TooLarge];

/// Why a request cannot be claimed or done.
const WHYS: [&str; 6] =
    ["blocked", "not_before", "running_max", "in_review", "cancelled", "failed"];

/// The answer to a reader with a current copy.
const NOT_MODIFIED: &str = "NotModified";

/// The answer to a request whose head is too large to reach the router.
const HEAD_TOO_LARGE: &str = "HeadTooLarge";

macro_rules! sets {
    ($($(#[$doc:meta])* $set:ident $(($known:ident))? = [$($refusal:ident),*] $(+ $more:ident)*;)+) => {$(
        $(#[$doc])*
        pub(crate) struct $set;

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
    /// Refusals of routes outside sessions.
    ServerRefusals = [InvalidQuery];
    NoticesRefusals = [InvalidQuery, NoPlace];
    ReadinessRefusals = [InvalidQuery, NotReady];
    /// Refusals of lists across sessions, and of this document.
    ListRefusals(NOT_MODIFIED) = [InvalidQuery, Precondition];
    SearchRefusals = [InvalidQuery, NoLog, NotReadable];
    DescribeRefusals(NOT_MODIFIED) = [InvalidRequest, NoSession, PreconditionOrTest, NotReadable];
    /// Refusals of reads that take no past revision.
    ReadNowRefusals(NOT_MODIFIED) = [InvalidRequest, NoSession, NotReadable, Precondition];
    AttentionRefusals(NOT_MODIFIED) = [InvalidRequest, NoSession, NotReadable, Precondition];
    /// Refusals of reads that take a past revision.
    ReadRefusals(NOT_MODIFIED) = [InvalidRequest, NoPoint, Compacted, NotReadable, Precondition];
    ReadPromptRefusals(NOT_MODIFIED) = [InvalidRequest, NoPoint, Compacted, OverBudget, NotReadable, Precondition];
    FollowRefusals(NOT_MODIFIED) = [InvalidRequest, Unreadable, Precondition];
    AuditRefusals(NOT_MODIFIED) = [InvalidRequest, NoSession, Compacted, NotReadable, Precondition];
    DiffRefusals(NOT_MODIFIED) = [InvalidRequest, NoPoint, Compacted, NotReadable, Precondition];
    ReadLogRefusals(NOT_MODIFIED) = [InvalidRequest, NoPastLog, Compacted, NotReadable, Precondition];
    ReadCheckpointRefusals(NOT_MODIFIED) = [InvalidRequest, NoCheckpoint, NotReadable, Precondition];
    ReadEntryRefusals(NOT_MODIFIED) = [InvalidRequest, NoPastLogEntry, Compacted, PreconditionOrTest, NotReadable];
    ReadImageRefusals(NOT_MODIFIED) = [InvalidRequest, NoPastImage, Compacted, NoSuchRange, NotShowable, NotReadable, Precondition];
    ReadBlobRefusals(NOT_MODIFIED) = [InvalidRequest, NoPastBlob, Compacted, NoSuchRange, NotReadable, Precondition];
    ReadStateRefusals(NOT_MODIFIED) = [InvalidRequest, NoPastState, Compacted, PreconditionOrTest, TooDeepPath, NotReadable];
    ReadAgentRefusals(NOT_MODIFIED) = [InvalidRequest, NoPastAgent, Compacted, PreconditionOrTest, NotReadable];
    /// Refusals of creating or changing a session, and of replacing its board.
    PutRefusals = [NoSession, SpentBudget, Precondition, InvalidDocument] + BODY + WRITE;
    /// Refusals of deleting a session, and of clearing its board.
    RemoveRefusals = [InvalidRequest, NoSession, Precondition, TooLargeToCommit] + ALONE + WRITE;
    AppendRefusals = [NoLog, SpentBudget, Precondition, InvalidItems] + BODY + WRITE;
    ReplaceRefusals = [NoLog, SpentBudget, Precondition, InvalidList] + BODY + WRITE;
    RemoveEntriesRefusals = [InvalidRequest, NoLog, Awaited, Precondition, TooLargeToCommit, KeyReused] + WRITE;
    PutEntryRefusals = [NoLogEntry, LostClaim, Precondition, InvalidItem] + BODY + WRITE;
    PatchEntryRefusals = [NoLogEntry, LostClaim, PreconditionOrTest, InvalidPatch] + BODY + WRITE;
    RemoveEntryRefusals = [InvalidRequest, NoLogEntry, Awaited, Precondition, TooLargeToCommit, KeyReused] + WRITE;
    PutBlobRefusals = [NoSession, LostClaim, Precondition, InvalidBlob, InvalidWrite, BodyTimeout, TooLarge] + WRITE;
    PostBlobRefusals = [NoSession, LostClaim, Precondition, KeyReused, InvalidWrite, BodyTimeout, TooLarge] + WRITE;
    PutStateRefusals = [NoSession, Blocked, Precondition, InvalidValue] + BODY + WRITE;
    PatchStateRefusals = [NoSession, BlockedOrNoNumber, Precondition, InvalidOperation] + BODY + WRITE;
    RemoveStateRefusals = [InvalidRequest, NoState, LostClaim, Precondition, TooDeepPath, TooLargeToCommit] + WRITE;
    PutAgentRefusals = [NoSession, WrongMove, Precondition, InvalidProfile] + BODY + WRITE;
    PatchAgentRefusals = [NoAgent, WrongMove, Precondition, InvalidProfile] + BODY + WRITE;
    RemoveAgentRefusals = [InvalidRequest, NoAgent, Precondition, TooLargeToCommit] + ALONE + WRITE;
    ClaimRefusals = [AnonymousBody, NoEntry, NoNewClaim, BodyTimeout, TooLarge, Precondition, InvalidTerms] + WRITE;
    ReleaseRefusals = [Anonymous, NoEntry, Claimed, Precondition, TooLargeToCommit, KeyReused] + WRITE;
    ClaimNextRefusals = [AnonymousBody, NoSession, SpentBudget, BodyTimeout, TooLarge, Precondition, InvalidOutcome] + WRITE;
    FinishRefusals = [NoEntry, NotClaimable, Precondition, InvalidOutcome] + BODY + WRITE;
    RetryRefusals = [NoEntry, Claimed, Precondition, InvalidTerms] + BODY + WRITE;
    CancelRefusals = [NoEntry, NotClaimable, Precondition, InvalidOutcome] + BODY + WRITE;
    VerdictRefusals = [AnonymousBody, NoEntry, WrongMove, BodyTimeout, TooLarge, Precondition, InvalidOutcome] + WRITE;
    AckRefusals = [InvalidRequest, NoEntry, Precondition, TooLargeToCommit] + ALONE + WRITE;
    AnswerRefusals = [NoEntry, Answered, Precondition, InvalidOutcome] + BODY + WRITE;
    CheckpointRefusals = [NoSession, LostClaim, Precondition, InvalidTerms] + BODY + WRITE;
    RemoveCheckpointRefusals = [InvalidRequest, NoCheckpoint, Precondition, TooLargeToCommit] + ALONE + WRITE;
    ForkRefusals = [NoPoint, Exists, Compacted, Precondition, InvalidTerms] + BODY + WRITE;
    RestoreRefusals = [NoPoint, LostClaim, Compacted, Precondition, InvalidTerms] + BODY + WRITE;
    PurgeRefusals = [InvalidWrite, NoSession, LostClaim, Precondition] + WRITE;
    ReadArchiveRefusals(NOT_MODIFIED) = [InvalidRequest, NoSession, Compacted, NotReadable, Precondition];
    PutArchiveRefusals = [Exists, Precondition, InvalidTerms] + BODY + WRITE;
    TransactRefusals = [AnonymousBody, NoPart, Conflict, BodyTimeout, TooLarge, Precondition, InvalidItems] + WRITE;
}

/// Adds the refusals of a route that needs a token, with or without a session in its path.
pub(crate) fn guarded(operation: &mut Operation, in_session: bool) {
    let session = in_session.then_some(&NoSession);
    let responses = &mut operation.responses.responses;
    for refusal in GUARDED.into_iter().chain(session) {
        let status = refusal.status().as_u16().to_string();
        responses.entry(status).or_insert_with(|| reference(refusal));
    }
}

/// Removes `route-not-found` from a refusal: the path names a fixed log, which is always a route.
pub(crate) fn without_names(response: &mut RefOr<Response>) {
    let reads = [(&NoPastLog, &NoPoint), (&NoPastLogEntry, &NoPastEntry)];
    in_place_of(response, &[(&NoLog, &NoSession), (&NoLogEntry, &NoEntry)]);
    in_place_of(response, &reads);
}

/// Removes `path-not-found` and `too-deep` from a refusal: the path is the whole state, which always exists.
pub(crate) fn without_paths(response: &mut RefOr<Response>) {
    in_place_of(response, &[(&NoState, &NoSession), (&TooDeepPath, &KeyReused)]);
    in_place_of(response, &[(&NoPastState, &NoPoint)]);
}

/// Removes `has-dependants` from a refusal: only requests wait for others.
pub(crate) fn without_dependants(response: &mut RefOr<Response>) {
    in_place_of(response, &[(&Awaited, &LostClaim)]);
}

/// Replaces the refusal of items with that of routes that take no images.
pub(crate) fn without_images(response: &mut RefOr<Response>) {
    in_place_of(response, &[(&InvalidItems, &InvalidItem)]);
}

fn in_place_of(response: &mut RefOr<Response>, changes: &[(&Refusal, &Refusal)]) {
    let found = changes.iter().find(|(from, _)| *response == reference(from));
    if let Some((_, to)) = found {
        *response = reference(to);
    }
}

/// Returns the refusals that operations refer to, by name.
pub(crate) fn components(paths: &Paths) -> BTreeMap<String, RefOr<Response>> {
    let operations = paths.paths.values().flat_map(|item| {
        let PathItem { get, put, post, patch, delete, .. } = item;
        [get, put, post, patch, delete].into_iter().flatten()
    });
    let responses = operations.flat_map(|operation| operation.responses.responses.values());
    let named = responses.filter_map(|response| match response {
        RefOr::Ref(named) => named.ref_location.rsplit('/').next(),
        RefOr::T(_) => None,
    });
    let named: HashSet<&str> = named.collect();
    let head = ResponseBuilder::new()
        .description(
            "The request line and headers are too large; no body, and the connection is closed",
        )
        .build();
    let refusals =
        REFUSALS.iter().map(|refusal| (refusal.name.to_owned(), refusal.response().into()));
    let known = ResponseBuilder::new()
        .description("The client's copy is current")
        .header("ETag", text_header("The tag of the copy"))
        .header(TAG, tag_header())
        .header("Blackboard-Revision", revision_header())
        .build();
    refusals
        .chain([(NOT_MODIFIED.to_owned(), known.into()), (HEAD_TOO_LARGE.to_owned(), head.into())])
        .filter(|(name, _)| named.contains(name.as_str()))
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
            Some("For a write, its current target: an entry, an agent or a value in the state")
        } else if self.codes.contains(&Code::ConditionNotMet) {
            Some("The current value in the state")
        } else {
            None
        };
        if let Some(told) = current {
            let any = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
            own = own.property("current", any.description(Some(told)));
        }
        let has = |code| self.codes.contains(&code);
        let why: Option<(&str, &[&str])> = if has(Code::ConditionNotMet) {
            Some(("Present if the condition can be met no more", &["done", "failed", "cancelled"]))
        } else if has(Code::IllegalTransition) && has(Code::AlreadyClaimed) {
            Some(("Present if the request cannot be claimed or done", &WHYS))
        } else {
            None
        };
        if let Some((told, words)) = why {
            let word = ObjectBuilder::new().schema_type(Type::String);
            let word = word.enum_values(Some(words.iter().copied())).description(Some(told));
            own = own.property("why", word);
        }
        if self.codes.contains(&Code::HistoryCompacted) {
            let oldest = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
            let told = "The oldest retained revision";
            own = own.property("oldest_revision", oldest.description(Some(told)));
        }
        if self.codes.contains(&Code::StorePoisoned) && self.codes.len() > 1 {
            let unknown = ObjectBuilder::new()
                .schema_type(Type::String)
                .enum_values(Some(["unknown"]))
                .description(Some("Present if the write may have been committed"));
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
        let mut headers = Vec::new();
        if self.codes.iter().any(|code| code.is_at_revision()) {
            headers.push(("Blackboard-Revision", revision_header()));
        }
        match self.status() {
            StatusCode::PRECONDITION_FAILED if self.codes.contains(&Code::PreconditionFailed) => {
                headers.push(("ETag", text_header("The current tag of the target")));
                headers.push((TAG, tag_header()));
            }
            StatusCode::UNSUPPORTED_MEDIA_TYPE => headers.extend([
                ("Accept-Post", text_header("The media types accepted for a body")),
                ("Accept-Patch", text_header("The media types accepted for a patch")),
                ("Accept-Encoding", text_header("The content codings accepted for a body")),
            ]),
            StatusCode::RANGE_NOT_SATISFIABLE => {
                headers.push((
                    "Content-Range",
                    text_header("The total number of bytes, as `bytes */N`"),
                ));
            }
            StatusCode::UNAUTHORIZED => {
                let challenge =
                    text_header("`Bearer` (RFC 6750), with the reason if a token was rejected");
                headers.push(("WWW-Authenticate", required(challenge)));
            }
            StatusCode::FORBIDDEN => {
                let challenge = text_header("The missing scope, if the token lacks one");
                headers.push(("WWW-Authenticate", challenge));
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1));
                let told = "The time to wait before a retry, in seconds";
                let header = HeaderBuilder::new().schema(Some(seconds)).description(Some(told));
                headers.push(("Retry-After", required(header.build())));
            }
            _ => {}
        }
        headers
    }
}
