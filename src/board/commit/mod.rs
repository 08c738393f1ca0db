//! Commits: the results of writes, so that a replay needs no rule.

pub(crate) mod apply;
mod change;
mod restore_diff;
pub(crate) mod restored;

use super::log::Stamp;
use super::model::due::Due;
use super::model::idempotency::Kept;
use super::{AgentName, LogName, Nonce, Revision, Timestamp};
pub use change::{
    AgentChange, Change, CheckpointChange, LogChange, RequestChange, SessionChange, StateChange,
};

/// The most items that one commit may bring.
pub const COMMIT_ITEMS_MAX: usize = 500_000;

/// The most images that one commit may forget.
pub const IMAGES_FORGOTTEN_MAX: usize = 10_000;

/// Everything that one write changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The revision that it makes.
    pub revision: Revision,
    /// When; never before the commit before it.
    pub at: Timestamp,
    /// The author, if named.
    pub agent: Option<AgentName>,
    /// A mark to know this commit by.
    pub nonce: Nonce,
    /// The key that the write had, with what it was answered.
    pub kept: Option<Kept>,
    /// The changes, in order.
    pub changes: Vec<Change>,
}

impl Commit {
    /// Whether one of its items has a stored image.
    #[must_use]
    pub fn names_images(&self) -> bool {
        self.changes.iter().flat_map(Change::items).any(|item| item.image().is_some())
    }

    /// Whether the commit deletes the session.
    #[must_use]
    pub fn ends_session(&self) -> bool {
        let ends = |change: &Change| {
            matches!(
                change,
                Change::Session(SessionChange::Deleted) | Change::Expired(Due::Session)
            )
        };
        self.changes.iter().any(ends)
    }

    /// Whether the commit only removes. Expiry counts as removal, although an expired question gets an answer, since it
    /// must succeed in a full session too.
    #[must_use]
    pub fn only_removes(&self) -> bool {
        let ends = self.ends_session();
        self.is_nobodys()
            || !self.changes.is_empty()
                && self.changes.iter().all(|change| {
                    // What is made and ended at once is the end of a session that could not be read.
                    let is_end =
                        ends && matches!(change, Change::Session(SessionChange::Created { .. }));
                    is_end
                        || matches!(
                            change,
                            Change::Session(SessionChange::Deleted)
                                | Change::Log(_, LogChange::Cleared | LogChange::Removed { .. })
                                | Change::State(_, StateChange::Removed)
                                | Change::Agent(_, AgentChange::Removed)
                                | Change::Request(_, RequestChange::Released)
                                | Change::Checkpoint(_, CheckpointChange::Removed)
                        )
                })
    }

    /// Whether it may come right after this revision.
    #[must_use]
    pub fn follows(&self, after: Revision) -> bool {
        let adopts =
            matches!(self.changes.as_slice(), [Change::Session(SessionChange::Adopted { .. })]);
        self.revision == after.next() || (adopts && self.revision > after)
    }

    /// Whether it is a system commit: an expiry, or forgotten images.
    #[must_use]
    pub fn is_nobodys(&self) -> bool {
        let first = self.changes.first();
        matches!(
            first,
            Some(Change::Expired(_) | Change::Session(SessionChange::ImagesForgotten { .. }))
        )
    }

    /// The commit's kind in one word: that of its changes, `transaction` if they differ, or `unchanged` if it only
    /// keeps an answer.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        let mut kinds = self.changes.iter().map(Change::kind);
        let Some(first) = kinds.next() else { return "unchanged" };
        if kinds.all(|kind| kind == first) { first } else { "transaction" }
    }

    /// Whether questions, or all of the session, may be others after it.
    #[must_use]
    pub fn touches_questions(&self) -> bool {
        self.changes.iter().any(|change| match change {
            Change::Log(log, _) => *log == LogName::Questions,
            Change::Session(
                SessionChange::Deleted | SessionChange::Restored(_) | SessionChange::Adopted { .. },
            )
            | Change::Expired(Due::Session)
            | Change::Awaited { .. } => true,
            Change::Session(
                SessionChange::Created { .. }
                | SessionChange::Configured { .. }
                | SessionChange::ImagesForgotten { .. },
            )
            | Change::State(_, _)
            | Change::Agent(_, _)
            | Change::Request(_, _)
            | Change::Expired(_)
            | Change::Checkpoint(_, _) => false,
        })
    }

    /// Returns what its entries' envelopes take from it.
    #[must_use]
    pub fn stamp(&self) -> Stamp<'_> {
        Stamp { revision: self.revision, at: self.at, agent: self.agent.as_ref() }
    }
}
