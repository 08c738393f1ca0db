//! Stable refusal codes, for clients to match on, one row each. The text beside a code may change.

macro_rules! codes {
    ($(
        $(#[doc = $meaning:literal])+
        $code:ident $word:literal $title:literal $($at_revision:ident)?;
    )+) => {
        /// A stable code of a refusal or failure.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[doc = $meaning])+ $code,)+
        }

        impl Code {
            /// All codes.
            pub const ALL: &[Self] = &[$(Self::$code,)+];

            /// Returns the code as sent to clients.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $word,)+
                }
            }

            /// Returns the kind of refusal, as a fixed phrase.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$code => $title,)+
                }
            }

            /// Returns the meaning and the remedy, for documents.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$code => concat!($($meaning),+).trim_ascii(),)+
                }
            }

            /// Returns true if the refusal may be decided at a revision of a session.
            #[must_use]
            pub const fn is_at_revision(self) -> bool {
                match self {
                    $(Self::$code => codes!(@is_at_revision $($at_revision)?),)+
                }
            }
        }
    };
    (@is_at_revision at_revision) => { true };
    (@is_at_revision) => { false };
}

// The meanings are those of `docs/reference/errors.md`, which a test writes.
codes! {
    /// The body is not JSON, or not NDJSON line by line.
    InvalidJson "invalid-json" "Invalid JSON";
    /// A query parameter's value is invalid; the detail says which form is expected.
    InvalidParameter "invalid-parameter" "Invalid parameter";
    /// The route has no such query parameter.
    UnknownParameter "unknown-parameter" "Unknown parameter";
    /// A name of a session, agent or checkpoint breaks its rule, or a blob's is not a SHA-256.
    InvalidName "invalid-name" "Invalid name";
    /// The path, query or body is not UTF-8, or its coding is not supported.
    InvalidEncoding "invalid-encoding" "Invalid encoding";
    /// The route needs `X-Agent-ID`.
    AgentRequired "agent-required" "Agent required";
    /// A write has `Content-Range`; send the whole body without it.
    PartialContent "partial-content" "Partial content";
    /// No valid token; send `Authorization: Bearer` or `X-API-Key`.
    Unauthorized "unauthorized" "Unauthorized";
    /// The token lacks a scope, or a signed address is invalid or expired.
    Forbidden "forbidden" "Forbidden";
    /// No such route.
    RouteNotFound "route-not-found" "Route not found";
    /// No such session, or outside the token's patterns.
    SessionNotFound "session-not-found" "Session not found";
    /// No such entry in the log.
    EntryNotFound "entry-not-found" "Entry not found" at_revision;
    /// No such path in the state.
    PathNotFound "path-not-found" "Path not found" at_revision;
    /// No such agent.
    AgentNotFound "agent-not-found" "Agent not found" at_revision;
    /// No such checkpoint.
    CheckpointNotFound "checkpoint-not-found" "Checkpoint not found" at_revision;
    /// The session has not had that revision.
    RevisionNotFound "revision-not-found" "Revision not found" at_revision;
    /// The session has no such blob, or no longer.
    BlobNotFound "blob-not-found" "Blob not found" at_revision;
    /// The entry has no image.
    NoImage "no-image" "No image";
    /// The route has other methods; see `Allow`.
    MethodNotAllowed "method-not-allowed" "Method not allowed";
    /// The body was sent too slowly.
    RequestTimeout "request-timeout" "Request timeout";
    /// The route takes other media types, or a blob's `Content-Type` is not a media type.
    UnsupportedMediaType "unsupported-media-type" "Unsupported media type";
    /// The range is beyond the image or blob.
    RangeNotSatisfiable "range-not-satisfiable" "Range not satisfiable";
    /// The `Host` or `Origin` is not allowed; see `--allowed-hosts`, `--cors-origins`.
    UnknownHost "unknown-host" "Unknown host";
    /// The question already has another answer.
    AlreadyAnswered "already-answered" "Already answered" at_revision;
    /// Another agent holds the request.
    AlreadyClaimed "already-claimed" "Already claimed";
    /// The claim of the write was lost or released.
    StaleFence "stale-fence" "Stale fence" at_revision;
    /// A part of the state's path is not an object.
    NotAnObject "not-an-object" "Not an object";
    /// The value for `add` is not a number.
    NotANumber "not-a-number" "Not a number";
    /// The agent may not go from its status to that one; the request cannot be claimed, see `why`;
    /// or it is not claimed or not in review.
    IllegalTransition "illegal-transition" "Illegal transition";
    /// A session with the name for a fork or an import exists.
    SessionExists "session-exists" "Session exists" at_revision;
    /// Other requests wait for the request.
    HasDependants "has-dependants" "Has dependants" at_revision;
    /// The costs of the session's agents have passed `settings.cost_max`.
    BudgetExhausted "budget-exhausted" "Budget exhausted" at_revision;
    /// The revision is older than the retained history; see `oldest_revision`.
    HistoryCompacted "history-compacted" "History compacted" at_revision;
    /// `If-Match` or `If-None-Match` did not hold; read again and retry.
    PreconditionFailed "precondition-failed" "Precondition failed" at_revision;
    /// The condition of `until` was not met in time, or a transaction's test failed.
    ConditionNotMet "condition-not-met" "Condition not met" at_revision;
    /// The body, or its decompressed form, exceeds its limit.
    BodyTooLarge "body-too-large" "Body too large";
    /// An item exceeds its limit.
    ItemTooLarge "item-too-large" "Item too large";
    /// The write as a whole exceeds its limit.
    CommitTooLarge "commit-too-large" "Commit too large" at_revision;
    /// An item is neither an object nor a string, or its text cannot be kept.
    UnsupportedItem "unsupported-item" "Unsupported item";
    /// A value cannot be kept, such as a number beyond its limit.
    UnsupportedValue "unsupported-value" "Unsupported value";
    /// More than 128 levels.
    TooDeep "too-deep" "Too deeply nested";
    /// The bytes are not an image of a known type, or cannot be decoded within bounds.
    NotAnImage "not-an-image" "Not an image";
    /// An item or value refers to a blob that the session does not have; the pointer names the
    /// reference. Upload the bytes first.
    NoBlob "no-blob" "No such blob" at_revision;
    /// The bytes have another SHA-256 than their address; see `sha256`.
    DigestMismatch "digest-mismatch" "Digest mismatch";
    /// An envelope has no such member.
    UnknownField "unknown-field" "Unknown field";
    /// A member's value is invalid; the pointer names it.
    InvalidField "invalid-field" "Invalid field" at_revision;
    /// The route takes an array.
    ArrayRequired "array-required" "Array required";
    /// The key was used with another request.
    IdempotencyKeyReused "idempotency-key-reused" "Idempotency key reused";
    /// Open questions and the state alone exceed `max_tokens`.
    BudgetTooSmall "budget-too-small" "Budget too small";
    /// The token exceeds its rate or its streams; wait for `Retry-After`.
    RateLimited "rate-limited" "Rate limited";
    /// A fault of the server; the log has its cause.
    Internal "internal" "Internal error";
    /// A queue, pool or limit is full; wait for `Retry-After`.
    Overloaded "overloaded" "Overloaded";
    /// A failed write left the store in doubt; restart the server.
    StorePoisoned "store-poisoned" "Store poisoned";
    /// The session is damaged, or the database is locked or malformed.
    StoreUnavailable "store-unavailable" "Store unavailable";
    /// `min_revision` was not reached in time.
    RevisionNotReached "revision-not-reached" "Revision not reached" at_revision;
    /// A limit of the session is reached.
    SessionFull "session-full" "Session full" at_revision;
    /// The disk or the number of sessions is at its limit; deletions still succeed. For a full disk, `directory` has
    /// the place, `free_bytes` the free bytes, and `reserve_bytes` how many of them only deletions may use.
    StoreFull "store-full" "Store full";
}
