//! Items with inline images, written piece by piece.

use blackboard_service::{ImagePieces, ServiceError};

/// The rest of an item with an inline image.
pub struct Inline {
    image: ImagePieces,
    after: String,
}

impl Inline {
    /// Creates the rest of an item from an image and the text after it.
    pub(crate) fn new(image: ImagePieces, after: &str) -> Self {
        Self { image, after: after.to_owned() }
    }

    /// Adds text at the end.
    pub(crate) fn and(mut self, more: &str) -> Self {
        self.after.push_str(more);
        self
    }

    /// Writes the next piece; returns false after the last one.
    pub async fn write(&mut self, out: &mut String) -> Result<bool, ServiceError> {
        match self.image.next().await? {
            Some(piece) => {
                // The base64 text after the head, which was written already.
                out.push_str(str::from_utf8(&piece).map_err(|_| ServiceError::Fault)?);
                Ok(true)
            }
            None => {
                out.push_str(&self.after);
                Ok(false)
            }
        }
    }

    /// Writes the whole rest.
    pub(crate) async fn write_all(mut self, out: &mut String) -> Result<(), ServiceError> {
        while self.write(out).await? {}
        Ok(())
    }
}
