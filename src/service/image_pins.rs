//! Images that somebody counts on although no published board need name them: those of a write until it is
//! decided, and all of a session while an archive or a fork is made of it. The collector leaves them alone.
//!
//! Who holds an image does so before it is stored, or before looking whether the board still knows it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::board::{Digest, SessionId};

/// An image of a session, or all of them.
type Held = (SessionId, Option<Digest>);

/// What is held, and by how many.
#[derive(Debug, Default)]
pub(crate) struct Holds(Mutex<HashMap<Held, usize>>);

/// While it is there, what it holds is left alone.
#[derive(Debug)]
pub(crate) struct Hold {
    holds: Arc<Holds>,
    held: Vec<Held>,
}

impl Holds {
    /// Holds some images of a session.
    pub(crate) fn images(
        self: &Arc<Self>,
        session: SessionId,
        images: impl Iterator<Item = Digest>,
    ) -> Hold {
        self.hold(images.map(|sha256| (session, Some(sha256))).collect())
    }

    /// Holds all images that a session has or will have.
    pub(crate) fn session(self: &Arc<Self>, session: SessionId) -> Hold {
        self.hold(vec![(session, None)])
    }

    fn hold(self: &Arc<Self>, held: Vec<Held>) -> Hold {
        let mut counts = self.0.lock();
        for each in &held {
            *counts.entry(*each).or_default() += 1;
        }
        Hold { holds: Arc::clone(self), held }
    }

    /// Whether somebody holds this image.
    pub(crate) fn are_on(&self, session: SessionId, sha256: Digest) -> bool {
        let counts = self.0.lock();
        [(session, Some(sha256)), (session, None)].iter().any(|held| counts.contains_key(held))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut counts = self.holds.0.lock();
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
