//! Changes of a board, grouped by the changed thing.

use std::sync::Arc;

use super::facts::Contents;
use super::restored::Restored;
use crate::model::agent::Profile;
use crate::model::due::Due;
use crate::model::open_questions::Awaited;
use crate::model::settings::{Labels, Settings};
use crate::state::StatePath;
use crate::{
    AgentName, BlobRef, CheckpointName, Digest, Image, Item, Json, LogName, MediaType, Plan,
    Revision, Seq, SeqRange, SessionName, Timestamp,
};

/// A change of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The session as a whole changed.
    Session(SessionChange),
    /// A log changed.
    Log(LogName, LogChange),
    /// The state changed at a path.
    State(StatePath, StateChange),
    /// An agent changed.
    Agent(AgentName, AgentChange),
    /// A request's claim or result changed.
    Request(Seq, RequestChange),
    /// A checkpoint changed.
    Checkpoint(CheckpointName, CheckpointChange),
    /// Questions wait for an answer until a deadline.
    Awaited {
        /// The first question; the others follow in sequence.
        first: Seq,
        /// The last question.
        last: Seq,
        /// The deadline, and the answer after it.
        until: Awaited,
    },
    /// New requests got a plan.
    Planned {
        /// The first request; the others follow in sequence.
        first: Seq,
        /// The last request.
        last: Seq,
        /// The plan.
        plan: Plan,
    },
    /// A value, claim, question or session expired.
    Expired(Due),
}

/// A change of the session as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChange {
    /// The session was created.
    Created {
        /// The session's name.
        name: SessionName,
        /// The session's settings.
        settings: Arc<Settings>,
        /// The session's labels.
        labels: Arc<Labels>,
    },
    /// The session's settings and labels were replaced.
    Configured {
        /// All settings.
        settings: Arc<Settings>,
        /// All labels.
        labels: Arc<Labels>,
    },
    /// The session was deleted with all its data.
    Deleted,
    /// The board was restored to an earlier revision, and all claims ended.
    Restored(Box<Restored>),
    /// A history from a fork or an archive was adopted under this name. The change is alone in its commit, whose
    /// revision is above the history's and the name's. All earlier claims, keys and fences end.
    Adopted {
        /// The session's new name.
        name: SessionName,
        /// The name's last revision before the adoption, or 0.
        after: Revision,
        /// The session that it was forked from.
        fork_of: Option<SessionName>,
    },
    /// Images that no retained revision names are no longer counted, and their bytes may be deleted.
    ImagesForgotten {
        /// The images' digests, in ascending order.
        images: Vec<Digest>,
    },
    /// Something happened that changes nothing on the board.
    Noted(Note),
    /// A blob was uploaded, perhaps again. Its bytes were stored before.
    BlobPut {
        /// The digest of its bytes.
        sha256: Digest,
        /// Its size in bytes.
        bytes: u64,
        /// Its media type.
        media_type: MediaType,
    },
}

/// An event without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// The costs of all agents have passed the session's budget.
    BudgetExhausted,
}

/// A change of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogChange {
    /// Items were appended.
    Appended {
        /// The seq of the first item; the others follow in sequence.
        first: Seq,
        /// The items.
        items: Vec<Item>,
    },
    /// All entries were removed.
    Cleared,
    /// Some entries were removed.
    Removed {
        /// The ranges of removed entries.
        ranges: Vec<SeqRange>,
    },
    /// The item of an entry was replaced.
    Updated {
        /// The entry.
        seq: Seq,
        /// The new item.
        item: Item,
    },
    /// A message was acknowledged.
    Acked {
        /// The message.
        seq: Seq,
    },
}

/// A change of the state at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// A value was put, with or without a deadline. Deadlines of the old value and below it end.
    Put {
        /// The value.
        value: Json,
        /// The deadline, if any.
        expires_at: Option<Timestamp>,
    },
    /// A value was set; its deadline is kept.
    Set {
        /// The value.
        value: Json,
    },
    /// A merge patch (RFC 7396) was applied. The RFC fixes its meaning, so the patch is a result, not a rule.
    Merged {
        /// The patch.
        patch: Json,
    },
    /// Elements were appended to an array, created if absent.
    Appended {
        /// The new elements.
        elements: Vec<Json>,
    },
    /// The value was deleted. For the root, all members were.
    Removed,
}

