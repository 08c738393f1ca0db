//! The stable codes of refusals: what a client may match on, whatever the sentence beside it says.

/// Why something was refused or failed, in one stable word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    missing_docs,
    reason = "each variant is its own code; the table of the HTTP contract explains them"
)]
pub enum Code {
    InvalidJson,
    InvalidParameter,
    UnknownParameter,
    InvalidName,
    InvalidEncoding,
    Forbidden,
    RouteNotFound,
    SessionNotFound,
    EntryNotFound,
    NoImage,
    MethodNotAllowed,
    RequestTimeout,
    UnsupportedMediaType,
    UnknownHost,
    PreconditionFailed,
    ConditionNotMet,
    BodyTooLarge,
    ItemTooLarge,
    CommitTooLarge,
    UnsupportedItem,
    UnsupportedValue,
    TooDeep,
    NotAnImage,
    UnknownField,
    InvalidField,
    ArrayRequired,
    Internal,
    Overloaded,
    StorePoisoned,
    StoreUnavailable,
    RevisionNotReached,
    SessionFull,
    StoreFull,
}

impl Code {
    /// The code as it stands on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidJson => "invalid-json",
            Self::InvalidParameter => "invalid-parameter",
            Self::UnknownParameter => "unknown-parameter",
            Self::InvalidName => "invalid-name",
            Self::InvalidEncoding => "invalid-encoding",
            Self::Forbidden => "forbidden",
            Self::RouteNotFound => "route-not-found",
            Self::SessionNotFound => "session-not-found",
            Self::EntryNotFound => "entry-not-found",
            Self::NoImage => "no-image",
            Self::MethodNotAllowed => "method-not-allowed",
            Self::RequestTimeout => "request-timeout",
            Self::UnsupportedMediaType => "unsupported-media-type",
            Self::UnknownHost => "unknown-host",
            Self::PreconditionFailed => "precondition-failed",
            Self::ConditionNotMet => "condition-not-met",
            Self::BodyTooLarge => "body-too-large",
            Self::ItemTooLarge => "item-too-large",
            Self::CommitTooLarge => "commit-too-large",
            Self::UnsupportedItem => "unsupported-item",
            Self::UnsupportedValue => "unsupported-value",
            Self::TooDeep => "too-deep",
            Self::NotAnImage => "not-an-image",
            Self::UnknownField => "unknown-field",
            Self::InvalidField => "invalid-field",
            Self::ArrayRequired => "array-required",
            Self::Internal => "internal",
            Self::Overloaded => "overloaded",
            Self::StorePoisoned => "store-poisoned",
            Self::StoreUnavailable => "store-unavailable",
            Self::RevisionNotReached => "revision-not-reached",
            Self::SessionFull => "session-full",
            Self::StoreFull => "store-full",
        }
    }
}
