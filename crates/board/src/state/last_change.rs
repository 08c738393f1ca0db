//! The revision of a value's last change.
//!
//! All parts of a change share one revision. The writer sets the revision once, so that a value can be built before
//! the revision is known.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Revision;

/// A number that is never a session's revision.
const UNKNOWN: u64 = u64::MAX;

// A `OnceLock` would take a third more memory, and many values have their own revision.
#[derive(Clone)]
pub(super) struct Changed(Arc<AtomicU64>);

impl Changed {
    pub(super) fn at(revision: Revision) -> Self {
        Self(Arc::new(AtomicU64::new(revision.0)))
    }

    /// Creates a revision to be set later. The value must not be published until then.
    pub(super) fn unknown() -> Self {
        Self(Arc::new(AtomicU64::new(UNKNOWN)))
    }

    pub(super) fn revision(&self) -> Revision {
        // Relaxed: readers obtain the value through a lock that was taken after the revision was set.
        Revision(self.0.load(Ordering::Relaxed))
    }

    /// Sets the revision. Returns true if it is `revision` now.
    pub(super) fn tell(&self, revision: Revision) -> bool {
        let (new, relaxed) = (revision.0, Ordering::Relaxed);
        let told = self.0.compare_exchange(UNKNOWN, new, relaxed, relaxed);
        told.is_ok() || told == Err(new)
    }
}

// An unknown revision equals only itself.
impl PartialEq for Changed {
    fn eq(&self, other: &Self) -> bool {
        let (own, theirs) = (self.revision(), other.revision());
        own == theirs && (own.0 != UNKNOWN || Arc::ptr_eq(&self.0, &other.0))
    }
}

impl Eq for Changed {}

impl fmt::Debug for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.revision().fmt(f)
    }
}
