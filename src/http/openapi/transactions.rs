//! Schemas of a transaction's tests and operations.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::intake::input::Kind as _;
use crate::api::intake::kinds::WantedMembers;
use crate::api::schema::TtlText;

macro_rules! forms {
    ($($(#[$doc:meta])* $union:ident = $($(#[$member_doc:meta])* $variant:ident: $member:ident {
        $($(#[$field_doc:meta])* $field:ident: $kind:ty,)+
    })|+;)+) => {$(
        $(#[$doc])*
        #[derive(Serialize, ToSchema)]
        #[serde(untagged)]
        #[expect(dead_code, reason = "the OpenAPI schema of a part that is stored as JSON text")]
        pub(in crate::http) enum $union {
            $($variant($member),)+
        }

        $(
            $(#[$member_doc])*
            #[derive(Serialize, ToSchema)]
            #[serde(deny_unknown_fields)]
            pub(in crate::http) struct $member {
                $($(#[$field_doc])* $field: $kind,)+
            }
        )+
    )+};
}

forms! {
    /// A test of the board.
    TestBody =
        /// True if the value at a path of the state equals this one: numbers by value, members in any order.
        Equals: TestEquals { path: PathText, equals: Value, } |
        /// True if a path of the state is absent, or with `false` if it exists.
        Absent: TestAbsent { path: PathText, absent: bool, } |
        /// True if the value at a path of the state has this tag.
        Tag: TestTag { path: PathText, etag: String, } |
        /// True if a log has this number of entries.
        Count: TestCount { log: LogText, count: u64, } |
        /// True if a request is neither claimed, done, failed nor blocked, or with `false` if it is.
        Claimable: TestClaimable { request: u64, claimable: bool, } |
        /// True if the session is at this revision.
        Revision: TestRevision { revision: u64, };

    /// An operation. Each operation sees the changes of the operations before it.
    OperationBody =
        /// Sets a value in the state.
        Put: PutOperation {
            put: PathText, value: Value,
            #[schema(required = false, nullable = false)]
            #[serde(skip_serializing_if = "Option::is_none")]
            ttl: Option<TtlText>,
        } |
        /// Applies a merge patch (RFC 7396) to a value in the state.
        Patch: PatchOperation { patch: PathText, value: Value, } |
        /// Adds to a number in the state.
        Add: AddOperation { add: PathText, value: f64, } |
        /// Deletes a value from the state.
        Delete: DeleteOperation { delete: PathText, } |
        /// Appends an item to a log.
        Append: AppendOperation {
            append: LogText,
            #[schema(value_type = BTreeMap<String, serde_json::Value>)]
            item: Value,
            /// The requests that must be done first; no effect on logs other than `requests`.
            #[schema(required = false, nullable = false, max_items = 1000, minimum = 1)]
            #[serde(skip_serializing_if = "Option::is_none")]
            after: Option<Vec<u64>>,
            /// The number of claims that may end without success; no effect on logs other than `requests`.
            #[schema(required = false, nullable = false, minimum = 1, maximum = 1000)]
            #[serde(skip_serializing_if = "Option::is_none")]
            attempts: Option<u32>,
        } |
        /// Claims a request.
        Claim: ClaimOperation {
            claim: u64,
            #[schema(required = false, nullable = false)]
            #[serde(skip_serializing_if = "Option::is_none")]
            ttl: Option<TtlText>,
        } |
        /// Claims the oldest claimable request with these members.
        ClaimNext: ClaimNextOperation {
            #[schema(schema_with = WantedMembers::schema)]
            claim_next: Value,
            #[schema(required = false, nullable = false)]
            #[serde(skip_serializing_if = "Option::is_none")]
            ttl: Option<TtlText>,
        } |
        /// Marks a request as done.
        Done: DoneOperation {
            done: u64,
            #[schema(required = false, nullable = false, minimum = 1)]
            #[serde(skip_serializing_if = "Option::is_none")]
            fence: Option<u64>,
            #[schema(required = false)]
            result: Value,
        } |
        /// Answers an open question.
        Answer: AnswerOperation {
            answer: u64,
            #[schema(pattern = r"\S")]
            value: String,
        } |
        /// Sets the status of an agent.
        Status: StatusOperation { status: AgentText, value: String, };
}

/// A path in the state: keys separated by `/`. In a key `~1` is `/` and `~0` is `~` (RFC 6901). The empty path is the
/// whole state.
#[derive(Serialize, ToSchema)]
#[schema(
    pattern = r"^(([A-Za-z0-9_-]|~[01])+(/([A-Za-z0-9_-]|~[01])+)*)?$",
    example = "tasks/t1/status"
)]
pub(in crate::http) struct PathText(String);

/// `questions`, `requests`, `trajectories`, `screenshots` or `agents/{agent}/memory`.
#[derive(Serialize, ToSchema)]
#[schema(pattern = "^(questions|requests|trajectories|screenshots|agents/[A-Za-z0-9_~-]+/memory)$")]
pub(in crate::http) struct LogText(String);

/// An agent's name.
#[derive(Serialize, ToSchema)]
#[schema(pattern = "^[A-Za-z0-9_~-]+$", max_length = 256, example = "AppAgent")]
pub(in crate::http) struct AgentText(String);
