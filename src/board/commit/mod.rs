//! Commits: the results of writes, so that a replay needs no rule.

pub(crate) mod apply;
mod restore_diff;
pub(crate) mod restored;

use std::sync::Arc;

use super::log::Stamp;
use super::model::agent::Profile;
use super::model::due::Due;
use super::model::idempotency::Kept;
use super::model::open_questions::Awaited;
use super::model::settings::{Labels, Settings};
use super::state::StatePath;
use super::{
    AgentName, CheckpointName, Digest, Image, Item, Json, LogName, Nonce, Revision, Seq, SeqRange,
    SessionName, Timestamp,
};
use restored::Restored;

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
        let ends =
            |change: &Change| matches!(change, Change::Deleted | Change::Expired(Due::Session));
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
                    let is_end = ends && matches!(change, Change::Created { .. });
                    is_end
                        || matches!(
                            change,
                            Change::Deleted
                                | Change::Cleared { .. }
                                | Change::Removed { .. }
                                | Change::StateRemoved { .. }
                                | Change::AgentRemoved { .. }
                                | Change::Released { .. }
                                | Change::CheckpointRemoved { .. }
                        )
                })
    }

    /// Whether it may come right after this revision.
    #[must_use]
    pub fn follows(&self, after: Revision) -> bool {
        let adopts = matches!(self.changes.as_slice(), [Change::Adopted { .. }]);
        self.revision == after.next() || (adopts && self.revision > after)
    }

    /// Whether it is a system commit: an expiry, or forgotten images.
    #[must_use]
    pub fn is_nobodys(&self) -> bool {
        let first = self.changes.first();
        matches!(first, Some(Change::Expired(_) | Change::ImagesForgotten { .. }))
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
            Change::Appended { log, .. }
            | Change::Cleared { log }
            | Change::Removed { log, .. }
            | Change::Updated { log, .. } => *log == LogName::Questions,
            Change::Deleted
            | Change::Expired(Due::Session)
            | Change::Awaited { .. }
            | Change::Restored(_)
            | Change::Adopted { .. } => true,
            Change::Created { .. }
            | Change::Configured { .. }
            | Change::StatePut { .. }
            | Change::StateSet { .. }
            | Change::StateMerged { .. }
            | Change::StateAppended { .. }
            | Change::StateRemoved { .. }
            | Change::AgentPut { .. }
            | Change::AgentRemoved { .. }
            | Change::Claimed { .. }
            | Change::Released { .. }
            | Change::Finished { .. }
            | Change::Expired(_)
            | Change::CheckpointPut { .. }
            | Change::CheckpointRemoved { .. }
            | Change::ImagesForgotten { .. } => false,
        })
    }

    /// Returns what its entries' envelopes take from it.
    #[must_use]
    pub fn stamp(&self) -> Stamp<'_> {
        Stamp { revision: self.revision, at: self.at, agent: self.agent.as_ref() }
    }
}

/// A change of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The session was made.
    Created {
        /// Its name.
        name: SessionName,
        /// Its settings.
        settings: Arc<Settings>,
        /// Its labels.
        labels: Arc<Labels>,
    },
    /// Its settings and labels are now these.
    Configured {
        /// All of its settings.
        settings: Arc<Settings>,
        /// All of its labels.
        labels: Arc<Labels>,
    },
    /// The session was deleted, with all it had.
    Deleted,
    /// Items were added at the end of a log.
    Appended {
        /// Which log.
        log: LogName,
        /// The seq of the first; the others follow one by one.
        first: Seq,
        /// The items.
        items: Vec<Item>,
    },
    /// A log lost all its entries.
    Cleared {
        /// Which log.
        log: LogName,
    },
    /// A log lost some entries.
    Removed {
        /// Which log.
        log: LogName,
        /// The ranges of removed entries.
        ranges: Vec<SeqRange>,
    },
    /// An entry has another item.
    Updated {
        /// Which log.
        log: LogName,
        /// Which entry.
        seq: Seq,
        /// The new item.
        item: Item,
    },
    /// A path of the state has this value, and lives until then or for ever. The lifetimes of what was
    /// there and below are over.
    StatePut {
        /// Which path.
        path: StatePath,
        /// Its value.
        value: Json,
        /// When it goes away by itself.
        expires_at: Option<Timestamp>,
    },
    /// A path of the state has this value, and lives as long as it did.
    StateSet {
        /// Which path.
        path: StatePath,
        /// Its value.
        value: Json,
    },
    /// A merge patch (RFC 7396) was applied to a path of the state. Its meaning is fixed by the RFC, so it is a result
    /// and not a rule.
    StateMerged {
        /// Which path.
        path: StatePath,
        /// The patch.
        patch: Json,
    },
    /// An array in the state has more elements.
    StateAppended {
        /// Which path; it was absent if there was no array.
        path: StatePath,
        /// The new elements.
        elements: Vec<Json>,
    },
    /// A path of the state was deleted; for the root, everything below it.
    StateRemoved {
        /// Which path.
        path: StatePath,
    },
    /// An agent is registered, or says something else of itself.
    AgentPut {
        /// Which agent.
        agent: AgentName,
        /// All that it says.
        profile: Profile,
    },
    /// An agent was removed, and its memory emptied.
    AgentRemoved {
        /// Which agent.
        agent: AgentName,
    },
    /// A request was claimed, or its claim renewed.
    Claimed {
        /// Which request.
        seq: Seq,
        /// The agent.
        agent: AgentName,
        /// The revision at which the claim was won.
        fence: Revision,
        /// Until when.
        expires_at: Timestamp,
    },
    /// A claim was given back.
    Released {
        /// The request.
        seq: Seq,
    },
    /// A request is done.
    Finished {
        /// Which request.
        seq: Seq,
        /// Under which claim, where there was one.
        fence: Option<Revision>,
        /// The result.
        result: Option<Json>,
    },
    /// Something expired.
    Expired(Due),
    /// Questions wait for an answer until a moment only.
    Awaited {
        /// The first one; the others follow one by one.
        first: Seq,
        /// The last one.
        last: Seq,
        /// Until when, and what the answer is without one.
        until: Awaited,
    },
    /// A checkpoint was set on this commit's revision.
    CheckpointPut {
        /// The name.
        name: CheckpointName,
    },
    /// A checkpoint was removed.
    CheckpointRemoved {
        /// The name.
        name: CheckpointName,
    },
    /// The board was restored to an earlier revision, and all claims ended.
    Restored(Box<Restored>),
    /// A history was adopted under this name, from a fork or an archive. It is the only change of its commit, whose
    /// revision is above the history's and the name's. All claims, keys and fences from before end.
    Adopted {
        /// The session's name from now on.
        name: SessionName,
        /// The last revision of the name before it; 0 where it had none.
        after: Revision,
        /// The session that it was forked from.
        fork_of: Option<SessionName>,
    },
    /// Images that no entry names any more do not count, and their bytes may go. What is kept of the history
    /// before it does not name them either.
    ImagesForgotten {
        /// Their digests, in ascending order.
        images: Vec<Digest>,
    },
}

