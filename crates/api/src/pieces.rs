//! Long response bodies, written in pieces from a snapshot.

use blackboard_service::{Export, ServiceError};

/// The size from which a piece is sent.
pub const PIECE_BYTES: usize = 64 << 10;

/// The maximum size of an answer that is complete before its first byte is sent.
pub const WHOLE_BYTES_MAX: usize = 256 << 10;

/// An answer that is written in pieces.
pub trait Pieces: Send + 'static {
    /// Writes the next piece, of about [`PIECE_BYTES`]. Returns `false` if the piece was the last.
    fn write(
        &mut self,
        out: &mut String,
    ) -> impl Future<Output = Result<bool, ServiceError>> + Send;
}

impl Pieces for Export {
    async fn write(&mut self, out: &mut String) -> Result<bool, ServiceError> {
        let Some(lines) = self.next().await? else { return Ok(false) };
        if out.is_empty() {
            *out = lines;
        } else {
            out.push_str(&lines);
        }
        Ok(true)
    }
}
