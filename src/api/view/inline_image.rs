//! An item with its image inline, written piece by piece. An image may have 20 MiB.

use crate::service::{ImagePieces, ServiceError};

/// What is left to write of such an item.
pub(crate) struct Inline {
    image: ImagePieces,
    after: String,
}

impl Inline {
    /// An image, and what comes after it.
    pub(crate) fn new(image: ImagePieces, after: &str) -> Self {
        Self { image, after: after.to_owned() }
    }

    /// The same with more behind it.
    pub(crate) fn and(mut self, more: &str) -> Self {
        self.after.push_str(more);
        self
    }

    /// Writes the next piece; `false` when it was the last one.
    pub(crate) async fn write(&mut self, out: &mut String) -> Result<bool, ServiceError> {
        match self.image.next().await? {
            Some(piece) => {
                // Base64, after the head that was sent.
                out.push_str(str::from_utf8(&piece).map_err(|_| ServiceError::Fault)?);
                Ok(true)
            }
            None => {
                out.push_str(&self.after);
                Ok(false)
            }
        }
    }

    /// Writes all of it.
    pub(crate) async fn write_all(mut self, out: &mut String) -> Result<(), ServiceError> {
        while self.write(out).await? {}
        Ok(())
    }
}
