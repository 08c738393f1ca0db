//! Pins, which protect images from garbage collection.
//!
//! A write pins its images until it is decided; an export or a fork pins all images of a session. An image is pinned
//! before it is stored, or before the board is checked for it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use blackboard_board::{Digest, SessionId};

/// An image of a session, or all of them.
type PinKey = (SessionId, Option<Digest>);

/// Pinned images, with the number of pins of each.
#[derive(Debug, Default)]
pub(crate) struct ImagePins(Mutex<HashMap<PinKey, usize>>);

/// A pin: until it is dropped, its images are not collected.
#[derive(Debug)]
pub(crate) struct ImagePin {
    pins: Arc<ImagePins>,
    held: Vec<PinKey>,
}

impl ImagePins {
    /// Pins some images of a session.
    pub(crate) fn images(
        self: &Arc<Self>,
        session: SessionId,
        images: impl Iterator<Item = Digest>,
    ) -> ImagePin {
        self.hold(images.map(|sha256| (session, Some(sha256))).collect())
    }

    /// Pins all present and future images of a session.
    pub(crate) fn session(self: &Arc<Self>, session: SessionId) -> ImagePin {
        self.hold(vec![(session, None)])
    }

    fn hold(self: &Arc<Self>, held: Vec<PinKey>) -> ImagePin {
        let mut counts = self.0.lock();
        for each in &held {
            *counts.entry(*each).or_default() += 1;
        }
        ImagePin { pins: Arc::clone(self), held }
    }

    /// Returns true if this image is pinned.
    pub(crate) fn contains(&self, session: SessionId, sha256: Digest) -> bool {
        let counts = self.0.lock();
        [(session, Some(sha256)), (session, None)].iter().any(|held| counts.contains_key(held))
    }
}

impl Drop for ImagePin {
    fn drop(&mut self) {
        let mut counts = self.pins.0.lock();
        for each in &self.held {
            if let Some(count) = counts.get_mut(each) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(each);
                }
            }
        }
    }
}
