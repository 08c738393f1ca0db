//! The bytes of an image on their way to the store.

use std::sync::Arc;

use blackboard_board::{Digest, Item, Screenshot};

/// An image to be stored before the write that names it.
#[derive(Clone, Debug)]
pub struct ImageBytes {
    /// Its digest.
    pub sha256: Digest,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
}

impl ImageBytes {
    /// Splits a screenshot into its item and the image to be stored, if any.
    #[must_use]
    pub fn split(screenshot: Screenshot) -> (Item, Vec<Self>) {
        let Screenshot { item, bytes, .. } = screenshot;
        let image = item.image().zip(bytes);
        let images = image.map(|(image, bytes)| Self { sha256: image.sha256, bytes: bytes.into() });
        let images = images.into_iter().collect();
        (item, images)
    }
}
