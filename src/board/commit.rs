//! A commit: what happened, as results and not as requests, so that replaying it needs no rule.

use std::sync::Arc;

use super::agent::Profile;
use super::idempotency::Kept;
use super::log::Stamp;
use super::settings::{Labels, Settings};
use super::state::StatePath;
use super::{
    AgentName, Item, Json, LogName, Nonce, Revision, Seq, SeqRange, SessionName, Timestamp,
};

/// The most items that one commit may bring.
pub const COMMIT_ITEMS_MAX: usize = 500_000;

/// Everything that one write changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The revision that it makes.
    pub revision: Revision,
    /// When; never before the commit before it.
    pub at: Timestamp,
    /// Who, where one was named.
    pub agent: Option<AgentName>,
    /// A mark to know this commit by.
    pub nonce: Nonce,
    /// The key that the write had, with what it was answered.
    pub kept: Option<Kept>,
    /// What changed, in order.
    pub changes: Vec<Change>,
}

impl Commit {
    /// Whether one of its items has a stored image.
    #[must_use]
    pub fn names_images(&self) -> bool {
        self.changes.iter().flat_map(Change::items).any(|item| item.image().is_some())
    }

    /// Whether the session is no more after it.
    #[must_use]
    pub fn ends_session(&self) -> bool {
        let ends =
            |change: &Change| matches!(change, Change::Deleted | Change::Expired(Due::Session));
        self.changes.iter().any(ends)
    }

    /// Whether it takes something away, and does nothing else but keep the answer to that.
    #[must_use]
    pub fn only_removes(&self) -> bool {
        !self.changes.is_empty()
            && self.changes.iter().all(|change| {
                matches!(
                    change,
                    Change::Deleted
                        | Change::Cleared { .. }
                        | Change::Removed { .. }
                        | Change::StateRemoved { .. }
                        | Change::AgentRemoved { .. }
                        | Change::Released { .. }
                        | Change::Expired(_)
                )
            })
    }

    /// Whether it only took note of what ran out, so that nobody wrote anything.
    #[must_use]
    pub fn is_expiry(&self) -> bool {
        !self.changes.is_empty() && self.changes.iter().all(|c| matches!(c, Change::Expired(_)))
    }

    /// What the envelopes that it makes take from it.
    #[must_use]
    pub fn stamp(&self) -> Stamp<'_> {
        Stamp { revision: self.revision, at: self.at, agent: self.agent.as_ref() }
    }
}

/// One change of a board.
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
        /// What was added.
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
        /// Those that it lost: every entry in these ranges.
        ranges: Vec<SeqRange>,
    },
    /// An entry has another item.
    Updated {
        /// Which log.
        log: LogName,
        /// Which entry.
        seq: Seq,
        /// What it holds now.
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
    /// A merge patch (RFC 7396) was applied to a path of the state. That this is no rule of ours makes
    /// it a result: anybody who applies it has the same, in every version.
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
        /// What was added at its end.
        elements: Vec<Json>,
    },
    /// A path of the state is no more; of the root, all below it.
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
    /// An agent is no more, and its memory is empty.
    AgentRemoved {
        /// Which agent.
        agent: AgentName,
    },
    /// A request was claimed, or its claim renewed.
    Claimed {
        /// Which request.
        seq: Seq,
        /// By whom.
        agent: AgentName,
        /// The revision at which the claim was won.
        fence: Revision,
        /// Until when.
        expires_at: Timestamp,
    },
    /// A claim was given back.
    Released {
        /// On which request.
        seq: Seq,
    },
    /// A request is done.
    Finished {
        /// Which request.
        seq: Seq,
        /// Under which claim, where there was one.
        fence: Option<Revision>,
        /// What came of it.
        result: Option<Json>,
    },
    /// Something came to its end because its time was over.
    Expired(Due),
}

/// What may come to its end by time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// A path of the state goes away.
    State(StatePath),
    /// A claim on a request runs out.
    Claim(Seq),
    /// The session goes, with all it has.
    Session,
}

impl Change {
    /// The name of the session that it makes, where it makes one.
    #[must_use]
    pub fn session_name(&self) -> Option<&SessionName> {
        if let Self::Created { name, .. } = self { Some(name) } else { None }
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
            | Self::Expired(_) => &[],
        }
    }
}
