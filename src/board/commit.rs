//! A commit: what happened, as results and not as requests, so that replaying it needs no rule.

use std::sync::Arc;

use super::log::Stamp;
use super::settings::{Labels, Settings};
use super::{AgentName, Item, LogName, Nonce, Revision, Seq, SeqRange, SessionName, Timestamp};

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
    /// What changed, in order.
    pub changes: Vec<Change>,
}

impl Commit {
    /// Whether one of its items has a stored image.
    #[must_use]
    pub fn names_images(&self) -> bool {
        self.changes.iter().flat_map(Change::items).any(|item| item.image().is_some())
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
}

impl Change {
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
            | Self::Removed { .. } => &[],
        }
    }
}