/// A change of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentChange {
    /// The agent was registered, or its profile replaced.
    Put {
        /// The whole profile.
        profile: Profile,
    },
    /// The agent was removed, and its memory and messages emptied.
    Removed,
}

/// A change of a request's claim or result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestChange {
    /// The request was claimed, or its claim renewed.
    Claimed {
        /// The agent.
        agent: AgentName,
        /// The revision at which the claim was won.
        fence: Revision,
        /// The deadline.
        expires_at: Timestamp,
    },
    /// The claim was released.
    Released,
    /// A claim ended without success.
    Failed {
        /// The reason, if given.
        reason: Option<Json>,
        /// The time before which the request cannot be claimed again, if given.
        retry_at: Option<Timestamp>,
    },
    /// A request that failed or was cancelled got all its attempts again.
    Retried {
        /// The new deadline, if any.
        deadline: Option<Timestamp>,
    },
    /// A claimed request was cancelled, which ends with its claim.
    CancelRequested {
        /// The reason, if given.
        reason: Option<Json>,
    },
    /// The request was cancelled.
    Cancelled {
        /// The reason, if given.
        reason: Option<Json>,
    },
    /// The result of a request was judged.
    Verdict {
        /// True if the request is done with it. False for a failed attempt.
        accepted: bool,
        /// The reason, if given.
        reason: Option<Json>,
    },
    /// The request was finished.
    Finished {
        /// The fence of the claim under which the request was finished, if any.
        fence: Option<Revision>,
        /// The result.
        result: Option<Json>,
    },
}

/// A change of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointChange {
    /// The checkpoint was set to this commit's revision.
    Put,
    /// The checkpoint was removed.
    Removed,
}

impl Change {
    /// Returns the kind in one word, as in the stored form.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.facts().kind
    }

    /// Returns the name of the session that the change creates or adopts, if any.
    #[must_use]
    pub fn session_name(&self) -> Option<&SessionName> {
        if let Self::Session(
            SessionChange::Created { name, .. } | SessionChange::Adopted { name, .. },
        ) = self
        {
            Some(name)
        } else {
            None
        }
    }

    /// Returns the images of the change's items and of the entries that a restore brings back.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        let restored = self.restored().into_iter().flat_map(Restored::entries);
        let items = self.items().iter().chain(restored.map(|entry| &entry.item));
        items.filter_map(Item::image)
    }

    /// Returns the digests that the change's texts refer to.
    pub fn blobs(&self) -> impl Iterator<Item = Digest> {
        let texts = self.texts().into_iter();
        let named = texts.flat_map(|(name, text)| BlobRef::all_under(name, text));
        named.map(|blob| blob.sha256)
    }

    /// Returns the digest of the blob that was uploaded, if the change is an upload.
    #[must_use]
    pub fn uploaded(&self) -> Option<Digest> {
        if let Self::Session(SessionChange::BlobPut { sha256, .. }) = self {
            Some(*sha256)
        } else {
            None
        }
    }

    /// Returns the texts that may refer to blobs, each with the name of the member that has it as its value, if any.
    fn texts(&self) -> Vec<(Option<&str>, &str)> {
        match self.facts().contents {
            Contents::Items(items) => items.iter().map(|item| (None, item.text())).collect(),
            Contents::Value(name, value) => vec![(name, value.text())],
            Contents::Values(values) => values.iter().map(|value| (None, value.text())).collect(),
            Contents::Restored(restored) => {
                let entries = restored.entries().flat_map(|entry| entry.texts());
                let entries = entries.map(|text| (None, text));
                let values = restored.state.iter();
                let values =
                    values.filter_map(|(path, value)| Some((path.name(), value.as_ref()?.text())));
                entries.chain(values).collect()
            }
            Contents::Nothing
            | Contents::Settings(..)
            | Contents::Profile(_)
            | Contents::Requests(_)
            | Contents::Images(_)
            | Contents::Blob(_) => Vec::new(),
        }
    }

    fn restored(&self) -> Option<&Restored> {
        if let Self::Session(SessionChange::Restored(restored)) = self {
            Some(restored)
        } else {
            None
        }
    }

    /// Returns the change's items.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        if let Contents::Items(items) = self.facts().contents { items } else { &[] }
    }
}
