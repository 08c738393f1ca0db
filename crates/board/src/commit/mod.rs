//! Commits: the results of writes, so that a replay needs no rule.

pub(crate) mod apply;
mod change;
mod facts;
mod requests;
mod restore_diff;
pub(crate) mod restored;

use super::log::Stamp;
use super::model::idempotency::Kept;
use super::{AgentName, LogName, Nonce, Revision, Timestamp, TraceId};
pub use change::{
    AgentChange, Change, CheckpointChange, LogChange, Note, RequestChange, SessionChange,
    StateChange,
};
pub use facts::{COMMIT_KINDS, Contents, Facts, Indexed, Part};
use facts::{TRANSACTION, UNCHANGED};

/// The maximum number of items in one commit.
pub const COMMIT_ITEMS_MAX: usize = 500_000;

/// The maximum number of images that one commit forgets.
pub const IMAGES_FORGOTTEN_MAX: usize = 10_000;

/// The changes of one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The revision that the commit creates.
    pub revision: Revision,
    /// The time of the commit, never before that of the previous commit.
    pub at: Timestamp,
    /// The author, if named.
    pub agent: Option<AgentName>,
    /// The trace of the request that made the commit, if it named one.
    pub trace: Option<TraceId>,
    /// A nonce that identifies the commit.
    pub nonce: Nonce,
    /// The write's idempotency key and its answer, if a key was given.
    pub kept: Option<Kept>,
    /// The changes, in order.
    pub changes: Vec<Change>,
}

impl Commit {
    /// Returns true if an item of the commit has a stored image.
    #[must_use]
    pub fn names_images(&self) -> bool {
        self.changes.iter().flat_map(Change::items).any(|item| item.image().is_some())
    }

    /// Returns true if the commit deletes the session.
    #[must_use]
    pub fn ends_session(&self) -> bool {
        self.changes.iter().any(|change| matches!(change.facts().part, Part::Session))
    }

    /// Returns true if the commit only removes. Expiry counts as removal even where an expired question gets an
    /// answer, since it must succeed in a full session.
    #[must_use]
    pub fn only_removes(&self) -> bool {
        let ends = self.ends_session();
        // Creation and deletion in one commit end a session that could not be read.
        let is_end = |change: &Change| {
            ends && matches!(change, Change::Session(SessionChange::Created { .. }))
        };
        self.is_system()
            || !self.changes.is_empty()
                && self.changes.iter().all(|change| change.facts().removes || is_end(change))
    }

    /// Returns true if the commit may directly follow this revision.
    #[must_use]
    pub fn follows(&self, after: Revision) -> bool {
        let adopts =
            matches!(self.changes.as_slice(), [Change::Session(SessionChange::Adopted { .. })]);
        self.revision == after.next() || (adopts && self.revision > after)
    }

    /// Returns true for a system commit: an expiry, or forgotten images.
    #[must_use]
    pub fn is_system(&self) -> bool {
        let first = self.changes.first();
        matches!(
            first,
            Some(Change::Expired(_) | Change::Session(SessionChange::ImagesForgotten { .. }))
        )
    }

    /// Returns the commit's kind in one word: the kind of its changes, `transaction` if they differ, or `unchanged`
    /// if the commit only keeps an answer.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        let mut kinds = self.changes.iter().map(Change::kind);
        let Some(first) = kinds.next() else { return UNCHANGED };
        if kinds.all(|kind| kind == first) { first } else { TRANSACTION }
    }

    /// Returns true if the commit may change the questions, or delete or replace the session.
    #[must_use]
    pub fn touches_questions(&self) -> bool {
        self.touches(&LogName::Questions)
    }

    /// Returns true if the commit may change which requests are claimable, or delete or replace the session.
    #[must_use]
    pub fn touches_requests(&self) -> bool {
        let is_configured =
            |change: &Change| matches!(change, Change::Session(SessionChange::Configured { .. }));
        self.touches(&LogName::Requests) || self.changes.iter().any(is_configured)
    }

    fn touches(&self, log: &LogName) -> bool {
        self.changes.iter().any(|change| change.facts().part.touches(log))
    }

    /// Returns the revision, time and author for the envelopes of the commit's entries.
    #[must_use]
    pub fn stamp(&self) -> Stamp<'_> {
        Stamp { revision: self.revision, at: self.at, agent: self.agent.as_ref() }
    }
}
