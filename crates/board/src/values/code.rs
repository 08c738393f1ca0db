//! Stable refusal codes, for clients to match on. The text beside a code may change.

macro_rules! codes {
    ($($code:ident = $word:literal,)+) => {
        /// A stable code of a refusal or failure.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(
            missing_docs,
            reason = "each variant is its own code; the table of the HTTP contract explains them"
        )]
        pub enum Code {
            $($code,)+
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
        }
    };
}

codes! {
    InvalidJson = "invalid-json",
    InvalidParameter = "invalid-parameter",
    UnknownParameter = "unknown-parameter",
    InvalidName = "invalid-name",
    InvalidEncoding = "invalid-encoding",
    AgentRequired = "agent-required",
    PartialContent = "partial-content",
    Unauthorized = "unauthorized",
    Forbidden = "forbidden",
    RouteNotFound = "route-not-found",
    SessionNotFound = "session-not-found",
    EntryNotFound = "entry-not-found",
    PathNotFound = "path-not-found",
    AgentNotFound = "agent-not-found",
    CheckpointNotFound = "checkpoint-not-found",
    RevisionNotFound = "revision-not-found",
    BlobNotFound = "blob-not-found",
    NoImage = "no-image",
    MethodNotAllowed = "method-not-allowed",
    RequestTimeout = "request-timeout",
    UnsupportedMediaType = "unsupported-media-type",
    RangeNotSatisfiable = "range-not-satisfiable",
    UnknownHost = "unknown-host",
    AlreadyAnswered = "already-answered",
    AlreadyClaimed = "already-claimed",
    StaleFence = "stale-fence",
    NotAnObject = "not-an-object",
    NotANumber = "not-a-number",
    IllegalTransition = "illegal-transition",
    SessionExists = "session-exists",
    HasDependants = "has-dependants",
    BudgetExhausted = "budget-exhausted",
    HistoryCompacted = "history-compacted",
    PreconditionFailed = "precondition-failed",
    ConditionNotMet = "condition-not-met",
    BodyTooLarge = "body-too-large",
    ItemTooLarge = "item-too-large",
    CommitTooLarge = "commit-too-large",
    UnsupportedItem = "unsupported-item",
    UnsupportedValue = "unsupported-value",
    TooDeep = "too-deep",
    NotAnImage = "not-an-image",
    NoBlob = "no-blob",
    DigestMismatch = "digest-mismatch",
    UnknownField = "unknown-field",
    InvalidField = "invalid-field",
    ArrayRequired = "array-required",
    IdempotencyKeyReused = "idempotency-key-reused",
    BudgetTooSmall = "budget-too-small",
    RateLimited = "rate-limited",
    Internal = "internal",
    Overloaded = "overloaded",
    StorePoisoned = "store-poisoned",
    StoreUnavailable = "store-unavailable",
    RevisionNotReached = "revision-not-reached",
    SessionFull = "session-full",
    StoreFull = "store-full",
}
