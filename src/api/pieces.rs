//! Long response bodies, written in pieces from a snapshot.

use crate::service::ServiceError;

/// The size from which a piece is sent.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// The maximum size of an answer that is complete before its first byte is sent.
pub(crate) const WHOLE_BYTES_MAX: usize = 256 << 10;

/// An answer that is written in pieces.
pub(crate) trait Pieces: Send + 'static {
    /// Writes the next piece, of about [`PIECE_BYTES`]. Returns `false` if the piece was the last.
    fn write(
        &mut self,
        out: &mut String,
    ) -> impl Future<Output = Result<bool, ServiceError>> + Send;
}
