//! The failure to write a part of the demonstration.

use png::EncodingError;

/// A part of the demonstration that cannot be written.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum Unwritable {
    #[error("cannot write JSON")]
    Json(#[from] serde_json::Error),
    #[error("cannot encode a picture")]
    Picture(#[from] EncodingError),
}