impl Change {
    /// Returns the kind in one word, the same as in the stored form.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Created { .. } => "created",
            Self::Configured { .. } => "configured",
            Self::Deleted => "deleted",
            Self::Appended { .. } => "appended",
            Self::Cleared { .. } => "cleared",
            Self::Removed { .. } => "removed",
            Self::Updated { .. } => "updated",
            Self::StatePut { .. } => "state_put",
            Self::StateSet { .. } => "state_set",
            Self::StateMerged { .. } => "state_merged",
            Self::StateAppended { .. } => "state_appended",
            Self::StateRemoved { .. } => "state_removed",
            Self::AgentPut { .. } => "agent_put",
            Self::AgentRemoved { .. } => "agent_removed",
            Self::Claimed { .. } => "claimed",
            Self::Released { .. } => "released",
            Self::Finished { .. } => "finished",
            Self::Expired(Due::State(_)) => "state_expired",
            Self::Expired(Due::Claim(_)) => "claim_expired",
            Self::Expired(Due::Question(_)) => "question_expired",
            Self::Expired(Due::Session) => "session_expired",
            Self::Awaited { .. } => "awaited",
            Self::CheckpointPut { .. } => "checkpoint_put",
            Self::CheckpointRemoved { .. } => "checkpoint_removed",
            Self::Restored(_) => "restored",
            Self::Adopted { .. } => "adopted",
            Self::ImagesForgotten { .. } => "images_forgotten",
        }
    }

    /// The name of the session that it makes, or brings here, where it does.
    #[must_use]
    pub fn session_name(&self) -> Option<&SessionName> {
        if let Self::Created { name, .. } | Self::Adopted { name, .. } = self {
            Some(name)
        } else {
            None
        }
    }

    /// Returns the images of its items, and of the entries that a restore brings back.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        let restored = if let Self::Restored(restored) = self { &*restored.logs } else { &[] };
        let entries = restored.iter().flat_map(|(_, log)| &log.entries);
        let items = self.items().iter().chain(entries.map(|entry| &entry.item));
        items.filter_map(Item::image)
    }

    /// The items that it brings.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        match self {
            Self::Appended { items, .. } => items,
            Self::Updated { item, .. } => std::slice::from_ref(item),
            Self::Created { .. }
            | Self::Configured { .. }
            | Self::Deleted
            | Self::Cleared { .. }
            | Self::Removed { .. }
            | Self::StatePut { .. }
            | Self::StateSet { .. }
            | Self::StateMerged { .. }
            | Self::StateAppended { .. }
            | Self::StateRemoved { .. }
            | Self::AgentPut { .. }
            | Self::AgentRemoved { .. }
            | Self::Claimed { .. }
            | Self::Released { .. }
            | Self::Finished { .. }
            | Self::Expired(_)
            | Self::Awaited { .. }
            | Self::CheckpointPut { .. }
            | Self::CheckpointRemoved { .. }
            | Self::Restored(_)
            | Self::Adopted { .. }
            | Self::ImagesForgotten { .. } => &[],
        }
    }
}
