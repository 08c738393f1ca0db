//! The revision of a value's last change, shared by all parts of the change.
//!
//! The revision is set once, by the writer, so a value can be built before it is known.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::board::Revision;

/// No revision of a session.
const UNKNOWN: u64 = u64::MAX;

// Not a `OnceLock`, which takes a third more: many values have one of their own.
#[derive(Clone)]
pub(super) struct Changed(Arc<AtomicU64>);

impl Changed {
    pub(super) fn at(revision: Revision) -> Self {
        Self(Arc::new(AtomicU64::new(revision.0)))
    }

    /// A revision that is not known yet. The value is not published before.
    pub(super) fn unknown() -> Self {
        Self(Arc::new(AtomicU64::new(UNKNOWN)))
    }

    pub(super) fn revision(&self) -> Revision {
        // A reader got the value by a lock that was taken after the revision was told.
        Revision(self.0.load(Ordering::Relaxed))
    }

    /// Sets the revision, and returns whether it is this one now.
    pub(super) fn tell(&self, revision: Revision) -> bool {
        let (new, relaxed) = (revision.0, Ordering::Relaxed);
        let told = self.0.compare_exchange(UNKNOWN, new, relaxed, relaxed);
        told.is_ok() || told == Err(new)
    }
}

// What is not known yet is equal to nothing else.
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
