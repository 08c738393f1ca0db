//! Entries as the document describes them.

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::board;

/// An item in its envelope.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of what a view writes")]
pub(crate) struct EntryBody {
    /// Its place in its log, from 1, never used again.
    #[schema(example = 17)]
    seq: u64,
    /// The revision of its last change.
    #[schema(example = 1042)]
    revision: u64,
    /// When it was appended, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    at: String,
    /// Who appended it, where somebody was named.
    #[schema(required = false, nullable = false)]
    agent: Option<String>,
    /// When it was last changed, if it ever was.
    #[schema(required = false, nullable = false, format = DateTime)]
    updated_at: Option<String>,
    /// By whom it was last changed.
    #[schema(required = false, nullable = false)]
    updated_by: Option<String>,
    /// Until when a question waits for its answer, where it does not wait for ever.
    #[schema(required = false, nullable = false, format = DateTime)]
    expires_at: Option<String>,
    /// Who works on a request.
    #[schema(required = false, nullable = false)]
    claim: Option<ClaimBody>,
    /// That a request is done, and what came of it.
    #[schema(required = false, nullable = false)]
    done: Option<DoneBody>,
    /// What was sent.
    #[schema(value_type = Object)]
    item: Box<RawValue>,
    /// The stored image, with `images=url`.
    #[schema(required = false, nullable = false)]
    image: Option<ImageBody>,
}

/// A stored image.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of what a view writes")]
pub(crate) struct ImageBody {
    /// Where its bytes are.
    url: String,
    /// Its media type.
    #[schema(example = "image/png")]
    media_type: String,
    /// How many bytes it has.
    bytes: u64,
    /// Their SHA-256, in hexadecimal.
    sha256: String,
    /// Its width in pixels, where it can be told.
    #[schema(required = false, nullable = false)]
    width: Option<u32>,
    /// Its height in pixels, where it can be told.
    #[schema(required = false, nullable = false)]
    height: Option<u32>,
}

/// An agent's claim on a request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClaimBody {
    /// Whose it is.
    agent: String,
    /// The revision at which it was won.
    fence: u64,
    /// When it runs out, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    expires_at: String,
}

impl From<&board::Claim> for ClaimBody {
    fn from(claim: &board::Claim) -> Self {
        Self {
            agent: claim.agent.to_string(),
            fence: claim.fence.0,
            expires_at: claim.expires_at.to_string(),
        }
    }
}

/// The end of a request.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the document's form of what a view writes")]
pub(crate) struct DoneBody {
    /// Who finished it, where somebody was named.
    #[schema(required = false, nullable = false)]
    agent: Option<String>,
    /// When, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    at: String,
    /// The fence of the claim under which it was finished.
    #[schema(required = false, nullable = false)]
    fence: Option<u64>,
    /// What came of it.
    #[schema(required = false, value_type = Value)]
    result: Box<RawValue>,
}
