//! Long answers, written piece by piece from a snapshot.

use crate::service::ServiceError;

/// How large a piece is made before it is sent.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// Up to this size an answer is made whole before its first byte is sent.
pub(crate) const WHOLE_BYTES_MAX: usize = 256 << 10;

/// Something that writes itself piece by piece.
pub(crate) trait Pieces: Send + 'static {
    /// Writes the next piece, of about [`PIECE_BYTES`]; `false` when it was the last one.
    fn write(
        &mut self,
        out: &mut String,
    ) -> impl Future<Output = Result<bool, ServiceError>> + Send;
}
